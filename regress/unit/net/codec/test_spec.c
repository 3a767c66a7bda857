/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/model/spec, common/base/rule, common/model/caps: what specs,
 * firewall rules and capabilities may say.  Specs are written as JSON here
 * and read with net/codec/json; the rules do not know.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/model/caps.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"
#include "net/codec/json.h"

static struct jx x;

/* spec_check of {"argv":["a"],...}; want is how the reason begins. */
static void
check_spec(const char *members, const char *want)
{
	static char text[65536];
	struct spec s, copy;
	struct buf b, in;
	char *why, *again;

	unit_note("%.150s", members);
	snprintf(text, sizeof(text), "{\"spec\":{%s%s},\"handle_id\":\"h\"}",
	    strstr(members, "argv") == NULL ? "\"argv\":[\"a\"]," : "",
	    members);
	ASSERT_ERR(jx_scan(&x, text, strlen(text)), CL_OK);
	ASSERT_ERR(jx_decode(&x, 0, &spec_start_table, &s), CL_OK);
	ASSERT_ERR(spec_check(&s, &why), want == NULL ? CL_OK : CL_FORMAT);
	if (want != NULL && strncmp(why, want, strlen(want)) != 0)
		UNIT_FAIL("reason \"%s\", expected \"%s\"", why, want);
	/* The other side of the message says the same. */
	buf_init(&b, MAX_SPEC_LEN);
	spec_put(&s, &b);
	buf_init_read(&in, b.data, b.len);
	ASSERT_ERR(spec_get(&in, &copy), CL_OK);
	ASSERT_ERR(buf_end(&in), CL_OK);
	(void)spec_check(&copy, &again);
	ASSERT_STRING_EQ(again, why);
	free(why);
	free(again);
	spec_clear(&s);
	spec_clear(&copy);
	buf_clear(&b);
}

struct row {
	const char *members;
	const char *want;
};

#define H40 "0123456789abcdef0123456789abcdef01234567"
#define H64 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define GIT(more) "\"workspace\":{\"kind\":\"git\",\"repo\":" \
	"\"https://git.example/a/b.git\"" more "}"
#define MOUNT(s, t) "{\"source\":\"" s "\",\"target\":\"" t "\"}"
#define DEVICE(n, s) "{\"name\":\"" n "\",\"source\":\"" s "\"}"

