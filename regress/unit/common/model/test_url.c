/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Server URLs and the loopback rule.
 */
#include "common/base/err.h"
#include "common/model/url.h"
#include "regress/unit/unit.h"

static void
test_good(void)
{
	static const struct {
		const char *text, *host, *path;
		int port, tls;
	} t[] = {
		{ "wss://h/p", "h", "/p", 443, 1 },
		{ "https://Hub.Example", "hub.example", URL_DEFAULT_PATH, 443,
		    1 },
		{ "WS://127.0.0.1:7480", "127.0.0.1", URL_DEFAULT_PATH, 7480,
		    0 },
		{ "http://localhost:/x?y=1", "localhost", "/x?y=1", 80, 0 },
		{ "wss://[2001:DB8::1]:65535/", "2001:db8::1", "/", 65535, 1 },
		{ " wss://h?q \n", "h", "/?q", 443, 1 },
		{ "wss://a_b-c.d", "a_b-c.d", URL_DEFAULT_PATH, 443, 1 },
	};
	struct url u;
	const char *why;
	size_t i;

	TEST_START("good URLs are split");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unit_note("%s", t[i].text);
		ASSERT_ERR(url_parse(t[i].text, &u, &why), CL_OK);
		ASSERT_STRING_EQ(u.host, t[i].host);
		ASSERT_STRING_EQ(u.path, t[i].path);
		ASSERT_INT_EQ(u.port, t[i].port);
		ASSERT_INT_EQ(u.tls, t[i].tls);
		ASSERT_PTR_EQ(why, NULL);
	}
}

static void
test_bad(void)
{
	static const char *const t[] = {
		"", "ftp://h/", "127.0.0.1:7443", "wss://", "://x",
		"wss:///path", "wss://h:0/", "wss://h:65536/", "wss://h:1x/",
		"wss://user@h/", "wss://u:p@h/", "wss://h/#f", "wss://h /",
		"wss://h/\x01", "wss://[::1", "wss://[h]/", "wss://[::1]x/",
		"wss://.h/", "wss://-h/", "wss://h\xc3\xa9/", "wss:/h",
		"wss://[::1%25lo]/", "wss://h:123456/", "wss://h\\x/",
	};
	char text[MAX_URL_LEN + 16];
	struct url u;
	const char *why;
	size_t i;

	TEST_START("bad URLs are errors with a reason");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unit_note("%s", t[i]);
		ASSERT_ERR(url_parse(t[i], &u, &why), CL_FORMAT);
		ASSERT_TRUE(why != NULL && *why != '\0');
	}
	TEST_START("the length is bounded (limits.h)");
	memset(text, 'x', sizeof(text));
	memcpy(text, "wss://h/", 8);
	text[MAX_URL_LEN] = '\0';
	ASSERT_ERR(url_parse(text, &u, &why), CL_OK);
	text[MAX_URL_LEN] = 'x';
	text[MAX_URL_LEN + 1] = '\0';
	ASSERT_ERR(url_parse(text, &u, &why), CL_TOOBIG);
}

static void
test_loopback(void)
{
	static const char *const yes[] = { "localhost", "LOCALHOST",
		"a.localhost", "127.0.0.1", "127.9.8.7", "::1",
		"::ffff:127.0.0.1", "0:0:0:0:0:0:0:1" };
	static const char *const no[] = { "localhost.example", ".localhost",
		"127.0.0.1.example", "10.0.0.1", "0.0.0.0", "128.0.0.1",
		"::", "::ffff:192.0.2.1", "2001:db8::1", "127.1",
		"0177.0.0.1", "2130706433", "xlocalhost" };
	size_t i;

	TEST_START("loopback hosts");
	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		unit_note("%s", yes[i]);
		ASSERT_TRUE(url_is_loopback(yes[i]));
	}
	TEST_START("everything else is not");
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		unit_note("%s", no[i]);
		ASSERT_FALSE(url_is_loopback(no[i]));
	}
}

UNIT_MAIN(test_good, test_bad, test_loopback)
