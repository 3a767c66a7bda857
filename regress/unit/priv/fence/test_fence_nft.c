/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What cloopd-fence may say to nft (a fixed menu), and running a program to
 * its end, within a deadline.
 */
#include "regress/unit/unit.h"

#include <arpa/inet.h>
#include <signal.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "priv/fence/fence_run.h"
#include "sandbox/rules/fence_nft.h"

static char text[FENCE_TEXT_MAX];

static struct fence_source
source(const char *addr, uint32_t ms)
{
	struct fence_source s = { .ms = ms };
	char mapped[64];

	if (strchr(addr, ':') == NULL) {
		snprintf(mapped, sizeof(mapped), "::ffff:%s", addr);
		addr = mapped;
	}
	ASSERT_INT_EQ(inet_pton(AF_INET6, addr, s.addr), 1);
	return s;
}

static int
add(const char *addr, uint32_t ms)
{
	struct fence_source s = source(addr, ms);
	int n = fence_nft_format_add(&s, 1, text, sizeof(text));

	return n > 0 ? CL_OK : n;
}

static void
test_text(void)
{
	static struct fence_source many[MAX_FENCE_BATCH + 1];
	int64_t ports[MAX_FENCE_PORTS] = { 7443, 65535 };
	size_t i;

	TEST_START("the table: two sets, a rule for each, the hub's ports");
	ASSERT_TRUE(fence_nft_format_table(ports, 2, text, sizeof(text)) > 0);
	ASSERT_TRUE(strstr(text, "delete table inet cloopd\n") != NULL);
	ASSERT_TRUE(strstr(text, "tcp dport { 7443, 65535 } ") != NULL);
	ASSERT_TRUE(strstr(text, "flush") == NULL);
	ASSERT_INT_EQ(fence_nft_format_table(ports, 0, text, sizeof(text)),
	    CL_FORMAT);
	ASSERT_INT_EQ(fence_nft_format_table(ports, 3, text, sizeof(text)),
	    CL_FORMAT);
	ASSERT_INT_EQ(fence_nft_format_table(ports, 2, text, 100), CL_TOOBIG);

	TEST_START("an addition, with seconds rounded up");
	ASSERT_INT_EQ(add("192.0.2.1", 10001), CL_OK);
	ASSERT_STRING_EQ(text,
	    "add element inet cloopd v4 { 192.0.2.1 }\n"
	    "delete element inet cloopd v4 { 192.0.2.1 }\n"
	    "add element inet cloopd v4 { 192.0.2.1 timeout 11s }\n");
	ASSERT_INT_EQ(add("2001:db8:0:7::", 1), CL_OK);
	ASSERT_TRUE(strstr(text, "v6 { 2001:db8:0:7:: timeout 1s }\n") !=
	    NULL);
	TEST_START("what is no source, or for no time");
	ASSERT_INT_EQ(add("0.0.0.0", 1), CL_FORMAT);
	ASSERT_INT_EQ(add("2001:db8::1", 1), CL_FORMAT);
	ASSERT_INT_EQ(add("192.0.2.1", 0), CL_FORMAT);
	ASSERT_INT_EQ(add("192.0.2.1", MAX_PENALTY_MS), CL_OK);
	ASSERT_INT_EQ(add("192.0.2.1", MAX_PENALTY_MS + 1), CL_FORMAT);

	TEST_START("a full order fits, one more source does not");
	for (i = 0; i < MAX_FENCE_BATCH + 1; i++)
		many[i] = source("2001:db8:ffff:ffff::", MAX_PENALTY_MS);
	ASSERT_TRUE(fence_nft_format_add(many, MAX_FENCE_BATCH, text,
	    sizeof(text)) > 0);
	ASSERT_INT_EQ(fence_nft_format_add(many, MAX_FENCE_BATCH + 1, text,
	    sizeof(text)), CL_FORMAT);
	ASSERT_INT_EQ(fence_nft_format_add(many, 0, text, sizeof(text)),
	    CL_FORMAT);
}

static int
run(const char *script, const char *in, int ms, char *err)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };

	return fence_run(argv, in, strlen(in), ms, err, 32);
}

static void
test_run(void)
{
	char err[32];
	int64_t began;

	signal(SIGPIPE, SIG_IGN);	/* as cloopd-fence does */
	TEST_START("stdin arrives, the status decides");
	ASSERT_INT_EQ(run("read x; [ $x = yes ]", "yes\n", 5000, err), CL_OK);
	ASSERT_STRING_EQ(err, "");
	ASSERT_INT_EQ(run("exit 3", "", 5000, err), CL_DENIED);
	TEST_START("a program that does not read, and one that is missing");
	ASSERT_INT_EQ(run("true", "yes\n", 5000, err), CL_OK);
	{
		const char *const none[] = { "/nonexistent", NULL };

		ASSERT_INT_EQ(fence_run(none, "", 0, 5000, err, sizeof(err)),
		    CL_DENIED);
	}
	TEST_START("the first line of its complaint, cut and printable");
	ASSERT_INT_EQ(run("printf 'a\\001b\\nc' >&2; exit 1", "", 5000, err),
	    CL_DENIED);
	ASSERT_STRING_EQ(err, "a?b");
	ASSERT_INT_EQ(run("printf %040d 7 >&2", "", 5000, err), CL_OK);
	ASSERT_SIZE_T_EQ(strlen(err), 31);
	TEST_START("the deadline ends it");
	began = util_now_ms();
	ASSERT_INT_EQ(run("sleep 60", "", 100, err), CL_TIMEOUT);
	ASSERT_TRUE(util_now_ms() - began < 30000);
	TEST_START("text that would not fit a pipe is not begun");
	{
		const char *const argv[] = { "/bin/true", NULL };

		ASSERT_INT_EQ(fence_run(argv, text, FENCE_TEXT_MAX + 1, 100,
		    err, sizeof(err)), CL_TOOBIG);
	}
}

UNIT_MAIN(test_text, test_run)
