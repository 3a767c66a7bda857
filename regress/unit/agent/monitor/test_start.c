/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a device refuses, and the job it makes of the rest.
 */
#include <stdlib.h>
#include <unistd.h>

#include "agent/monitor/agentd.h"
#include "agent/monitor/secretfiles.h"
#include "agent/monitor/start.h"
#include "common/base/err.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "common/msg/msgcat.h"
#include "regress/unit/unit.h"
#include "sandbox/box/shim.h"

static struct agentd a;
static struct spec s;
static char *argv_true[] = { "/bin/true" };

static void
reset(void)
{
	memset(&a, 0, sizeof(a));
	a.conf.state_dir = "/var/lib/x/agent";
	a.conf.runtime_dir = "/run/x";
	a.conf.credential_file = "/var/lib/x/agent/agent.json";
	a.root.path = "/var/lib/x/work";
	a.work_uid = 65534;
	a.work_gid = 65534;
	spec_init(&s);
	s.argv = argv_true;
	s.nargv = 1;
}

static void
refused(const char *what)
{
	const char *text = start_check_support(&a, &s);

	unit_note("%s", what);
	ASSERT_TRUE(text != NULL && *text != '\0');
	reset();
}

static void
test_plain(void)
{
	reset();
	TEST_START("a plain spec is supported");
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	s.workspace.kind = "none";
	s.sandbox.mode = "host";
	s.harness = "claude";
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
}

static void
test_host(void)
{
	char *one[] = { "x" };
	struct spec_mount mount;
	struct spec_host_mount host_mount;
	struct spec_device device;
	struct spec_interface interface;
	struct spec_firewall fw;
	struct spec_proxy proxy;

	memset(&fw, 0, sizeof(fw));
	memset(&proxy, 0, sizeof(proxy));
	reset();
	TEST_START("host mode refuses what it cannot give");
	s.resource_limits.cpu_millis = 1, refused("cpu");
	s.resource_limits.memory_mb = 1, refused("memory");
	s.resource_limits.disk_mb = 1, refused("disk");
	s.resource_limits.pids = 1, refused("pids");
	s.image = "img:1", refused("image");
	s.setup_commands = one, s.nsetup_commands = 1, refused("setup");
	s.mounts = &mount, s.nmounts = 1, refused("mounts");
	s.host_mounts = &host_mount, s.nhost_mounts = 1, refused("host");
	s.devices = &device, s.ndevices = 1, refused("devices");
	s.interfaces = &interface, s.ninterfaces = 1, refused("interfaces");
	s.egress_scope = "public", refused("scope");
	s.egress_scope = "none", refused("scope none");
	s.disable_network = 1, refused("disable_network");
	s.egress_rules = &fw, refused("rules");
	s.egress_bound = &fw, refused("bound");
	s.egress_proxy = &proxy, refused("proxy");
}

static void
test_unsupported(void)
{
	char *keys[] = { "A" };
	struct spec_git_ca ca;
	struct spec_virtual virtual;
	uint8_t seed[1] = { 0x1f };

	reset();
	TEST_START("what this build lacks is never ignored");
	s.refusal = "x", refused("refusal of the decoder");
	s.git_ca = &ca, refused("git CA");
	s.project_seed = seed, s.project_seed_len = 1, refused("seed");
	s.virtual = &virtual, refused("virtual");
	s.sandbox.mode = "container", refused("container");
	s.forwarded_devices = keys, s.nforwarded_devices = 1,
	    refused("forwarded");
	s.workspace.kind = "bind", refused("bind");
	s.workspace.kind = "executor", refused("executor without a seed");
	a.conf.host_mode = HOSTMODE_OFF, refused("HostMode off");
}

/* The PATH decides whether there is a git. */
static void
test_work(void)
{
	struct spec_credential cred = { .host = "forge.example",
	    .expires_at = UTIL_TIME_ZERO };
	uint8_t seed[1] = { 0x1f };

	reset();
	TEST_START("a tree needs git");
	setenv("PATH", "/nonexistent", 1);
	s.workspace.kind = "git", refused("git");
	s.workspace.kind = "bundle", refused("bundle");
	setenv("PATH", "/usr/bin:/bin", 1);
	s.workspace.kind = "git";
	s.workspace.repo = "https://forge.example:8443/r.git";
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	s.write_back.mode = "push";
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	TEST_START("a credential goes to its host only, and in time");
	s.workspace_credential = &cred;
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	cred.host = "forge.example:8443";
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	cred.host = "evil.example";
	ASSERT_PTR_NE(start_check_support(&a, &s), NULL);
	cred.host = "example";
	ASSERT_PTR_NE(start_check_support(&a, &s), NULL);
	cred.host = NULL;
	cred.expires_at = util_wall_ns() + 3600 * 1000000000LL;
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	cred.expires_at = util_wall_ns() - 1;
	ASSERT_PTR_NE(start_check_support(&a, &s), NULL);
	reset();
	TEST_START("a seed needs AcceptProjectSeed");
	s.project_seed = seed, s.project_seed_len = 1;
	s.workspace.kind = "executor";
	ASSERT_PTR_NE(start_check_support(&a, &s), NULL);
	a.conf.accept_project_seed = 1;
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
	reset();
}

