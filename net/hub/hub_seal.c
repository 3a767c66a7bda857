/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Digests of what has ended.  Runs in cloopd-net; the bytes are what a
 * device sent, and are only counted and hashed.
 */
#include "hub_seal.h"

#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "common/output/logindex.h"
#include "hub.h"

struct hseal {
	TAILQ_ENTRY(hseal) link;
	uint64_t number;	/* of the handle */
	uint64_t max;
	int fd[2];		/* LOGINDEX_IN_*; -1: has not come */
	EVP_MD_CTX *md[2];
	int started;
	struct logindex_scan scan;
};

void
hseal_init(struct hseal_list *l)
{
	TAILQ_INIT(l);
}

static void
hseal_free(struct hseal_list *l, struct hseal *s)
{
	int i;

	TAILQ_REMOVE(l, s, link);
	for (i = 0; i < 2; i++) {
		if (s->fd[i] != -1)
			close(s->fd[i]);
		EVP_MD_CTX_free(s->md[i]);
	}
	free(s);
}

static struct hseal *
hseal_new(struct hseal_list *l, uint64_t number, uint64_t max)
{
	struct hseal *s = calloc(1, sizeof(*s));

	if (s == NULL)
		fatal("seal", "reason=out-of-memory");
	s->number = number;
	s->max = max;
	s->fd[0] = s->fd[1] = -1;
	TAILQ_INSERT_TAIL(l, s, link);
	return s;
}

void
hseal_on_file(struct hub *hub, struct imsg *m, struct msg_handle_seal *v)
{
	struct hseal *s = TAILQ_LAST(&hub->seals, hseal_list);
	int at = v->log ? LOGINDEX_IN_LOG : LOGINDEX_IN_INDEX;

	if (s == NULL || s->number != v->handle || at == LOGINDEX_IN_INDEX)
		s = hseal_new(&hub->seals, v->handle, v->max);
	if (s->fd[at] != -1)
		fatal("monitor-message", "type=HANDLE_SEAL reason=twice");
	s->fd[at] = imsg_take_fd(m);
}

static int
hseal_add(void *arg, int at, const void *data, size_t len)
{
	struct hseal *s = arg;

	return EVP_DigestUpdate(s->md[at], data, len) == 1 ? CL_OK :
	    CL_NOMEM;
}

static int
hseal_start(struct hseal *s)
{
	int i;

	if (s->started)
		return CL_OK;
	s->started = 1;
	for (i = 0; i < 2; i++)
		if ((s->md[i] = EVP_MD_CTX_new()) == NULL ||
		    EVP_DigestInit_ex(s->md[i], EVP_sha256(), NULL) != 1)
			return CL_NOMEM;
	return logindex_scan_start(&s->scan, s->fd[LOGINDEX_IN_LOG],
	    s->fd[LOGINDEX_IN_INDEX], s->max);
}

/* "": it could not be had. */
static const char *
hseal_get_hex(struct hseal *s, int at, char hex[65])
{
	uint8_t md[EVP_MAX_MD_SIZE];
	unsigned int len;

	if (EVP_DigestFinal_ex(s->md[at], md, &len) == 1 && len == 32)
		util_format_hex(md, len, hex);
	return hex;
}

static void
hseal_send(struct hub *hub, struct hseal *s, int is_known)
{
	struct msg_handle_sealed body = { .handle = s->number,
	    .log_bytes = s->scan.len[LOGINDEX_IN_LOG],
	    .index_bytes = s->scan.len[LOGINDEX_IN_INDEX],
	    .log_sha256 = "", .index_sha256 = "" };
	char log[65] = "", index[65] = "";

	if (is_known) {
		body.log_sha256 = hseal_get_hex(s, LOGINDEX_IN_LOG, log);
		body.index_sha256 = hseal_get_hex(s, LOGINDEX_IN_INDEX, index);
	}
	HUB_SEND(hub, HANDLE_SEALED, &body);
}

int
hseal_run(struct hub *hub)
{
	struct hseal *s = TAILQ_FIRST(&hub->seals);
	int r;

	if (s == NULL || s->fd[LOGINDEX_IN_LOG] == -1)
		return 0;
	if ((r = hseal_start(s)) == CL_OK && (r = logindex_scan_run(&s->scan,
	    HSEAL_SLICE, hseal_add, s)) == CL_INCOMPLETE)
		return 1;
	if (r != CL_OK)
		log_warn("handle-seal", "handle=%llu reason=%s",
		    (unsigned long long)s->number, log_q(cl_strerror(r)));
	hseal_send(hub, s, r == CL_OK);
	hseal_free(&hub->seals, s);
	return !TAILQ_EMPTY(&hub->seals);
}
