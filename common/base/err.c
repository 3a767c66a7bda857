/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Error codes and their texts.  Runs in every process, touches nothing,
 * trusts nothing: an unknown code has a text too.
 */
#include "err.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct err_row {
	int code;
	const char *name;
	const char *text;
} err_rows[] = {
	{ CL_OK, "OK", "success" },
#define X(name, value, text) { value, #name, text },
	CL_ERRORS(X)
#undef X
};

static const struct err_row *
cl_find_row(int r)
{
	size_t i;

	for (i = 0; i < sizeof(err_rows) / sizeof(err_rows[0]); i++)
		if (err_rows[i].code == r)
			return &err_rows[i];
	return NULL;
}

const char *
cl_strerror(int r)
{
	const struct err_row *row = cl_find_row(r);

	if (r == CL_SYSTEM && errno != 0)
		return strerror(errno);
	return row == NULL ? "unknown error" : row->text;
}

const char *
cl_errname(int r)
{
	const struct err_row *row = cl_find_row(r);

	return row == NULL ? "UNKNOWN" : row->name;
}
