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
 * Member types a row of a .def may describe:
 *   STR       char *m            NULL is ""
 *   CSTR      const char *m      a message's: borrowed by who sends, never NULL
 *				  and owned after field_get
 *   RAW       char *m            JSON text, opaque; NULL is absent
 *   SECRET    struct secret m    a string that is a secret
 *   TEXT      struct field_text m   a string that may hold NUL
 *   BYTES     uint8_t *m; size_t m_len          NULL is Go's nil
 *   SBYTES    struct secret m    bytes that are a secret; data NULL is nil
 *   INT       int64_t m          UINT    uint64_t m      BOOL    int m
 *   OPTINT    struct field_optint m             a pointer to an int in Go
 *   TIME      int64_t m          wall ns; UTIL_TIME_ZERO is unset
 *   STRS      char **m; size_t nm               NULL is nil
 *   INTS      int64_t *m; size_t nm
 *   MAP       struct field_pair *m; size_t nm   written sorted by key
 *   OBJ       struct x m         PTR    struct x *m      NULL is absent
 *   LIST      struct x *m; size_t nm
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
	FIELD_BYTES, FIELD_SBYTES, FIELD_INT, FIELD_UINT, FIELD_BOOL,
	FIELD_OPTINT, FIELD_TIME, FIELD_STRS, FIELD_INTS, FIELD_MAP,
	FIELD_OBJ, FIELD_PTR, FIELD_LIST
};

#define FIELD_OMIT 0x01		/* Go's omitempty */
#define FIELD_HIDDEN 0x02	/* in messages only, not in JSON */
#define FIELD_FOREIGN 0x04	/* written to JSON, but the JSON reader passes
				 * it to its unknown-member hook instead */
#define FIELD_PROSE 0x08	/* read from JSON: cut when too long, NUL and
				 * other controls but LF, TAB replaced */
#define FIELD_LAX 0x10		/* read from JSON: an element of a list or
				 * the object that does not decode is dropped */

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
