/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Field tables: a struct is declared once, one line per member of a .def file
 * (def_struct.h), and from the table come its message form (put, get), its
 * JSON form in Go's manner (format), its zero value (init) and its end
 * (clear).  JSON is *read* by net/codec/json.c only, never here: root links
 * this file.
 *
 * Member types a row may describe (F_x here is x in a .def):
 *   F_STR     char *m            NULL is ""
 *   F_CSTR    const char *m      a message's: borrowed by who sends, never NULL
 *				  and owned after field_get
 *   F_RAW     char *m            JSON text, opaque; NULL is absent
 *   F_SECRET  struct secret m    a string that is a secret
 *   F_TEXT    struct field_text m   a string that may hold NUL
 *   F_BYTES   uint8_t *m; size_t m_len          NULL is Go's nil
 *   F_SBYTES  struct secret m    bytes that are a secret; data NULL is nil
 *   F_INT     int64_t m          F_UINT  uint64_t m      F_BOOL  int m
 *   F_OPTINT  struct field_optint m             a pointer to an int in Go
 *   F_TIME    int64_t m          wall ns; UTIL_TIME_ZERO is unset
 *   F_STRS    char **m; size_t nm               NULL is nil
 *   F_INTS    int64_t *m; size_t nm
 *   F_MAP     struct field_pair *m; size_t nm   written sorted by key
 *   F_OBJ     struct x m         F_PTR  struct x *m      NULL is absent
 *   F_LIST    struct x *m; size_t nm
 * All memory belongs to the struct: allocate with malloc and friends.
 */
#ifndef CLOOP_FIELD_H
#define CLOOP_FIELD_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct jsonw;

enum field_kind {
	FIELD_STR, FIELD_CSTR, FIELD_RAW, FIELD_SECRET, FIELD_TEXT,
	FIELD_BYTES, FIELD_SBYTES, FIELD_INT, FIELD_UINT, FIELD_BOOL, FIELD_OPTINT,
	FIELD_TIME, FIELD_STRS, FIELD_INTS, FIELD_MAP, FIELD_OBJ, FIELD_PTR,
	FIELD_LIST
};

#define FIELD_OMIT 0x01		/* Go's omitempty */
#define FIELD_HIDDEN 0x02	/* in messages only, not in JSON */
#define FIELD_FOREIGN 0x04	/* written to JSON, but the JSON reader passes
				 * it to its unknown-member hook instead */
#define FIELD_PROSE 0x08	/* read from JSON: cut when too long, NUL and
				 * other controls but LF, TAB replaced */
#define FIELD_LAX 0x10		/* a list: elements that do not decode are
				 * dropped one by one */

struct field_text {
	char *data;		/* NUL past len; NULL is "" */
	size_t len;
	size_t nreplaced;	/* \ufffd escapes of the JSON text */
};

struct field_optint {
	int64_t v;
	int set;
};

struct field_pair {
	char *key;
	char *value;
};

struct field_table;

struct field {
	const char *key;
	enum field_kind kind;
	unsigned int flags;
	size_t off;		/* of the member */
	size_t noff;		/* of its count or length */
	size_t nmax;		/* elements at most */
	int64_t min;		/* integers */
	uint64_t max;		/* integers; bytes of (each) string, bytes */
	const struct field_table *sub;
};

struct field_table {
	const char *name;	/* for error texts */
	size_t size;		/* of the struct */
	const struct field *(*get_rows)(size_t *np);
};

#define F_ROW(S, m, nm, key, kind, flags, nmax, min, max, sub)                 \
	{ key, kind, flags, offsetof(S, m), offsetof(S, nm), nmax, min, max,   \
	  sub }
#define F_STR(S, m, key, flags, max)                                           \
	F_ROW(S, m, m, key, FIELD_STR, flags, 0, 0, max, NULL)
#define F_RAW(S, m, key, flags, max)                                           \
	F_ROW(S, m, m, key, FIELD_RAW, flags, 0, 0, max, NULL)
#define F_SECRET(S, m, key, flags, max)                                        \
	F_ROW(S, m, m, key, FIELD_SECRET, flags, 0, 0, max, NULL)
