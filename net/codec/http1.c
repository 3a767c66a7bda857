/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Parsing of HTTP/1.1 heads, in cloopd-net (requests) and agentd-fetch
 * (responses).  Meets bytes of anybody who can connect: it works in place
 * on the caller's buffer, keeps no state, allocates nothing, and refuses
 * what two readers could understand differently.
 */
#include "http1.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/base/b64.h"
#include "common/base/err.h"

#define HTTP1_KEY_BYTES 16

int
http1_find_end(const uint8_t *data, size_t len, size_t *scannedp,
    size_t *head_lenp)
{
	size_t i;
	uint8_t c;

	*head_lenp = 0;
	for (i = *scannedp; i < len; i++) {
		if (i >= HTTP_HEAD_MAX)
			return CL_TOOBIG;
		c = data[i];
		*scannedp = i + 1;
		if (c == '\n') {
			if (i == 0 || data[i - 1] != '\r')
				return CL_FORMAT;
			if (i >= 3 && data[i - 2] == '\n') {
				*head_lenp = i + 1;
				return CL_OK;
			}
		} else if (i > 0 && data[i - 1] == '\r')
			return CL_FORMAT;
		else if (c == 0x7f || (c < 0x20 && c != '\r' && c != '\t'))
			return CL_FORMAT;
	}
	return CL_INCOMPLETE;
}

