/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Taking secrets out of output: in cloop-shim between pipe and spool, in
 * cloop-agentd for texts, in cloopd-net before a log is written.  The stream
 * comes from a workload, the values from whoever lent them; bytes are
 * compared and never interpreted.
 */
#include "redact.h"

#include <bsd/stdlib.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/secret.h"

/* Two pieces of one value share this much, so that their places overlap. */
#define REDACT_OVERLAP REDACT_VALUE_MIN

struct redact_value {
	struct secret bytes;
	struct redact_value *next;	/* same first byte, longest first */
};

struct redact {
	struct redact_value *first[256];
	uint8_t begins[256];		/* first byte that occurs */
	uint8_t pairs[65536 / 8];	/* first two bytes that occur */
	size_t nfirst;			/* distinct first bytes */
	uint8_t only;			/* which, when there is one */
	size_t nvalues;
	size_t len;			/* bytes of all values */
};

struct redact *
redact_new(void)
{
	return calloc(1, sizeof(struct redact));
}

void
redact_free(struct redact *set)
{
	struct redact_value *v;
	size_t i;

	if (set == NULL)
		return;
	for (i = 0; i < 256; i++) {
		while ((v = set->first[i]) != NULL) {
			set->first[i] = v->next;
			secret_clear(&v->bytes);
			free(v);
		}
	}
	freezero(set, sizeof(*set));
}

int
redact_is_empty(const struct redact *set)
{
	return set == NULL || set->nvalues == 0;
}

int
redact_walk(const struct redact *set, redact_value_fn *fn, void *arg)
{
	const struct redact_value *v;
	size_t i;
	int r;

	for (i = 0; set != NULL && i < 256; i++)
		for (v = set->first[i]; v != NULL; v = v->next)
			if ((r = fn(arg, v->bytes.data, v->bytes.len)) != 0)
				return r;
	return CL_OK;
}

/* ------------------------------------------------------------------ values */

static int
redact_is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What somebody else put in the place of a value is none. */
static int
redact_is_placeholder(const uint8_t *p, size_t len)
{
	static const char head[] = "<redacted";

	return len > sizeof(head) - 1 && p[len - 1] == '>' &&
	    memcmp(p, head, sizeof(head) - 1) == 0;
}

/* One value of at most REDACT_KEY_MAX bytes. */
static int
redact_add_key(struct redact *set, const uint8_t *p, size_t len)
{
	struct redact_value **at = &set->first[p[0]], *v;
	unsigned int pair = (unsigned int)p[0] << 8 | p[1];
	int is_new_byte = *at == NULL;

	for (; (v = *at) != NULL && v->bytes.len >= len; at = &v->next)
		if (v->bytes.len == len && memcmp(v->bytes.data, p, len) == 0)
			return CL_OK;
	if (set->nvalues >= MAX_REDACT_VALUES ||
	    len > MAX_REDACT_LEN - set->len)
		return CL_LIMIT;
	if ((v = calloc(1, sizeof(*v))) == NULL)
		return CL_NOMEM;
	if (secret_init(&v->bytes, p, len, REDACT_KEY_MAX) != CL_OK) {
		free(v);
		return CL_NOMEM;
	}
	v->next = *at;
	*at = v;
	set->begins[p[0]] = 1;
	set->pairs[pair / 8] |= (uint8_t)(1U << (pair % 8));
	set->nfirst += (size_t)is_new_byte;
	set->only = p[0];
	set->nvalues++;
	set->len += len;
	return CL_OK;
}

static int
redact_add_pieces(struct redact *set, const uint8_t *p, size_t len)
{
	int r;

	for (; len > REDACT_KEY_MAX; p += REDACT_KEY_MAX - REDACT_OVERLAP,
	    len -= REDACT_KEY_MAX - REDACT_OVERLAP)
		if ((r = redact_add_key(set, p, REDACT_KEY_MAX)) != CL_OK)
			return r;
	return redact_add_key(set, p, len);
}

/* Room for a value in the worst case, so that none is added by half. */
static int
redact_has_room(const struct redact *set, size_t len)
{
	size_t n = len / (REDACT_KEY_MAX - REDACT_OVERLAP) + 1;

	return len <= MAX_REDACT_LEN / 4 &&
	    2 * n <= MAX_REDACT_VALUES - set->nvalues &&
	    2 * (len + n * REDACT_OVERLAP) <= MAX_REDACT_LEN - set->len;
}

