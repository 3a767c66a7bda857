/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Payloads of one running workload: start, started, signal, status, output.
 * Runs where frame.c runs.
 */
#include <bsd/stdlib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "frame_int.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_GIT_CA_URLS 8

static const struct field frame_disk_limit_table_rows[] = {
	F_INT64(struct frame_disk_limit, used_bytes, "used_bytes", 0),
	F_INT64(struct frame_disk_limit, limit_mb, "limit_mb", 0),
	F_STR(struct frame_disk_limit, source, "source", PROSE,
	    FRAME_WORD_MAX),
	F_STR(struct frame_disk_limit, path, "path", PROSE, FRAME_TEXT_MAX),
	F_TIME(struct frame_disk_limit, measured_at, "measured_at", 0),
};
F_TABLE(frame_disk_limit_table, struct frame_disk_limit);

static const struct field frame_started_table_rows[] = {
	F_STR(struct frame_started, handle_id, "handle_id", 0, FRAME_WORD_MAX),
	F_INT64(struct frame_started, pid, "pid", O),
	F_TIME(struct frame_started, started_at, "started_at", 0),
	F_STR(struct frame_started, error, "error", PROSE,
	    MAX_ERROR_TEXT_LEN),
	F_PTR(struct frame_started, disk_limit, "disk_limit", O,
	    &frame_disk_limit_table),
};
F_TABLE(frame_started_table, struct frame_started);

static const struct field frame_signal_table_rows[] = {
	F_STR(struct frame_signal, signal, "signal", 0, FRAME_WORD_MAX),
};
F_TABLE(frame_signal_table, struct frame_signal);

static const struct field frame_status_object_table_rows[] = {
	F_STR(struct frame_status, handle_id, "handle_id", 0, FRAME_WORD_MAX),
	F_STR(struct frame_status, executor_id, "executor_id", 0,
	    FRAME_WORD_MAX),
	F_STR(struct frame_status, state, "state", 0, FRAME_WORD_MAX),
	F_INT64(struct frame_status, pid, "pid", O),
	F_INT64(struct frame_status, exit_code, "exit_code", 0),
	F_TIME(struct frame_status, started_at, "started_at", 0),
	F_TIME(struct frame_status, finished_at, "finished_at", O),
	F_STR(struct frame_status, error, "error", PROSE, MAX_ERROR_TEXT_LEN),
	F_PTR(struct frame_status, write_back, "write_back", O,
	    &frame_write_back_info_table),
	F_STR(struct frame_status, outcome, "outcome", PROSE, FRAME_WORD_MAX),
	F_PTR(struct frame_status, disk_limit, "disk_limit", O,
	    &frame_disk_limit_table),
};
F_TABLE(frame_status_object_table, struct frame_status);

_Static_assert(offsetof(struct frame_status, handle_id) == 0,
    "payload.status and payload share a struct");

static const struct field frame_status_table_rows[] = {
	F_OBJ(struct frame_status, handle_id, "status", 0,
	    &frame_status_object_table),
	F_INT64(struct frame_status, final_offset, "final_offset", O),
};
F_TABLE(frame_status_table, struct frame_status);

static const struct field frame_log_chunk_table_rows[] = {
	F_STR(struct frame_log_chunk, stream, "stream", 0, FRAME_WORD_MAX),
	F_INT(struct frame_log_chunk, offset, "offset", 0, 0, INT64_MAX),
	F_TEXT(struct frame_log_chunk, text, "text", 0, MAX_LOG_TEXT_IN_LEN),
	F_TIME(struct frame_log_chunk, time, "time", 0),
};
F_TABLE(frame_log_chunk_table, struct frame_log_chunk);

static const struct field frame_log_ack_table_rows[] = {
	F_INT(struct frame_log_ack, offset, "offset", 0, 0, INT64_MAX),
};
F_TABLE(frame_log_ack_table, struct frame_log_ack);

