/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/frame: the envelope, the rules at decode, encoding.  Byte identity
 * with Go is test_golden's.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/json/jsonw.h"
#include "common/msg/buf.h"
#include "common/msg/msgcat.h"
#include "net/codec/frame.h"

static struct jx x;
static struct frame_env env;

static void
check_envelope(const char *text, int want)
{
	unit_note("%.100s", text);
	ASSERT_ERR(frame_decode_envelope(&x, text, strlen(text), &env), want);
	if (want != CL_OK)
		ASSERT_TRUE(x.why[0] != '\0');
}

static void
test_envelope(void)
{
	TEST_START("envelope: fatal and refused");
	jx_init(&x);
	check_envelope("{\"v\":26,\"type\":\"bye\",\"id\":\"i\",\"payload\":"
	    "{\"reconnect\":true}}\n", CL_OK);
	ASSERT_INT_EQ(env.type, FRAME_BYE);
	ASSERT_INT_EQ(env.v, 26);
	ASSERT_STRING_EQ(env.id, "i");
	ASSERT_STRING_EQ(env.handle, "");
	ASSERT_SIZE_T_EQ(env.payload_len, 18);
	check_envelope("{\"V\":1,\"TYPE\":\"x-new\"}", CL_OK);
	ASSERT_INT_EQ(env.type, FRAME_UNKNOWN);
	ASSERT_STRING_EQ(env.type_name, "x-new");
	ASSERT_INT_EQ(env.payload, 0);
	check_envelope("{\"v\":0,\"type\":\"bye\"}", CL_FORMAT);
	check_envelope("{\"v\":27,\"type\":\"bye\"}", CL_FORMAT);
	check_envelope("{\"v\":\"1\",\"type\":\"bye\"}", CL_FORMAT);
	check_envelope("{\"type\":\"bye\"}", CL_FORMAT);
	check_envelope("{\"v\":1}", CL_FORMAT);
	check_envelope("{\"v\":1,\"type\":\" \\t\"}", CL_FORMAT);
	check_envelope("{\"v\":1,\"type\":\"\xc2\xa0\"}", CL_FORMAT);
	check_envelope("{\"v\":1,\"type\":1}", CL_FORMAT);
	check_envelope("{\"v\":1,\"type\":\"bye\",\"id\":7}", CL_FORMAT);
	check_envelope("{\"v\":1,\"type\":\"bye\",\"Type\":\"x\"}", CL_FORMAT);
	check_envelope("{\"v\":1,\"type\":\"bye\",\"payload\":{]}", CL_FORMAT);
	check_envelope("[]", CL_FORMAT);
	check_envelope("null", CL_FORMAT);
	check_envelope("", CL_FORMAT);
	jx_clear(&x);
}

static void
test_handles(void)
{
	static const char *const need[] = { "start", "started", "signal",
		"log_chunk", "log_ack", "status", "status_req",
		"project_result" };
	char text[128];
	int type, n = 0;
	size_t i;

	TEST_START("a handle is needed by eight types");
	jx_init(&x);
	for (i = 0; i < sizeof(need) / sizeof(need[0]); i++) {
		snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"%s\","
		    "\"handle\":\" \"}", need[i]);
		check_envelope(text, CL_FORMAT);
		snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"%s\","
		    "\"handle\":\"h\"}", need[i]);
		check_envelope(text, CL_OK);
	}
	for (type = FRAME_UNKNOWN + 1; type < FRAME_NTYPES; type++)
		n += frame_get_row((enum frame_type)type)->needs_handle;
	ASSERT_INT_EQ(n, 8);
	ASSERT_INT_EQ(FRAME_NTYPES - 1, 39);
	jx_clear(&x);
}

static void
test_long_ids(void)
{
	char text[1024], id[MAX_ID_LEN + 2];

	TEST_START("ids of 128 bytes pass, longer ones are refused");
	jx_init(&x);
	memset(id, 'a', sizeof(id));
	id[MAX_ID_LEN] = '\0';
	snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"log_ack\",\"id\":"
	    "\"%s\",\"handle\":\"%s\"}", id, id);
	check_envelope(text, CL_OK);
	ASSERT_STRING_EQ(env.handle, id);
	id[MAX_ID_LEN] = 'a';
	id[MAX_ID_LEN + 1] = '\0';
	snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"log_ack\",\"id\":"
	    "\"i\",\"handle\":\"%s\"}", id);
	check_envelope(text, CL_LIMIT);
	ASSERT_STRING_EQ(env.id, "i");
	snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"bye\",\"id\":"
	    "\"%s\"}", id);
	check_envelope(text, CL_LIMIT);
	ASSERT_STRING_EQ(env.id, "");
	snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"%s\"}", id);
	check_envelope(text, CL_LIMIT);
	check_envelope("{\"v\":1,\"type\":\"bye\",\"id\":\"a\\u0000b\"}",
	    CL_LIMIT);
	jx_clear(&x);
}

