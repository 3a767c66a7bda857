/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Text rules: addresses, prefixes, host and interface names.  Runs where
 * rule.c runs; numeric forms only, never a resolver.
 */
#include "rule.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string.h>

#define RULE_IP_MAX 46

/* Parse an address literal into 16 bytes; its family or 0. */
static int
rule_parse_ip(const char *s, size_t len, unsigned char addr[16])
{
	char text[RULE_IP_MAX];

	/* inet_pton knows neither zones nor leading zeros; good. */
	if (len == 0 || len >= sizeof(text) || memchr(s, '\0', len) != NULL)
		return 0;
	memcpy(text, s, len);
	text[len] = '\0';
	if (inet_pton(AF_INET, text, addr) == 1)
		return AF_INET;
	return inet_pton(AF_INET6, text, addr) == 1 ? AF_INET6 : 0;
}

int
rule_ip_family(const char *s, size_t len)
{
	unsigned char addr[16];

	return s == NULL ? 0 : rule_parse_ip(s, len, addr);
}

/* Decimal without a leading zero, at most max; -1 when it is not. */
static long
rule_parse_number(const char *s, size_t len, long max)
{
	long v = 0;
	size_t i;

	if (len == 0 || len > 6 || (len > 1 && s[0] == '0'))
		return -1;
	for (i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		v = v * 10 + (s[i] - '0');
	}
	return v <= max ? v : -1;
}

static int
rule_is_mapped(const unsigned char addr[16])
{
	static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0xff, 0xff };

	return memcmp(addr, mapped, sizeof(mapped)) == 0;
}

int
rule_is_prefix(const char *s, size_t len, int *bitsp)
{
	const char *slash = memchr(s, '/', len);
	size_t n = slash == NULL ? len : (size_t)(slash - s);
	unsigned char addr[16];
	int family;
	long bits, max;

	*bitsp = 0;
	if ((family = rule_parse_ip(s, n, addr)) == 0)
		return 0;
	max = family == AF_INET ? 32 : 128;
	bits = max;
	if (slash != NULL)
		bits = rule_parse_number(slash + 1, len - n - 1, max);
	if (bits < 0)
		return 0;
	if (family == AF_INET6 && rule_is_mapped(addr)) {
		if (bits < 96)
			return 0;
		bits -= 96;
	}
	*bitsp = (int)bits;
	return 1;
}

int
rule_is_resolver(const char *s, size_t len)
{
	const char *end;
	size_t n;

	if (rule_ip_family(s, len) != 0)
		return 1;
	if (len > 0 && *s == '[') {
		if ((end = memchr(s, ']', len)) == NULL)
			return 0;
		n = (size_t)(end - s) + 1;
		if (rule_ip_family(s + 1, n - 2) != AF_INET6)
			return 0;
	} else {
		if ((end = memchr(s, ':', len)) == NULL)
			return 0;
		n = (size_t)(end - s);
		if (rule_ip_family(s, n) != AF_INET)
			return 0;
	}
	return n < len && s[n] == ':' &&
	    rule_parse_number(s + n + 1, len - n - 1, 65535) > 0;
}

int
rule_is_host_name(const char *s)
{
	size_t len = s == NULL ? 0 : strlen(s), n;

	if (len > 0 && s[len - 1] == '.')
		len--;
	if (len == 0 || len > 253)
		return 0;
	for (;;) {
		n = 0;
		while (n < len && s[n] != '.')
			n++;
		if (!rule_is_charset(s, n, "-", 63) || s[0] == '-' ||
		    s[n - 1] == '-')
			return 0;
		if (n == len)
			return 1;
		s += n + 1;
		len -= n + 1;
	}
}

int
rule_is_netdev(const char *s)
{
	size_t len = s == NULL ? 0 : strlen(s);

	return len >= 1 && len <= 15 && *s != '-' && strcmp(s, ".") != 0 &&
	    strcmp(s, "..") != 0 && strpbrk(s, "/ \t\r\n:=,") == NULL;
}
