/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From a .def file: the structs it declares, and their field tables' names.
 *
 *	#define DEF_FILE "common/model/lease.def"
 *	#include "def_struct.h"
 *
 * in the header of a noun; the same with def_table.h in one .c file.  A .def
 * says each member once:
 *
 *	STRUCT(thing)				what it is, in a comment above
 *		BOOL(known)
 *		STRS(killed, MAX_CONCURRENT, MAX_ID_LEN, OMIT)
 *		UINT(nrows, UINT64_MAX, 0, "rows")
 *	END(thing)
 *
 * A member is its name, its bounds, and, where the JSON form needs more, its
 * flags (FIELD_OMIT is OMIT here) and then its key.  What the types are:
 * field.h.  No include guard: it is meant to be included once for each .def.
 */
#include "common/base/secret.h"
#include "field.h"

#define STRUCT(n) struct n {
#define STR(m, max, ...) char *m;
#define CSTR(m, max, ...) const char *m;
#define RAW(m, max, ...) char *m;
#define SECRET(m, max, ...) struct secret m;
#define TEXT(m, max, ...) struct field_text m;
#define BYTES(m, max, ...) uint8_t *m; size_t m##_len;
#define SBYTES(m, max, ...) struct secret m;
#define INT(m, min, max, ...) int64_t m;
#define INT64(m, ...) int64_t m;
#define UINT(m, max, ...) uint64_t m;
#define BOOL(m, ...) int m;
#define OPTINT(m, min, max, ...) struct field_optint m;
#define TIME(m, ...) int64_t m;
#define STRS(m, nmax, max, ...) char **m; size_t n##m;
#define INTS(m, nmax, min, max, ...) int64_t *m; size_t n##m;
#define MAP(m, nmax, max, ...) struct field_pair *m; size_t n##m;
#define OBJ(m, sub, ...) struct sub m;
#define PTR(m, sub, ...) struct sub *m;
#define LIST(m, nmax, sub, ...) struct sub *m; size_t n##m;
#define PLAIN(type, m) type m;
#define PART(n, whole, key)
#define PART_END(n, whole)                                                     \
	}; extern const struct field_table n##_table, whole##_table;
#define END(n) }; extern const struct field_table n##_table;
/* What a row's body is, for MSG_BODY(). */
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	typedef struct body msg_of_##name;

#include DEF_FILE

#include "def_end.h"
