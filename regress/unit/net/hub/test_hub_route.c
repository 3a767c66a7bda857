/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/hub_route, net/hub/hub_conf, net/hub/hub_source: the agents'
 * endpoint before the upgrade.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/buf.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "net/codec/http1.h"
#include "common/base/log.h"
#include "net/hub/hub_conf.h"
#include "net/hub/hub_route.h"
#include "net/hub/hub_source.h"

static struct hub_conf conf;
static struct hub_addr peer;
static char bearer[MAX_TOKEN_LEN + 1];

#define WS_LINES "Host: hub.local:7443\r\nConnection: keep-alive, Upgrade\r\n" \
	"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                  \
	"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
#define GET "GET " HR_PATH " HTTP/1.1\r\n"
#define TOKEN "Authorization: Bearer clac1.x\r\n"

static void
set_up(const char *proxy)
{
	static char *origins[] = { (char *)(uintptr_t)"https://ops.example",
	    (char *)(uintptr_t)"tools.example:444" };
	char *proxies[] = { (char *)(uintptr_t)proxy };
	struct msg_net_config v = { .worker = 3, .max_agents = 10,
	    .max_pending = 10, .max_per_source = 4, .heartbeat_s = 15,
	    .penalties = 1, .auth_ms = 10000, .protocol_ms = 30000,
	    .crash_ms = 90000, .max_ms = 60000, .log_level = LOGL_INFO,
	    .external_origin = "wss://hub.example:8443/x",
	    .origins = origins, .norigins = 2, .proxies = proxies,
	    .nproxies = proxy != NULL };
	union msg_any got;
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	ASSERT_ERR(msg_put(MSG_NET_CONFIG, &v, &b), CL_OK);
	ASSERT_ERR(msg_get(MSG_NET_CONFIG, &b, &got), CL_OK);
	ASSERT_ERR(hub_conf_set(&conf, &got.NET_CONFIG), CL_OK);
	msg_clear(MSG_NET_CONFIG, &got);
	buf_clear(&b);
	ASSERT_ERR(hub_addr_parse("192.0.2.7", &peer), CL_OK);
}

static unsigned int
ask(const char *request)
{
	static uint8_t head[HTTP_HEAD_MAX];
	struct http1_head h;
	struct hr_request q = { &h, &conf, &peer, 1 };
	size_t len = strlen(request), scanned = 0, head_len;
	unsigned int status;

	memcpy(head, request, len);
	ASSERT_ERR(http1_find_end(head, len, &scanned, &head_len), CL_OK);
	ASSERT_ERR(http1_parse_request(head, head_len, &h), CL_OK);
	(void)hr_check_request(&q, bearer, &status);
	return status;
}

static unsigned int
ask_origin(const char *lines)
{
	char request[2048];

	snprintf(request, sizeof(request), GET TOKEN WS_LINES "%s\r\n",
	    lines);
	return ask(request);
}

static void
test_order(void)
{
	TEST_START("a good request yields its bearer");
	set_up(NULL);
	ASSERT_INT_EQ(ask(GET TOKEN WS_LINES "\r\n"), 0);
	ASSERT_STRING_EQ(bearer, "clac1.x");

	TEST_START("path, origin, upgrade, credential, in this order");
	ASSERT_INT_EQ(ask("GET /other HTTP/1.1\r\nHost: h\r\n"
	    "Origin: https://evil\r\n\r\n"), 404);
	ASSERT_INT_EQ(ask("GET " HR_PATH "/ HTTP/1.1\r\nHost: h\r\n\r\n"),
	    404);
	ASSERT_INT_EQ(ask(GET "Host: h\r\nOrigin: https://evil\r\n\r\n"),
	    403);
	ASSERT_INT_EQ(ask(GET "Host: h\r\n\r\n"), 426);
	ASSERT_INT_EQ(ask("POST " HR_PATH " HTTP/1.1\r\n" WS_LINES "\r\n"),
	    405);
	ASSERT_INT_EQ(ask(GET WS_LINES "\r\n"), 401);
	ASSERT_INT_EQ(ask(GET WS_LINES "Authorization: bearer x\r\n\r\n"),
	    401);

	TEST_START("a refused request leaves no bearer behind");
	ASSERT_INT_EQ(ask(GET TOKEN "Host: h\r\n\r\n"), 426);
	ASSERT_STRING_EQ(bearer, "");
}

