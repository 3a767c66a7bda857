/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/http1: heads of requests and responses.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "net/codec/http1.h"

#define GOOD                                                                   \
	"GET /api/executors/connect HTTP/1.1\r\nHost: hub\r\n"                 \
	"Connection: Upgrade\r\nUpgrade: websocket\r\n"                        \
	"Sec-WebSocket-Version: 13\r\n"                                        \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static struct http1_head head;
static uint8_t text[HTTP_HEAD_MAX + 16];

static int
parse(const char *request)
{
	size_t len = strlen(request);

	memcpy(text, request, len);
	return http1_parse_request(text, len, &head);
}

static unsigned int
upgrade(const char *request)
{
	unsigned int status;

	if (parse(request) != 0)
		return 400;
	http1_check_upgrade(&head, &status);
	return status;
}

static void
test_find_end(void)
{
	static const char request[] = GOOD "\r\nrest";
	size_t i, scanned = 0, len;

	TEST_START("the end is found at any cut, and nothing behind it");
	for (i = 0; i < sizeof(GOOD) + 1; i++)
		ASSERT_ERR(http1_find_end((const uint8_t *)request, i,
		    &scanned, &len), CL_INCOMPLETE);
	ASSERT_ERR(http1_find_end((const uint8_t *)request, i, &scanned,
	    &len), CL_OK);
	ASSERT_SIZE_T_EQ(len, sizeof(GOOD) + 1);

	TEST_START("bare CR, bare LF, NUL and controls are refused");
	scanned = 0;
	ASSERT_ERR(http1_find_end((const uint8_t *)"a\n", 2, &scanned, &len),
	    CL_FORMAT);
	scanned = 0;
	ASSERT_ERR(http1_find_end((const uint8_t *)"a\rb", 3, &scanned, &len),
	    CL_FORMAT);
	scanned = 0;
	ASSERT_ERR(http1_find_end((const uint8_t *)"a\0", 2, &scanned, &len),
	    CL_FORMAT);
	scanned = 0;
	ASSERT_ERR(http1_find_end((const uint8_t *)"\x7f", 1, &scanned, &len),
	    CL_FORMAT);
}

static void
test_bounds(void)
{
	size_t scanned = 0, len, i, n;
	char request[8192];

	TEST_START("a head of HTTP_HEAD_MAX bytes is taken, one more is not");
	memset(text, 'x', sizeof(text));
	memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
	ASSERT_ERR(http1_find_end(text, sizeof(text), &scanned, &len), CL_OK);
	ASSERT_SIZE_T_EQ(len, HTTP_HEAD_MAX);
	scanned = 0;
	memset(text, 'x', sizeof(text));
	memcpy(text + HTTP_HEAD_MAX - 3, "\r\n\r\n", 4);
	ASSERT_ERR(http1_find_end(text, sizeof(text), &scanned, &len),
	    CL_TOOBIG);

	TEST_START("64 headers are taken, 65 are not (BC-29)");
	for (i = 63; i <= 64; i++) {
		n = (size_t)snprintf(request, sizeof(request),
		    "GET / HTTP/1.1\r\nHost: h\r\n");
		while (n < 25 + i * 6)
			n += (size_t)snprintf(request + n,
			    sizeof(request) - n, "a: b\r\n");
		snprintf(request + n, sizeof(request) - n, "\r\n");
		unit_note("%zu", i);
		ASSERT_ERR(parse(request), i == 63 ? CL_OK : CL_LIMIT);
	}
}