static void
test_size(void)
{
	char *text = malloc(MAX_FRAME_LEN + 2);
	static const char head[] = "{\"v\":1,\"type\":\"bye\"}";

	TEST_START("a message of 1 MiB passes, one byte more is fatal");
	jx_init(&x);
	memset(text, ' ', MAX_FRAME_LEN + 1);
	memcpy(text, head, sizeof(head) - 1);
	ASSERT_ERR(frame_decode_envelope(&x, text, MAX_FRAME_LEN, &env),
	    CL_OK);
	ASSERT_ERR(frame_decode_envelope(&x, text, MAX_FRAME_LEN + 1, &env),
	    CL_FORMAT);
	free(text);
	jx_clear(&x);
}

/* Verdicts on payloads; 1: accepted. */
struct row {
	const char *type;
	const char *payload;
	int ok;
};

#define FILE_JSON(name, mode)                                                  \
	"{\"dir\":\"/d\",\"name\":\"" name "\",\"mode\":" mode ",\"content\":" \
	"\"\"}"
#define START(siblings) "{\"spec\":{\"argv\":[\"a\"]},\"handle_id\":\"h\"" \
	siblings "}"
#define VIRTUAL(id, rest) ",\"virtual\":{\"id\":\"" id "\"" rest "}"
#define BOX ",\"sandbox\":{\"mode\":\"container\"}"