static const struct row rows[] = {
	{ "\"work_dir\":\"w\"", NULL },
	{ "\"argv\":null", "argv: is empty" },
	{ "\"argv\":[\" \"]", "argv[0]: is blank" },
	{ "\"timeout_minutes\":-1", "timeout_minutes: -1" },
	{ "\"env\":[\"A=1\",\"B\"]", "env[1]: has no '='" },
	{ "\"env\":[\"=\",\"A=\"]", NULL },
	{ "\"setup_commands\":[\"a\",\" \"]", "setup_commands[1]" },
	{ "\"setup_commands\":[\"a\\nb\"]", "setup_commands[0]" },
	/* Of several failures, the first in a fixed order is reported. */
	{ "\"resource_limits\":{\"pids\":-1},\"timeout_minutes\":-1",
	    "timeout_minutes" },
	{ "\"mounts\":[" MOUNT("a/b", "/t") "]", NULL },
	{ "\"mounts\":[" MOUNT("/a", "/t") "]", "mounts[0].source: \"/a\"" },
	{ "\"mounts\":[" MOUNT("a/../b", "/t") "]", "mounts[0].source" },
	{ "\"mounts\":[" MOUNT(".", "/t") "]", "mounts[0].source" },
	{ "\"mounts\":[" MOUNT("a:b", "/t") "]", "mounts[0].source" },
	{ "\"mounts\":[" MOUNT("a", "/") "]", "mounts[0].target" },
	{ "\"mounts\":[" MOUNT("a", "/t/") "]", "mounts[0].target" },
	{ "\"mounts\":[" MOUNT("a", "t") "]", "mounts[0].target" },
	{ "\"mounts\":[" MOUNT("a", "/t") "," MOUNT("b", "/t") "]",
	    "mounts[1].target" },
	{ "\"host_mounts\":[" MOUNT("/a", "/workspace") "]",
	    "host_mounts[0].target" },
	{ "\"host_mounts\":[" MOUNT("a", "/b") "]", "host_mounts[0].source" },
	{ "\"devices\":[" DEVICE("uart", "/dev/ttyUSB0") "]", NULL },
	{ "\"devices\":[" DEVICE("-u", "/dev/ttyUSB0") "]",
	    "devices[0].name" },
	{ "\"devices\":[" DEVICE("u", "/dev/mem") "]", "devices[0].source" },
	{ "\"devices\":[" DEVICE("u", "/dev/../etc/x") "]",
	    "devices[0].source" },
	{ "\"devices\":[" DEVICE("u", "/dev/a") "," DEVICE("v", "/dev/a") "]",
	    "devices[1]" },
	{ "\"interfaces\":[" DEVICE("lan", "eth1") "]", NULL },
	{ "\"interfaces\":[" DEVICE("lan", "lo") "]", "interfaces[0].source" },
	{ "\"interfaces\":[" DEVICE("lan", "br-x") "]",
	    "interfaces[0].source" },
	{ "\"interfaces\":[" DEVICE("lan", "eth1") "," DEVICE("b", "eth1")
	    "]", "interfaces[1]" },
	{ "\"interfaces\":[{\"name\":\"l\",\"source\":\"e\",\"address\":"
	    "\"192.0.2.1/24\",\"gateway\":\"192.0.2.2\",\"mtu\":68}]", NULL },
	{ "\"interfaces\":[{\"name\":\"l\",\"source\":\"e\",\"gateway\":"
	    "\"192.0.2.2\"}]", "interfaces[0].gateway" },
	{ "\"interfaces\":[{\"name\":\"l\",\"source\":\"e\",\"address\":"
	    "\"192.0.2.1/24\",\"gateway\":\"::1\"}]",
	    "interfaces[0].gateway" },
	{ "\"interfaces\":[{\"name\":\"l\",\"source\":\"e\",\"address\":"
	    "\"0.0.0.0/0\"}]", "interfaces[0].address" },
	{ "\"interfaces\":[{\"name\":\"l\",\"source\":\"e\",\"mtu\":67}]",
	    "interfaces[0].mtu" },
	{ "\"disable_network\":true,\"interfaces\":[" DEVICE("l", "e") "]",
	    "interfaces: not together" },
	{ "\"egress_scope\":\"all\"", "egress_scope: \"all\"" },
	{ "\"egress_rules\":{}", NULL },
	{ "\"egress_bound\":{}", "egress_bound: not without" },
	{ "\"egress_rules\":{},\"interfaces\":[" DEVICE("l", "e") "]",
	    "egress_rules: not together" },
	{ "\"egress_rules\":{\"allow_cidrs\":[\" 10.1.2.3/8\",\"\",\"::1\","
	    "\"::ffff:10.0.0.0/104\"],\"deny_cidrs\":[\"0.0.0.0/0\"],"
	    "\"allow_ports\":[1,65535],\"resolvers\":[\"1.1.1.1\","
	    "\"1.1.1.1:53\",\"[2606:4700::1111]:53\",\"::1\"]}", NULL },
	{ "\"egress_rules\":{\"allow_cidrs\":[\"10.0.0.0/8\","
	    "\"0.0.0.0/0\"]}", "egress_rules.allow_cidrs[1]" },
	{ "\"egress_rules\":{\"allow_cidrs\":[\"::ffff:0:0/96\"]}",
	    "egress_rules.allow_cidrs[0]" },
	{ "\"egress_rules\":{\"deny_cidrs\":[\"::ffff:0:0/95\"]}",
	    "egress_rules.deny_cidrs[0]" },
	{ "\"egress_rules\":{\"deny_cidrs\":[\"fe80::1%eth0\"]}",
	    "egress_rules.deny_cidrs[0]" },
	{ "\"egress_rules\":{\"deny_cidrs\":[\"10.0.0.0/08\"]}",
	    "egress_rules.deny_cidrs[0]" },
	{ "\"egress_rules\":{\"deny_cidrs\":[\"10.0.0.0/33\"]}",
	    "egress_rules.deny_cidrs[0]" },
	{ "\"egress_rules\":{\"allow_ports\":[80,0]}",
	    "egress_rules.allow_ports[1]" },
	{ "\"egress_rules\":{\"resolvers\":[\"dns.example\"]}",
	    "egress_rules.resolvers[0]" },
	{ "\"egress_rules\":{\"resolvers\":[\"1.1.1.1:0\"]}",
	    "egress_rules.resolvers[0]" },
	{ "\"egress_rules\":{},\"egress_bound\":{\"allow_cidrs\":[\"x\"]}",
	    "egress_bound.allow_cidrs[0]" },
	{ "\"egress_proxy\":{\"host\":\"proxy.hub.example.\",\"port\":3128,"
	    "\"gateway\":true}", NULL },
	{ "\"egress_proxy\":{\"host\":\"10.0.0.1\",\"port\":3128,"
	    "\"gateway\":true}", "egress_proxy.gateway" },
	{ "\"egress_proxy\":{\"host\":\"-a.b\",\"port\":1}",
	    "egress_proxy.host" },
	{ "\"egress_proxy\":{\"host\":\"a\",\"port\":0}",
	    "egress_proxy.port" },
	{ GIT(""), NULL },
	{ GIT(",\"ref\":\"main\",\"depth\":100000"), NULL },
	{ GIT(",\"ref\":\"-x\""), "workspace.ref" },
	{ GIT(",\"ref\":\"a..b\""), "workspace.ref" },
	{ GIT(",\"ref\":\"a.lock\""), "workspace.ref" },
	{ GIT(",\"depth\":100001"), "workspace.depth" },
	{ GIT(",\"credential_grant\":\"a b\""), "workspace.credential_grant" },
	{ GIT(",\"size_limit_mb\":-1"), "workspace.size_limit_mb" },
	{ "\"disable_network\":true," GIT(""), "workspace.kind: git needs" },
	{ "\"workspace\":{\"kind\":\"git\"}", "workspace.repo" },
	{ "\"workspace\":{\"kind\":\"git\",\"repo\":\"https://u:p@h/a\"}",
	    "workspace.repo" },
	{ "\"workspace\":{\"kind\":\"git\",\"repo\":\"http://h/a\"}",
	    "workspace.repo" },
	{ "\"workspace\":{\"kind\":\"git\",\"repo\":\"https://h/a?x\"}",
	    "workspace.repo" },
	{ "\"workspace\":{\"kind\":\"git\",\"repo\":\"https://h/\"}",
	    "workspace.repo" },
	{ "\"workspace\":{\"kind\":\"git\",\"repo\":\"https://[::1]:8443/a\""
	    "}", NULL },
	{ "\"workspace\":{\"kind\":\"svn\"}", "workspace.kind: \"svn\"" },
	{ "\"workspace\":{\"kind\":\"none\",\"ref\":\"x\"}", "workspace: " },
	{ "\"workspace\":{\"kind\":\"bundle\"}", "workspace.branch_bundle" },
	{ "\"workspace\":{\"kind\":\"bundle\",\"branch_bundle\":{\"branch\":"
	    "\"cloop/a\",\"head\":\"" H40 "\",\"bytes\":5,\"sha256\":\"" H64
	    "\",\"shallow\":[\"" H40 "\"]}}", NULL },
	{ "\"workspace\":{\"kind\":\"bundle\",\"branch_bundle\":{\"branch\":"
	    "\"cloop/a\",\"head\":\"" H40 "\"}}",
	    "workspace.branch_bundle.bytes" },
	{ "\"workspace\":{\"kind\":\"bundle\",\"branch_bundle\":{\"branch\":"
	    "\"cloop/a\",\"head\":\"" H40 "\",\"bytes\":5}}",
	    "workspace.branch_bundle.sha256" },
	{ GIT(",\"ref\":\"main\",\"branch_bundle\":{\"branch\":\"cloop/a\","
	    "\"head\":\"" H40 "\"}"), "workspace.ref" },
	{ GIT(",\"ref\":\"" H40 "\",\"branch_bundle\":{\"branch\":\"cloop/a\","
	    "\"head\":\"" H40 "\"}"), NULL },
	{ "\"write_back\":{\"mode\":\"push\",\"branch\":\"cloop/a\"}",
	    "write_back: not with" },
	{ "\"write_back\":{\"branch\":\"cloop/a\"}", "write_back: has" },
	{ GIT(",\"ref\":\"main\"") ",\"write_back\":{\"mode\":\"push\","
	    "\"branch\":\"cloop/a\"}", "write_back: workspace.ref" },
	{ GIT(",\"ref\":\"" H40 "\"") ",\"write_back\":{\"mode\":\"push\","
	    "\"branch\":\"cloop/a\"}", NULL },
	{ GIT(",\"ref\":\"" H40 "\"") ",\"write_back\":{\"mode\":\"push\","
	    "\"branch\":\"main\"}", "write_back.branch" },
	{ GIT(",\"ref\":\"" H40 "\"") ",\"write_back\":{\"mode\":\"push\","
	    "\"branch\":\"cloop/.a\"}", "write_back.branch" },
	{ GIT(",\"ref\":\"" H40 "\"") ",\"write_back\":{\"mode\":\"push\","
	    "\"branch\":\"cloop/a\",\"max_bundle_bytes\":1}",
	    "write_back.max_bundle_bytes" },
	{ "\"resource_limits\":{\"disk_mb\":1048576}", NULL },
	{ "\"resource_limits\":{\"disk_mb\":1048577}", "resource_limits" },
};

