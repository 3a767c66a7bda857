/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * In the device monitor, on a URL that spec_check() accepted, and in
 * cloop-git.
 */
#include "forge.h"

#include <string.h>
#include <strings.h>

#include <bsd/stdlib.h>

#define FORGE_HTTPS 443
#define FORGE_PROXY 1080	/* libcurl's, of a proxy without a port */

/* "[user@]host[:port][/...]" */
static int
forge_parse(const char *text, uint16_t otherwise, struct forge_name *f)
{
	const char *end = text + strcspn(text, "/"), *at, *p, *errstr;
	char port[8];
	size_t len;

	if ((at = memrchr(text, '@', (size_t)(end - text))) != NULL)
		text = at + 1;
	for (p = end; p > text && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	f->port = otherwise;
	if (p > text && p[-1] == ':') {
		len = (size_t)(end - p);
		if (len > 0 && len < sizeof(port)) {
			memcpy(port, p, len);
			port[len] = '\0';
			f->port = (uint16_t)strtonum(port, 1, 65535, &errstr);
			if (errstr != NULL)
				f->port = otherwise;
		}
		end = p - 1;
	}
	if (end - text >= 2 && *text == '[' && end[-1] == ']') {
		text++;
		end--;
	}
	len = (size_t)(end - text);
	if (len == 0 || len > MAX_HOST_LEN)
		return 0;
	memcpy(f->host, text, len);
	f->host[len] = '\0';
	return 1;
}

/* NAME=[scheme://]host...; NO_PROXY names no proxy. */
static int
forge_parse_proxy(const char *entry, struct forge_name *f)
{
	const char *value = strchr(entry, '='), *host;

	if (value == NULL || strncasecmp(entry, "NO_PROXY=", 9) == 0)
		return 0;
	value++;
	host = strstr(value, "://");
	return forge_parse(host == NULL ? value : host + 3,
	    strncasecmp(value, "https://", 8) == 0 ? FORGE_HTTPS :
	    FORGE_PROXY, f);
}

static size_t
forge_add(struct forge_name *v, size_t n, const struct forge_name *f)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (v[i].port == f->port && strcmp(v[i].host, f->host) == 0)
			return n;
	v[n] = *f;
	return n + 1;
}

size_t
forge_find_names(const char *repo, char *const *env, size_t nenv,
    struct forge_name *v, size_t max)
{
	struct forge_name f;
	size_t i, n = 0;

	if (max == 0 || repo == NULL || strncasecmp(repo, "https://", 8) != 0 ||
	    !forge_parse(repo + 8, FORGE_HTTPS, &f))
		return 0;
	v[n++] = f;
	for (i = 0; i < nenv && n < max; i++)
		if (forge_parse_proxy(env[i], &f))
			n = forge_add(v, n, &f);
	return n;
}
