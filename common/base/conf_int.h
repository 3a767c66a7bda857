/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Private to conf.c and conf_value.c.
 */
#ifndef CLOOP_CONF_INT_H
#define CLOOP_CONF_INT_H

#include <stdarg.h>
#include <stddef.h>

struct conf_row;

/*
 * Parse `text` as the row says and store it at `slot`, where it replaces a
 * single value and is added to a list; with slot NULL only check it.
 * `is_bare`: nothing was quoted, so that none means nothing.  CL_FORMAT
 * with a reason in why, CL_NOMEM.
 */
int conf_value_put(const struct conf_row *row, void *slot, const char *text,
    int is_bare, char *why, size_t whylen);

#endif
