/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The agents' endpoint before the upgrade.  Runs in cloopd-net on a head
 * that http1.c has taken apart; header values are text from outside.
 *
 * An origin is compared as scheme, host and port, never as text that
 * contains other text (BC-24); a loopback peer has no privilege.
 */
#include "hub_route.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/err.h"
#include "net/codec/http1.h"
#include "hub_conf.h"

#define HR_HOST_MAX 256

struct hr_origin {
	char scheme[16];
	char host[HR_HOST_MAX];
	unsigned int port;	/* 0: the scheme has no default */
};

static unsigned int
hr_get_default_port(const char *scheme)
{
	if (strcmp(scheme, "https") == 0)
		return 443;
	if (strcmp(scheme, "http") == 0)
		return 80;
	return 0;
}

/* host[:port], IPv6 in brackets, into o; o->scheme is set already. */
static int
hr_parse_host(const char *text, size_t len, struct hr_origin *o)
{
	const char *end = text + len, *p, *why = NULL;
	char port[8];
	size_t i, n;

	if (len > 0 && text[0] == '[') {
		if ((p = memchr(text, ']', len)) == NULL)
			return CL_FORMAT;
		p++;
	} else if (len == 0 || (p = memchr(text, ':', len)) == NULL)
		p = end;
	n = (size_t)(p - text);
	if (n == 0 || n >= sizeof(o->host))
		return CL_FORMAT;
	for (i = 0; i < n; i++) {
		/* No user, no path, no blank: an origin has none. */
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f ||
		    strchr("/?#@\\", text[i]) != NULL)
			return CL_FORMAT;
		o->host[i] = (char)tolower((unsigned char)text[i]);
	}
	o->host[n] = '\0';
	o->port = hr_get_default_port(o->scheme);
	if (p == end)
		return CL_OK;
	if (*p++ != ':' || (size_t)(end - p) >= sizeof(port) ||
	    !isdigit((unsigned char)*p))
		return CL_FORMAT;
	memcpy(port, p, (size_t)(end - p));
	port[end - p] = '\0';
	o->port = (unsigned int)strtonum(port, 1, 65535, &why);
	return why == NULL ? CL_OK : CL_FORMAT;
}

/*
 * scheme://host[:port].  `lenient` is for the configured URL, which may
 * have a path and a WebSocket scheme.
 */
static int
hr_parse_origin(const char *text, int lenient, struct hr_origin *o)
{
	const char *host = strstr(text, "://");
	size_t i, n, len;

	if (host == NULL || host == text ||
	    (n = (size_t)(host - text)) >= sizeof(o->scheme))
		return CL_FORMAT;
	for (i = 0; i < n; i++) {
		if (!isalpha((unsigned char)text[i]))
			return CL_FORMAT;
		o->scheme[i] = (char)tolower((unsigned char)text[i]);
	}
	o->scheme[n] = '\0';
	host += 3;
	len = strlen(host);
	if (lenient) {
		len = strcspn(host, "/?#");
		if (strcmp(o->scheme, "wss") == 0)
			(void)strlcpy(o->scheme, "https", sizeof(o->scheme));
		else if (strcmp(o->scheme, "ws") == 0)
			(void)strlcpy(o->scheme, "http", sizeof(o->scheme));
	}
	return hr_parse_host(host, len, o);
}

static int
hr_is_equal(const struct hr_origin *a, const struct hr_origin *b)
{
	return a->port == b->port && strcmp(a->scheme, b->scheme) == 0 &&
	    strcmp(a->host, b->host) == 0;
}

/* First element of a comma list, trimmed; 0 when there is none. */
static size_t
hr_get_first(const char *value, const char **textp)
{
	size_t len;

	if (value == NULL)
		return 0;
	value += strspn(value, " \t");
	len = strcspn(value, ",");
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	*textp = value;
	return len;
}

/* The origin the request was addressed to. */
static int
hr_get_own(const struct hr_request *q, struct hr_origin *o)
{
	const char *host = http1_find_header(q->head, "Host"), *text;
	size_t len, host_len = host != NULL ? strlen(host) : 0;

	(void)strlcpy(o->scheme, q->tls ? "https" : "http",
	    sizeof(o->scheme));
	if (hub_conf_is_proxy(q->conf, q->peer)) {
		len = hr_get_first(http1_find_header(q->head,
		    "X-Forwarded-Proto"), &text);
		if (len > 0 && len < sizeof(o->scheme)) {
			memcpy(o->scheme, text, len);
			o->scheme[len] = '\0';
			for (len = 0; o->scheme[len] != '\0'; len++)
				o->scheme[len] = (char)tolower(
				    (unsigned char)o->scheme[len]);
		}
		len = hr_get_first(http1_find_header(q->head,
		    "X-Forwarded-Host"), &text);
		if (len > 0) {
			host = text;
			host_len = len;
		}
	}
	return hr_parse_host(host, host_len, o);
}

