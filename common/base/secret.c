/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secret bytes: one allocation each, wiped before it is given back.  Used in
 * every process that holds a key, a token or a leased value.  Comparison is
 * written out here so that programs without libcrypto have it too.
 */
#include "secret.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"

int
secret_init(struct secret *s, const void *data, size_t len, size_t max)
{
	s->data = NULL;
	s->len = 0;
	if (len > max || len == SIZE_MAX)
		return CL_TOOBIG;
	if ((s->data = calloc(1, len + 1)) == NULL)
		return CL_NOMEM;
	if (len > 0)
		memcpy(s->data, data, len);
	s->len = len;
	return 0;
}

void
secret_clear(struct secret *s)
{
	if (s->data != NULL)
		freezero(s->data, s->len + 1);
	s->data = NULL;
	s->len = 0;
}

int
secret_is_equal_mem(const void *a, const void *b, size_t len)
{
	const volatile unsigned char *p = a, *q = b;
	unsigned char diff = 0;
	size_t i;

	/* No early end: the time tells nothing about where they differ. */
	for (i = 0; i < len; i++)
		diff |= p[i] ^ q[i];
	return diff == 0;
}

int
secret_is_equal(const struct secret *a, const struct secret *b)
{
	if (a->data == NULL || b->data == NULL || a->len != b->len)
		return 0;
	return secret_is_equal_mem(a->data, b->data, a->len);
}

int
secret_load_fd(struct secret *s, int fd, size_t max)
{
	unsigned char *data;
	size_t len = 0;
	ssize_t n;
	int r;

	s->data = NULL;
	s->len = 0;
	if (max > SIZE_MAX - 2)
		return CL_TOOBIG;
	/* One byte more than allowed tells "too big" from "just fits". */
	if ((data = calloc(1, max + 2)) == NULL)
		return CL_NOMEM;
	for (;;) {
		n = read(fd, data + len, max + 1 - len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
		if (len > max)
			break;
	}
	if (n == -1)
		r = CL_SYSTEM;
	else if (len > max)
		r = CL_TOOBIG;
	else
		r = secret_init(s, data, len, max);
	freezero(data, max + 2);
	return r;
}
