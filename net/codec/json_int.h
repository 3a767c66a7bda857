/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between the parts of the JSON reader: json.c (scan), json_value.c (single
 * values), json_decode.c (tables).
 */
#ifndef CLOOP_JSON_INT_H
#define CLOOP_JSON_INT_H

#include <stddef.h>
#include <stdint.h>

#include "json.h"

/* What the letter behind a backslash stands for; 0: it is no such letter. */
extern const char jx_escapes[256];

/*
 * The next code point of a string literal at *pp (< end), escapes resolved;
 * what is not UTF-8 and unpaired surrogates give U+FFFD.  The literal has
 * passed the scan.
 */
uint32_t jx_next_rune(const char **pp, const char *end);

#endif
