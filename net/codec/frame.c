/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The frame catalogue and the envelope, see frame.h.  Runs in the
 * unprivileged network processes of hub and device; every message of the
 * other side comes through here first.  No state, no logging.
 */
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/json/jsonw.h"
#include "common/msg/msgcat.h"
#include "frame_int.h"

static const struct frame_row frame_rows[FRAME_NTYPES] = {
#define X(name, wire, dir, since, handle, payload, check)                      \
	[FRAME_##name] = { wire, FRAME_##dir, since, handle,                   \
	    &payload##_table, frame_check_##check },
	FRAME_CATALOGUE(X)
#undef X
};

const struct frame_row *
frame_get_row(enum frame_type type)
{
	if (type <= FRAME_UNKNOWN || type >= FRAME_NTYPES)
		return NULL;
	return &frame_rows[type];
}

enum frame_type
frame_find_type(const char *name)
{
	int i;

	for (i = FRAME_UNKNOWN + 1; i < FRAME_NTYPES; i++) {
		if (strcmp(frame_rows[i].name, name) == 0)
			return (enum frame_type)i;
	}
	return FRAME_UNKNOWN;
}

const char *
frame_name(enum frame_type type)
{
	const struct frame_row *row = frame_get_row(type);

	return row == NULL ? "?" : row->name;
}

int
frame_is_inbound(enum frame_type type, enum frame_dir dir)
{
	const struct frame_row *row = frame_get_row(type);

	return row != NULL && (row->dir & dir) != 0;
}

/*
 * A short string of the envelope.  Too long or holding a NUL: *refusedp is
 * set and dst stays "".  CL_FORMAT for another type.
 */
static int
frame_get_id(struct jx *x, uint32_t at, const char *what,
    char dst[MAX_ID_LEN + 1], const char **refusedp)
{
	const char *plain;
	size_t len;
	char *s;
	int r;

	dst[0] = '\0';
	if ((plain = jx_find_plain(x, at, &len)) != NULL) {
		if (len > MAX_ID_LEN) {
			*refusedp = what;
			return CL_OK;
		}
		memcpy(dst, plain, len);
		dst[len] = '\0';
		return CL_OK;
	}
	r = jx_get_string(x, at, MAX_ID_LEN, &s, &len, NULL);
	if (r == CL_FORMAT)
		return jx_fail(x, r, "%s: not a string", what);
	if (r == CL_TOOBIG || (s != NULL && strlen(s) != len)) {
		free(s);
		*refusedp = what;
		return CL_OK;
	}
	if (r != CL_OK)
		return r;
	if (s != NULL)
		memcpy(dst, s, len + 1);
	free(s);
	return CL_OK;
}

enum { ENV_V, ENV_TYPE, ENV_ID, ENV_HANDLE, ENV_PAYLOAD, ENV_N };

/* The tokens of the five members, 0 when absent. */
static int
frame_find_members(struct jx *x, uint32_t at[ENV_N])
{
	static const char *const keys[ENV_N] = { "v", "type", "id", "handle",
		"payload" };
	uint32_t key = 1, i;
	int k;

	memset(at, 0, ENV_N * sizeof(*at));
	if (x->tokens[0].type == JX_NULL)
		return CL_OK;
	if (x->tokens[0].type != JX_OBJECT)
		return jx_fail(x, CL_FORMAT, "not an object");
	for (i = 0; i < x->tokens[0].n; i++, key = x->tokens[key + 1].next) {
		for (k = 0; k < ENV_N; k++) {
			if (!jx_is_key(x, key, keys[k]))
				continue;
			if (at[k] != 0)
				return jx_fail(x, CL_FORMAT,
				    "%s: given twice", keys[k]);
			at[k] = key + 1;
		}
	}
	return CL_OK;
}

static int
frame_get_members(struct jx *x, struct frame_env *env,
    const char **refusedp)
{
	uint32_t at[ENV_N];
	int64_t v = 0;
	int r;

	if ((r = frame_find_members(x, at)) != 0)
		return r;
	if (at[ENV_V] != 0 && jx_get_int(x, at[ENV_V], &v) != 0)
		return jx_fail(x, CL_FORMAT, "v: not an integer");
	if (v < PROTO_MIN || v > PROTO_MAX)
		return jx_fail(x, CL_FORMAT, "v: %lld is not %d to %d",
		    (long long)v, PROTO_MIN, PROTO_MAX);
	env->v = (int)v;
	if ((at[ENV_TYPE] != 0 && (r = frame_get_id(x, at[ENV_TYPE], "type",
	    env->type_name, refusedp)) != 0) ||
	    (at[ENV_ID] != 0 && (r = frame_get_id(x, at[ENV_ID], "id",
	    env->id, refusedp)) != 0) ||
	    (at[ENV_HANDLE] != 0 && (r = frame_get_id(x, at[ENV_HANDLE],
	    "handle", env->handle, refusedp)) != 0))
		return r;
	env->payload = at[ENV_PAYLOAD];
	if (env->payload != 0)
		env->payload_len = x->tokens[env->payload].len;
	return CL_OK;
}

int
frame_decode_envelope(struct jx *x, const void *msg, size_t len,
    struct frame_env *env)
{
	const struct frame_row *row;
	const char *refused = NULL;
	int r;

	memset(env, 0, sizeof(*env));
	if (len > MAX_FRAME_LEN)
		return jx_fail(x, CL_FORMAT, "%zu bytes", len);
	if ((r = jx_scan(x, msg, len)) != 0)
		return r == CL_NOMEM ? r : CL_FORMAT;
	if ((r = frame_get_members(x, env, &refused)) != 0)
		return r;
	if (refused != NULL)
		return jx_fail(x, CL_LIMIT, "%s: longer than %d bytes, or "
		    "holds a NUL", refused, MAX_ID_LEN);
	if (rule_is_blank(env->type_name))
		return jx_fail(x, CL_FORMAT, "type: blank");
	env->type = frame_find_type(env->type_name);
	row = frame_get_row(env->type);
	if (row != NULL && row->needs_handle && rule_is_blank(env->handle))
		return jx_fail(x, CL_FORMAT, "%s without a handle",
		    row->name);
	return CL_OK;
}

/* Its payload has no members, and is not read. */
static int
frame_is_empty(const struct frame_row *row)
{
	return row->table == &frame_empty_table;
}

int
frame_decode_payload(struct jx *x, const struct frame_env *env, void *payload)
{
	const struct frame_row *row = frame_get_row(env->type);
	int r;

	if (row == NULL)
		return jx_fail(x, CL_INTERNAL, "unknown type");
	field_init(row->table, payload);
	if (frame_is_empty(row))
		return CL_OK;
	if (env->payload == 0)
		return jx_fail(x, CL_FORMAT, "no payload");
	x->unknown = env->type == FRAME_START ? frame_on_start_member : NULL;
	r = jx_decode(x, env->payload, row->table, payload);
	x->unknown = NULL;
	if (r != CL_OK)
		return r;
	if (row->check != NULL && (r = row->check(x, payload)) != CL_OK)
		field_clear(row->table, payload);
	return r;
}

void
frame_init_payload(enum frame_type type, void *payload)
{
	const struct frame_row *row = frame_get_row(type);

	if (row != NULL)
		field_init(row->table, payload);
}

void
frame_clear_payload(enum frame_type type, void *payload)
{
	const struct frame_row *row = frame_get_row(type);

	if (row != NULL)
		field_clear(row->table, payload);
}

int
frame_encode(struct jsonw *w, enum frame_type type, int v, const char *id,
    const char *handle, const void *payload)
{
	const struct frame_row *row = frame_get_row(type);

	jsonw_reset(w);
	if (row == NULL)
		return CL_INTERNAL;
	jsonw_open_object(w);
	jsonw_put_key(w, "v");
	jsonw_put_int(w, v < PROTO_MIN || v > PROTO_MAX ? PROTO_MAX : v);
	jsonw_put_key(w, "type");
	jsonw_put_str(w, row->name);
	if (!rule_is_empty(id)) {
		jsonw_put_key(w, "id");
		jsonw_put_str(w, id);
	}
	if (!rule_is_empty(handle)) {
		jsonw_put_key(w, "handle");
		jsonw_put_str(w, handle);
	}
	if (payload != NULL) {
		jsonw_put_key(w, "payload");
		field_format_json(row->table, payload, w);
	}
	jsonw_close_object(w);
	return jsonw_error(w);
}

int
frame_take_why(struct jx *x, int r, char *why)
{
	if (r != CL_OK)
		jx_fail(x, r, "%.180s", why == NULL ? "" : why);
	free(why);
	return r;
}

void
frame_trim(char *s)
{
	const char *p;
	size_t len;

	if (s == NULL)
		return;
	p = rule_trim(s, &len);
	memmove(s, p, len);
	s[len] = '\0';
}

static const char *const frame_states[] = {
	[HS_PENDING] = "pending", [HS_RUNNING] = "running",
	[HS_EXITED] = "exited", [HS_FAILED] = "failed",
	[HS_KILLED] = "killed", [HS_UNKNOWN] = "unknown"
};

int
frame_parse_state(const char *word)
{
	int i;

	for (i = HS_PENDING; i < HS_UNKNOWN; i++) {
		if (rule_is_equal(word, frame_states[i]))
			return i;
	}
	return HS_UNKNOWN;
}

const char *
frame_state_name(int hs)
{
	return hs < HS_PENDING || hs > HS_UNKNOWN ? "unknown" :
	    frame_states[hs];
}

static const char *const frame_signals[] = {
	[SIG_INTERRUPT] = "interrupt", [SIG_TERMINATE] = "terminate",
	[SIG_KILL] = "kill"
};

int
frame_parse_signal(const char *word)
{
	int i;

	for (i = SIG_INTERRUPT; i <= SIG_KILL; i++) {
		if (rule_is_equal(word, frame_signals[i]))
			return i;
	}
	return 0;
}

const char *
frame_signal_name(int sig)
{
	return sig < SIG_INTERRUPT || sig > SIG_KILL ? "" :
	    frame_signals[sig];
}

size_t
frame_log_len(const struct field_text *text)
{
	/* Each escape stands for one byte of the sender's, three of ours. */
	return text->len - 2 * text->nreplaced;
}