static void
test_origin(void)
{
	static const char *const good[] = {
		"", "Origin: \r\n", "Origin: https://hub.example:8443\r\n",
		"Origin: HTTPS://HUB.EXAMPLE:8443\r\n",
		"Origin: https://ops.example\r\n",
		"Origin: https://ops.example:443\r\n",
		"Origin: https://tools.example:444\r\n",
		"Origin: https://hub.local:7443\r\n",
	};
	static const char *const bad[] = {
		"https://evil.example", "https://hub.example",
		"http://hub.example:8443",
		"https://hub.example:8443.evil.test",
		"https://hub.example.evil.test:8443",
		"https://evil-hub.example:8443", "null", "hub.example:8443",
		"https://", "https://tools.example",
		"http://tools.example:444", "http://localhost",
		"http://127.0.0.1", "https://hub.example.:8443",
		"https://hub.example:8443/", "https://u@hub.example:8443",
		"https://hub.example:", "https://hub.example:0",
		"https://hub.example:65536", "https://hub.example:8443x",
		"https://hub.example:+8443", "https://[hub.example:8443",
		"wss://hub.example:8443", "https://hub.example:8443#",
	};
	char line[256];
	size_t i;

	TEST_START("origins that are allowed (BC-24)");
	set_up(NULL);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		unit_note("%s", good[i]);
		ASSERT_INT_EQ(ask_origin(good[i]), 0);
	}

	TEST_START("origins that are not, whatever they resemble");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		snprintf(line, sizeof(line), "Origin: %s\r\n", bad[i]);
		ASSERT_INT_EQ(ask_origin(line), 403);
	}

	TEST_START("forwarded headers count from a trusted proxy only");
#define FORWARDED "X-Forwarded-Proto: https\r\n"                              \
	"X-Forwarded-Host: public.example\r\n"                                 \
	"Origin: https://public.example\r\n"
	ASSERT_INT_EQ(ask_origin(FORWARDED), 403);
	set_up("192.0.2.0/24");
	ASSERT_INT_EQ(ask_origin(FORWARDED), 0);

	TEST_START("without a list loopback is the trusted proxy");
	set_up(NULL);
	ASSERT_ERR(hub_addr_parse("127.9.9.9", &peer), CL_OK);
	ASSERT_INT_EQ(ask_origin(FORWARDED), 0);
	set_up("192.0.2.0/24");
	ASSERT_ERR(hub_addr_parse("127.0.0.1", &peer), CL_OK);
	ASSERT_INT_EQ(ask_origin(FORWARDED), 403);
}

static void
test_answers(void)
{
	char one[HR_ANSWER_MAX], two[HR_ANSWER_MAX];
	size_t len;

	TEST_START("every 401 is the same");
	len = hr_format_answer(one, 401);
	ASSERT_SIZE_T_EQ(hr_format_answer(two, 401), len);
	ASSERT_MEM_EQ(one, two, len);
	ASSERT_TRUE(strstr(one, "{\"error\":\"unauthorized\"}\n") != NULL);

	TEST_START("403 and 401 speak JSON, 429 says when to come again");
	(void)hr_format_answer(one, 403);
	ASSERT_TRUE(strstr(one, "application/json") != NULL);
	(void)hr_format_answer(one, 429);
	ASSERT_TRUE(strstr(one, "Retry-After: ") != NULL);
}

static void
test_address(void)
{
	struct hub_cidr c;
	struct hub_addr a;
	char text[SRC_TEXT_MAX];

	TEST_START("networks of both families");
	ASSERT_ERR(hub_cidr_parse("10.0.0.0/9", &c), CL_OK);
	ASSERT_ERR(hub_addr_parse("10.127.1.2", &a), CL_OK);
	ASSERT_TRUE(hub_cidr_has(&c, &a));
	ASSERT_ERR(hub_addr_parse("10.128.0.0", &a), CL_OK);
	ASSERT_FALSE(hub_cidr_has(&c, &a));
	ASSERT_ERR(hub_cidr_parse("2001:db8::/33", &c), CL_OK);
	ASSERT_ERR(hub_addr_parse("2001:db8:7fff::1", &a), CL_OK);
	ASSERT_TRUE(hub_cidr_has(&c, &a));
	ASSERT_ERR(hub_addr_parse("2001:db8:8000::1", &a), CL_OK);
	ASSERT_FALSE(hub_cidr_has(&c, &a));
	ASSERT_ERR(hub_cidr_parse("10.0.0.0/33", &c), CL_FORMAT);
	ASSERT_ERR(hub_cidr_parse("10.0.0/8", &c), CL_FORMAT);

	TEST_START("an IPv6 /64 is one source, a mapped address is IPv4");
	ASSERT_ERR(hub_addr_parse("2001:db8:1:2:3:4:5:6", &a), CL_OK);
	src_format(&a, text);
	ASSERT_STRING_EQ(text, "2001:db8:1:2::/64");
	ASSERT_ERR(src_parse(text, &a), CL_OK);
	ASSERT_ERR(hub_addr_parse("::ffff:192.0.2.7", &a), CL_OK);
	src_format(&a, text);
	ASSERT_STRING_EQ(text, "192.0.2.7");
}

