/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/frame, structure-aware: the first byte chooses the type, the others
 * say, member by member of its field table, what stands there: nothing, a
 * good value, one at its bound, one beyond, a wrong kind, a member twice, an
 * unknown one.  The message that comes of it goes through fuzz_frame's
 * checks, so every family is reached behind the JSON grammar.
 */
#define LLVMFuzzerTestOneInput fuzz_frame_text
#include "fuzz_frame.c"
#undef LLVMFuzzerTestOneInput

#include "fuzz.h"

#define FORM_MAX (1 << 18)
#define FORM_DEPTH 6

struct form {
	const uint8_t *p;
	size_t left;
	struct jsonw w;
};

static uint8_t
form_next(struct form *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->p++;
}

/* Words that mean something to one rule or another. */
static const char *const form_words[] = {
	"", "edge-1", "wl_0000000000000001", "lease_1", "grant_1", "running",
	"exited", "failed", "killed", "interrupt", "terminate", "kill",
	"/dev/kvm", "/srv/a", "../x", "a/../b", "main", "refs/heads/main",
	"HOME", "PATH=/bin", "10.0.0.0/8", "::/0", "169.254.169.254/32",
	"example.org", "*.example.org", "tcp", "udp", "443", "1-65535",
	"host", "container", "vm", "sha256:00", "ffffffffffffffff",
	"2026-11-30T00:00:00Z", "0001-01-01T00:00:00Z", "none", "allow",
	"deny", "confined", "https://h/x.git", "1-1.2", "0001", "dGVzdA==",
};
#define NWORDS (sizeof(form_words) / sizeof(form_words[0]))

static void
form_put_filled(struct form *f, size_t len)
{
	char *text = malloc(len + 1);

	if (text == NULL)
		abort();
	memset(text, 'a', len);
	jsonw_put_text(&f->w, text, len);
	free(text);
}

static void
form_put_string(struct form *f, uint64_t max)
{
	char text[16];
	uint8_t how = form_next(f);
	size_t n;

	if (max > 70000)
		max = 70000;
	if (how < 2 * NWORDS) {
		jsonw_put_str(&f->w, form_words[how % NWORDS]);
	} else if (how < 240) {
		for (n = 0; n < sizeof(text) && n < (size_t)how % 16; n++)
			text[n] = (char)form_next(f);
		jsonw_put_text(&f->w, text, n);
	} else if (how < 248) {
		form_put_filled(f, (size_t)max);
	} else {
		form_put_filled(f, (size_t)max + 1);
	}
}

static void
form_put_number(struct form *f, const struct field *row)
{
	static const char *const odd[] = { "1e3", "1.0", "-0", "1e999",
		"9223372036854775808", "18446744073709551615",
		"18446744073709551616", "-9223372036854775809", "0.5" };
	uint8_t how = form_next(f);

	if (how < 128)
		jsonw_put_int(&f->w, (int8_t)(how - 8));
	else if (how < 160)
		jsonw_put_uint(&f->w, row->max);
	else if (how < 176)
		jsonw_put_uint(&f->w, row->max + 1);
	else if (how < 192)
		jsonw_put_int(&f->w, row->min);
	else if (how < 200)
		jsonw_put_int(&f->w, row->min - (row->min > INT64_MIN));
	else
		jsonw_put_raw(&f->w, odd[how % 9], strlen(odd[how % 9]));
}

/* A value that is none of what the row wants. */
static void
form_put_wrong(struct form *f)
{
	static const char *const other[] = { "null", "true", "0", "\"\"",
		"[]", "{}", "[[[[]]]]", "{\"a\":{\"b\":[1,2,{}]}}", "[null]" };
	uint8_t how = form_next(f);

	jsonw_put_raw(&f->w, other[how % 9], strlen(other[how % 9]));
}

static void form_put_object(struct form *, const struct field_table *,
    int depth);