static void
test_request(void)
{
	TEST_START("line, path, query and headers are taken apart");
	ASSERT_ERR(parse("GET /a?token=b HTTP/1.1\r\nHOST:\t h \r\n"
	    "X: \r\n\r\n"), CL_OK);
	ASSERT_STRING_EQ(head.method, "GET");
	ASSERT_STRING_EQ(head.path, "/a");
	ASSERT_STRING_EQ(head.query, "token=b");
	ASSERT_STRING_EQ(http1_find_header(&head, "host"), "h");
	ASSERT_STRING_EQ(http1_find_header(&head, "x"), "");
	ASSERT_PTR_EQ(http1_find_header(&head, "y"), NULL);
	ASSERT_INT_EQ(head.has_body, 0);

	TEST_START("HTTP/1.0 is read, and needs no Host");
	ASSERT_ERR(parse("GET / HTTP/1.0\r\n\r\n"), CL_OK);
	ASSERT_INT_EQ(head.minor, 0);
	ASSERT_ERR(parse("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), CL_VERSION);

	TEST_START("a body is reported");
	ASSERT_ERR(parse("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 05"
	    "\r\n\r\n"), CL_OK);
	ASSERT_INT_EQ(head.has_body, 1);
	ASSERT_ERR(parse("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
	    "chunked\r\n\r\n"), CL_OK);
	ASSERT_INT_EQ(head.has_body, 1);
	ASSERT_ERR(parse("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0"
	    "\r\n\r\n"), CL_OK);
	ASSERT_INT_EQ(head.has_body, 0);
}

static void
test_request_bad(void)
{
	static const char *const bad[] = {
		"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
		"GET /\r\nHost: h\r\n\r\n",
		"GET x HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"G@T / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nOrigin: a\r\nORIGIN: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\n"
		    "Authorization: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\nx",
		"GET / HTTP/1.1\r\nHost: h\r\n",
	};
	size_t i;

	TEST_START("what two readers could understand differently is refused");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		ASSERT_ERR(parse(bad[i]), CL_FORMAT);
	}
}

static void
test_upgrade(void)
{
#define TAIL "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define HALF "Host: h\r\nUpgrade: WebSocket\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
	static const struct {
		unsigned int status;
		const char *request;
	} rows[] = {
		{ 0, GOOD "\r\n" },
		{ 0, "GET / HTTP/1.1\r\n" HALF "Connection: keep-alive\r\n"
		    "connection: x ,UPGRADE,\r\n" V13 TAIL },
		{ 426, "GET / HTTP/1.0\r\n" HALF "Connection: Upgrade\r\n"
		    V13 TAIL },
		{ 426, "GET / HTTP/1.1\r\n" HALF "Connection: xupgrade\r\n"
		    V13 TAIL },
		{ 426, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
		    V13 TAIL },
		{ 426, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
		    "\r\n" },
		{ 405, "POST / HTTP/1.1\r\n" HALF "Connection: Upgrade\r\n"
		    V13 TAIL },
		{ 400, "GET / HTTP/1.1\r\n" HALF "Connection: Upgrade\r\n"
		    TAIL },
		{ 400, "GET / HTTP/1.1\r\n" HALF "Connection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 8\r\n" TAIL },
		{ 400, "GET / HTTP/1.1\r\n" HALF "Connection: Upgrade\r\n"
		    V13 "\r\n" },
		{ 400, "GET / HTTP/1.1\r\n" HALF "Connection: Upgrade\r\n"
		    V13 "Sec-WebSocket-Key: c2hvcnQ=\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\n" HALF "Connection: Upgrade\r\n"
		    V13 "Sec-WebSocket-Key: x\r\n" TAIL },
	};
	size_t i;

	TEST_START("upgrade, method, version, key: checked in this order");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("%s", rows[i].request);
		ASSERT_INT_EQ(upgrade(rows[i].request), rows[i].status);
	}
}

static void
test_bearer(void)
{
	static const struct {
		int r;
		const char *target, *header, *want;
	} rows[] = {
		{ CL_OK, "/", "Authorization: Bearer abc\r\n", "abc" },
		{ CL_OK, "/", "Authorization: Bearer   a  \r\n", "a" },
		{ CL_OK, "/?token=q", "Authorization: Bearer h\r\n", "h" },
		{ CL_OK, "/?token=q", "Authorization: bearer h\r\n", "q" },
		{ CL_OK, "/?token=q", "Authorization: Basic h\r\n", "q" },
		{ CL_OK, "/?a=b&token=%61+&token=c", "", "a" },
		{ CL_OK, "/?token=%zz&token=c", "", "c" },
		{ CL_OK, "/?token=%00&token=c", "", "c" },
		{ CL_OK, "/?token=", "", "" },
		{ CL_NOTFOUND, "/?Token=q&tokens=x", "", "" },
		{ CL_NOTFOUND, "/", "", "" },
		{ CL_NOTFOUND, "/?token=%4", "", "" },
	};
	char request[2048], token[MAX_TOKEN_LEN + 1], longer[1024];
	size_t i;

	TEST_START("the credential: header first, then query");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(request, sizeof(request),
		    "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", rows[i].target,
		    rows[i].header);
		unit_note("%s", request);
		ASSERT_ERR(parse(request), CL_OK);
		ASSERT_ERR(http1_get_bearer(&head, token), rows[i].r);
		ASSERT_STRING_EQ(token, rows[i].want);
	}

	TEST_START("a token of MAX_TOKEN_LEN is taken, one byte more is not");
	for (i = MAX_TOKEN_LEN; i <= MAX_TOKEN_LEN + 1; i++) {
		memset(longer, 'x', i);
		longer[i] = '\0';
		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\n"
		    "Host: h\r\nAuthorization: Bearer %s\r\n\r\n", longer);
		ASSERT_ERR(parse(request), CL_OK);
		ASSERT_ERR(http1_get_bearer(&head, token),
		    i == MAX_TOKEN_LEN ? CL_OK : CL_TOOBIG);
		snprintf(request, sizeof(request),
		    "GET /?token=%s HTTP/1.1\r\nHost: h\r\n\r\n", longer);
		ASSERT_ERR(parse(request), CL_OK);
		ASSERT_ERR(http1_get_bearer(&head, token),
		    i == MAX_TOKEN_LEN ? CL_OK : CL_TOOBIG);
	}
}

