/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The only place where secret bytes may live: allocated, never copied
 * behind the caller's back, wiped before the memory is given back.
 */
#ifndef CLOOP_SECRET_H
#define CLOOP_SECRET_H

#include <stddef.h>

struct secret {
	unsigned char *data;	/* NUL-terminated one byte past len */
	size_t len;
};

#define SECRET_INIT { NULL, 0 }

/* Copy len bytes (at most `max`).  CL_TOOBIG, CL_NOMEM. */
int secret_init(struct secret *s, const void *data, size_t len, size_t max);
/* Wipe and free; legal on a cleared secret. */
void secret_clear(struct secret *s);
/* Constant-time comparison; 1 when equal. */
int secret_is_equal(const struct secret *a, const struct secret *b);
/* Constant-time comparison of two buffers of the same length; 1 = equal. */
int secret_is_equal_mem(const void *a, const void *b, size_t len);
/* Read a whole descriptor (at most max bytes).  CL_TOOBIG, CL_SYSTEM. */
int secret_load_fd(struct secret *s, int fd, size_t max);

#endif
