/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/frame: any message.  What decodes is encoded, decoded and encoded
 * again: the second text is the first.  The message form between our
 * processes gives the same text too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/json/jsonw.h"
#include "common/msg/buf.h"
#include "net/codec/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* Decode into fresh memory of the exact size; NULL when refused. */
static void *
fuzz_decode(struct jx *x, const void *msg, size_t len, struct frame_env *env)
{
	const struct frame_row *row;
	void *payload;
	int r;

	r = frame_decode_envelope(x, msg, len, env);
	if (r != CL_OK && r != CL_FORMAT && r != CL_LIMIT)
		abort();
	if (r != CL_OK || (row = frame_get_row(env->type)) == NULL)
		return NULL;
	if ((payload = malloc(row->table->size)) == NULL)
		abort();
	if (frame_decode_payload(x, env, payload) == 0)
		return payload;
	if (x->why[0] == '\0')
		abort();
	free(payload);
	return NULL;
}

static void
fuzz_check_message(enum frame_type type, const void *payload,
    const struct jsonw *want)
{
	const struct field_table *t = frame_get_row(type)->table;
	struct jsonw w;
	struct buf b, in;
	void *copy = malloc(t->size);

	if (copy == NULL)
		abort();
	buf_init(&b, 4 << 20);
	jsonw_init(&w, 4 << 20, 0);
	field_put(t, payload, &b);
	buf_init_read(&in, b.data, b.len);
	if (buf_error(&b) != 0 || field_get(t, &in, copy) != 0 ||
	    buf_end(&in) != 0)
		abort();
	field_format_json(t, copy, &w);
	if (w.len > want->len || (w.len > 2 &&
	    memmem(want->data, want->len, w.data, w.len) == NULL))
		abort();
	field_clear(t, copy);
	free(copy);
	jsonw_clear(&w);
	buf_clear(&b);
}

static void
fuzz_check_again(struct jx *x, const struct frame_env *env,
    const void *payload)
{
	struct jsonw a, b;
	struct frame_env env2;
	void *again;

	jsonw_init(&a, MAX_FRAME_LEN, 0);
	jsonw_init(&b, MAX_FRAME_LEN, 0);
	if (frame_encode(&a, env->type, env->v, env->id, env->handle,
	    payload) == 0) {
		fuzz_check_message(env->type, payload, &a);
		again = fuzz_decode(x, a.data, a.len, &env2);
		if (again == NULL || frame_encode(&b, env2.type, env2.v,
		    env2.id, env2.handle, again) != 0 || a.len != b.len ||
		    memcmp(a.data, b.data, a.len) != 0)
			abort();
		frame_clear_payload(env2.type, again);
		free(again);
	}
	jsonw_clear(&a);
	jsonw_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct frame_env env;
	struct jx x;
	void *payload;

	jx_init(&x);
	if ((payload = fuzz_decode(&x, data, len, &env)) != NULL) {
		fuzz_check_again(&x, &env, payload);
		frame_clear_payload(env.type, payload);
		free(payload);
	}
	jx_clear(&x);
	return 0;
}
