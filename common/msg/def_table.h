/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From a .def file: the field tables of its structs (def_struct.h).  Where a
 * member's key is not said, it is its own name.
 */
#include "field.h"

#define OMIT FIELD_OMIT
#define HIDDEN FIELD_HIDDEN
#define FOREIGN FIELD_FOREIGN
#define PROSE FIELD_PROSE
#define LAX FIELD_LAX

/* The first two of what follows the bounds: flags and key. */
#define DEF_FIELD(m, nm, kind, nmax, min, max, sub, flags, key, ...)           \
	{ (key) != NULL ? (key) : #m, kind, flags, offsetof(self, m),          \
	  offsetof(self, nm), nmax, min, max, sub },

#define STRUCT(n)                                                              \
	static const struct field *                                            \
	n##_get_rows(size_t *np)                                               \
	{                                                                      \
		typedef struct n self __attribute__((unused));                 \
		static const struct field rows[] = {
#define STR(m, max, ...)                                                       \
	DEF_FIELD(m, m, FIELD_STR, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define CSTR(m, max, ...)                                                      \
	DEF_FIELD(m, m, FIELD_CSTR, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define RAW(m, max, ...)                                                       \
	DEF_FIELD(m, m, FIELD_RAW, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define SECRET(m, max, ...)                                                    \
	DEF_FIELD(m, m, FIELD_SECRET, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define TEXT(m, max, ...)                                                      \
	DEF_FIELD(m, m, FIELD_TEXT, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define BYTES(m, max, ...)                                                     \
	DEF_FIELD(m, m##_len, FIELD_BYTES, 0, 0, max, NULL,                    \
	    ##__VA_ARGS__, 0, NULL)
#define SBYTES(m, max, ...)                                                    \
	DEF_FIELD(m, m, FIELD_SBYTES, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define INT(m, min, max, ...)                                                  \
	DEF_FIELD(m, m, FIELD_INT, 0, min, max, NULL, ##__VA_ARGS__, 0, NULL)
#define INT64(m, ...)                                                          \
	DEF_FIELD(m, m, FIELD_INT, 0, INT64_MIN, INT64_MAX, NULL,              \
	    ##__VA_ARGS__, 0, NULL)
#define UINT(m, max, ...)                                                      \
	DEF_FIELD(m, m, FIELD_UINT, 0, 0, max, NULL, ##__VA_ARGS__, 0, NULL)
#define BOOL(m, ...)                                                           \
	DEF_FIELD(m, m, FIELD_BOOL, 0, 0, 1, NULL, ##__VA_ARGS__, 0, NULL)
#define OPTINT(m, min, max, ...)                                               \
	DEF_FIELD(m, m, FIELD_OPTINT, 0, min, max, NULL, ##__VA_ARGS__, 0, NULL)
#define TIME(m, ...)                                                           \
	DEF_FIELD(m, m, FIELD_TIME, 0, 0, 0, NULL, ##__VA_ARGS__, 0, NULL)
#define STRS(m, nmax, max, ...)                                                \
	DEF_FIELD(m, n##m, FIELD_STRS, nmax, 0, max, NULL,                     \
	    ##__VA_ARGS__, 0, NULL)
#define INTS(m, nmax, min, max, ...)                                           \
	DEF_FIELD(m, n##m, FIELD_INTS, nmax, min, max, NULL,                   \
	    ##__VA_ARGS__, 0, NULL)
#define MAP(m, nmax, max, ...)                                                 \
	DEF_FIELD(m, n##m, FIELD_MAP, nmax, 0, max, NULL, ##__VA_ARGS__,       \
	    0, NULL)
#define OBJ(m, sub, ...)                                                       \
	DEF_FIELD(m, m, FIELD_OBJ, 0, 0, 0, &sub##_table, ##__VA_ARGS__,       \
	    0, NULL)
#define PTR(m, sub, ...)                                                       \
	DEF_FIELD(m, m, FIELD_PTR, 0, 0, 0, &sub##_table, ##__VA_ARGS__,       \
	    0, NULL)
#define LIST(m, nmax, sub, ...)                                                \
	DEF_FIELD(m, n##m, FIELD_LIST, nmax, 0, 0, &sub##_table,               \
	    ##__VA_ARGS__, 0, NULL)
/* What this process alone knows of it is in no table. */
#define PLAIN(type, m)
/* A table of what stands above; the next begins with it, as an object. */
#define PART(n, whole, key)                                                    \
	PART_END(n, n)                                                         \
	static const struct field *                                            \
	whole##_get_rows(size_t *np)                                           \
	{                                                                      \
		typedef struct n self;                                         \
		static const struct field rows[] = {                           \
		{ key, FIELD_OBJ, 0, 0, 0, 0, 0, 0, &n##_table },
#define PART_END(n, whole)                                                     \
		};                                                             \
		*np = sizeof(rows) / sizeof(rows[0]);                          \
		return rows;                                                   \
	}                                                                      \
	const struct field_table whole##_table = { #whole, sizeof(struct n),   \
	    whole##_get_rows };
#define END(n) PART_END(n, n)
#define ROW(name, number, dir, states, body, fd, once, rate, open)

#include DEF_FILE

#include "def_end.h"
#undef DEF_FIELD