static void
test_rules(void)
{
	size_t i;

	TEST_START("spec_check: each rule, field and value named");
	jx_init(&x);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_spec(rows[i].members, rows[i].want);
	jx_clear(&x);
}

/* n mounts, devices, ... with distinct names. */
static void
check_count(const char *list, const char *format, int n, const char *want)
{
	static char text[65536];
	int i, len;

	len = snprintf(text, sizeof(text), "\"%s\":[", list);
	for (i = 0; i < n; i++) {
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s",
		    i == 0 ? "" : ",");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		len += snprintf(text + len, sizeof(text) - (size_t)len, format,
		    i, i);
#pragma GCC diagnostic pop
	}
	snprintf(text + len, sizeof(text) - (size_t)len, "]");
	check_spec(text, want);
}

static void
test_counts(void)
{
	TEST_START("list lengths at the bound and one past it");
	jx_init(&x);
	check_count("mounts", "{\"source\":\"s%d\",\"target\":\"/t%d\"}", 16,
	    NULL);
	check_count("mounts", "{\"source\":\"s%d\",\"target\":\"/t%d\"}", 17,
	    "mounts: 17");
	check_count("host_mounts", "{\"source\":\"/s%d\",\"target\":\"/t%d\"}",
	    32, NULL);
	check_count("host_mounts", "{\"source\":\"/s%d\",\"target\":\"/t%d\"}",
	    33, "host_mounts: 33");
	check_count("devices", "{\"name\":\"n%d\",\"source\":\"/dev/t%d\"}",
	    16, NULL);
	check_count("devices", "{\"name\":\"n%d\",\"source\":\"/dev/t%d\"}",
	    17, "devices: 17");
	check_count("interfaces", "{\"name\":\"n%d\",\"source\":\"e%d\"}", 8,
	    NULL);
	check_count("interfaces", "{\"name\":\"n%d\",\"source\":\"e%d\"}", 9,
	    "interfaces: 9");
	check_count("env", "\"K%d=%d\"", 4096, NULL);
	check_count("env", "\"K%d=%d\"", 4097, "env: 4097");
	jx_clear(&x);
}

