/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From a .def file: the field tables of its structs (def_struct.h).  Where a
 * member's key and flags are not said, the key is its own name.
 */
#include "field.h"

/* The first two of what follows the bounds: key and flags. */
#define DEF_FIELD(m, nm, kind, nmax, min, max, sub, key, flags, ...)           \
	{ key, kind, flags, offsetof(self, m), offsetof(self, nm), nmax, min,  \
	  max, sub },

#define STRUCT(n)                                                              \
	static const struct field *                                            \
	n##_get_rows(size_t *np)                                               \
	{                                                                      \
		typedef struct n self __attribute__((unused));                 \
		static const struct field rows[] = {
#define STR(m, max, ...)                                                       \
	DEF_FIELD(m, m, FIELD_STR, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define CSTR(m, max, ...)                                                      \
	DEF_FIELD(m, m, FIELD_CSTR, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define RAW(m, max, ...)                                                       \
	DEF_FIELD(m, m, FIELD_RAW, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define SECRET(m, max, ...)                                                    \
	DEF_FIELD(m, m, FIELD_SECRET, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define TEXT(m, max, ...)                                                      \
	DEF_FIELD(m, m, FIELD_TEXT, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define BYTES(m, max, ...)                                                     \
	DEF_FIELD(m, m##_len, FIELD_BYTES, 0, 0, max, NULL, ##__VA_ARGS__,     \
	    #m, 0)
#define SBYTES(m, max, ...)                                                    \
	DEF_FIELD(m, m, FIELD_SBYTES, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define INT(m, min, max, ...)                                                  \
	DEF_FIELD(m, m, FIELD_INT, 0, min, max, NULL, ##__VA_ARGS__, #m, 0)
#define UINT(m, max, ...)                                                      \
	DEF_FIELD(m, m, FIELD_UINT, 0, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define BOOL(m, ...)                                                           \
	DEF_FIELD(m, m, FIELD_BOOL, 0, 0, 1, NULL, ##__VA_ARGS__, #m, 0)
#define OPTINT(m, min, max, ...)                                               \
	DEF_FIELD(m, m, FIELD_OPTINT, 0, min, max, NULL, ##__VA_ARGS__, #m, 0)
#define TIME(m, ...)                                                           \
	DEF_FIELD(m, m, FIELD_TIME, 0, 0, 0, NULL, ##__VA_ARGS__, #m, 0)
#define STRS(m, nmax, max, ...)                                                \
	DEF_FIELD(m, n##m, FIELD_STRS, nmax, 0, max, NULL, ##__VA_ARGS__,      \
	    #m, 0)
#define INTS(m, nmax, min, max, ...)                                           \
	DEF_FIELD(m, n##m, FIELD_INTS, nmax, min, max, NULL, ##__VA_ARGS__,    \
	    #m, 0)
#define MAP(m, nmax, max, ...)                                                 \
	DEF_FIELD(m, n##m, FIELD_MAP, nmax, 0, max, NULL, ##__VA_ARGS__, #m, 0)
#define OBJ(m, sub, ...)                                                       \
	DEF_FIELD(m, m, FIELD_OBJ, 0, 0, 0, &sub##_table, ##__VA_ARGS__, #m, 0)
#define PTR(m, sub, ...)                                                       \
	DEF_FIELD(m, m, FIELD_PTR, 0, 0, 0, &sub##_table, ##__VA_ARGS__, #m, 0)
#define LIST(m, nmax, sub, ...)                                                \
	DEF_FIELD(m, n##m, FIELD_LIST, nmax, 0, 0, &sub##_table,               \
	    ##__VA_ARGS__, #m, 0)
#define END(n)                                                                 \
		};                                                             \
		*np = sizeof(rows) / sizeof(rows[0]);                          \
		return rows;                                                   \
	}                                                                      \
	const struct field_table n##_table = { #n, sizeof(struct n),           \
	    n##_get_rows };
#define ROW(name, number, dir, states, body, fd, once, rate, open)

#include DEF_FILE

#include "def_end.h"
#undef DEF_FIELD
