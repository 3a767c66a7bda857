/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * signify's text form.  Runs in cloop-keygen and in the verifiers of builds.
 * A signature file comes from outside: its lengths are fixed, so the parser
 * is two memchr and one decoder; the comment is skipped, never shown.
 */
#include <stdio.h>
#include <string.h>

#include "signify.h"
#include "b64.h"
#include "err.h"

#define SIGNIFY_ALG "Ed"
#define SIGNIFY_ALG_LEN 2
#define SIGNIFY_HEADER "untrusted comment: "
#define SIGNIFY_RAW_MAX (SIGNIFY_ALG_LEN + SIGNIFY_NUM_LEN + SIGNIFY_SIG_LEN)

static size_t
signify_format(const uint8_t *num, const uint8_t *data, size_t len,
    const char *comment, char *dst)
{
	uint8_t raw[SIGNIFY_RAW_MAX];
	char text[B64_LEN(SIGNIFY_RAW_MAX) + 1];
	size_t comment_len = strcspn(comment, "\r\n");
	int n;

	if (comment_len > SIGNIFY_COMMENT_MAX)
		comment_len = SIGNIFY_COMMENT_MAX;
	memcpy(raw, SIGNIFY_ALG, SIGNIFY_ALG_LEN);
	memcpy(raw + SIGNIFY_ALG_LEN, num, SIGNIFY_NUM_LEN);
	memcpy(raw + SIGNIFY_ALG_LEN + SIGNIFY_NUM_LEN, data, len);
	b64_encode(raw, SIGNIFY_ALG_LEN + SIGNIFY_NUM_LEN + len, text);
	n = snprintf(dst, SIGNIFY_TEXT_MAX, SIGNIFY_HEADER "%.*s\n%s\n",
	    (int)comment_len, comment, text);
	return n < 0 || n >= SIGNIFY_TEXT_MAX ? 0 : (size_t)n;
}

static int
signify_parse(const char *text, size_t len, uint8_t *num, uint8_t *data,
    size_t data_len)
{
	uint8_t raw[SIGNIFY_RAW_MAX];
	const size_t want = SIGNIFY_ALG_LEN + SIGNIFY_NUM_LEN + data_len;
	const char *body;
	size_t header_len = strlen(SIGNIFY_HEADER), raw_len;

	if (len < header_len || memcmp(text, SIGNIFY_HEADER, header_len) != 0)
		return CL_FORMAT;
	if ((body = memchr(text, '\n', len)) == NULL ||
	    (size_t)(body - text) > header_len + SIGNIFY_COMMENT_MAX)
		return CL_FORMAT;
	body++;
	len -= (size_t)(body - text);
	if (len != B64_LEN(want) + 1 || body[len - 1] != '\n' ||
	    memchr(body, '\n', len - 1) != NULL ||
	    memchr(body, '\r', len - 1) != NULL ||
	    b64_decode(body, len - 1, raw, sizeof(raw), &raw_len) != 0 ||
	    raw_len != want || memcmp(raw, SIGNIFY_ALG, SIGNIFY_ALG_LEN) != 0)
		return CL_FORMAT;
	memcpy(num, raw + SIGNIFY_ALG_LEN, SIGNIFY_NUM_LEN);
	memcpy(data, raw + SIGNIFY_ALG_LEN + SIGNIFY_NUM_LEN, data_len);
	return CL_OK;
}

size_t
signify_format_key(const struct signify_key *k, const char *comment,
    char *dst)
{
	return signify_format(k->num, k->key, SIGNIFY_KEY_LEN, comment, dst);
}

size_t
signify_format_sig(const struct signify_sig *s, const char *comment,
    char *dst)
{
	return signify_format(s->num, s->sig, SIGNIFY_SIG_LEN, comment, dst);
}

int
signify_parse_key(const char *text, size_t len, struct signify_key *k)
{
	memset(k, 0, sizeof(*k));
	return signify_parse(text, len, k->num, k->key, SIGNIFY_KEY_LEN);
}

int
signify_parse_sig(const char *text, size_t len, struct signify_sig *s)
{
	memset(s, 0, sizeof(*s));
	return signify_parse(text, len, s->num, s->sig, SIGNIFY_SIG_LEN);
}
