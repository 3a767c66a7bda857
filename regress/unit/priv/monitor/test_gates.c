/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The dispatch gates: each at its version and one below, each capability,
 * and their order.
 */
#include "common/base/limits.h"
#include "common/model/caps.h"
#include "common/model/spec.h"
#include "priv/monitor/gates.h"
#include "priv/monitor/refuse.h"
#include "regress/unit/unit.h"

#define S(text) ((char *)(uintptr_t)(text))

static char *argv_true[] = { S("true") };
static struct spec spec;
static struct caps caps;
static struct refusal refusal;

/* The code of the refusal, or "" when it may go. */
static const char *
judge(unsigned int protocol)
{
	struct gate_input in = { &spec, "edge", protocol, PROTO_MAX, &caps,
	    0, 0 };

	refusal.code = NULL;
	if (!gates_check(&in, &refusal))
		return "";
	return refusal.code;
}

static void
fresh(void)
{
	spec_init(&spec);
	spec.argv = argv_true;
	spec.nargv = 1;
	caps_init(&caps);
	caps.workspace_provisioning = caps.write_back = 1;
	caps.branch_bundles = caps.packet_filter = 1;
	caps.forwarded_l2 = caps.forwarded_usb = 1;
}

static void
check(const char *what, unsigned int need, const char *code)
{
	const char *got;

	unit_note("%s", what);
	got = judge(need - 1);
	ASSERT_STRING_EQ(got, code);
	got = judge(need);
	ASSERT_STRING_EQ(got, "");
}

static void
test_versions(void)
{
	static struct spec_secret secret;
	static struct spec_secret_file file;
	static struct spec_firewall fw;
	static struct spec_git_ca ca;
	static uint8_t seed[2] = { 0x1f, 0x8b };
	static char *env[] = { S("TOKEN") };
	static char *urls[] = { S("https://git.example/") };

	TEST_START("each gate opens at its version");
	fresh();
	secret.lease_id = S("L");
	secret.env_keys = env;
	secret.nenv_keys = 1;
	spec.secrets = &secret;
	spec.nsecrets = 1;
	check("revocation", 2, "revocation_unsupported");

	fresh();
	spec.workspace.kind = S("git");
	spec.workspace.repo = S("https://git.example/a/b.git");
	spec.workspace.ref = S("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
	check("workspace", 3, "workspace_unsupported");
	spec.write_back.mode = S("bundle");
	spec.write_back.branch = S("cloop/x");
	check("write back", 4, "write_back_unsupported");

	fresh();
	file.lease_id = S("L");
	file.dir = S("/run/d");
	file.name = S("f");
	ASSERT_INT_EQ(secret_init(&file.content, "x", 1, 8), 0);
	spec.secret_files = &file;
	spec.nsecret_files = 1;
	check("secret files", 6, "secret_files_unsupported");
	secret_clear(&file.content);

	fresh();
	spec.sandbox.mode = S("container");
	spec.sandbox.image = S("img:1");
	check("container", 8, "sandbox_mode_unsupported");
	spec.resource_limits.disk_mb = 512;
	check("disk", 20, "disk_limit_unsupported");
	spec.resource_limits.disk_mb = 0;
	spec.egress_rules = &fw;
	check("egress", 15, "egress_rules_unsupported");

	fresh();
	spec.project_seed = seed;
	spec.project_seed_len = 2;
	check("seed", 10, "project_seed_unsupported");

	fresh();
	ca.pem = S("-----BEGIN CERTIFICATE-----\nAA==\n"
	    "-----END CERTIFICATE-----\n");
	ca.urls = urls;
	ca.nurls = 1;
	spec.git_ca = &ca;
	unit_note("git ca");
	ASSERT_STRING_EQ(judge(20), "git_ca_unsupported");
}

static void
test_caps(void)
{
	TEST_START("what the device says it cannot do is refused");
	fresh();
	spec.workspace.kind = S("git");
	spec.workspace.repo = S("https://git.example/a/b.git");
	caps.workspace_provisioning = 0;
	ASSERT_STRING_EQ(judge(26), "workspace_unsupported");

	fresh();
	spec.sandbox.mode = S("container");
	spec.sandbox.image = S("img:1");
	spec.sandbox.runtime = S("kata");
	ASSERT_STRING_EQ(judge(8), "");
	ASSERT_STRING_EQ(judge(9), "virtualization_unavailable");
	caps.virtualization = 1;
	ASSERT_STRING_EQ(judge(9), "");

	fresh();
	spec.resource_limits.disk_mb = 512;
	ASSERT_STRING_EQ(judge(26), "disk_limit_unsupported");

	fresh();
	spec.harness = S("claude");
	ASSERT_STRING_EQ(judge(26), "");	/* empty list: unknown */
	{
		char *have[] = { S("codex") };

		caps.harnesses = have;
		caps.nharnesses = 1;
		ASSERT_STRING_EQ(judge(26), "harness_unavailable");
		have[0] = S("claude");
		ASSERT_STRING_EQ(judge(26), "");
	}

	TEST_START("Kata is known by its names");
	ASSERT_TRUE(gates_is_kata("kata") && gates_is_kata("kata-qemu") &&
	    gates_is_kata("io.containerd.kata.v2") &&
	    gates_is_kata("katacontainers") && gates_is_kata("kata.x"));
	ASSERT_TRUE(!gates_is_kata("runsc") && !gates_is_kata("") &&
	    !gates_is_kata(NULL) && !gates_is_kata("katana"));
}

static void
test_order(void)
{
	static const char *const want[] = { "spec", "session", "revocation",
		"workspace", "write-back", "secret-files", "seed", "branch",
		"egress-proxy", "git-ca", "node-ca", "forwarded", "virtual",
		"egress", "container", "disk", "virtualization", "harness",
		"size" };
	const char *const *names;
	size_t i, n;

	TEST_START("the order of the gates");
	names = gates_get_names(&n);
	ASSERT_SIZE_T_EQ(n, sizeof(want) / sizeof(want[0]));
	for (i = 0; i < n; i++)
		ASSERT_STRING_EQ(names[i], want[i]);

	TEST_START("an invalid spec comes before the session, the session "
	    "before all else");
	fresh();
	argv_true[0] = S("  ");
	ASSERT_STRING_EQ(judge(0), "invalid_spec");
	argv_true[0] = S("true");
	spec.resource_limits.disk_mb = 1;
	ASSERT_STRING_EQ(judge(0), "agent_unreachable");
	ASSERT_TRUE(refusal.remedy[0] != '\0');
}

static void
test_size(void)
{
	char *env[1], *big;
	size_t len = MAX_FRAME_LEN - 8192;

	TEST_START("a start that does not fit a frame, and what fills it");
	fresh();
	big = malloc(len + 1);
	memset(big, 'x', len);
	memcpy(big, "V=", 2);
	big[len] = '\0';
	env[0] = big;
	spec.env = env;
	spec.nenv = 1;
	ASSERT_STRING_EQ(judge(26), "usage");
	ASSERT_TRUE(strstr(refusal.message, "environment") != NULL);
	big[len - 1000] = '\0';
	ASSERT_STRING_EQ(judge(26), "");
	free(big);
}

UNIT_MAIN(test_versions, test_caps, test_order, test_size)