static void
test_switching(void)
{
	static const char *const bad[] = {
		"HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nConnection: upgrade"
		    "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
		    "\r\n\r\n",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n"
		    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
		    "\r\n",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade"
		    "\r\n\r\n",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade"
		    "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO="
		    "\r\n\r\n",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade"
		    "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
		    "\r\nSec-WebSocket-Extensions: x\r\n\r\n",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade"
		    "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
		    "\r\nSec-WebSocket-Protocol: x\r\n\r\n",
	};
	static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
	char accept[HTTP1_ACCEPT_LEN + 1], answer[512];
	const char *why;
	size_t i, len;

	TEST_START("the accept key of RFC 6455 §1.3");
	ASSERT_ERR(http1_format_accept(key, accept), CL_OK);
	ASSERT_STRING_EQ(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");

	TEST_START("our 101 satisfies our client");
	ASSERT_ERR(parse(GOOD "\r\n"), CL_OK);
	ASSERT_ERR(http1_format_switching(answer, 256, &head, &len), CL_OK);
	ASSERT_ERR(http1_parse_response((uint8_t *)answer, len, &head),
	    CL_OK);
	ASSERT_INT_EQ(head.status, 101);
	ASSERT_ERR(http1_check_switching(&head, key, &why), CL_OK);
	ASSERT_TRUE(http1_has_token(&head, HTTP1_FEATURES, HTTP1_END_ACK));

	TEST_START("any other answer is no upgrade");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		len = strlen(bad[i]);
		memcpy(text, bad[i], len);
		ASSERT_ERR(http1_parse_response(text, len, &head), CL_OK);
		ASSERT_ERR(http1_check_switching(&head, key, &why),
		    CL_FORMAT);
		ASSERT_TRUE(why != NULL);
	}
}

static void
test_response(void)
{
	static const char *const bad[] = { "HTTP/1.1 20 OK\r\n\r\n",
	    "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
	    "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1  200 X\r\n\r\n",
	    "http/1.1 200 X\r\n\r\n" };
	size_t i, len;

	TEST_START("status lines, with and without a reason");
	memcpy(text, "HTTP/1.0 503\r\n\r\n", 16);
	ASSERT_ERR(http1_parse_response(text, 16, &head), CL_OK);
	ASSERT_INT_EQ(head.status, 503);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		len = strlen(bad[i]);
		memcpy(text, bad[i], len);
		ASSERT_ERR(http1_parse_response(text, len, &head),
		    CL_FORMAT);
	}
}

static void
test_format(void)
{
	struct http1_upgrade u = { .host = "hub:1", .path = "/p",
	    .user_agent = "cloop agent", .bearer = "clac1.a", .key = NULL };
	char dst[1024], key[HTTP1_KEY_LEN + 1], token[MAX_TOKEN_LEN + 1];
	unsigned int status;
	size_t len;

	TEST_START("our upgrade request passes our hub's checks");
	http1_format_key(key);
	u.key = key;
	ASSERT_ERR(http1_format_upgrade(dst, sizeof(dst), &u, &len), CL_OK);
	ASSERT_SIZE_T_EQ(len, strlen(dst));
	ASSERT_ERR(parse(dst), CL_OK);
	ASSERT_ERR(http1_check_upgrade(&head, &status), CL_OK);
	ASSERT_ERR(http1_get_bearer(&head, token), CL_OK);
	ASSERT_STRING_EQ(token, "clac1.a");
	ASSERT_PTR_EQ(http1_find_header(&head, "Origin"), NULL);

	TEST_START("a value cannot add a line");
	u.bearer = "a\r\nX: y";
	ASSERT_ERR(http1_format_upgrade(dst, sizeof(dst), &u, &len),
	    CL_FORMAT);
	u.bearer = "a";
	ASSERT_ERR(http1_format_upgrade(dst, 20, &u, &len), CL_TOOBIG);

	TEST_START("426 names the upgrade, 400 the version");
	ASSERT_ERR(http1_format_response(dst, sizeof(dst), 426, NULL, NULL,
	    "no", &len), CL_OK);
	ASSERT_ERR(http1_parse_response((uint8_t *)dst, len - 2, &head),
	    CL_OK);
	ASSERT_TRUE(http1_has_token(&head, "Connection", "upgrade"));
	ASSERT_STRING_EQ(http1_find_header(&head, "Content-Length"), "2");
	ASSERT_ERR(http1_format_response(dst, sizeof(dst), 400, "A: b\r\n",
	    "application/json", NULL, &len), CL_OK);
	ASSERT_ERR(http1_parse_response((uint8_t *)dst, len, &head), CL_OK);
	ASSERT_STRING_EQ(http1_find_header(&head, "Sec-WebSocket-Version"),
	    "13");
	ASSERT_STRING_EQ(http1_find_header(&head, "a"), "b");
}

UNIT_MAIN(test_find_end, test_bounds, test_request, test_request_bad,
    test_upgrade, test_bearer, test_switching, test_response, test_format)