int
redact_add(struct redact *set, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t n = len;
	int r;

	while (n > 0 && redact_is_space(p[n - 1]))
		n--;
	while (n > 0 && redact_is_space(p[0])) {
		p++;
		n--;
	}
	if (len < REDACT_VALUE_MIN || redact_is_placeholder(p, n))
		return CL_OK;
	if (!redact_has_room(set, len))
		return CL_LIMIT;
	if ((r = redact_add_pieces(set, data, len)) != CL_OK)
		return r;
	return n < REDACT_VALUE_MIN || n == len ? CL_OK :
	    redact_add_pieces(set, p, n);
}

/* All variables of that name: which one counts is not ours to say. */
static int
redact_add_named(struct redact *set, const char *name, size_t len,
    char *const *env, size_t n)
{
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		if (strncmp(env[i], name, len) != 0 || env[i][len] != '=')
			continue;
		r = redact_add(set, env[i] + len + 1,
		    strlen(env[i] + len + 1));
		if (r != CL_OK)
			return r;
	}
	return CL_OK;
}

int
redact_add_env(struct redact *set, char *const *env, size_t n)
{
	static const char key[] = "CLOOP_REDACT_ENV=";
	const char *p, *end, *e;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		if (strncmp(env[i], key, sizeof(key) - 1) != 0)
			continue;
		for (p = env[i] + sizeof(key) - 1;; p = end + 1) {
			end = strchrnul(p, ',');
			for (e = end; e > p &&
			    redact_is_space((uint8_t)e[-1]); e--)
				;
			while (p < e && redact_is_space((uint8_t)*p))
				p++;
			if (e > p && (r = redact_add_named(set, p,
			    (size_t)(e - p), env, n)) != CL_OK)
				return r;
			if (*end == '\0')
				break;
		}
	}
	return CL_OK;
}

/* ------------------------------------------------------------------ stream */

void
redact_stream_init(struct redact_stream *rs)
{
	rs->open = 0;
	rs->cover = rs->len = 0;
}

void
redact_stream_clear(struct redact_stream *rs)
{
	explicit_bzero(rs, sizeof(*rs));
}

uint64_t
redact_stream_get_held(const struct redact_stream *rs)
{
	return rs->open + rs->len;
}

struct redact_out {
	redact_fn *fn;
	void *arg;
	int r;			/* first failure; silent afterwards */
};

static void
redact_give(struct redact_out *out, const uint8_t *p, size_t len)
{
	struct redact_piece piece = { .data = p, .len = len, .in_len = len };

	if (len > 0 && out->r == 0)
		out->r = out->fn(out->arg, &piece);
}

static void
redact_give_marker(struct redact_stream *rs, struct redact_out *out)
{
	struct redact_piece piece = { .data = (const uint8_t *)REDACT_MARKER,
	    .len = REDACT_MARKER_LEN, .in_len = rs->open, .is_marker = 1 };

	if (rs->open > 0 && out->r == 0)
		out->r = out->fn(out->arg, &piece);
	rs->open = 0;
}

/* Two bytes with which a value begins, or one and the end: undecided. */
static int
redact_is_begin(const struct redact *set, const uint8_t *p,
    const uint8_t *end)
{
	unsigned int pair;

	if (end - p == 1)
		return 1;
	pair = (unsigned int)p[0] << 8 | p[1];
	return (set->pairs[pair / 8] & 1U << (pair % 8)) != 0;
}

/* The next place from p on at which a value may begin; end when none. */
static const uint8_t *
redact_find(const struct redact *set, const uint8_t *p, const uint8_t *end)
{
	for (; p < end; p++) {
		if (set->nfirst == 1) {
			p = memchr(p, set->only, (size_t)(end - p));
			if (p == NULL)
				return end;
		} else {
			while (!set->begins[*p])
				if (++p == end)
					return end;
		}
		if (redact_is_begin(set, p, end))
			return p;
	}
	return end;
}

/*
 * How long the longest value is that stands at p; 0: none.  CL_INCOMPLETE
 * when a longer one may, which more input will tell.
 */
