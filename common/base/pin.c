/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Text form of SPKI pins.  Runs in root programs: the text comes from the
 * administrator's own files, the digest from whoever has a certificate.  No
 * allocation, no OpenSSL.
 */
#include "pin.h"

#include <string.h>
#include <strings.h>

#include "b64.h"
#include "err.h"

#define PIN_PREFIX "sha256"
#define PIN_BODY_LEN 43		/* base64 of 32 bytes without its padding */
#define PIN_SEPARATORS ", \t\r\n"

void
pin_format(const struct pin *p, char dst[PIN_TEXT_LEN + 1])
{
	memcpy(dst, PIN_PREFIX ":", sizeof(PIN_PREFIX));
	b64_encode(p->digest, sizeof(p->digest), dst + sizeof(PIN_PREFIX));
}

/*
 * Both alphabets and both paddings are read, but not a mixture of the
 * alphabets: that is a damaged pin, not a spelling.
 */
static int
pin_parse_body(const char *text, size_t len, struct pin *p)
{
	char body[PIN_BODY_LEN + 2];
	size_t i, n;
	int standard = 0, urlsafe = 0;

	if (len == PIN_BODY_LEN + 1 && text[PIN_BODY_LEN] == '=')
		len = PIN_BODY_LEN;
	if (len != PIN_BODY_LEN)
		return CL_FORMAT;
	for (i = 0; i < len; i++) {
		body[i] = text[i];
		if (text[i] == '+' || text[i] == '/')
			standard = 1;
		else if (text[i] == '-' || text[i] == '_') {
			urlsafe = 1;
			body[i] = text[i] == '-' ? '+' : '/';
		} else if (text[i] == '\r' || text[i] == '\n' ||
		    text[i] == '=')
			return CL_FORMAT;
	}
	if (standard && urlsafe)
		return CL_FORMAT;
	body[PIN_BODY_LEN] = '=';
	body[PIN_BODY_LEN + 1] = '\0';
	if (b64_decode(body, PIN_BODY_LEN + 1, p->digest, sizeof(p->digest),
	    &n) != 0 || n != sizeof(p->digest))
		return CL_FORMAT;
	return CL_OK;
}

int
pin_parse(const char *text, size_t len, struct pin *p, const char **whyp)
{
	const char *colon, *why = NULL;
	size_t prefix_len;

	memset(p, 0, sizeof(*p));
	if ((colon = memchr(text, ':', len)) != NULL) {
		prefix_len = (size_t)(colon - text);
		if (prefix_len != strlen(PIN_PREFIX) ||
		    strncasecmp(text, PIN_PREFIX, prefix_len) != 0)
			why = "a pin must begin with sha256:";
		text = colon + 1;
		len -= prefix_len + 1;
	}
	if (why == NULL && pin_parse_body(text, len, p) != 0)
		why = "a pin must be base64 of exactly 32 bytes";
	if (why != NULL) {
		memset(p, 0, sizeof(*p));
		if (whyp != NULL)
			*whyp = why;
		return CL_FORMAT;
	}
	return CL_OK;
}

int
pin_parse_list(const char *text, struct pin *pins, size_t max, size_t *np,
    const char **whyp)
{
	size_t len, n = 0;
	int r;

	*np = 0;
	if (text == NULL || *text == '\0')
		return CL_OK;
	for (;;) {
		text += strspn(text, PIN_SEPARATORS);
		if (*text == '\0')
			break;
		len = strcspn(text, PIN_SEPARATORS);
		if (n == max) {
			if (whyp != NULL)
				*whyp = "too many pins";
			return CL_LIMIT;
		}
		if ((r = pin_parse(text, len, &pins[n], whyp)) != 0)
			return r;
		n++;
		text += len;
	}
	if (n == 0) {
		if (whyp != NULL)
			*whyp = "there is no pin in the text";
		return CL_FORMAT;
	}
	*np = n;
	return CL_OK;
}

int
pin_has_digest(const struct pin *pins, size_t n,
    const uint8_t digest[PIN_DIGEST_LEN])
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (memcmp(pins[i].digest, digest, PIN_DIGEST_LEN) == 0)
			return 1;
	}
	return 0;
}
