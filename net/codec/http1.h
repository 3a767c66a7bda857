/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * HTTP/1.1 heads, as far as a WebSocket endpoint needs them.  Pure text work
 * on a buffer of the caller's.  Strict: CRLF only, no folding, no space
 * before a colon, each header that decides something at most once, bounded
 * by HTTP_HEAD_MAX and HTTP_MAX_HEADERS.  Bodies are never read: a request
 * that has one is reported as such.
 */
#ifndef CLOOP_HTTP1_H
#define CLOOP_HTTP1_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

struct http1_header {
	const char *name;
	const char *value;	/* trimmed, without control characters */
};

struct http1_head {
	const char *method;	/* request only */
	const char *path;	/* request only; origin form, before '?' */
	const char *query;	/* after '?', or NULL; never log it */
	unsigned int status;	/* response only */
	int minor;		/* HTTP/1.minor, 0 or 1 */
	int has_body;		/* a body follows: answer, then close */
	size_t nheaders;
	struct http1_header headers[HTTP_MAX_HEADERS];
};

/*
 * Length of the head at the front of data, final CRLFCRLF included.
 * *scannedp remembers across calls what was looked at; start with 0.
 * CL_INCOMPLETE; CL_TOOBIG above HTTP_HEAD_MAX; CL_FORMAT as soon as a bare
 * CR or LF, a NUL or another control character is there.
 */
int http1_find_end(const uint8_t *data, size_t len, size_t *scannedp,
    size_t *head_lenp);

/*
 * Parse a head of the length http1_find_end gave.  Writes NULs into it; *h
 * borrows from it.  CL_FORMAT (answer 400), CL_LIMIT (too many headers,
 * 431), CL_VERSION (not HTTP/1.x, 505).
 */
int http1_parse_request(uint8_t *head, size_t len, struct http1_head *h);
int http1_parse_response(uint8_t *head, size_t len, struct http1_head *h);

/* Value of the first header of this name (any case), or NULL. */
const char *http1_find_header(const struct http1_head *h, const char *name);
/* 1 when a comma list, over all lines of this name, has the token. */
int http1_has_token(const struct http1_head *h, const char *name,
    const char *token);

/*
 * The credential of a request: Authorization "Bearer X", otherwise the query
 * parameter `token`; trimmed, may be empty.  dst holds MAX_TOKEN_LEN + 1.
 * CL_NOTFOUND when neither is there, CL_TOOBIG.
 */
int http1_get_bearer(const struct http1_head *h, char *dst);

/*
 * Upgrade, method, version and key, in this order.  CL_OK, or CL_FORMAT with
 * the status to answer: 426, 405 or 400.
 */
int http1_check_upgrade(const struct http1_head *h, unsigned int *statusp);

/*
 * A complete answer: status line, `headers` (NULL or whole CRLF lines),
 * Content-Type, Content-Length, Connection: close, and the lines that go
 * with 426, 400 and 429.  body may be NULL.  CL_TOOBIG when dst is too small.
 */
int http1_format_response(char *dst, size_t dstlen, unsigned int status,
    const char *headers, const char *content_type, const char *body,
    size_t *lenp);
/*
 * What our hub says in it beyond RFC 6455, as a list of tokens; others
 * ignore it.  end-ack: an end is confirmed by a log_ack once it is on disk,
 * and until then no beat is answered, so that a device need not guess from
 * what else it hears.
 */
#define HTTP1_FEATURES "Cloop-Features"
#define HTTP1_END_ACK "end-ack"
/* The 101 answer to a checked request.  256 bytes are enough. */
int http1_format_switching(char *dst, size_t dstlen,
    const struct http1_head *h, size_t *lenp);

#define HTTP1_KEY_LEN 24	/* base64 of 16 bytes */
#define HTTP1_ACCEPT_LEN 28	/* base64 of a SHA-1 */

/* Sec-WebSocket-Accept of a key.  CL_CRYPTO. */
int http1_format_accept(const char *key, char dst[HTTP1_ACCEPT_LEN + 1]);
/* A fresh random Sec-WebSocket-Key. */
void http1_format_key(char dst[HTTP1_KEY_LEN + 1]);

/* The client's upgrade request. */
struct http1_upgrade {
	const char *host;	/* host[:port] as in the URL */
	const char *path;
	const char *user_agent;
	const char *bearer;
	const char *key;
};
/* dst then holds the credential: wipe it.  CL_FORMAT when a value has a
 * space or control character, CL_TOOBIG. */
int http1_format_upgrade(char *dst, size_t dstlen,
    const struct http1_upgrade *u, size_t *lenp);
/*
 * What a client demands of a 101.  CL_OK, or CL_FORMAT and a constant
 * reason.
 */
int http1_check_switching(const struct http1_head *h, const char *key,
    const char **whyp);

#endif