static const struct row rows[] = {
	{ "start", START(""), 1 },
	{ "start", START(",\"sandbox\":null,\"later\":{}"), 1 },
	{ "start", "{\"spec\":{\"argv\":null},\"handle_id\":\"h\"}", 1 },
	{ "start", "{\"spec\":{\"timeout_minutes\":1.0}}", 0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("n", "384") "]"), 1 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("n", "0") "]"), 1 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("n", "416") "]"), 0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("n", "2432") "]"),
	    0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("../x", "0") "]"),
	    0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("a/b", "0") "]"), 0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("a\\\\b", "0") "]"),
	    0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("..", "0") "]"), 0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("", "0") "]"), 0 },
	{ "start", START(",\"secret_files\":[" FILE_JSON("n", "0") ","
	    FILE_JSON("n", "0") "]"), 0 },
	{ "start", START(",\"project_seed\":\"H4sIAA==\""), 1 },
	{ "start", START(",\"project_seed\":\"aGkK\""), 0 },
	{ "start", START(",\"sandbox\":{\"engine\":\"lxc\"}"), 0 },
	{ "start", START(",\"sandbox\":{\"mode\":\"host\",\"engine\":"
	    "\"docker\"}"), 1 },
	{ "start", START(",\"sandbox\":{\"mode\":\"host\",\"engine\":"
	    "\"lxc\"}"), 0 },
	{ "start", START(",\"sandbox\":{\"network\":\"host\"}"), 0 },
	{ "start", START(",\"sandbox\":{\"network\":\"container:x\"}"), 0 },
	{ "start", START(",\"sandbox\":{\"runtime\":\"-x\"}"), 0 },
	{ "start", START(BOX VIRTUAL("ab1", "")), 1 },
	{ "start", START(BOX VIRTUAL("ab", "")), 0 },
	{ "start", START(BOX VIRTUAL("-ab", "")), 0 },
	{ "start", START(BOX VIRTUAL("AB1", "")), 0 },
	{ "start", START(VIRTUAL("ab1", "")), 0 },
	{ "signal", "{\"signal\":\"kill\"}", 1 },
	{ "signal", "{\"signal\":\"hup\"}", 0 },
	{ "signal", "null", 0 },
	{ "status_req", "[]", 1 },
	{ "log_chunk", "{\"offset\":0}", 1 },
	{ "log_chunk", "{\"offset\":-1}", 0 },
	{ "log_ack", "{\"offset\":-1}", 0 },
	{ "revoke", "{\"lease_id\":\"  \"}", 0 },
	{ "revoke", "{\"lease_id\":\"l\",\"action\":\"purge\"}", 1 },
	{ "revoked", "{\"lease_id\":\"l\",\"files_removed\":[\"x\"]}", 0 },
	{ "result_chunk", "{\"offset\":0,\"data\":\"\"}", 0 },
	{ "result_chunk", "{\"offset\":134217725,\"data\":\"aGkK\"}", 1 },
	{ "result_chunk", "{\"offset\":134217726,\"data\":\"aGkK\"}", 0 },
	{ "branch_chunk", "{\"offset\":0,\"data\":\"aGkK\",\"total\":3}", 1 },
	{ "branch_chunk", "{\"offset\":1,\"data\":\"aGkK\",\"total\":3}", 0 },
	{ "branch_chunk", "{\"offset\":0,\"data\":\"aGkK\"}", 0 },
	{ "branch_chunk", "{\"offset\":9223372036854775807,\"data\":\"aGkK\","
	    "\"total\":3}", 0 },
	{ "result", "{\"result\":{\"mode\":\"push\"}}", 1 },
	{ "result", "{\"result\":{\"mode\":\"pull\"}}", 0 },
	{ "result", "{\"result\":{\"bundle_bytes\":134217729}}", 0 },
	{ "project_result", "{\"data\":\"aGkK\"}", 1 },
	{ "project_result", "{\"data\":\"aGkK\",\"error\":\"e\"}", 0 },
	{ "project_result", "{}", 0 },
	{ "secret_refresh", "{\"lease_id\":\"l\",\"files\":["
	    FILE_JSON("n", "0") "]}", 1 },
	{ "secret_refresh", "{\"lease_id\":\"l\",\"files\":[]}", 0 },
	{ "secret_refresh", "{\"lease_id\":\"l\",\"files\":[{\"lease_id\":"
	    "\"m\",\"dir\":\"/d\",\"name\":\"n\"}]}", 0 },
	{ "upgrade", "{\"target_version\":\" v1 \"}", 1 },
	{ "upgrade", "{\"target_version\":\" \"}", 0 },
	{ "upgrade", "{\"target_version\":\"v1\",\"settle_seconds\":-1}", 0 },
	{ "install_harness", "{\"harness\":\" claude \"}", 1 },
	{ "install_harness", "{\"harness\":\"a/b\"}", 0 },
	{ "attach_open", "{\"session_id\":\"s\",\"rows\":65535}", 1 },
	{ "attach_open", "{\"session_id\":\"s\",\"rows\":65536}", 0 },
	{ "attach_open", "{\"session_id\":\" \"}", 0 },
	{ "attach_data", "{\"session_id\":\"s\",\"data\":null}", 1 },
	{ "device_open", "{\"channel_id\":\"c\",\"kind\":\"usb\",\"name\":"
	    "\"n\",\"bus_id\":\"1-2\"}", 1 },
	{ "device_open", "{\"channel_id\":\"c\",\"kind\":\"usb\",\"name\":"
	    "\"n\"}", 0 },
	{ "device_open", "{\"channel_id\":\"c\",\"kind\":\"l2\",\"name\":"
	    "\"n\",\"interface\":{\"name\":\"n\",\"source\":\"\"}}", 1 },
	{ "device_open", "{\"channel_id\":\"c\",\"kind\":\"l2\",\"name\":"
	    "\"n\",\"bus_id\":\"1-2\",\"interface\":{\"name\":\"n\"}}", 0 },
	{ "isolation_probe", "{\"sandbox\":{\"engine\":\"lxc\"}}", 0 },
	{ "hello", "{\"capabilities\":{\"usb_devices\":[{\"port\":5}]}}", 1 },
};

/* The payload into p; its verdict. */
static int
decode(const char *type, const char *payload, void *p)
{
	static char text[65536];

	unit_note("%s %.100s", type, payload);
	snprintf(text, sizeof(text), "{\"v\":26,\"type\":\"%s\",\"id\":\"i\","
	    "\"handle\":\"h\",\"payload\":%s}", type, payload);
	ASSERT_ERR(frame_decode_envelope(&x, text, strlen(text), &env),
	    CL_OK);
	return frame_decode_payload(&x, &env, p);
}

