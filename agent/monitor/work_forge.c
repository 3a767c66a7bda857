/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Looking up the forge and the proxies, in the device monitor, by the
 * resolver role of agentd-fetch: the packet filter of a git job must know
 * its addresses before anything of the job runs, and git is told the same
 * ones.  A name that has none (a forge that only its proxy can resolve) is
 * left out; when none has, the job would have nobody to talk to.
 */
#include <sys/socket.h>

#include <arpa/inet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/xmem.h"
#include "common/model/forge.h"
#include "common/model/url.h"
#include "sandbox/box/cgroup.h"
#include "sandbox/box/shim.h"
#include "agentd.h"
#include "resolve.h"
#include "work.h"

/* Each name's addresses fit a pin and the peers: 7 * 8 are below 64. */
#define WORK_FORGE_PIN_MAX                                                     \
	(MAX_HOST_LEN + 10 + MAX_RESOLVED * (INET6_ADDRSTRLEN + 3))

struct work_forge {
	struct work *k;
	work_next_fn *next;
	struct resolve resolve;
	struct event *turn;		/* the next question, or `next` */
	int is_cancelled;
	struct forge_name names[FORGE_NAMES];
	size_t n, at;
	char why[MAX_ADDRS_ERROR_LEN + MAX_HOST_LEN + 64];
};

static void
work_forge_free(struct work_forge *f)
{
	if (f == NULL)
		return;
	resolve_clear(&f->resolve);
	if (f->turn != NULL)
		event_free(f->turn);
	free(f);
}

void
work_forget_forge(struct work *k)
{
	while (k->npins > 0)
		free(k->pins[--k->npins]);
	while (k->npeers > 0)
		free(k->peers[--k->npeers]);
	free(k->pins);
	free(k->peers);
	work_forge_free(k->forge);
	k->forge = NULL;
	k->pins = k->peers = NULL;
	k->has_forge = 0;
}

void
work_cancel_forge(struct work *k)
{
	if (k->forge == NULL)
		return;
	strlcpy(k->forge->why, "cancelled by a signal",
	    sizeof(k->forge->why));
	k->forge->is_cancelled = 1;
	event_active(k->forge->turn, EV_TIMEOUT, 0);
}

int
work_on_resolver_exit(struct work *k, pid_t pid)
{
	return k->forge != NULL && resolve_on_exit(&k->forge->resolve, pid);
}

static void
work_forge_add_peer(struct work *k, const char *text)
{
	size_t i;

	for (i = 0; i < k->npeers; i++)
		if (strcmp(k->peers[i], text) == 0)
			return;
	if (k->npeers < MAX_SHIM_PEERS)
		k->peers[k->npeers++] = xstrdup(text);
}

/* The addresses of one name. */
static void
work_forge_use_answer(struct work_forge *f, const struct msg_addrs *ans)
{
	const struct forge_name *name = &f->names[f->at];
	struct work *k = f->k;
	char pin[WORK_FORGE_PIN_MAX], text[INET6_ADDRSTRLEN];
	const struct msg_addr *addr;
	size_t i, n = ans->naddrs;
	int family;

	(void)snprintf(pin, sizeof(pin), "%s:%u:", name->host, name->port);
	for (i = 0; i < n; i++) {
		addr = &ans->addrs[i];
		family = addr->bytes_len == 4 ? AF_INET : AF_INET6;
		if (inet_ntop(family, addr->bytes, text, sizeof(text)) == NULL)
			return;
		work_forge_add_peer(k, text);
		(void)snprintf(pin + strlen(pin), sizeof(pin) - strlen(pin),
		    family == AF_INET ? "%s%s" : "%s[%s]", i > 0 ? "," : "",
		    text);
	}
	/* An address is no name, and its colons would end one. */
	if (n > 0 && strchr(name->host, ':') == NULL)
		k->pins[k->npins++] = xstrdup(pin);
	if (n == 0 && f->why[0] == '\0')
		(void)snprintf(f->why, sizeof(f->why), "the address of \"%s\" "
		    "cannot be found: %s", name->host, ans->error);
}

static void
work_forge_ask(struct work_forge *f)
{
	struct url *u = xcalloc(1, sizeof(*u));

	strlcpy(u->host, f->names[f->at].host, sizeof(u->host));
	u->port = f->names[f->at].port;
	resolve_start(&f->resolve, f->at, u);
	free(u);
}

static void
work_forge_on_answer(void *arg, uint64_t id, const struct msg_addrs *ans)
{
	struct work_forge *f = arg;

	(void)id;
	work_forge_use_answer(f, ans);
	f->at++;
	event_active(f->turn, EV_TIMEOUT, 0);
}

static void
work_forge_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct work_forge *f = arg;
	struct work *k = f->k;
	work_next_fn *next = f->next;
	char why[sizeof(f->why)];
	int has_none = f->is_cancelled || k->npeers == 0;

	(void)fd;
	(void)what;
	if (!f->is_cancelled && f->at < f->n) {
		work_forge_ask(f);
		return;
	}
	strlcpy(why, f->why, sizeof(why));
	work_forge_free(f);
	k->forge = NULL;
	k->has_forge = 1;
	next(k, has_none ? why : NULL);
}

/* Only where the shim may hold the job to what is found. */
static int
work_forge_is_useful(void)
{
	char path[CGROUP_PATH_MAX];
	int hybrid;

	return geteuid() == 0 && cgroup_find_own(path, &hybrid) == CL_OK;
}

int
work_find_forge(struct work *k, work_next_fn *next)
{
	struct devjob_plan p;
	struct work_forge *f;

	if (k->has_forge || !work_forge_is_useful())
		return 0;
	f = xcalloc(1, sizeof(*f));
	f->k = k;
	f->next = next;
	work_init_plan(k, &p);
	f->n = forge_find_names(p.repo, p.env, p.nenv, f->names, FORGE_NAMES);
	field_clear(&devjob_plan_table, &p);
	f->turn = event_new(k->at.a->base, -1, 0, work_forge_on_turn, f);
	if (f->n == 0 || f->turn == NULL || resolve_init(&f->resolve,
	    k->at.a->base, work_forge_on_answer, f) != 0) {
		work_forge_free(f);
		return 0;
	}
	k->pins = xcalloc(FORGE_NAMES, sizeof(*k->pins));
	k->peers = xcalloc(MAX_SHIM_PEERS, sizeof(*k->peers));
	k->forge = f;
	event_active(f->turn, EV_TIMEOUT, 0);
	return 1;
}
