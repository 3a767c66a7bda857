/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Writing of HTTP/1.1 heads: the hub's answers (cloopd-net) and the
 * device's upgrade request (agentd-fetch).  Values from outside reach a
 * head only after a check that they cannot add a line to it.
 */
#include "http1.h"

#include <bsd/stdlib.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "common/base/b64.h"
#include "common/base/err.h"

#define HTTP1_KEY_BYTES 16
#define HTTP1_SHA1_BYTES 20
#define HTTP1_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* Status, reason, and the lines that go with it. */
static const struct http1_status {
	unsigned int status;
	const char *reason;
	const char *lines;
} http1_statuses[] = {
	{ 200, "OK", "Connection: close\r\n" },
	{ 400, "Bad Request",
	    "Connection: close\r\nSec-WebSocket-Version: 13\r\n" },
	{ 401, "Unauthorized",
	    "Connection: close\r\nWWW-Authenticate: Bearer\r\n" },
	{ 403, "Forbidden", "Connection: close\r\n" },
	{ 404, "Not Found", "Connection: close\r\n" },
	{ 405, "Method Not Allowed", "Connection: close\r\nAllow: GET\r\n" },
	{ 408, "Request Timeout", "Connection: close\r\n" },
	{ 426, "Upgrade Required",
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n" },
	{ 429, "Too Many Requests",
	    "Connection: close\r\nRetry-After: 5\r\n" },
	{ 431, "Request Header Fields Too Large", "Connection: close\r\n" },
	{ 500, "Internal Server Error", "Connection: close\r\n" },
	{ 503, "Service Unavailable", "Connection: close\r\n" },
	{ 505, "HTTP Version Not Supported", "Connection: close\r\n" },
};

static int
http1_check_written(int n, size_t dstlen, size_t *lenp)
{
	*lenp = 0;
	if (n < 0)
		return CL_INTERNAL;
	if ((size_t)n >= dstlen)
		return CL_TOOBIG;
	*lenp = (size_t)n;
	return CL_OK;
}

int
http1_format_response(char *dst, size_t dstlen, unsigned int status,
    const char *headers, const char *content_type, const char *body,
    size_t *lenp)
{
	static const struct http1_status other = { 0, "Error",
	    "Connection: close\r\n" };
	const struct http1_status *s = &other;
	size_t i;
	int n;

	for (i = 0; i < sizeof(http1_statuses) / sizeof(*s); i++) {
		if (http1_statuses[i].status == status)
			s = &http1_statuses[i];
	}
	if (body == NULL)
		body = "";
	if (content_type == NULL)
		content_type = "text/plain; charset=utf-8";
	n = snprintf(dst, dstlen, "HTTP/1.1 %u %s\r\n%s%s"
	    "Content-Type: %s\r\nContent-Length: %zu\r\n"
	    "X-Content-Type-Options: nosniff\r\n\r\n%s", status, s->reason,
	    s->lines, headers != NULL ? headers : "", content_type,
	    strlen(body), body);
	return http1_check_written(n, dstlen, lenp);
}

int
http1_format_switching(char *dst, size_t dstlen, const struct http1_head *h,
    size_t *lenp)
{
	char accept[HTTP1_ACCEPT_LEN + 1];
	const char *key;
	int n, r;

	*lenp = 0;
	if ((key = http1_find_header(h, "Sec-WebSocket-Key")) == NULL)
		return CL_FORMAT;
	if ((r = http1_format_accept(key, accept)) != 0)
		return r;
	n = snprintf(dst, dstlen, "HTTP/1.1 101 Switching Protocols\r\n"
	    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
	    "Sec-WebSocket-Accept: %s\r\n"
	    HTTP1_FEATURES ": " HTTP1_END_ACK "\r\n\r\n", accept);
	return http1_check_written(n, dstlen, lenp);
}

/* RFC 6455 §4.2.2; SHA-1 is what it says, nothing secret depends on it. */
int
http1_format_accept(const char *key, char dst[HTTP1_ACCEPT_LEN + 1])
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	char text[HTTP1_KEY_LEN + sizeof(HTTP1_GUID)];
	unsigned int digest_len;
	int n;

	dst[0] = '\0';
	n = snprintf(text, sizeof(text), "%.*s%s", HTTP1_KEY_LEN, key,
	    HTTP1_GUID);
	if (n < 0 || (size_t)n >= sizeof(text))
		return CL_INTERNAL;
	if (EVP_Digest(text, (size_t)n, digest, &digest_len, EVP_sha1(),
	    NULL) != 1 || digest_len != HTTP1_SHA1_BYTES)
		return CL_CRYPTO;
	b64_encode(digest, digest_len, dst);
	return CL_OK;
}

void
http1_format_key(char dst[HTTP1_KEY_LEN + 1])
{
	uint8_t raw[HTTP1_KEY_BYTES];

	arc4random_buf(raw, sizeof(raw));
	b64_encode(raw, sizeof(raw), dst);
}

/* 1 when the value cannot break out of its line. */
static int
http1_is_safe(const char *s, int space_ok)
{
	unsigned char c;

	if (s == NULL || *s == '\0')
		return 0;
	for (; (c = (unsigned char)*s) != '\0'; s++) {
		if (c < 0x20 || c > 0x7e || (c == ' ' && !space_ok))
			return 0;
	}
	return 1;
}

int
http1_format_upgrade(char *dst, size_t dstlen, const struct http1_upgrade *u,
    size_t *lenp)
{
	int n;

	*lenp = 0;
	if (!http1_is_safe(u->host, 0) || !http1_is_safe(u->path, 0) ||
	    !http1_is_safe(u->user_agent, 1) ||
	    !http1_is_safe(u->bearer, 0) || !http1_is_safe(u->key, 0))
		return CL_FORMAT;
	n = snprintf(dst, dstlen, "GET %s HTTP/1.1\r\nHost: %s\r\n"
	    "User-Agent: %s\r\nAuthorization: Bearer %s\r\n"
	    "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
	    "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n\r\n",
	    u->path, u->host, u->user_agent, u->bearer, u->key);
	return http1_check_written(n, dstlen, lenp);
}