static void
test_rules(void)
{
	union {
		struct spec spec;
		struct frame_hello hello;
	} p;
	size_t i;

	TEST_START("the rules at decode");
	jx_init(&x);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ASSERT_INT_EQ(decode(rows[i].type, rows[i].payload, &p) ==
		    CL_OK, rows[i].ok);
		if (rows[i].ok)
			frame_clear_payload(env.type, &p);
		else
			ASSERT_TRUE(x.why[0] != '\0');
	}
	jx_clear(&x);
}

static void
test_git_ca(void)
{
	struct spec s;

	TEST_START("a git CA of any shape refuses the start");
	jx_init(&x);
	ASSERT_ERR(decode("start", "{\"spec\":{\"argv\":[\"a\"],\"GitProxyCA\""
	    ":{\"crt\":\"-----BEGIN CERTIFICATE-----\\nx\",\"for\":["
	    "\"https://git.example/\"],\"node_bundle\":"
	    "\"-----BEGIN CERTIFICATE-----\"}}}", &s), CL_OK);
	ASSERT_TRUE(s.refusal != NULL);
	ASSERT_STRING_EQ(s.git_ca->pem, "-----BEGIN CERTIFICATE-----\nx");
	ASSERT_STRING_EQ(s.git_ca->urls[0], "https://git.example/");
	ASSERT_STRING_EQ(s.git_ca->node, "-----BEGIN CERTIFICATE-----");
	spec_clear(&s);
	ASSERT_ERR(decode("start", "{\"spec\":{\"git_ca\":\"x\"}}", &s),
	    CL_OK);
	ASSERT_TRUE(s.refusal != NULL && s.git_ca == NULL);
	spec_clear(&s);
	ASSERT_ERR(decode("start", "{\"spec\":{\"git_ca\":{\"pem\":5}}}",
	    &s), CL_OK);
	ASSERT_TRUE(s.refusal != NULL);
	spec_clear(&s);
	ASSERT_ERR(decode("start", "{\"spec\":{\"git_ca\":null,\"git_proxy\":"
	    "{}},\"git_ca\":{}}", &s), CL_OK);
	ASSERT_PTR_EQ(s.refusal, NULL);
	spec_clear(&s);
	jx_clear(&x);
}

static void
test_hello(void)
{
	struct frame_hello h;

	TEST_START("a hello: bad USB entries are dropped, text is trimmed");
	jx_init(&x);
	ASSERT_ERR(decode("hello", "{\"protocol_version\":26,\"agent_id\":"
	    "\"\",\"agent_version\":\" 1.2 \",\"capabilities\":{\"os\":"
	    "\"linux\",\"build_sequence\":-5,\"host_kernel\":{ \"a\" : 1 },"
	    "\"usb_devices\":[{\"port\":\"1-1\",\"bus\":1,\"dev\":2,"
	    "\"vendor_id\":\"0403\",\"product_id\":\"6001\",\"node\":"
	    "\"/dev/bus/usb/001/003\"},{\"port\":\"1-1\",\"bus\":1,\"dev\":2,"
	    "\"vendor_id\":\"0403\",\"product_id\":\"6001\",\"node\":"
	    "\"/dev/bus/usb/001/002\",\"gid\":0}]}}", &h), CL_OK);
	ASSERT_STRING_EQ(h.agent_version, "1.2");
	ASSERT_PTR_EQ(h.agent_id, NULL);
	ASSERT_SIZE_T_EQ(h.capabilities.nusb_devices, 1);
	ASSERT_STRING_EQ(h.capabilities.usb_devices[0].node,
	    "/dev/bus/usb/001/002");
	ASSERT_TRUE(h.capabilities.usb_devices[0].gid.set);
	ASSERT_FALSE(h.capabilities.usb_devices[0].uid.set);
	ASSERT_INT_EQ(h.capabilities.build_sequence, 0);
	ASSERT_STRING_EQ(h.capabilities.host_kernel, "{\"a\":1}");
	frame_clear_payload(FRAME_HELLO, &h);
	jx_clear(&x);
}

