/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/http1, request heads: any bytes.  The end is found alike whatever
 * the cuts; what was parsed lies inside the head and holds no line end.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "net/codec/http1.h"

static void
fuzz_check_text(const char *s, const uint8_t *head, size_t len)
{
	if (s == NULL)
		return;
	FUZZ_CHECK((const uint8_t *)s >= head &&
	    (const uint8_t *)s < head + len);
	FUZZ_CHECK(s[strcspn(s, "\r\n")] == '\0');
}

static void
fuzz_check_head(struct http1_head *h, const uint8_t *head, size_t len)
{
	char token[MAX_TOKEN_LEN + 1], answer[512];
	unsigned int status;
	size_t i, n;

	fuzz_check_text(h->method, head, len);
	fuzz_check_text(h->path, head, len);
	fuzz_check_text(h->query, head, len);
	FUZZ_CHECK(h->nheaders <= HTTP_MAX_HEADERS);
	for (i = 0; i < h->nheaders; i++) {
		fuzz_check_text(h->headers[i].name, head, len);
		fuzz_check_text(h->headers[i].value, head, len);
	}
	if (http1_get_bearer(h, token) == CL_OK)
		FUZZ_CHECK(strlen(token) <= MAX_TOKEN_LEN);
	if (http1_check_upgrade(h, &status) == CL_OK)
		FUZZ_CHECK(http1_format_switching(answer, 256, h, &n) ==
		    CL_OK);
	else
		FUZZ_CHECK(status == 426 || status == 405 || status == 400);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct http1_head h;
	size_t scanned = 0, whole, piece, i, head_len = 0;
	uint8_t *head;
	int r, r2 = CL_INCOMPLETE;

	r = http1_find_end(data, len, &scanned, &whole);
	scanned = 0;
	for (i = 0; i <= len && r2 == CL_INCOMPLETE; i++)
		r2 = http1_find_end(data, i, &scanned, &piece);
	FUZZ_CHECK(r == r2);
	FUZZ_CHECK(r != CL_OK || (whole == piece && whole <= HTTP_HEAD_MAX));
	/* The parser must stand alone, too: without a head that was found. */
	head_len = r == CL_OK ? whole : len;
	if (head_len > HTTP_HEAD_MAX || (head = malloc(head_len + 1)) == NULL)
		return 0;
	memcpy(head, data, head_len);
	if (http1_parse_request(head, head_len, &h) == CL_OK)
		fuzz_check_head(&h, head, head_len);
	free(head);
	return 0;
}
