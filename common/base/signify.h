/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The text form of Ed25519 public keys and detached signatures, as
 * signify(1) writes and reads it: an "untrusted comment: ..." line, then one
 * line of base64 of "Ed" ‖ key number (8) ‖ key (32) or signature (64).
 * Form only, no cryptography: used by cloop-keygen and by whoever verifies
 * a build.
 */
#ifndef CLOOP_SIGNIFY_H
#define CLOOP_SIGNIFY_H

#include <stddef.h>
#include <stdint.h>

#define SIGNIFY_NUM_LEN 8
#define SIGNIFY_KEY_LEN 32
#define SIGNIFY_SIG_LEN 64
#define SIGNIFY_TEXT_MAX 1280	/* comment of at most 1024 and the base64 */
#define SIGNIFY_COMMENT_MAX 1024

struct signify_key {
	uint8_t num[SIGNIFY_NUM_LEN];
	uint8_t key[SIGNIFY_KEY_LEN];
};

struct signify_sig {
	uint8_t num[SIGNIFY_NUM_LEN];	/* of the key that signed */
	uint8_t sig[SIGNIFY_SIG_LEN];
};

/* dst[SIGNIFY_TEXT_MAX]; the comment is cut at a line end and at its
 * bound.  Returns the length. */
size_t signify_format_key(const struct signify_key *k, const char *comment,
    char *dst);
size_t signify_format_sig(const struct signify_sig *s, const char *comment,
    char *dst);

/*
 * Exactly the two lines, the last line end included; CL_FORMAT.
 */
int signify_parse_key(const char *text, size_t len, struct signify_key *k);
int signify_parse_sig(const char *text, size_t len, struct signify_sig *s);

#endif
