/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Text rules: names, paths and git (addresses are in rule_net.c).  Runs in
 * every process that checks a spec, root included; looks at the bytes only.
 */
#include "rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "err.h"

int
rule_fail(char **whyp, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (whyp == NULL || *whyp != NULL)
		return CL_FORMAT;
	va_start(ap, fmt);
	n = vasprintf(whyp, fmt, ap);
	va_end(ap);
	if (n < 0) {
		*whyp = NULL;
		return CL_NOMEM;
	}
	return CL_FORMAT;
}

/* Length of the white space (Unicode's White_Space) at p, 0 when none. */
static size_t
rule_space_len(const char *p, size_t left)
{
	static const char *const spaces[] = { "\xc2\x85", "\xc2\xa0",
		"\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
		"\xe2\x81\x9f", "\xe3\x80\x80" };
	unsigned char c = (unsigned char)*p;
	size_t i, n;

	if (c == ' ' || (c >= '\t' && c <= '\r'))
		return 1;
	if (c < 0x80)
		return 0;
	/* U+2000 to U+200A */
	if (left >= 3 && memcmp(p, "\xe2\x80", 2) == 0 &&
	    (unsigned char)p[2] >= 0x80 && (unsigned char)p[2] <= 0x8a)
		return 3;
	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		n = strlen(spaces[i]);
		if (left >= n && memcmp(p, spaces[i], n) == 0)
			return n;
	}
	return 0;
}

const char *
rule_trim(const char *s, size_t *lenp)
{
	size_t len = s == NULL ? 0 : strlen(s), n, end;

	*lenp = 0;
	if (len == 0)
		return "";
	while (len > 0 && (n = rule_space_len(s, len)) > 0) {
		s += n;
		len -= n;
	}
	while (len > 0) {
		for (n = 1; n <= 3 && n <= len; n++) {
			end = len - n;
			if (rule_space_len(s + end, n) == n)
				break;
		}
		if (n > 3 || n > len)
			break;
		len -= n;
	}
	*lenp = len;
	return s;
}

int
rule_is_blank(const char *s)
{
	size_t len;

	rule_trim(s, &len);
	return len == 0;
}

int
rule_is_empty(const char *s)
{
	return s == NULL || *s == '\0';
}

int
rule_is_equal(const char *a, const char *b)
{
	return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

int
rule_is_one_of(const char *s, const char *words)
{
	size_t len = s == NULL ? 0 : strlen(s), n;

	if (len == 0 || strchr(s, ' ') != NULL)
		return 0;
	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == len && memcmp(words, s, n) == 0)
			return 1;
	}
	return 0;
}

static int
rule_is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

int
rule_is_charset(const char *s, size_t len, const char *extra, size_t max)
{
	size_t i;

	if (len == 0 || len > max)
		return 0;
	for (i = 0; i < len; i++) {
		if (s[i] == '\0' ||
		    (!rule_is_alnum(s[i]) && strchr(extra, s[i]) == NULL))
			return 0;
	}
	return 1;
}

int
rule_has_control(const char *s)
{
	for (; s != NULL && *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return 1;
	}
	return 0;
}

int
rule_is_hex(const char *s, size_t n)
{
	return s != NULL && strlen(s) == n &&
	    strspn(s, "0123456789abcdef") == n;
}

int
rule_is_device_name(const char *s)
{
	return s != NULL && rule_is_alnum(*s) &&
	    rule_is_charset(s, strlen(s), "._-", 64);
}

/* 1 to 3 digits; what follows them, or NULL. */
static const char *
rule_skip_digits(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n >= 1 && n <= 3 ? s + n : NULL;
}

int
rule_is_usb_port(const char *s)
{
	int i;

	if (s == NULL || (s = rule_skip_digits(s)) == NULL || *s++ != '-')
		return 0;
	if ((s = rule_skip_digits(s)) == NULL)
		return 0;
	for (i = 0; i < 6 && *s == '.'; i++) {
		if ((s = rule_skip_digits(s + 1)) == NULL)
			return 0;
	}
	return *s == '\0';
}

/* Elements of a path: none empty, none "." or "..". */
static int
rule_is_clean(const char *s)
{
	size_t n;

	for (;;) {
		n = strcspn(s, "/");
		if (n == 0 || (n == 1 && s[0] == '.') ||
		    (n == 2 && s[0] == '.' && s[1] == '.'))
			return 0;
		if (s[n] == '\0')
			return 1;
		s += n + 1;
	}
}

int
rule_is_abs_path(const char *s)
{
	return s != NULL && *s == '/' && (s[1] == '\0' || rule_is_clean(s + 1));
}

int
rule_is_rel_path(const char *s)
{
	return s != NULL && *s != '/' && rule_is_clean(s);
}

int
rule_is_dev_path(const char *s)
{
	return s != NULL && strlen(s) <= 256 && strncmp(s, "/dev/", 5) == 0 &&
	    rule_is_abs_path(s) && strpbrk(s, ":\r\n") == NULL;
}

static int
rule_has_suffix(const char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);

	return len >= n && strcmp(s + len - n, suffix) == 0;
}

int
rule_is_ref(const char *s)
{
	if (rule_is_empty(s))
		return 1;
	return strlen(s) <= 255 && *s != '-' && !rule_has_control(s) &&
	    strpbrk(s, " ~^:?*[\\") == NULL && strstr(s, "..") == NULL &&
	    strstr(s, "//") == NULL && strstr(s, "@{") == NULL &&
	    !rule_has_suffix(s, ".lock") && !rule_has_suffix(s, ".") &&
	    strcmp(s, "@") != 0;
}

int
rule_is_branch(const char *s)
{
	return s != NULL && strlen(s) <= 200 &&
	    strncmp(s, "cloop/", 6) == 0 && s[6] != '\0' && rule_is_ref(s) &&
	    strstr(s, "/.") == NULL && !rule_has_suffix(s, "/");
}

/* ":port" or nothing, of len bytes. */
static int
rule_is_port_part(const char *s, size_t len)
{
	if (len == 0)
		return 1;
	return *s == ':' && len >= 2 && len <= 6 &&
	    strspn(s + 1, "0123456789") >= len - 1;
}

/* host, host:port or [v6]:port. */
static int
rule_is_authority(const char *s, size_t len)
{
	const char *end;
	size_t n;

	if (len > 0 && *s == '[') {
		if ((end = memchr(s, ']', len)) == NULL)
			return 0;
		n = (size_t)(end - s) + 1;
		return rule_ip_family(s + 1, n - 2) != 0 &&
		    rule_is_port_part(s + n, len - n);
	}
	end = memchr(s, ':', len);
	n = end == NULL ? len : (size_t)(end - s);
	return rule_is_charset(s, n, ".-_", 253) &&
	    rule_is_port_part(s + n, len - n);
}

int
rule_is_repo_url(const char *s)
{
	size_t n;

	if (s == NULL || strlen(s) > 2048 || strncasecmp(s, "https://", 8) != 0)
		return 0;
	if (rule_has_control(s) || strpbrk(s, " ?#\\") != NULL)
		return 0;
	s += 8;
	n = strcspn(s, "/");
	/* Userinfo would put a credential where it gets logged. */
	if (memchr(s, '@', n) != NULL || s[n] != '/' || s[n + 1] == '\0')
		return 0;
	return rule_is_authority(s, n);
}