static int
redact_match(const struct redact *set, const uint8_t *p, const uint8_t *end,
    size_t *lenp)
{
	const struct redact_value *v;
	size_t left = (size_t)(end - p), n;
	int r = CL_OK;

	*lenp = 0;
	for (v = set->first[*p]; v != NULL; v = v->next) {
		n = v->bytes.len < left ? v->bytes.len : left;
		if (memcmp(v->bytes.data, p, n) != 0)
			continue;
		if (n == v->bytes.len) {
			*lenp = n;
			return r;
		}
		r = CL_INCOMPLETE;
	}
	return r;
}

/*
 * Decide the bytes of [p, end) as far as they can be; returns how many.
 * `is_last`: nothing follows, so what is not there yet never comes.
 */
static size_t
redact_scan(struct redact_stream *rs, const struct redact *set,
    const uint8_t *p, const uint8_t *end, int is_last, struct redact_out *out)
{
	const uint8_t *begin = p, *plain = p, *cover = p + rs->cover, *q;
	size_t len;

	while (p < end) {
		q = redact_find(set, p, end);
		if (p < cover) {
			/* Hidden already; a value may begin in here too. */
			q = q < cover ? q : cover;
			rs->open += (uint64_t)(q - p);
			plain = q;
		}
		if ((p = q) == end)
			break;
		if (p >= cover)
			redact_give_marker(rs, out);
		if (redact_match(set, p, end, &len) != CL_OK && !is_last)
			break;
		if (len > 0 && p + len > cover) {
			redact_give(out, plain, (size_t)(p - plain));
			plain = p;
			cover = p + len;
		}
		if (p < cover) {
			rs->open++;
			plain = p + 1;
		}
		p++;
	}
	/* Nothing that begins before p goes on behind it: decided. */
	if (p >= cover)
		redact_give_marker(rs, out);
	redact_give(out, plain, (size_t)(p - plain));
	rs->cover = p < cover ? (size_t)(cover - p) : 0;
	return (size_t)(p - begin);
}

int
redact_put(struct redact_stream *rs, const struct redact *set,
    const void *data, size_t len, redact_fn *fn, void *arg)
{
	struct redact_out out = { fn, arg, 0 };
	const uint8_t *p = data;
	size_t n;

	if (redact_is_empty(set)) {
		redact_give(&out, p, len);
		return out.r;
	}
	while (len > 0 && out.r == 0) {
		if (rs->len == 0) {
			n = redact_scan(rs, set, p, p + len, 0, &out);
			/* The rest fits: it is shorter than a value. */
			rs->len = len - n;
			memcpy(rs->held, p + n, rs->len);
			break;
		}
		n = sizeof(rs->held) - rs->len;
		n = n < len ? n : len;
		memcpy(rs->held + rs->len, p, n);
		p += n;
		len -= n;
		rs->len += n;
		n = redact_scan(rs, set, rs->held, rs->held + rs->len, 0,
		    &out);
		rs->len -= n;
		memmove(rs->held, rs->held + n, rs->len);
		explicit_bzero(rs->held + rs->len, n);
	}
	return out.r;
}

int
redact_end(struct redact_stream *rs, const struct redact *set, redact_fn *fn,
    void *arg)
{
	struct redact_out out = { fn, arg, 0 };

	if (!redact_is_empty(set)) {
		(void)redact_scan(rs, set, rs->held, rs->held + rs->len, 1,
		    &out);
		redact_give_marker(rs, &out);
	}
	redact_stream_clear(rs);
	return out.r;
}

struct redact_text {
	char *dst;
	size_t left;		/* without the NUL */
};

static int
redact_on_text(void *arg, const struct redact_piece *piece)
{
	struct redact_text *t = arg;
	size_t n = piece->len < t->left ? piece->len : t->left;

	memcpy(t->dst, piece->data, n);
	t->dst += n;
	t->left -= n;
	return 0;
}

void
redact_format(const struct redact *set, const char *text, char *dst,
    size_t dstlen)
{
	struct redact_text t = { dst, dstlen - 1 };
	struct redact_stream rs;

	redact_stream_init(&rs);
	(void)redact_put(&rs, set, text, strlen(text), redact_on_text, &t);
	(void)redact_end(&rs, set, redact_on_text, &t);
	*t.dst = '\0';
}