/* RFC 9110 §5.6.2. */
static int
http1_is_tchar(unsigned char c)
{
	return isalnum(c) || (c != '\0' && c < 0x80 &&
	    strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int
http1_is_token(const char *s)
{
	if (*s == '\0')
		return 0;
	for (; *s != '\0'; s++) {
		if (!http1_is_tchar((unsigned char)*s))
			return 0;
	}
	return 1;
}

/*
 * Cut the next line off: NUL-terminate it in place, step over its CRLF.
 * NULL at the end, and for a NUL, CR or LF in the line itself, which
 * http1_find_end refuses already.
 */
static char *
http1_get_line(uint8_t **pp, const uint8_t *end)
{
	uint8_t *p, *start = *pp;

	for (p = start; end - p >= 2; p++) {
		if (*p == '\0' || *p == '\n')
			return NULL;
		if (*p != '\r')
			continue;
		if (p[1] != '\n')
			return NULL;
		*p = '\0';
		*pp = p + 2;
		return (char *)start;
	}
	return NULL;
}

/* Headers that decide something: two of them are two opinions. */
static int
http1_is_single(const char *name)
{
	static const char *const names[] = { "host", "authorization",
	    "origin", "content-length", "sec-websocket-key",
	    "sec-websocket-version", "sec-websocket-accept" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(name, names[i]) == 0)
			return 1;
	}
	return 0;
}

static int
http1_parse_header(char *line, struct http1_head *h)
{
	char *colon, *value, *end;

	/* A line that begins with white space would be a folded one. */
	if ((colon = strchr(line, ':')) == NULL)
		return CL_FORMAT;
	*colon = '\0';
	if (!http1_is_token(line))
		return CL_FORMAT;
	value = colon + 1;
	value += strspn(value, " \t");
	end = value + strlen(value);
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	if (http1_is_single(line) && http1_find_header(h, line) != NULL)
		return CL_FORMAT;
	if (h->nheaders == HTTP_MAX_HEADERS)
		return CL_LIMIT;
	h->headers[h->nheaders].name = line;
	h->headers[h->nheaders].value = value;
	h->nheaders++;
	return CL_OK;
}

/* Digits only; "+5", lists and duplicates are request smuggling. */
static int
http1_check_body(struct http1_head *h)
{
	const char *value;

	if (http1_find_header(h, "Transfer-Encoding") != NULL)
		h->has_body = 1;
	if ((value = http1_find_header(h, "Content-Length")) == NULL)
		return CL_OK;
	if (h->has_body || *value == '\0' ||
	    value[strspn(value, "0123456789")] != '\0')
		return CL_FORMAT;
	if (value[strspn(value, "0")] != '\0')
		h->has_body = 1;
	return CL_OK;
}

static int
http1_parse_headers(uint8_t *p, const uint8_t *end, struct http1_head *h)
{
	char *line;
	int r;

	for (;;) {
		if ((line = http1_get_line(&p, end)) == NULL)
			return CL_FORMAT;
		if (*line == '\0')
			break;
		if ((r = http1_parse_header(line, h)) != 0)
			return r;
	}
	if (p != end)
		return CL_FORMAT;
	return http1_check_body(h);
}

static int
http1_parse_version(const char *text, struct http1_head *h)
{
	if (strlen(text) != 8 || strncmp(text, "HTTP/", 5) != 0 ||
	    !isdigit((unsigned char)text[5]) || text[6] != '.' ||
	    !isdigit((unsigned char)text[7]))
		return CL_FORMAT;
	if (strcmp(text, "HTTP/1.1") == 0)
		h->minor = 1;
	else if (strcmp(text, "HTTP/1.0") == 0)
		h->minor = 0;
	else
		return CL_VERSION;
	return CL_OK;
}

static int
http1_parse_request_line(char *line, struct http1_head *h)
{
	char *target, *version, *p;

	if ((target = strchr(line, ' ')) == NULL)
		return CL_FORMAT;
	*target++ = '\0';
	if ((version = strchr(target, ' ')) == NULL)
		return CL_FORMAT;
	*version++ = '\0';
	if (!http1_is_token(line) || *target != '/')
		return CL_FORMAT;
	for (p = target; *p != '\0'; p++) {
		if (*p < 0x21 || *p > 0x7e)
			return CL_FORMAT;
	}
	h->method = line;
	h->path = target;
	if ((p = strchr(target, '?')) != NULL) {
		*p++ = '\0';
		h->query = p;
	}
	return http1_parse_version(version, h);
}

int
http1_parse_request(uint8_t *head, size_t len, struct http1_head *h)
{
	uint8_t *p = head;
	char *line;
	int r;

	memset(h, 0, sizeof(*h));
	if ((line = http1_get_line(&p, head + len)) == NULL)
		return CL_FORMAT;
	if ((r = http1_parse_request_line(line, h)) != 0)
		return r;
	if ((r = http1_parse_headers(p, head + len, h)) != 0)
		return r;
	if (h->minor >= 1 && http1_find_header(h, "Host") == NULL)
		return CL_FORMAT;
	return CL_OK;
}

static int
http1_parse_status_line(char *line, struct http1_head *h)
{
	char *status;
	size_t i;
	int r;

	if ((status = strchr(line, ' ')) == NULL)
		return CL_FORMAT;
	*status++ = '\0';
	if ((r = http1_parse_version(line, h)) != 0)
		return r;
	for (i = 0; i < 3; i++) {
		if (!isdigit((unsigned char)status[i]))
			return CL_FORMAT;
		h->status = h->status * 10 + (unsigned int)(status[i] - '0');
	}
	if ((status[3] != '\0' && status[3] != ' ') || h->status < 100)
		return CL_FORMAT;
	return CL_OK;
}

int
http1_parse_response(uint8_t *head, size_t len, struct http1_head *h)
{
	uint8_t *p = head;
	char *line;
	int r;

	memset(h, 0, sizeof(*h));
	if ((line = http1_get_line(&p, head + len)) == NULL)
		return CL_FORMAT;
	if ((r = http1_parse_status_line(line, h)) != 0)
		return r;
	return http1_parse_headers(p, head + len, h);
}

const char *
http1_find_header(const struct http1_head *h, const char *name)
{
	size_t i;

	for (i = 0; i < h->nheaders; i++) {
		if (strcasecmp(h->headers[i].name, name) == 0)
			return h->headers[i].value;
	}
	return NULL;
}

/* One comma list; empty elements are legal (RFC 9110 §5.6.1). */
static int
http1_is_listed(const char *list, const char *token)
{
	size_t len, want = strlen(token);

	while (*list != '\0') {
		list += strspn(list, ", \t");
		len = strcspn(list, ",");
		while (len > 0 && (list[len - 1] == ' ' ||
		    list[len - 1] == '\t'))
			len--;
		if (len == want && strncasecmp(list, token, len) == 0)
			return 1;
		list += strcspn(list, ",");
	}
	return 0;
}

int
http1_has_token(const struct http1_head *h, const char *name,
    const char *token)
{
	size_t i;

	for (i = 0; i < h->nheaders; i++) {
		if (strcasecmp(h->headers[i].name, name) == 0 &&
		    http1_is_listed(h->headers[i].value, token))
			return 1;
	}
	return 0;
}

static int
http1_get_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Form decoding; CL_FORMAT for a bad escape or an encoded NUL. */
static int
http1_parse_value(const char *s, size_t len, char *dst, size_t max)
{
	size_t i, n = 0;
	int c, hi, lo;

	for (i = 0; i < len; i++) {
		c = (unsigned char)s[i];
		if (c == '+')
			c = ' ';
		else if (c == '%') {
			if (len - i < 3)
				return CL_FORMAT;
			hi = http1_get_hex(s[i + 1]);
			lo = http1_get_hex(s[i + 2]);
			if (hi == -1 || lo == -1 || (hi == 0 && lo == 0))
				return CL_FORMAT;
			c = hi * 16 + lo;
			i += 2;
		}
		if (n == max)
			return CL_TOOBIG;
		dst[n++] = (char)c;
	}
	dst[n] = '\0';
	return CL_OK;
}

/* The first pair with the key `token` that decodes. */
static int
http1_find_token(const char *query, char *dst)
{
	size_t len;
	int r;

	for (; query != NULL && *query != '\0'; query += len) {
		query += *query == '&';
		len = strcspn(query, "&");
		if (strncmp(query, "token=", 6) != 0)
			continue;
		r = http1_parse_value(query + 6, len - 6, dst, MAX_TOKEN_LEN);
		if (r != CL_FORMAT)
			return r;
	}
	return CL_NOTFOUND;
}

int
http1_get_bearer(const struct http1_head *h, char *dst)
{
	const char *value;
	size_t len, skip;
	int r;

	dst[0] = '\0';
	value = http1_find_header(h, "Authorization");
	if (value != NULL && strncmp(value, "Bearer ", 7) == 0) {
		value += 7;
		if ((len = strlen(value)) > MAX_TOKEN_LEN)
			return CL_TOOBIG;
		memcpy(dst, value, len + 1);
	} else if ((r = http1_find_token(h->query, dst)) != 0) {
		dst[0] = '\0';
		return r;
	}
	skip = strspn(dst, " \t\r\n");
	len = strlen(dst + skip);
	memmove(dst, dst + skip, len + 1);
	while (len > 0 && strchr(" \t\r\n", dst[len - 1]) != NULL)
		dst[--len] = '\0';
	return CL_OK;
}

/* One base64 value of 16 bytes; stray CR and LF cannot be in a header. */
static int
http1_check_key(const char *key)
{
	uint8_t raw[HTTP1_KEY_BYTES];
	size_t n;

	if (key == NULL || strlen(key) != HTTP1_KEY_LEN)
		return CL_FORMAT;
	if (b64_decode(key, HTTP1_KEY_LEN, raw, sizeof(raw), &n) != 0 ||
	    n != sizeof(raw))
		return CL_FORMAT;
	return CL_OK;
}

int
http1_check_upgrade(const struct http1_head *h, unsigned int *statusp)
{
	const char *version;

	*statusp = 0;
	if (h->minor < 1 || !http1_has_token(h, "Connection", "upgrade") ||
	    !http1_has_token(h, "Upgrade", "websocket")) {
		*statusp = 426;
		return CL_FORMAT;
	}
	if (strcmp(h->method, "GET") != 0) {
		*statusp = 405;
		return CL_FORMAT;
	}
	version = http1_find_header(h, "Sec-WebSocket-Version");
	if (version == NULL || strcmp(version, "13") != 0 || h->has_body ||
	    http1_check_key(http1_find_header(h, "Sec-WebSocket-Key")) != 0) {
		*statusp = 400;
		return CL_FORMAT;
	}
	return CL_OK;
}

int
http1_check_switching(const struct http1_head *h, const char *key,
    const char **whyp)
{
	char accept[HTTP1_ACCEPT_LEN + 1];
	const char *value;

	*whyp = NULL;
	if (h->status != 101)
		*whyp = "the answer is not 101";
	else if (!http1_has_token(h, "Connection", "upgrade") ||
	    !http1_has_token(h, "Upgrade", "websocket"))
		*whyp = "the answer does not upgrade to WebSocket";
	else if (http1_format_accept(key, accept) != 0)
		*whyp = "SHA-1 is not available";
	else if ((value = http1_find_header(h, "Sec-WebSocket-Accept")) ==
	    NULL || strcmp(value, accept) != 0)
		*whyp = "wrong Sec-WebSocket-Accept";
	else if (http1_find_header(h, "Sec-WebSocket-Extensions") != NULL)
		*whyp = "an extension that was not offered";
	else if ((value = http1_find_header(h, "Sec-WebSocket-Protocol")) !=
	    NULL && *value != '\0')
		*whyp = "a subprotocol that was not offered";
	return *whyp == NULL ? CL_OK : CL_FORMAT;
}
