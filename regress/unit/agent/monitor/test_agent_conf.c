/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-agentd.conf(5) and the flags of cloop-agentd(8).
 */
#include <sys/stat.h>

#include <unistd.h>

#include "agent/monitor/agent_conf.h"
#include "common/base/err.h"
#include "regress/unit/unit.h"

static char path[] = "/tmp/cloop-unit-XXXXXX";
static char err[AGENT_CONF_ERR_MAX];
static struct agent_conf c;
static struct agent_flags f;

static void
give(const char *text)
{
	FILE *fp;

	if ((fp = fopen(path, "w")) == NULL)
		UNIT_FAIL("fopen");
	fputs(text, fp);
	fclose(fp);
	if (chmod(path, 0600) == -1)
		UNIT_FAIL("chmod");
}

#define LOAD(...) load((const char *[]){ "x", "-f", path, __VA_ARGS__, NULL })
#define LOAD_FILE() load((const char *[]){ "x", "-f", path, NULL })

/* Arguments are overwritten by the code under test: copies. */
static int
load(const char **args)
{
	static char store[16][256];
	char *argv[17];
	int argc = 0;

	agent_conf_clear(&c);
	agent_flags_clear(&f);
	for (; args[argc] != NULL; argc++) {
		snprintf(store[argc], sizeof(store[argc]), "%s", args[argc]);
		argv[argc] = store[argc];
	}
	argv[argc] = NULL;
	return agent_conf_load(argc, argv, &c, &f, err);
}

static void
test_defaults(void)
{
	int fd;

	TEST_START("defaults");
	ASSERT_INT_NE(fd = mkstemp(path), -1);
	close(fd);
	give("");
	ASSERT_ERR(LOAD_FILE(), CL_OK);
	ASSERT_PTR_EQ(c.server, NULL);
	ASSERT_STRING_EQ(c.token_file, "/etc/cloop/enroll.bundle");
	ASSERT_STRING_EQ(c.workload_user, "_cloop-work");
	ASSERT_INT_EQ(c.host_mode, HOSTMODE_CONFINED);
	ASSERT_U64_EQ(c.spool_limit, 256 << 20);
	ASSERT_U64_EQ(c.retain_unacked, 8 << 20);
	ASSERT_INT_EQ(c.max_protocol, 26);
	ASSERT_INT_EQ(c.update_channel, CHANNEL_STABLE);
	ASSERT_INT_EQ(c.harness_install, 1);
	ASSERT_TRUE(agent_conf_max_concurrent(&c) >= 1);
	if (geteuid() == 0) {
		ASSERT_STRING_EQ(c.state_dir, "/var/lib/cloop/agent");
		ASSERT_STRING_EQ(c.credential_file,
		    "/var/lib/cloop/agent/agent.json");
		ASSERT_STRING_EQ(c.runtime_dir, "/run/cloop");
	}
}

static void
test_file_and_flags(void)
{
	TEST_START("flags win over the file");
	give("Server wss://file/\nMaxConcurrent 2\nLabel a=1\nLabel b = 2\n"
	    "StateDirectory /s\nHostMode plain\nSpoolLimit 1M\n"
	    "RetainUnacked 64K\nPin sha256:x, sha256:y\n");
	ASSERT_ERR(LOAD("--server", "wss://flag/", "--max-concurrent", "7",
	    "--label", "c=3", "--pin", "z", "--credential", "/c",
	    "--insecure-transport"), CL_OK);
	ASSERT_STRING_EQ(c.server, "wss://flag/");
	ASSERT_INT_EQ(agent_conf_max_concurrent(&c), 7);
	ASSERT_SIZE_T_EQ(c.labels.n, 3);
	ASSERT_STRING_EQ(c.labels.v[2], "c=3");
	ASSERT_STRING_EQ(c.pin, "z");
	ASSERT_STRING_EQ(c.credential_file, "/c");
	ASSERT_INT_EQ(c.host_mode, HOSTMODE_PLAIN);
	ASSERT_INT_EQ(f.insecure, 1);
	TEST_START("the file alone; StateDirectory moves the credential");
	ASSERT_ERR(LOAD_FILE(), CL_OK);
	ASSERT_STRING_EQ(c.server, "wss://file/");
	ASSERT_STRING_EQ(c.pin, "sha256:x, sha256:y");
	ASSERT_STRING_EQ(c.credential_file, "/s/agent.json");
	ASSERT_INT_EQ(agent_conf_max_concurrent(&c), 2);
	TEST_START("-o wins over the file, too");
	ASSERT_ERR(LOAD("-o", "Server=wss://o/"), CL_OK);
	ASSERT_STRING_EQ(c.server, "wss://o/");
	TEST_START("a ceiling below 1 is the default");
	ASSERT_ERR(LOAD("--max-concurrent", "0"), CL_OK);
	ASSERT_STRING_EQ(c.max_concurrent, "auto");
	ASSERT_ERR(LOAD("--max-concurrent", "-5"), CL_OK);
	ASSERT_STRING_EQ(c.max_concurrent, "auto");
	TEST_START("relative paths of flags are made absolute");
	ASSERT_ERR(LOAD("--workdir-root", "rel"), CL_OK);
	ASSERT_TRUE(*c.workdir_root == '/');
}

