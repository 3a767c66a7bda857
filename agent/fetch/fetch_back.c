/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work that comes back, in agentd-fetch.  The bundle is read piece by piece
 * from a descriptor of the monitor's and not looked at; nothing is kept in
 * memory but where we are.  A new link begins at offset 0 again, which tells
 * the hub to start over.
 */
#include "fetch.h"

#include <bsd/stdlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/model/devjob.h"

#define BACK_CHUNK_LEN 262144
#define BACK_ID "wb-"	/* and the slot: the id of a chunk */
#define MAX_PROJECT_LEN 655360
#define BACK_VERSION_RESULT 4
#define BACK_VERSION_PROJECT 13

void
fetch_back_init(struct fetch_back *b)
{
	memset(b, 0, sizeof(*b));
	b->bundle_fd = b->project_fd = -1;
}

static void
fetch_back_clear_result(struct frame_write_back *r)
{
	free(r->mode);
	free(r->branch);
	free(r->commit_sha);
	free(r->base_sha);
	free(r->bundle_sha256);
	free(r->skip_reason);
	free(r->error);
	memset(r, 0, sizeof(*r));
}

void
fetch_back_clear(struct fetch_back *b)
{
	fetch_back_clear_result(&b->result);
	free(b->project_error);
	free(b->refused);
	if (b->bundle_fd != -1)
		close(b->bundle_fd);
	if (b->project_fd != -1)
		close(b->project_fd);
	fetch_back_init(b);
}

/* -------------------------------------------------------------- the monitor */

static void
fetch_back_take(char **dst, char **src)
{
	*dst = *src;
	*src = NULL;
}

/* What happened, in the words of the frame. */
static void
fetch_back_set_result(struct frame_write_back *r, struct msg_dev_result *in)
{
	struct devjob_result *res = &in->result;
	int skipped = res->outcome == DEVJOB_SKIPPED;
	int failed = res->outcome == DEVJOB_FAILED;

	/* Nothing to deliver has no mode. */
	if (!skipped)
		fetch_back_take(&r->mode, &in->mode);
	fetch_back_take(&r->branch, &in->branch);
	fetch_back_take(&r->base_sha, &in->base);
	r->skipped = skipped;
	if (skipped || failed) {
		fetch_back_take(skipped ? &r->skip_reason : &r->error,
		    &res->error);
		return;
	}
	fetch_back_take(&r->commit_sha, &res->head);
	r->pushed = res->pushed;
	r->bundle_bytes = res->bytes;
	fetch_back_take(&r->bundle_sha256, &res->sha256);
	r->commits = res->commits;
	r->files_changed = res->files_changed;
}

int
fetch_back_on_result(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_work *w = fetch_work_find_slot(f, v->DEV_RESULT.slot);

	(void)m;
	if (w == NULL || w->back.has_result)
		return CL_OK;
	w->back.has_result = 1;
	fetch_back_set_result(&w->back.result, &v->DEV_RESULT);
	return CL_OK;
}

/* A file of the bundle or of the project; the first of each counts. */
static int
fetch_back_get_file(struct fetch *f, struct imsg *m,
    const struct msg_slot_file *file, int is_project)
{
	struct fetch_work *w = fetch_work_find_slot(f, file->slot);
	int *fdp;

	if (is_project && (file->len == 0 || file->len > MAX_PROJECT_LEN))
		return CL_TOOBIG;
	if (w == NULL)
		return CL_OK;
	fdp = is_project ? &w->back.project_fd : &w->back.bundle_fd;
	if (*fdp != -1)
		return CL_OK;
	*fdp = imsg_take_fd(m);
	*(is_project ? &w->back.project_len : &w->back.bundle_len) =
	    file->len;
	return CL_OK;
}

int
fetch_back_on_bundle(struct fetch *f, struct imsg *m, union msg_any *v)
{
	return fetch_back_get_file(f, m, &v->DEV_BUNDLE, 0);
}

int
fetch_back_on_project_file(struct fetch *f, struct imsg *m, union msg_any *v)
{
	return fetch_back_get_file(f, m, &v->DEV_PROJECT_FILE, 1);
}

int
fetch_back_on_project(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_work *w = fetch_work_find_slot(f, v->DEV_PROJECT.slot);

	(void)m;
	if (w == NULL || w->back.has_project)
		return CL_OK;
	w->back.has_project = 1;
	fetch_back_take(&w->back.project_error, &v->DEV_PROJECT.error);
	return CL_OK;
}

/* ------------------------------------------------------------------ the hub */