/* A chunk of n characters; 1 when it decodes. */
static int
decode_log(size_t n, const char *unit_text)
{
	size_t unit_len = strlen(unit_text), i;
	char *text = malloc(n * unit_len + 200);
	struct frame_log_chunk c;
	int len, r;

	len = snprintf(text, 200, "{\"v\":1,\"type\":\"log_chunk\","
	    "\"handle\":\"h\",\"payload\":{\"offset\":0,\"text\":\"");
	for (i = 0; i < n; i++)
		memcpy(text + len + i * unit_len, unit_text, unit_len);
	memcpy(text + len + n * unit_len, "\"}}", 4);
	ASSERT_ERR(frame_decode_envelope(&x, text, strlen(text), &env),
	    CL_OK);
	r = frame_decode_payload(&x, &env, &c);
	if (r == CL_OK) {
		ASSERT_SIZE_T_EQ(frame_log_len(&c.text),
		    *unit_text == '\\' ? n : n * unit_len);
		frame_clear_payload(FRAME_LOG_CHUNK, &c);
	}
	free(text);
	return r == CL_OK;
}

static void
test_log_bounds(void)
{
	TEST_START("log text up to 98304 decoded bytes");
	jx_init(&x);
	ASSERT_TRUE(decode_log(MAX_LOG_TEXT_IN_LEN, "a"));
	ASSERT_FALSE(decode_log(MAX_LOG_TEXT_IN_LEN + 1, "a"));
	ASSERT_TRUE(decode_log(MAX_LOG_TEXT_LEN, "\\ufffd"));
	ASSERT_FALSE(decode_log(MAX_LOG_TEXT_LEN + 1, "\\ufffd"));
	jx_clear(&x);
}

static void
test_encode(void)
{
	struct frame_log_chunk c = { "combined", 4, { "a<b\n", 4, 0 }, 0 };
	struct frame_bye bye = { "", 1 };
	struct jsonw w;

	TEST_START("encoding: version stamp, absent members, the bound");
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	ASSERT_ERR(frame_encode(&w, FRAME_LOG_CHUNK, 5, NULL, "h", &c),
	    CL_OK);
	ASSERT_STRING_EQ(w.data, "{\"v\":5,\"type\":\"log_chunk\",\"handle\":"
	    "\"h\",\"payload\":{\"stream\":\"combined\",\"offset\":4,\"text\":"
	    "\"a\\u003cb\\n\",\"time\":\"1970-01-01T00:00:00Z\"}}");
	ASSERT_ERR(frame_encode(&w, FRAME_BYE, 27, "", "", &bye), CL_OK);
	ASSERT_STRING_EQ(w.data, "{\"v\":26,\"type\":\"bye\",\"payload\":"
	    "{\"reconnect\":true}}");
	ASSERT_ERR(frame_encode(&w, FRAME_INVENTORY_REQ, 0, "i", NULL, NULL),
	    CL_OK);
	ASSERT_STRING_EQ(w.data, "{\"v\":26,\"type\":\"inventory_req\","
	    "\"id\":\"i\"}");
	jsonw_clear(&w);
	jsonw_init(&w, 40, 0);
	ASSERT_ERR(frame_encode(&w, FRAME_BYE, 1, "0123456789", "", &bye),
	    CL_TOOBIG);
	jsonw_clear(&w);
}

static void
test_words(void)
{
	int i;

	TEST_START("words: directions, states, signals");
	ASSERT_TRUE(frame_is_inbound(FRAME_HELLO, FRAME_A2H));
	ASSERT_FALSE(frame_is_inbound(FRAME_HELLO, FRAME_H2A));
	ASSERT_TRUE(frame_is_inbound(FRAME_BYE, FRAME_H2A));
	ASSERT_FALSE(frame_is_inbound(FRAME_UNKNOWN, FRAME_BOTH));
	for (i = HS_PENDING; i <= HS_UNKNOWN; i++)
		ASSERT_INT_EQ(frame_parse_state(frame_state_name(i)), i);
	ASSERT_INT_EQ(frame_parse_state("odd"), HS_UNKNOWN);
	ASSERT_INT_EQ(frame_parse_state(NULL), HS_UNKNOWN);
	for (i = SIG_INTERRUPT; i <= SIG_KILL; i++)
		ASSERT_INT_EQ(frame_parse_signal(frame_signal_name(i)), i);
	ASSERT_INT_EQ(frame_parse_signal("hup"), 0);
	ASSERT_STRING_EQ(frame_name(FRAME_UNKNOWN), "?");
}

UNIT_MAIN(test_envelope, test_handles, test_long_ids, test_size, test_rules,
    test_git_ca, test_hello, test_log_bounds, test_encode, test_words)