static void
test_secret_flags(void)
{
	char token[] = "--token=clet1.a.b.c";
	char *argv[] = { "x", "-f", path, token, NULL };

	TEST_START("a token is taken out of argv");
	agent_conf_clear(&c);
	agent_flags_clear(&f);
	ASSERT_ERR(agent_conf_load(4, argv, &c, &f, err), CL_OK);
	ASSERT_STRING_EQ(f.token, "clet1.a.b.c");
	ASSERT_STRING_EQ(token, "--token=xxxxxxxxxxx");
}

static void
test_errors(void)
{
	static const char *const t[] = { "Frobnicate yes",
		"Server a\nServer b", "MaxConcurrent many",
		"MaxConcurrent 1025", "Label novalue", "Label =x",
		"HostMode vm", "MaxProtocol 27", "MaxProtocol 0",
		"StateDirectory relative", "SpoolLimit 1K",
		"RetainUnacked 512M", "LogLevel loud", "Engine lxc",
		"WorkDirRoot" };
	size_t i;

	TEST_START("a bad file is an error that says where");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unit_note("%s", t[i]);
		give(t[i]);
		ASSERT_INT_NE(LOAD_FILE(), CL_OK);
		ASSERT_TRUE(*err != '\0');
	}
	TEST_START("others must not be able to write it");
	give("");
	ASSERT_INT_EQ(chmod(path, 0666), 0);
	ASSERT_ERR(LOAD_FILE(), CL_DENIED);
	give("");
	TEST_START("usage errors are told apart");
	ASSERT_INT_EQ(LOAD("--frobnicate"), -1);
	ASSERT_INT_EQ(LOAD("argument"), -1);
	TEST_START("bad flags name the flag");
	ASSERT_INT_NE(LOAD("--label", "x"), CL_OK);
	ASSERT_PTR_NE(strstr(err, "--label"), NULL);
	ASSERT_INT_NE(LOAD("--max-concurrent", "x"), CL_OK);
	ASSERT_PTR_NE(strstr(err, "--max-concurrent"), NULL);
}

static void
test_dump(void)
{
	char *first, *second;

	TEST_START("-T parses to itself");
	give("Server wss://h/\nLabel a=b\nLabel c=d\nPin x, y\n"
	    "SpoolLimit 1G\nLogFormat json\n");
	ASSERT_ERR(LOAD_FILE(), CL_OK);
	ASSERT_ERR(agent_conf_format(&c, &first), CL_OK);
	give(first);
	ASSERT_ERR(LOAD_FILE(), CL_OK);
	ASSERT_ERR(agent_conf_format(&c, &second), CL_OK);
	ASSERT_STRING_EQ(second, first);
	free(first);
	free(second);
	agent_conf_clear(&c);
	agent_flags_clear(&f);
	ASSERT_INT_EQ(unlink(path), 0);
}

UNIT_MAIN(test_defaults, test_file_and_flags, test_secret_flags, test_errors,
    test_dump)