static int
fetch_back_send_project(struct fetch_work *w)
{
	struct fetch_back *b = &w->back;
	struct frame_project_result p;
	int r = CL_OK;

	frame_init_payload(FRAME_PROJECT_RESULT, &p);
	if (b->project_fd != -1) {
		if ((p.data = malloc(b->project_len)) == NULL)
			return CL_NOMEM;
		p.data_len = (size_t)b->project_len;
		if (pread(b->project_fd, p.data, p.data_len, 0) !=
		    (ssize_t)p.data_len)
			r = CL_FORMAT;
	}
	if (b->project_fd == -1 || r != CL_OK) {
		free(p.data);
		p.data = NULL;
		p.data_len = 0;
		p.error = b->project_error;
		if (rule_is_empty(p.error))
			p.error = (char *)(uintptr_t)"the project result "
			    "cannot be read on the device";
	}
	r = fetch_send(w->f, FRAME_PROJECT_RESULT, NULL, w->handle, &p, NULL);
	free(p.data);
	return r;
}

/* The transfer ends; the result says why. */
static void
fetch_back_stop_bundle(struct fetch_work *w, const char *why)
{
	struct frame_write_back *r = &w->back.result;

	log_warn("write-back", "handle=%s reason=%s", log_q(w->handle),
	    log_q(why));
	free(r->error);
	r->error = strdup(why);
	free(r->bundle_sha256);
	r->bundle_sha256 = NULL;
	r->bundle_bytes = 0;
	w->back.bundle_off = w->back.bundle_len;
}

static int
fetch_back_send_chunk(struct fetch_work *w)
{
	struct fetch_back *b = &w->back;
	struct frame_result_chunk c;
	uint64_t left = b->bundle_len - b->bundle_off;
	size_t want = left < BACK_CHUNK_LEN ? (size_t)left : BACK_CHUNK_LEN;
	char id[32];
	ssize_t n;
	int r;

	frame_init_payload(FRAME_RESULT_CHUNK, &c);
	if ((c.data = malloc(want)) == NULL)
		return CL_NOMEM;
	n = pread(b->bundle_fd, c.data, want, (off_t)b->bundle_off);
	if (n <= 0) {
		fetch_back_stop_bundle(w,
		    "the bundle cannot be read on the device");
		free(c.data);
		return CL_OK;
	}
	c.offset = (int64_t)b->bundle_off;
	c.data_len = (size_t)n;
	/* A refusal names no workload, but repeats the id of the chunk. */
	(void)snprintf(id, sizeof(id), BACK_ID "%llu",
	    (unsigned long long)w->slot);
	r = fetch_send(w->f, FRAME_RESULT_CHUNK, id, w->handle, &c, NULL);
	free(c.data);
	if (r == CL_OK)
		b->bundle_off += (uint64_t)n;
	return r;
}

static int
fetch_back_send_result(struct fetch_work *w)
{
	struct frame_result p = { .result = w->back.result };

	return fetch_send(w->f, FRAME_RESULT, NULL, w->handle, &p, NULL);
}

int
fetch_back_step(struct fetch_work *w)
{
	struct fetch_back *b = &w->back;
	int version = w->f->negotiated, r;

	if (b->stage == BACK_PROJECT) {
		b->stage = BACK_BUNDLE;
		if (b->has_project && version >= BACK_VERSION_PROJECT)
			return fetch_back_send_project(w);
	}
	if (b->stage == BACK_BUNDLE && b->refused != NULL &&
	    b->bundle_off < b->bundle_len)
		fetch_back_stop_bundle(w, b->refused);
	if (b->stage == BACK_BUNDLE && b->has_result && b->bundle_fd != -1 &&
	    b->bundle_off < b->bundle_len && version >= BACK_VERSION_RESULT)
		return fetch_back_send_chunk(w);
	if (b->stage == BACK_BUNDLE)
		b->stage = BACK_RESULT;
	if (b->stage == BACK_RESULT) {
		b->stage = BACK_DONE;
		if (b->has_result && version >= BACK_VERSION_RESULT &&
		    (r = fetch_back_send_result(w)) != CL_INCOMPLETE)
			return r;
	}
	return CL_INCOMPLETE;
}

void
fetch_back_restart(struct fetch_work *w)
{
	w->back.stage = BACK_PROJECT;
	if (w->back.refused == NULL)
		w->back.bundle_off = 0;
}

void
fetch_back_refuse(struct fetch *f, const struct frame_env *env,
    const struct frame_error *e)
{
	struct fetch_work *w;
	const char *why;
	long long slot;

	if (rule_is_empty(e->code) ||
	    strcmp(e->code, "write_back_failed") != 0 ||
	    strncmp(env->id, BACK_ID, strlen(BACK_ID)) != 0)
		return;
	slot = strtonum(env->id + strlen(BACK_ID), 0, INT64_MAX, &why);
	if (why != NULL ||
	    (w = fetch_work_find_slot(f, (uint64_t)slot)) == NULL ||
	    w->back.bundle_fd == -1 || w->back.refused != NULL)
		return;
	w->back.refused = strdup(rule_is_empty(e->message) ?
	    "the hub refused the returned work" : e->message);
}