static void
test_secrets(void)
{
	char *env[] = { "CLOOP_REDACT_ENV=A" };
	char *keys[] = { "A" };
	struct spec_secret secret = { .lease_id = "l", .env_keys = keys,
	    .nenv_keys = 1 };
	struct spec_secret_file file;

	reset();
	TEST_START("what is lent is taken");
	s.secret_files = &file;
	s.nsecret_files = 1;
	s.secrets = &secret;
	s.nsecrets = 1;
	s.env = env;
	s.nenv = 1;
	ASSERT_PTR_EQ(start_check_support(&a, &s), NULL);
}

static void
test_leases(void)
{
	struct secretdir dirs[MAX_SECRET_DIRS + 1];
	struct secretset set;
	struct shim_job job;
	size_t i;

	TEST_START("its lease directories, and no others, are its own");
	_Static_assert(MAX_SECRET_DIRS <= MAX_SHIM_PATHS, "each is a path");
	memset(&job, 0, sizeof(job));
	memset(&set, 0, sizeof(set));
	for (i = 0; i < MAX_SECRET_DIRS + 1; i++)
		dirs[i].path = "/dev/shm/cloop-lease-x";
	set.dirs = dirs;
	ASSERT_INT_EQ(start_add_leases(&set, &job), 0);
	ASSERT_SIZE_T_EQ(job.writable.n, 0);
	set.ndirs = MAX_SECRET_DIRS;
	ASSERT_INT_EQ(start_add_leases(&set, &job), 0);
	ASSERT_SIZE_T_EQ(job.writable.n, MAX_SECRET_DIRS);
	ASSERT_STRING_EQ(job.writable.v[0], "/dev/shm/cloop-lease-x");
	shim_job_clear(&job);
	set.ndirs++;
	ASSERT_INT_EQ(start_add_leases(&set, &job), CL_LIMIT);
	shim_job_clear(&job);
}

static int
has(const struct shim_list *l, const char *path)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->v[i], path) == 0)
			return 1;
	return 0;
}

static void
test_job(void)
{
	char *env[] = { "A=1" };
	struct shim_job job;

	reset();
	s.env = env;
	s.nenv = 1;
	s.timeout_minutes = 5;
	TEST_START("the job of a host-mode workload");
	ASSERT_ERR(start_make_job(&a, &s, "h1", "/var/lib/x/work/t",
	    "/var/lib/x/work/.t.home", &job), CL_OK);
	ASSERT_ERR(shim_job_check(&job), CL_OK);
	ASSERT_INT_EQ(job.mode, SHIM_MODE_CONFINED);
	ASSERT_INT_EQ(job.uid, 65534);
	ASSERT_STRING_EQ(job.argv.v[0], "/bin/true");
	ASSERT_SIZE_T_EQ(job.env.n, 3);
	ASSERT_U64_EQ(job.timeout_s, 300);
	ASSERT_PTR_NE(strstr(job.timeout_text, "timeout"), NULL);
	TEST_START("the agent's own files are hidden");
	ASSERT_TRUE(has(&job.hide, "/var/lib/x/agent"));
	ASSERT_TRUE(has(&job.hide, "/run/x"));
	ASSERT_FALSE(has(&job.hide, "/var/lib/x/work"));
	shim_job_clear(&job);
	TEST_START("a state directory above the root is hidden in parts");
	a.conf.state_dir = "/var/lib/x";
	a.conf.host_mode = HOSTMODE_PLAIN;
	a.work_uid = (uid_t)-1;
	ASSERT_ERR(start_make_job(&a, &s, "h1", "/var/lib/x/work", NULL,
	    &job), CL_OK);
	ASSERT_FALSE(has(&job.hide, "/var/lib/x"));
	ASSERT_TRUE(has(&job.hide, "/var/lib/x/handles"));
	ASSERT_TRUE(has(&job.hide, "/var/lib/x/agent/agent.json"));
	ASSERT_INT_EQ(job.mode, SHIM_MODE_PLAIN);
	ASSERT_INT_EQ(job.uid, SHIM_STAY);
	ASSERT_ERR(shim_job_check(&job), CL_OK);
	shim_job_clear(&job);
}

UNIT_MAIN(test_plain, test_host, test_unsupported, test_work, test_secrets,
    test_leases, test_job)