static void
test_files(void)
{
	struct spec_secret_file f[3];
	char *why = NULL, *big = calloc(1, MAX_SECRET_FILE_LEN + 1);
	size_t i;

	TEST_START("secret files: each and their sum");
	memset(f, 0, sizeof(f));
	for (i = 0; i < 3; i++) {
		f[i].dir = "/d";
		f[i].name = i == 0 ? "a" : i == 1 ? "b" : "c";
		f[i].content.data = (unsigned char *)big;
		f[i].content.len = i < 2 ? MAX_SECRET_FILE_LEN : 0;
	}
	ASSERT_ERR(spec_check_secret_files(f, 3, &why), CL_OK);
	f[2].content.len = 1;
	ASSERT_ERR(spec_check_secret_files(f, 3, &why), CL_FORMAT);
	ASSERT_STRING_EQ(why, "secret_files: more than 524288 bytes together");
	free(why);
	why = NULL;
	f[0].content.len = MAX_SECRET_FILE_LEN + 1;
	ASSERT_ERR(spec_check_secret_files(f, 1, &why), CL_FORMAT);
	free(why);
	free(big);
}

static void
test_sandbox(void)
{
	struct spec_sandbox sb;

	TEST_START("sandbox: trimmed; emptied unless container");
	memset(&sb, 0, sizeof(sb));
	sb.mode = strdup(" container ");
	sb.engine = strdup("\tpodman\n");
	sb.network = strdup(" ");
	ASSERT_ERR(spec_check_sandbox(&sb, NULL), CL_OK);
	spec_trim_sandbox(&sb);
	ASSERT_STRING_EQ(sb.mode, "container");
	ASSERT_STRING_EQ(sb.engine, "podman");
	ASSERT_PTR_EQ(sb.network, NULL);
	free(sb.mode);
	sb.mode = NULL;
	spec_trim_sandbox(&sb);
	ASSERT_PTR_EQ(sb.engine, NULL);
}

