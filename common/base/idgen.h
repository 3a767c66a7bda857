/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Random identifiers: base64url without padding.
 */
#ifndef CLOOP_IDGEN_H
#define CLOOP_IDGEN_H

#define IDGEN_HANDLE_LEN 16	/* 12 random bytes: handles, agents, tokens */
#define IDGEN_CORR_LEN 11	/* 8 random bytes: correlation ids */
#define IDGEN_SECRET_LEN 43	/* 32 random bytes */

/* dst holds the length + 1.  Cannot fail: getrandom(2) or abort. */
void idgen_handle(char dst[IDGEN_HANDLE_LEN + 1]);
void idgen_corr(char dst[IDGEN_CORR_LEN + 1]);
void idgen_secret(char dst[IDGEN_SECRET_LEN + 1]);

#endif