static void
form_put_pairs(struct form *f, const struct field *row)
{
	uint8_t n = form_next(f) % 5, i;

	jsonw_open_object(&f->w);
	for (i = 0; i < n; i++) {
		jsonw_put_key(&f->w, form_words[form_next(f) % NWORDS]);
		form_put_string(f, row->max);
	}
	jsonw_close_object(&f->w);
}

static void form_put_one(struct form *, const struct field *, int depth);

static void
form_put_list(struct form *f, const struct field *row, int depth)
{
	struct field one = *row;
	size_t n = form_next(f), i;

	/* Some lists as long as they may be, and one more. */
	n = n < 250 ? n % 5 : row->nmax > 2000 ? 2 : row->nmax + (n & 1);
	one.kind = row->kind == FIELD_STRS ? FIELD_STR :
	    row->kind == FIELD_INTS ? FIELD_INT : FIELD_OBJ;
	jsonw_open_array(&f->w);
	for (i = 0; i < n; i++)
		form_put_one(f, &one, depth);
	jsonw_close_array(&f->w);
}

static void
form_put_one(struct form *f, const struct field *row, int depth)
{
	switch (row->kind) {
	case FIELD_RAW:
		form_put_wrong(f);
		return;
	case FIELD_INT:
	case FIELD_UINT:
	case FIELD_OPTINT:
		form_put_number(f, row);
		return;
	case FIELD_BOOL:
		jsonw_put_bool(&f->w, form_next(f) & 1);
		return;
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_LIST:
		form_put_list(f, row, depth);
		return;
	case FIELD_MAP:
		form_put_pairs(f, row);
		return;
	case FIELD_OBJ:
	case FIELD_PTR:
		form_put_object(f, row->sub, depth + 1);
		return;
	default:		/* strings, bytes, times */
		form_put_string(f, row->kind == FIELD_TIME ? 40 : row->max);
	}
}

static void
form_put_object(struct form *f, const struct field_table *t, int depth)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);
	uint8_t how;

	jsonw_open_object(&f->w);
	for (i = 0; i < n && depth < FORM_DEPTH &&
	    f->w.len < FORM_MAX; i++) {
		how = form_next(f);
		if (how < 64)
			continue;
		jsonw_put_key(&f->w, rows[i].key);
		if (how >= 232)
			form_put_wrong(f);
		else
			form_put_one(f, &rows[i], depth);
		if (how == 231) {
			jsonw_put_key(&f->w, rows[i].key);
			jsonw_put_null(&f->w);
		}
	}
	if ((how = form_next(f)) >= 224) {
		jsonw_put_key(&f->w, how & 1 ? "unknown" : "PROTOCOL");
		form_put_wrong(f);
	}
	jsonw_close_object(&f->w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct form f = { data, len, { 0 } };
	const struct frame_row *row;

	if (len == 0)
		return 0;
	row = frame_get_row((enum frame_type)(1 + form_next(&f) %
	    (FRAME_NTYPES - 1)));
	jsonw_init(&f.w, MAX_FRAME_LEN, 0);
	jsonw_open_object(&f.w);
	jsonw_put_key(&f.w, "v");
	jsonw_put_int(&f.w, 1 + form_next(&f) % 26);
	jsonw_put_key(&f.w, "type");
	jsonw_put_str(&f.w, row->name);
	jsonw_put_key(&f.w, "id");
	jsonw_put_str(&f.w, "c1");
	if (row->needs_handle) {
		jsonw_put_key(&f.w, "handle");
		jsonw_put_str(&f.w, "wl_1");
	}
	jsonw_put_key(&f.w, "payload");
	form_put_object(&f, row->table, 0);
	jsonw_close_object(&f.w);
	if (jsonw_error(&f.w) == CL_OK)
		fuzz_frame_text((const uint8_t *)f.w.data, f.w.len);
	jsonw_clear(&f.w);
	return 0;
}