static void
check_virtual(const char *runtime, int want)
{
	struct spec_selector device = { 0 };
	struct spec_virtual v = { 0 };
	struct spec_sandbox sb = { 0 };

	unit_note("%s", runtime);
	device.name = "d";
	device.path = "/dev/gpiochip0";
	v.id = "vx-lab";
	v.devices = &device;
	v.ndevices = 1;
	sb.mode = "container";
	sb.runtime = (char *)(uintptr_t)runtime;
	ASSERT_ERR(spec_check_virtual(&v, &sb, NULL), want);
}

static void
test_virtual(void)
{
	static const char *const isolated[] = { "kata", "katacontainers",
		"Kata-qemu", "kata.v2", "io.kata.v2", "io.containerd.kata.v2",
		"runsc", "gvisor", "runsc-kvm", "gvisor.x", "a.runsc.b" };
	static const char *const shared[] = { "", "runc", "crun", "katana",
		"x-kata", "io.kata", "kata2", "runscx" };
	size_t i;

	TEST_START("no devices with a runtime that has its own kernel");
	for (i = 0; i < sizeof(isolated) / sizeof(isolated[0]); i++)
		check_virtual(isolated[i], CL_FORMAT);
	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		check_virtual(shared[i], CL_OK);
}

static void
test_revocable(void)
{
	struct spec_secret s = { 0 };

	TEST_START("revocable: a lease and something it gave");
	ASSERT_FALSE(spec_is_revocable(&s));
	s.egress = 1;
	s.lease_id = " ";
	ASSERT_FALSE(spec_is_revocable(&s));
	s.lease_id = "l";
	ASSERT_TRUE(spec_is_revocable(&s));
	s.egress = 0;
	ASSERT_FALSE(spec_is_revocable(&s));
	s.nfiles = 1;
	ASSERT_TRUE(spec_is_revocable(&s));
}

static void
test_words(void)
{
	size_t len;

	TEST_START("text rules: trimming, words, names");
	ASSERT_MEM_EQ(rule_trim(" \xc2\xa0" "a b\xe3\x80\x80\t", &len), "a b",
	    3);
	ASSERT_SIZE_T_EQ(len, 3);
	ASSERT_TRUE(rule_is_blank("\xe2\x80\xa8 \r\n") && rule_is_blank(NULL));
	ASSERT_FALSE(rule_is_blank("\x80"));
	ASSERT_TRUE(rule_is_one_of("b", "a b"));
	ASSERT_FALSE(rule_is_one_of("a b", "a b") || rule_is_one_of("", "a"));
	ASSERT_TRUE(rule_is_usb_port("1-2.3.4.5.6.7.8"));
	ASSERT_FALSE(rule_is_usb_port("1-2.3.4.5.6.7.8.9") ||
	    rule_is_usb_port("1-") || rule_is_usb_port("1234-1") ||
	    rule_is_usb_port("1-2.") || rule_is_usb_port("usb1"));
	ASSERT_TRUE(rule_is_branch("cloop/a/b"));
	ASSERT_FALSE(rule_is_branch("cloop/") || rule_is_branch("cloop/a/") ||
	    rule_is_branch("cloop/a//b") || rule_is_branch("cloop/a/.b") ||
	    rule_is_branch("refs/heads/a") || rule_is_branch(NULL));
}

UNIT_MAIN(test_rules, test_counts, test_files, test_sandbox, test_virtual,
    test_revocable, test_words)
