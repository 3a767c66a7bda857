/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The credential file and the token file.
 */
#include <sys/stat.h>

#include <unistd.h>

#include "agent/monitor/credential.h"
#include "common/base/err.h"
#include "common/base/util.h"
#include "regress/unit/unit.h"

#define GOOD "{\"server\":\"wss://h/\",\"credential\":\"clac1.a.b.c\"}"

static char dir[] = "/tmp/cloop-unit-XXXXXX";
static char path[128];

static void
test_begin(void)
{
	TEST_START("a directory for the test");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(path, sizeof(path), "%s/sub/agent.json", dir);
}

static void
give(const char *text, mode_t mode)
{
	FILE *fp;

	(void)unlink(path);
	if ((fp = fopen(path, "w")) == NULL)
		UNIT_FAIL("fopen");
	fputs(text, fp);
	fclose(fp);
	if (chmod(path, mode) == -1)
		UNIT_FAIL("chmod");
}

static void
test_save(void)
{
	struct credential c;
	struct credential_change change = { .server = "wss://h/x",
	    .agent_id = "AAECAwQFBgcICQoL", .credential = "clac1.a.b.c",
	    .workdir_root = "/w", .enrolled_at = "2026-01-02T03:04:05Z" };
	struct stat st;
	const char *why;
	uint8_t *data;
	size_t len;
	int fd, flags;

	TEST_START("a fresh file: form, order, mode");
	memset(&c, 0, sizeof(c));
	ASSERT_ERR(credential_save(path, &c, &change), CL_OK);
	ASSERT_STRING_EQ(c.agent_id, "AAECAwQFBgcICQoL");
	ASSERT_ERR(util_open_file(path, 0, &fd, NULL), CL_OK);
	ASSERT_ERR(util_load_fd(fd, 4096, &data, &len), CL_OK);
	close(fd);
	ASSERT_STRING_EQ((char *)data, "{\n"
	    "  \"server\": \"wss://h/x\",\n"
	    "  \"agent_id\": \"AAECAwQFBgcICQoL\",\n"
	    "  \"credential\": \"clac1.a.b.c\",\n"
	    "  \"workdir_root\": \"/w\",\n"
	    "  \"enrolled_at\": \"2026-01-02T03:04:05Z\"\n}\n");
	free(data);
	ASSERT_INT_EQ(stat(path, &st), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0600);
	credential_clear(&c);
	TEST_START("it is read back");
	ASSERT_ERR(credential_load(path, &c, &flags, &why), CL_OK);
	ASSERT_STRING_EQ(c.credential, "clac1.a.b.c");
	ASSERT_STRING_EQ(c.workdir_root, "/w");
	ASSERT_PTR_EQ(c.pin, NULL);
	ASSERT_INT_EQ(flags, 0);
	credential_clear(&c);
}

static void
test_unknown(void)
{
	struct credential c;
	struct credential_change change = { .pin = "sha256:x" };
	const char *why, *s;
	int flags;

	TEST_START("unknown members survive a rewrite");
	give("{\"colour\":\"blue\",\"n\":7,\"server\":\"s\",\"credential\":"
	    "\"clac1.a.b.c\",\"enrolled_at\":\"t\"}", 0600);
	ASSERT_ERR(credential_load(path, &c, &flags, &why), CL_OK);
	ASSERT_ERR(credential_save(path, &c, &change), CL_OK);
	credential_clear(&c);
	ASSERT_ERR(credential_load(path, &c, &flags, &why), CL_OK);
	ASSERT_STRING_EQ(c.pin, "sha256:x");
	ASSERT_STRING_EQ(c.doc.member[0].key, "server");
	ASSERT_STRING_EQ(c.doc.member[2].key, "pin");
	ASSERT_STRING_EQ(c.doc.member[3].key, "enrolled_at");
	ASSERT_ERR(flatjson_find_string(&c.doc, "colour", &s), CL_OK);
	ASSERT_STRING_EQ(s, "blue");
	ASSERT_STRING_EQ(c.doc.member[5].value, "7");
	ASSERT_FALSE(c.doc.member[5].is_string);
	credential_clear(&c);
}

