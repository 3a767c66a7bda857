/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Allocation that ends the process when memory is gone.  For start-up and
 * small fixed structs of any process; no size here comes from a peer.
 */
#include "xmem.h"

#include <bsd/stdlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void xmem_stop(void) __attribute__((__noreturn__));

static void
xmem_stop(void)
{
	static const char text[] = "event=out-of-memory\n";

	/* Formatting may allocate; a constant line does not. */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) == -1)
		_exit(1);
	_exit(1);
}

void *
xcalloc(size_t n, size_t size)
{
	void *p;

	if ((p = calloc(n == 0 ? 1 : n, size == 0 ? 1 : size)) == NULL)
		xmem_stop();
	return p;
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	void *q;

	q = reallocarray(p, n == 0 ? 1 : n, size == 0 ? 1 : size);
	if (q == NULL)
		xmem_stop();
	return q;
}

char *
xstrdup(const char *s)
{
	char *p;

	if ((p = strdup(s)) == NULL)
		xmem_stop();
	return p;
}

char *
xstrndup(const char *s, size_t len)
{
	char *p;

	if ((p = strndup(s, len)) == NULL)
		xmem_stop();
	return p;
}

int
xasprintf(char **retp, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(retp, fmt, ap);
	va_end(ap);
	if (n < 0)
		xmem_stop();
	return n;
}
