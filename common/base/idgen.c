/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Random identifiers straight from the kernel.  A process without
 * randomness must not go on: ids are what keeps sessions and tokens apart.
 */
#include "idgen.h"

#include <sys/random.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "b64.h"

static void
idgen_put(char *dst, size_t nbytes)
{
	uint8_t raw[32];
	ssize_t n;

	/* Up to 256 bytes come whole or not at all (getrandom(2)). */
	do
		n = getrandom(raw, nbytes, 0);
	while (n == -1 && errno == EINTR);
	if (n != (ssize_t)nbytes)
		abort();
	b64url_encode(raw, nbytes, dst);
	explicit_bzero(raw, sizeof(raw));
}

void
idgen_handle(char dst[IDGEN_HANDLE_LEN + 1])
{
	idgen_put(dst, 12);
}

void
idgen_corr(char dst[IDGEN_CORR_LEN + 1])
{
	idgen_put(dst, 8);
}

void
idgen_secret(char dst[IDGEN_SECRET_LEN + 1])
{
	idgen_put(dst, 32);
}