static void
test_refused(void)
{
	static const char *const t[] = { "", "{", "[]",
		"{\"server\":\"wss://x/\",\"credential\":\"\"}",
		"{\"server\":\"wss://x/\",\"credential\":\" \\t\"}",
		"{\"server\":\"wss://x/\"}", "{\"credential\":\"clac1.a.b.c\"}",
		"{\"server\":7,\"credential\":\"clac1.a.b.c\"}",
		"{\"server\":\"x\",\"credential\":\"a b\"}",
		"{\"server\":\"x\",\"credential\":\"a\\r\\nX: y\"}",
		"{\"server\":\"x\",\"credential\":\"c\",\"agent_id\":\"\\n\"}",
	};
	struct credential c;
	const char *why;
	char link[160];
	size_t i;
	int flags;

	TEST_START("no usable credential is an error, not absence");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unit_note("%s", t[i]);
		give(t[i], 0600);
		ASSERT_ERR(credential_load(path, &c, &flags, &why), CL_FORMAT);
		ASSERT_TRUE(*why != '\0');
	}
	TEST_START("a file others may read is used, and told");
	give(GOOD, 0644);
	ASSERT_ERR(credential_load(path, &c, &flags, &why), CL_OK);
	ASSERT_INT_EQ(flags, CREDENTIAL_READABLE);
	credential_clear(&c);
	TEST_START("a symbolic link is refused");
	snprintf(link, sizeof(link), "%s/link", dir);
	ASSERT_INT_EQ(symlink(path, link), 0);
	ASSERT_ERR(credential_load(link, &c, &flags, &why), CL_DENIED);
	unlink(link);
	TEST_START("a missing file is \"not enrolled\"");
	ASSERT_ERR(credential_load(link, &c, &flags, &why), CL_NOTFOUND);
	TEST_START("a directory is an error");
	ASSERT_ERR(credential_load(dir, &c, &flags, &why), CL_FORMAT);
}

static void
test_unwritable(void)
{
	struct credential c;
	struct credential_change change = { .server = "s",
	    .credential = "clac1.a.b.c" };
	char blocked[160];

	TEST_START("a file in the way of the directory: error");
	memset(&c, 0, sizeof(c));
	give(GOOD, 0600);
	snprintf(blocked, sizeof(blocked), "%s/x/agent.json", path);
	ASSERT_ERR(credential_save(blocked, &c, &change), CL_SYSTEM);
	ASSERT_PTR_EQ(c.server, NULL);
	TEST_START("nothing unusable is ever written");
	change.credential = "a b";
	ASSERT_ERR(credential_save(path, &c, &change), CL_FORMAT);
}

static void
test_token(void)
{
	struct bundle b;
	const char *why;
	int flags;

	TEST_START("a bare token between blanks");
	give("\n clet1.a.b.c\r\n", 0640);
	ASSERT_ERR(credential_load_token(path, &b, &flags, &why), CL_OK);
	ASSERT_STRING_EQ(b.token, "clet1.a.b.c");
	ASSERT_PTR_EQ(b.server, NULL);
	ASSERT_INT_EQ(flags, CREDENTIAL_READABLE);
	bundle_clear(&b);
	TEST_START("blank and missing files");
	give(" \n", 0600);
	ASSERT_ERR(credential_load_token(path, &b, &flags, &why),
	    CL_NOTFOUND);
	unlink(path);
	ASSERT_ERR(credential_load_token(path, &b, &flags, &why),
	    CL_NOTFOUND);
	TEST_START("anything else is no token");
	give("clac1.a.b.c", 0600);
	ASSERT_ERR(credential_load_token(path, &b, &flags, &why), CL_FORMAT);
	give("clet1.a b", 0600);
	ASSERT_ERR(credential_load_token(path, &b, &flags, &why), CL_FORMAT);
	give("cloopenroll1.e30", 0600);
	ASSERT_ERR(credential_load_token(path, &b, &flags, &why), CL_FORMAT);
}

static void
test_end(void)
{
	char cmd[128];

	TEST_START("nothing but our files was made");
	unlink(path);
	snprintf(cmd, sizeof(cmd), "%s/sub", dir);
	ASSERT_INT_EQ(rmdir(cmd), 0);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

UNIT_MAIN(test_begin, test_save, test_unknown, test_refused, test_unwritable,
    test_token, test_end)
