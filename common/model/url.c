/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Server URLs.  Runs in the device monitor (root) at its start, on text from
 * its own configuration, a bundle or the stored credential: fixed buffers,
 * no allocation, no look-ups.  The split is ours alone: agentd-fetch gets
 * host, port and path and never parses the URL again, so the two cannot
 * disagree about whom the plaintext rule was checked for.
 */
#include <netinet/in.h>
#include <arpa/inet.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "url.h"
#include "common/base/err.h"

static const struct url_scheme {
	const char *prefix;
	int tls;
	uint16_t port;
} url_schemes[] = {
	{ "wss://", 1, 443 },
	{ "https://", 1, 443 },
	{ "ws://", 0, 80 },
	{ "http://", 0, 80 },
};

static int
url_has_bad_byte(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f ||
		    strchr("\"<>\\^`{|}", *s) != NULL)
			return 1;
	return 0;
}

static const char *
url_parse_scheme(const char *p, struct url *u)
{
	size_t i, n;

	for (i = 0; i < sizeof(url_schemes) / sizeof(url_schemes[0]); i++) {
		n = strlen(url_schemes[i].prefix);
		if (strncasecmp(p, url_schemes[i].prefix, n) == 0) {
			u->tls = url_schemes[i].tls;
			u->port = url_schemes[i].port;
			return p + n;
		}
	}
	return NULL;
}

/* A host name or a bracketed IPv6 address; *pp moves past it. */
static int
url_parse_host(const char **pp, struct url *u)
{
	const char *p = *pp, *end;
	struct in6_addr a6;
	size_t i, n;
	int bracket = *p == '[';

	if (bracket) {
		p++;
		if ((end = strchr(p, ']')) == NULL)
			return CL_FORMAT;
	} else
		end = p + strcspn(p, ":/?");
	n = (size_t)(end - p);
	if (n == 0 || n > MAX_HOST_LEN)
		return CL_FORMAT;
	for (i = 0; i < n; i++)
		u->host[i] = (char)tolower((unsigned char)p[i]);
	u->host[n] = '\0';
	if (bracket) {
		if (inet_pton(AF_INET6, u->host, &a6) != 1)
			return CL_FORMAT;
	} else if (u->host[strspn(u->host,
	    "abcdefghijklmnopqrstuvwxyz0123456789.-_")] != '\0' ||
	    *u->host == '.' || *u->host == '-')
		return CL_FORMAT;
	*pp = bracket ? end + 1 : end;
	return CL_OK;
}

static int
url_parse_port(const char **pp, struct url *u)
{
	char digits[8];
	const char *why;
	size_t n;

	if (**pp != ':')
		return CL_OK;
	n = strspn(++*pp, "0123456789");
	if (n == 0)
		return CL_OK;		/* "host:" is the default port */
	if (n >= sizeof(digits))
		return CL_FORMAT;
	memcpy(digits, *pp, n);
	digits[n] = '\0';
	u->port = (uint16_t)strtonum(digits, 1, 65535, &why);
	*pp += n;
	return why == NULL ? CL_OK : CL_FORMAT;
}

/* Copy without white space around. */
static int
url_copy_trimmed(const char *text, struct url *u)
{
	static const char space[] = " \t\r\n";
	size_t n;

	text += strspn(text, space);
	for (n = strlen(text); n > 0 && strchr(space, text[n - 1]) != NULL; )
		n--;
	if (n >= sizeof(u->text))
		return CL_TOOBIG;
	memcpy(u->text, text, n);
	u->text[n] = '\0';
	return CL_OK;
}

int
url_parse(const char *text, struct url *u, const char **whyp)
{
	const char *p;
	int n;

	memset(u, 0, sizeof(*u));
	*whyp = "the URL is longer than 2048 bytes";
	if (url_copy_trimmed(text, u) != 0)
		return CL_TOOBIG;
	*whyp = "the URL holds white space or another character that has no "
	    "place there";
	if (url_has_bad_byte(u->text))
		return CL_FORMAT;
	*whyp = "the URL does not begin with wss://, https://, ws:// or "
	    "http://";
	if ((p = url_parse_scheme(u->text, u)) == NULL)
		return CL_FORMAT;
	*whyp = "the URL holds user information or a fragment";
	if (strchr(p, '#') != NULL ||
	    memchr(p, '@', strcspn(p, "/?")) != NULL)
		return CL_FORMAT;
	*whyp = "the URL names no valid host";
	if (url_parse_host(&p, u) != 0)
		return CL_FORMAT;
	*whyp = "the URL's port is not a number from 1 to 65535";
	if (url_parse_port(&p, u) != 0 || (*p != '\0' && *p != '/' &&
	    *p != '?'))
		return CL_FORMAT;
	*whyp = "the URL is too long";
	n = snprintf(u->path, sizeof(u->path), "%s%s",
	    *p == '\0' ? URL_DEFAULT_PATH : *p == '?' ? "/" : "", p);
	if (n < 0 || (size_t)n >= sizeof(u->path))
		return CL_TOOBIG;
	*whyp = NULL;
	return CL_OK;
}

int
url_is_loopback(const char *host)
{
	static const char suffix[] = ".localhost";
	struct in_addr a4;
	struct in6_addr a6;
	size_t n = strlen(host);

	if (strcasecmp(host, "localhost") == 0)
		return 1;
	if (n > strlen(suffix) &&
	    strcasecmp(host + n - strlen(suffix), suffix) == 0)
		return 1;
	/* inet_pton takes four decimal parts only: what a resolver would make
	 * of "127.1" or "0177.0.0.1" is not our guess to take. */
	if (inet_pton(AF_INET, host, &a4) == 1)
		return ntohl(a4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, host, &a6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&a6) ||
		    (IN6_IS_ADDR_V4MAPPED(&a6) && a6.s6_addr[12] == 127);
	return 0;
}