static int
hr_is_listed(const struct hub_conf *conf, const struct hr_origin *o)
{
	struct hr_origin allowed;
	const char *text;
	size_t i;

	if (conf->net.external_origin != NULL &&
	    hr_parse_origin(conf->net.external_origin, 1, &allowed) == CL_OK &&
	    hr_is_equal(o, &allowed))
		return 1;
	for (i = 0; i < conf->net.norigins; i++) {
		text = conf->net.origins[i];
		if (strstr(text, "://") != NULL) {
			if (hr_parse_origin(text, 0, &allowed) != CL_OK)
				continue;
		} else {
			(void)strlcpy(allowed.scheme, "https",
			    sizeof(allowed.scheme));
			if (hr_parse_host(text, strlen(text), &allowed) !=
			    CL_OK)
				continue;
		}
		if (hr_is_equal(o, &allowed))
			return 1;
	}
	return 0;
}

int
hr_check_origin(const struct hr_request *q, const char **originp)
{
	struct hr_origin origin, own;
	const char *value = NULL;
	size_t i;

	*originp = NULL;
	for (i = 0; i < q->head->nheaders; i++) {
		if (strcasecmp(q->head->headers[i].name, "Origin") != 0 ||
		    q->head->headers[i].value[strspn(
		    q->head->headers[i].value, " \t")] == '\0')
			continue;
		*originp = q->head->headers[i].value;
		/* Two origins: whichever we checked, the other was meant. */
		if (value != NULL)
			return 0;
		value = *originp;
	}
	if (value == NULL)
		return 1;
	if (hr_parse_origin(value, 0, &origin) != CL_OK)
		return 0;
	if (hr_get_own(q, &own) == CL_OK && hr_is_equal(&origin, &own))
		return 1;
	return hr_is_listed(q->conf, &origin);
}

enum hr_why
hr_check_request(const struct hr_request *q, char *bearer,
    unsigned int *statusp)
{
	const char *origin;
	int r;

	*bearer = '\0';
	*statusp = 0;
	if (strcmp(q->head->path, HR_PATH) != 0) {
		*statusp = 404;
		return HR_PATH_UNKNOWN;
	}
	if (!hr_check_origin(q, &origin)) {
		*statusp = 403;
		return HR_ORIGIN;
	}
	/* Before the credential: a malformed request burns no token. */
	if (http1_check_upgrade(q->head, statusp) != CL_OK)
		return HR_UPGRADE;
	if (q->head->has_body) {
		*statusp = 400;
		return HR_UPGRADE;
	}
	r = http1_get_bearer(q->head, bearer);
	if (r != CL_OK || *bearer == '\0') {
		*statusp = 401;
		return HR_NO_TOKEN;
	}
	*statusp = 0;
	return HR_OK;
}

static const struct hr_answer {
	unsigned int status;
	const char *type;
	const char *body;
} hr_answers[] = {
	{ 400, "text/plain; charset=utf-8", "bad request\n" },
	{ 401, "application/json", "{\"error\":\"unauthorized\"}\n" },
	{ 403, "application/json",
	    "{\"error\":\"this origin is not allowed\"}\n" },
	{ 404, "text/plain; charset=utf-8", "not found\n" },
	{ 405, "text/plain; charset=utf-8", "method not allowed\n" },
	{ 426, "text/plain; charset=utf-8",
	    "this is a WebSocket endpoint: Upgrade or Connection header "
	    "missing\n" },
	{ 429, "text/plain; charset=utf-8", "too many connections\n" },
	{ 431, "text/plain; charset=utf-8", "header too large\n" },
	{ 500, "application/json", "{\"error\":\"internal error\"}\n" },
	{ 503, "application/json", "{\"error\":\"unavailable, try again\"}\n" },
	{ 505, "text/plain; charset=utf-8", "HTTP version not supported\n" },
};

size_t
hr_format_answer(char dst[HR_ANSWER_MAX], unsigned int status)
{
	const struct hr_answer *a = &hr_answers[0];
	size_t i, len;

	for (i = 0; i < sizeof(hr_answers) / sizeof(hr_answers[0]); i++)
		if (hr_answers[i].status == status)
			a = &hr_answers[i];
	if (http1_format_response(dst, HR_ANSWER_MAX, status,
	    status == 503 ? "Retry-After: 5\r\n" : NULL, a->type, a->body,
	    &len) != CL_OK)
		return 0;
	return len;
}
