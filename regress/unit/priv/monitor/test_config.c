/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopd.conf(5): the values that are more than a number, the round trip
 * of -T, and what a reload takes over.
 */
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "priv/monitor/config.h"
#include "regress/unit/unit.h"

static char path[64];

static int
load(const char *text, struct hub_conf *c, char *err)
{
	struct config_args a = { path, NULL, 0 };

	snprintf(path, sizeof(path), "/tmp/cloop-config.%d", (int)getpid());
	ASSERT_INT_EQ(util_save_file(path, 0600, text, strlen(text)), CL_OK);
	err[0] = '\0';
	return config_load(&a, c, err, 512);
}

static void
test_listen(void)
{
	static const char *const good[] = { "127.0.0.1:7443", "[::]:7443",
		"[::1]:1 plaintext", "127.9.9.9:65535   plaintext", NULL };
	static const char *const bad[] = { "", "7443", "127.0.0.1",
		"127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", "::1:7443",
		"host:7443", "[::1]7443", "0.0.0.0:7480 plaintext",
		"127.0.0.1:1 plain", "127.0.0.1:1 plaintext x", NULL };
	struct config_listen l;
	size_t i;

	TEST_START("ListenAgents: addresses, plaintext on loopback only");
	for (i = 0; good[i] != NULL; i++) {
		unit_note("%s", good[i]);
		ASSERT_TRUE(config_parse_listen(good[i], &l) == NULL);
		ASSERT_INT_EQ(l.plaintext, strstr(good[i], "plain") != NULL);
	}
	for (i = 0; bad[i] != NULL; i++) {
		unit_note("%s", bad[i]);
		ASSERT_TRUE(config_parse_listen(bad[i], &l) != NULL);
	}
}

static void
test_words(void)
{
	struct config_penalty p;
	struct config_retention r;

	TEST_START("PerSourcePenalty");
	ASSERT_TRUE(config_parse_penalty("no", &p) == NULL);
	ASSERT_INT_EQ(p.enabled, 0);
	ASSERT_TRUE(config_parse_penalty("auth:5s max:1m", &p) == NULL);
	ASSERT_INT_EQ(p.auth_ms, 5000);
	ASSERT_INT_EQ(p.max_ms, 60000);
	ASSERT_INT_EQ(p.crash_ms, 90000);
	ASSERT_TRUE(config_parse_penalty("auth:x", &p) != NULL);
	ASSERT_INT_EQ(p.enforce, 0);
	ASSERT_TRUE(config_parse_penalty("enforce nft", &p) == NULL);
	ASSERT_TRUE(p.enabled && p.enforce && p.auth_ms == 10000);
	ASSERT_TRUE(config_parse_penalty("auth:5s enforce  nft max:1m", &p) ==
	    NULL);
	ASSERT_TRUE(p.enforce && p.max_ms == 60000);
	ASSERT_TRUE(config_parse_penalty("enforce", &p) != NULL);
	ASSERT_TRUE(config_parse_penalty("enforce nftables", &p) != NULL);
	ASSERT_TRUE(config_parse_penalty("no enforce nft", &p) != NULL);
	ASSERT_TRUE(config_parse_penalty("auth:25h", &p) != NULL);

	TEST_START("HandleRetention");
	ASSERT_TRUE(config_parse_retention("10 per agent, 2h", &r) == NULL);
	ASSERT_INT_EQ(r.per_agent, 10);
	ASSERT_INT_EQ(r.age_s, 7200);
	ASSERT_TRUE(config_parse_retention("10 per agent", &r) == NULL);
	ASSERT_TRUE(config_parse_retention("0 per agent", &r) != NULL);
	ASSERT_TRUE(config_parse_retention("ten per agent", &r) != NULL);
	ASSERT_TRUE(config_parse_retention("10 per agent,", &r) != NULL);
}

static void
test_round_trip(void)
{
	struct hub_conf a, b;
	char err[512], *one, *two;

	TEST_START("dump, reparse, dump: identical");
	ASSERT_INT_EQ(load("ListenAgents 127.0.0.1:7480 plaintext\n"
	    "listenagents [::1]:7443\nExternalURL https://hub.example/\n"
	    "TrustedProxy 10.0.0.0/8\nPerSourcePenalty no\n"
	    "NetWorkers 3\n", &a, err), CL_OK);
	ASSERT_INT_EQ(conf_format(config_rows, &a, &one), CL_OK);
	ASSERT_INT_EQ(load(one, &b, err), CL_OK);
	ASSERT_INT_EQ(conf_format(config_rows, &b, &two), CL_OK);
	ASSERT_STRING_EQ(one, two);
	ASSERT_INT_EQ(config_find_workers(&b), 3);
	free(one);
	free(two);

	TEST_START("what agents dial comes from ExternalURL");
	{
		char text[256];

		ASSERT_INT_EQ(config_format_server(&a, text, sizeof(text)),
		    CL_OK);
		ASSERT_STRING_EQ(text,
		    "wss://hub.example/api/executors/connect");
		config_format_origin(&a, text, sizeof(text));
		ASSERT_STRING_EQ(text, "https://hub.example");
	}
	config_clear(&a);
	config_clear(&b);

	TEST_START("one address twice is an error that names it");
	ASSERT_INT_EQ(load("ListenAgents 127.0.0.1:1\n"
	    "ListenAgents 127.0.0.1:1 plaintext\n", &a, err), CL_FORMAT);
	ASSERT_TRUE(strstr(err, "127.0.0.1:1") != NULL);
}

static void
test_listeners(void)
{
	char text[1024], err[512];
	struct hub_conf c;
	size_t i;

	TEST_START("as many ListenAgents lines as may be, and one more");
	text[0] = '\0';
	for (i = 1; i <= MAX_LISTENERS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "ListenAgents 127.0.0.1:%zu\n", i);
	ASSERT_INT_EQ(load(text, &c, err), CL_OK);
	ASSERT_SIZE_T_EQ(c.listen_agents.n, MAX_LISTENERS);
	config_clear(&c);
	snprintf(text + strlen(text), sizeof(text) - strlen(text),
	    "ListenAgents 127.0.0.1:%zu\n", i);
	ASSERT_INT_EQ(load(text, &c, err), CL_FORMAT);
	ASSERT_TRUE(strstr(err, "ListenAgents") != NULL);
}

static void
test_reload(void)
{
	struct hub_conf a, b;
	const char *fixed;
	char err[512];

	TEST_START("a reload takes the R keywords and names the others");
	ASSERT_INT_EQ(load("LogLimit 1M\nMaxAgents 5\n", &a, err), CL_OK);
	ASSERT_INT_EQ(load("LogLimit 2M\nMaxAgents 6\nAllowedOrigin a:1\n"
	    "LogLevel debug\nExternalURL http://x\n", &b, err), CL_OK);
	config_set_reloadable(&a, &b, &fixed);
	config_clear(&b);
	ASSERT_U64_EQ(a.log_limit, 2 << 20);
	ASSERT_INT_EQ(a.max_agents, 5);
	ASSERT_SIZE_T_EQ(a.allowed_origins.n, 1);
	ASSERT_STRING_EQ(a.allowed_origins.v[0], "a:1");
	ASSERT_STRING_EQ(a.external_url, "http://x");
	ASSERT_STRING_EQ(fixed, "MaxAgents");
	config_clear(&a);
	unlink(path);
}

UNIT_MAIN(test_listen, test_words, test_round_trip, test_listeners, test_reload)