int
frame_check_signal(struct jx *x, void *payload)
{
	const struct frame_signal *p = payload;

	if (frame_parse_signal(p->signal) == 0)
		return jx_fail(x, CL_FORMAT, "signal: \"%.32s\" is unknown",
		    p->signal == NULL ? "" : p->signal);
	return CL_OK;
}

int
frame_check_start(struct jx *x, void *payload)
{
	struct spec *s = payload;
	char *why;
	int r;

	if ((r = spec_check_siblings(s, &why)) != 0)
		return frame_take_why(x, r, why);
	spec_trim_sandbox(&s->sandbox);
	return CL_OK;
}

/* ------------------------------------------ the git CA of any make of hub */

/* 1 when s holds the word, in any case. */
static int
frame_has_word(const char *s, const char *word)
{
	return strcasestr(s, word) != NULL;
}

static int
frame_add_url(struct spec_git_ca *ca, const char *s)
{
	char **urls;

	if (ca->nurls == MAX_GIT_CA_URLS)
		return CL_LIMIT;
	urls = recallocarray(ca->urls, ca->nurls, ca->nurls + 1,
	    sizeof(*urls));
	if (urls == NULL)
		return CL_NOMEM;
	ca->urls = urls;
	if ((urls[ca->nurls] = strdup(s)) == NULL)
		return CL_NOMEM;
	ca->nurls++;
	return CL_OK;
}

/* jx_string_fn: what a string is shows in itself and its key. */
static int
frame_on_git_ca_string(const char *key, const char *s, size_t len, void *arg)
{
	struct spec_git_ca *ca = arg;
	char **pemp;

	if (strlen(s) != len)
		return CL_FORMAT;
	if (strncmp(s, "https://", 8) == 0)
		return frame_add_url(ca, s);
	if (strstr(s, "-----BEGIN CERTIFICATE-----") == NULL)
		return CL_OK;
	pemp = frame_has_word(key, "node") ? &ca->node : &ca->pem;
	if (*pemp != NULL)
		return CL_FORMAT;
	*pemp = strdup(s);
	return *pemp == NULL ? CL_NOMEM : CL_OK;
}

static int
frame_decode_git_ca(struct jx *x, struct spec *s, uint32_t value)
{
	int r;

	if (s->git_ca != NULL)
		return CL_FORMAT;
	if (x->tokens[value].type != JX_OBJECT)
		return CL_FORMAT;
	if ((s->git_ca = calloc(1, sizeof(*s->git_ca))) == NULL)
		return CL_NOMEM;
	r = jx_walk_strings(x, value, frame_on_git_ca_string, s->git_ca);
	if (r == CL_OK && (s->git_ca->pem == NULL || s->git_ca->nurls == 0))
		r = CL_FORMAT;
	return r;
}

int
frame_on_start_member(struct jx *x, const struct field_table *t, void *v,
    uint32_t key, uint32_t value)
{
	struct spec *s = v;
	char *name = NULL;
	size_t len;
	int r, is_ca;

	if (t != &spec_table || x->tokens[value].type == JX_NULL)
		return CL_OK;
	r = jx_get_string(x, key, FRAME_WORD_MAX, &name, &len, NULL);
	if (r == CL_TOOBIG)
		return CL_OK;
	if (r != CL_OK)
		return jx_fail(x, r, "spec: out of memory");
	is_ca = frame_has_word(name, "git") && frame_has_word(name, "ca");
	free(name);
	if (!is_ca)
		return CL_OK;
	if ((r = frame_decode_git_ca(x, s, value)) == CL_NOMEM)
		return jx_fail(x, r, "spec: out of memory");
	/* Never run without the CA, understood or not. */
	if (s->refusal == NULL)
		s->refusal = strdup(r == CL_OK ?
		    "the hub's git certificate authority cannot be used here" :
		    "the spec's git certificate authority is not understood");
	return s->refusal != NULL ? CL_OK :
	    jx_fail(x, CL_NOMEM, "spec: out of memory");
}
