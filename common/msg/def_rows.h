/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From a .def file: its rows alone, by a ROW() that whoever includes this has
 * defined:
 *
 *	ROW(name, number, direction, states, body, fd, once, rate, open)
 *
 * body is a struct of the same or another .def.  fd 1: exactly one
 * descriptor; once 1: one of these in a channel's life; rate: messages a
 * second above which the sender is not read for a while, open: questions that
 * may be unanswered before it is not read (0: flow alone bounds it).
 */
#define STRUCT(n)
#define STR(...)
#define CSTR(...)
#define RAW(...)
#define SECRET(...)
#define TEXT(...)
#define BYTES(...)
#define SBYTES(...)
#define INT(...)
#define INT64(...)
#define UINT(...)
#define BOOL(...)
#define OPTINT(...)
#define TIME(...)
#define STRS(...)
#define INTS(...)
#define MAP(...)
#define OBJ(...)
#define PTR(...)
#define LIST(...)
#define PLAIN(...)
#define PART(...)
#define PART_END(...)
#define END(n)

#include DEF_FILE

#include "def_end.h"
