/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Penalties in the monitor: what a source is, who is told, what a compromised
 * cloopd-net cannot say, and the way to the kernel.
 */
#include "montest.h"

#include "common/base/limits.h"
#include "priv/monitor/enforce.h"
#include "priv/monitor/life.h"
#include "priv/monitor/penalty.h"
#include "regress/unit/msgbody.h"

static const char *
source(const char *text)
{
	static char dst[PENALTY_TEXT_MAX];
	struct penalty_source s;

	if (penalty_parse_source(text, &s) != CL_OK)
		return "-";
	penalty_format_source(&s, dst);
	return dst;
}

static void
test_sources(void)
{
	TEST_START("an address with or without port; an IPv6 /64 is one");
	ASSERT_STRING_EQ(source("192.0.2.1"), "192.0.2.1");
	ASSERT_STRING_EQ(source("192.0.2.1:4711"), "192.0.2.1");
	ASSERT_STRING_EQ(source("::ffff:192.0.2.1"), "192.0.2.1");
	ASSERT_STRING_EQ(source("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
	ASSERT_STRING_EQ(source("[2001:db8::1]:4711"), "2001:db8::/64");
	ASSERT_STRING_EQ(source("2001:db8::/64"), "2001:db8::/64");
	TEST_START("nothing else");
	ASSERT_STRING_EQ(source(""), "-");
	ASSERT_STRING_EQ(source("hub.example"), "-");
	ASSERT_STRING_EQ(source("192.0.2.1/24"), "-");
	ASSERT_STRING_EQ(source("2001:db8::/32"), "-");
	ASSERT_STRING_EQ(source("[2001:db8::1"), "-");
	ASSERT_STRING_EQ(source("192.0.2.1; flush ruleset"), "-");
	ASSERT_STRING_EQ(source("1111111111222222222233333333334444444444555555"
	    "5555666666666"), "-");
}

/* What worker i is told next: "source ms", or "". */
static const char *
heard(size_t i)
{
	static char text[128];
	struct imsg m;

	mon_end_turn(&mt);
	if (mt_hear(i, &m) != MSG_PENALTY_SET)
		return "";
	snprintf(text, sizeof(text), "%s %llu", mt_got.PENALTY_SET.source,
	    (unsigned long long)mt_got.PENALTY_SET.ms);
	imsg_free(&m);
	return text;
}

/* Worker 1 says so; 1 when that was its end. */
static int
report(const char *addr, int kind, uint32_t ms, uint32_t left_ms)
{
	struct buf b;
	int died;

	/* As one that was taken over would: beyond bounds too. */
	buf_init(&b, MSG_BODY_MAX);
	msgbody_encode(&msg_penalty_table, &(struct msg_penalty){ addr, kind,
	    ms, left_ms }, &b);
	mt_say(MT_NET1, MSG_PENALTY, 0, &b, -1);
	died = mt.children[MT_NET1].state == CHILD_DOWN;
	if (died)
		mt_refill(MT_NET1);
	return died;
}

static void
test_relay(void)
{
	mt_start();
	TEST_START("the other workers are told, in one form");
	ASSERT_FALSE(report("2001:db8:0:0::1", PEN_AUTH, 10000, 20000));
	ASSERT_STRING_EQ(heard(MT_NET2), "2001:db8::/64 10000");
	ASSERT_STRING_EQ(heard(MT_NET1), "");
	TEST_START("what is no address ends who said it, and nobody else");
	ASSERT_TRUE(report("x", PEN_AUTH, 1, 1));
	ASSERT_TRUE(report("", PEN_AUTH, 1, 1));
	ASSERT_TRUE(report("10.0.0.1", 0, 1, 1));
	ASSERT_TRUE(report("10.0.0.1", PEN_CRASH + 1, 1, 1));
	ASSERT_STRING_EQ(heard(MT_NET2), "");
	TEST_START("the longest time, and a millisecond more");
	ASSERT_FALSE(report("10.0.0.1", PEN_AUTH, MAX_PENALTY_MS,
	    MAX_PENALTY_MS));
	ASSERT_STRING_EQ(heard(MT_NET2), "10.0.0.1 86400000");
	ASSERT_TRUE(report("10.0.0.1", PEN_AUTH, MAX_PENALTY_MS + 1, 1));
	ASSERT_TRUE(report("10.0.0.1", PEN_AUTH, 1, MAX_PENALTY_MS + 1));
	mt_stop();
}

static void
test_crash(void)
{
	struct agent *a;
	struct mt_device d;

	mt_start();
	mt_connect(&d, MT_NET1, "edge", NULL);
	a = agents_find(&mt.agents, d.agent_id);
	ASSERT_TRUE(agents_add_session(&mt.agents, a,
	    mt.children[MT_NET1].generation, "[2001:db8:7::1]:4711") !=
	    NULL);
	mt_drain(MT_NET2);

	TEST_START("who was in its handshake when a worker crashed");
	life_end_worker(&mt, mt.children[MT_NET1].generation, 1);
	ASSERT_STRING_EQ(heard(MT_NET2), "2001:db8:7::/64 90000");
	ASSERT_STRING_EQ(heard(MT_NET2), "");
	mt_stop();
}

static void
test_ready(void)
{
	char addr[32];
	size_t i, n;

	mt_start();
	TEST_START("a worker that starts is told all, up to the bound");
	for (i = 0; i < MAX_PENALTIES + 1; i++) {
		snprintf(addr, sizeof(addr), "10.0.%zu.%zu", i / 256,
		    i % 256);
		ASSERT_FALSE(report(addr, PEN_AUTH, 10000,
		    10000 + (uint32_t)i * 1000));
		mon_end_turn(&mt);
		mt_drain(MT_NET2);
	}
	ASSERT_SIZE_T_EQ(mt.penalties.n, MAX_PENALTIES);
	penalty_send_all(&mt, &mt.children[MT_NET2]);
	for (n = 0; *heard(MT_NET2) != '\0'; n++) {
		chan_flush(&mt.children[MT_NET2].chan);
	}
	ASSERT_SIZE_T_EQ(n, MAX_PENALTIES);
	mt_stop();
}

static void
test_start_order(void)
{
	struct child *c;
	struct imsg m;

	mt_start();
	TEST_START("a worker accepts once it knows whom to turn away");
	c = &mt.children[MT_NET2];
	c->state = MS_STARTING;
	c->has_start = 0;
	mt.has_tls = 1;
	ASSERT_FALSE(report("192.0.2.9", PEN_AUTH, 10000, 10000));
	ASSERT_STRING_EQ(heard(MT_NET2), "");
	setup_give_key(c);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(mt_hear(MT_NET2, &m), MSG_NET_KEY);
	imsg_free(&m);
	ASSERT_INT_EQ(strncmp(heard(MT_NET2), "192.0.2.9 ", 10), 0);
	ASSERT_INT_EQ(mt_hear(MT_NET2, &m), MSG_NET_START);
	imsg_free(&m);

	TEST_START("and of what comes while it gets ready, it is told once");
	ASSERT_FALSE(report("192.0.2.10", PEN_AUTH, 10000, 10000));
	ASSERT_STRING_EQ(heard(MT_NET2), "192.0.2.10 10000");
	ASSERT_STRING_EQ(heard(MT_NET2), "");
	mt_stop();
}

/* Sources of the order that cloopd-fence gets next; 0: none. */
static size_t
ordered(uint64_t *msp)
{
	const struct msg_fence_add *order = &mt_got.FENCE_ADD;
	struct imsg m;

	*msp = 0;
	mon_end_turn(&mt);
	if (mt_hear(MT_FENCE, &m) != MSG_FENCE_ADD)
		return 0;
	imsg_free(&m);
	if (order->nsources > 0)
		*msp = order->sources[order->nsources - 1].ms;
	return order->nsources;
}

static void
answer(int ok)
{
	struct msg_fence_add_ans ans = { ok, "" };

	MT_SAY(MT_FENCE, FENCE_ADD_ANS, 0, &ans, -1);
}

static void
add(size_t i, uint32_t left_ms)
{
	struct penalty_source s;
	char addr[32];

	snprintf(addr, sizeof(addr), "10.1.%zu.%zu", i / 256, i % 256);
	ASSERT_INT_EQ(penalty_parse_source(addr, &s), CL_OK);
	enforce_add(&mt, &s, left_ms);
}

static void
test_enforce(void)
{
	uint64_t ms;
	size_t i;

	mt_start();
	mt_add_fence();
	TEST_START("one order at a time; what comes meanwhile goes as one");
	add(0, 10000);
	ASSERT_SIZE_T_EQ(ordered(&ms), 1);
	ASSERT_TRUE(ms > 9000 && ms <= 10000);
	add(1, 10000);
	add(2, 10000);
	add(2, 20000);
	ASSERT_SIZE_T_EQ(ordered(&ms), 0);
	answer(1);
	ASSERT_SIZE_T_EQ(ordered(&ms), 2);
	ASSERT_TRUE(ms > 19000 && ms <= 20000);
	answer(0);
	TEST_START("never longer than configured, whatever a worker says");
	add(3, MAX_PENALTY_MS);
	ASSERT_SIZE_T_EQ(ordered(&ms), 1);
	ASSERT_TRUE(ms > 59000 && ms <= 60000);
	TEST_START("the queue is bounded, an order too");
	for (i = 0; i < MAX_FENCE_QUEUE; i++)
		add(10 + i, 30000);
	ASSERT_SIZE_T_EQ(mt.enforce.n, MAX_FENCE_QUEUE);
	ASSERT_TRUE(mt.enforce.ndropped == 0);
	add(5, 30000);
	ASSERT_SIZE_T_EQ(mt.enforce.n, MAX_FENCE_QUEUE);
	ASSERT_TRUE(mt.enforce.ndropped == 1);
	answer(1);
	ASSERT_SIZE_T_EQ(ordered(&ms), MAX_FENCE_BATCH);
	TEST_START("an answer nobody asked for is its end");
	mt.enforce.busy = 0;
	answer(1);
	ASSERT_INT_EQ(mt.children[MT_FENCE].state, CHILD_DOWN);
	TEST_START("without cloopd-fence nothing is kept for it");
	add(4, 10000);
	ASSERT_SIZE_T_EQ(mt.enforce.n, 0);
	mt_stop();
}

/* A worker that was taken over would shut a site out. */
static void
test_disputed(void)
{
	struct mt_device d;

	mt_start();
	mt_connect(&d, MT_NET2, "edge", NULL);	/* from 192.0.2.1 */
	mt_drain(MT_NET2);
	TEST_START("another worker's device there: it is not believed");
	ASSERT_FALSE(report("192.0.2.1", PEN_CRASH, 1000, 1000));
	ASSERT_STRING_EQ(heard(MT_NET2), "");
	ASSERT_SIZE_T_EQ(mt.penalties.n, 0);
	ASSERT_FALSE(report("192.0.2.2", PEN_CRASH, 1000, 1000));
	ASSERT_STRING_EQ(heard(MT_NET2), "192.0.2.2 1000");

	TEST_START("its own device there is no witness");
	mt_down(&d, AGENT_OFFLINE);
	mt_connect(&d, MT_NET1, "edge2", NULL);
	mt_drain(MT_NET2);
	ASSERT_FALSE(report("192.0.2.1", PEN_CRASH, 1000, 1000));
	ASSERT_STRING_EQ(heard(MT_NET2), "192.0.2.1 1000");
	mt_stop();
}

UNIT_MAIN(test_sources, test_relay, test_crash, test_ready, test_start_order,
    test_enforce, test_disputed)