#define F_TEXT(S, m, key, flags, max)                                          \
	F_ROW(S, m, m, key, FIELD_TEXT, flags, 0, 0, max, NULL)
#define F_BYTES(S, m, key, flags, max)                                         \
	F_ROW(S, m, m##_len, key, FIELD_BYTES, flags, 0, 0, max, NULL)
#define F_SBYTES(S, m, key, flags, max)                                        \
	F_ROW(S, m, m, key, FIELD_SBYTES, flags, 0, 0, max, NULL)
#define F_INT(S, m, key, flags, min, max)                                      \
	F_ROW(S, m, m, key, FIELD_INT, flags, 0, min, max, NULL)
/* Go's int and int64: any value; the rules say more. */
#define F_INT64(S, m, key, flags)                                              \
	F_INT(S, m, key, flags, INT64_MIN, INT64_MAX)
#define F_UINT(S, m, key, flags, max)                                          \
	F_ROW(S, m, m, key, FIELD_UINT, flags, 0, 0, max, NULL)
#define F_BOOL(S, m, key, flags)                                               \
	F_ROW(S, m, m, key, FIELD_BOOL, flags, 0, 0, 1, NULL)
#define F_OPTINT(S, m, key, flags, min, max)                                   \
	F_ROW(S, m, m, key, FIELD_OPTINT, flags, 0, min, max, NULL)
#define F_TIME(S, m, key, flags)                                               \
	F_ROW(S, m, m, key, FIELD_TIME, flags, 0, 0, 0, NULL)
#define F_STRS(S, m, key, flags, nmax, max)                                    \
	F_ROW(S, m, n##m, key, FIELD_STRS, flags, nmax, 0, max, NULL)
#define F_INTS(S, m, key, flags, nmax, min, max)                               \
	F_ROW(S, m, n##m, key, FIELD_INTS, flags, nmax, min, max, NULL)
#define F_MAP(S, m, key, flags, nmax, max)                                     \
	F_ROW(S, m, n##m, key, FIELD_MAP, flags, nmax, 0, max, NULL)
#define F_OBJ(S, m, key, flags, sub)                                           \
	F_ROW(S, m, m, key, FIELD_OBJ, flags, 0, 0, 0, sub)
#define F_PTR(S, m, key, flags, sub)                                           \
	F_ROW(S, m, m, key, FIELD_PTR, flags, 0, 0, 0, sub)
#define F_LIST(S, m, key, flags, nmax, sub)                                    \
	F_ROW(S, m, n##m, key, FIELD_LIST, flags, nmax, 0, 0, sub)
/* const struct field_table NAME for struct S with rows NAME##_rows. */
#define F_TABLE(NAME, S)                                                       \
	static const struct field *                                            \
	NAME##_get_rows(size_t *np)                                            \
	{                                                                      \
		*np = sizeof(NAME##_rows) / sizeof(NAME##_rows[0]);            \
		return NAME##_rows;                                            \
	}                                                                      \
	const struct field_table NAME = { #NAME, sizeof(S), NAME##_get_rows }

/* The zero value: all empty, times unset.  Before anything else. */
void field_init(const struct field_table *t, void *v);
/* Wipe and free all of it; v is a zero value afterwards. */
void field_clear(const struct field_table *t, void *v);

/* Append the message form.  A member beyond its bound sets b's error. */
void field_put(const struct field_table *t, const void *v, struct buf *b);
/*
 * Read the message form: does field_init(v) first, clears it on failure.
 * The same bounds as the table says.  CL_INCOMPLETE, CL_FORMAT, CL_TOOBIG,
 * CL_NOMEM.  The caller ends with buf_end().
 */
int field_get(const struct field_table *t, struct buf *b, void *v);

/* Bytes of the message form, at least and at most. */
void field_find_bounds(const struct field_table *t, size_t *minp,
    size_t *maxp);

/* Append the JSON object, members in table order; errors stick in w. */
void field_format_json(const struct field_table *t, const void *v,
    struct jsonw *w);

/* Sort the pairs by key bytes (a map's form). */
void field_sort_map(struct field_pair *pairs, size_t n);
/* The value of a key in a map, or NULL. */
const char *field_find_pair(const struct field_pair *pairs, size_t n,
    const char *key);

#endif