static void
test_sources(void)
{
	struct src_table t;
	struct hub_addr a, b;
	struct src *s[8];
	int i;

	TEST_START("an address has MaxPerSource handshakes");
	set_up(NULL);
	src_init(&t, &conf);
	ASSERT_ERR(hub_addr_parse("2001:db8::1", &a), CL_OK);
	ASSERT_ERR(hub_addr_parse("2001:db8::2", &b), CL_OK);
	for (i = 0; i < 4; i++)
		ASSERT_INT_EQ(src_get(&t, i % 2 ? &a : &b, 0, &s[i]), SRC_OK);
	ASSERT_INT_EQ(src_get(&t, &a, 0, &s[4]), SRC_REFUSE);
	src_put(s[0]);
	ASSERT_INT_EQ(src_get(&t, &a, 0, &s[4]), SRC_OK);

	TEST_START("a penalty adds up, to its maximum, and ends");
	src_clear(&t);
	ASSERT_INT_EQ(src_add_penalty(&t, &a, PEN_AUTH, 0), 10000);
	ASSERT_INT_EQ(src_get(&t, &a, 9999, &s[0]), SRC_LATER);
	ASSERT_INT_EQ(src_get(&t, &a, 9999, &s[1]), SRC_REFUSE);
	ASSERT_INT_EQ(src_get(&t, &a, 10000, &s[1]), SRC_OK);
	for (i = 0; i < 9; i++)
		(void)src_add_penalty(&t, &a, PEN_PROTOCOL, 10000);
	ASSERT_INT_EQ(src_get(&t, &b, 69999, &s[2]), SRC_LATER);
	ASSERT_INT_EQ(src_get(&t, &b, 70000, &s[3]), SRC_OK);

	TEST_START("a source that comes too fast is told once a second");
	src_clear(&t);
	for (i = 0; i < SRC_BURST; i++) {
		ASSERT_INT_EQ(src_get(&t, &a, 0, &s[0]), SRC_OK);
		src_put(s[0]);
	}
	ASSERT_INT_EQ(src_get(&t, &a, 0, &s[0]), SRC_LATER);
	src_put(s[0]);
	ASSERT_INT_EQ(src_get(&t, &a, 0, &s[0]), SRC_REFUSE);
	ASSERT_INT_EQ(src_get(&t, &a, 100, &s[0]), SRC_OK);

	TEST_START("PerSourcePenalty no turns all of that off");
	src_clear(&t);
	conf.net.penalties = 0;
	ASSERT_INT_EQ(src_add_penalty(&t, &a, PEN_AUTH, 0), 0);
	for (i = 0; i < 3 * SRC_BURST; i++) {
		ASSERT_INT_EQ(src_get(&t, &a, 0, &s[0]), SRC_OK);
		src_put(s[0]);
	}

	TEST_START("the table forgets idle sources, and refuses without any");
	src_clear(&t);
	for (i = 0; i < MAX_SOURCES + 10; i++) {
		memset(&a, 0x20, sizeof(a));
		a.bytes[6] = (uint8_t)(i >> 8);
		a.bytes[7] = (uint8_t)i;
		ASSERT_INT_EQ(src_get(&t, &a, 0, &s[0]), SRC_OK);
		src_put(s[0]);
	}
	ASSERT_SIZE_T_EQ(t.nsources, MAX_SOURCES);
	src_clear(&t);
}

UNIT_MAIN(test_order, test_origin, test_answers, test_address, test_sources)
