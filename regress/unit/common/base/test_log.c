/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/log, err, secret, idgen: the small ones.
 */
#include "regress/unit/unit.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/idgen.h"
#include "common/base/log.h"
#include "common/base/secret.h"

static char line[8192];
static int saved_fd = -1, log_fd = -1;

/* Stderr into a file, until log_end() reads it back. */
static void
log_begin(enum log_level level, enum log_format format)
{
	unsetenv("JOURNAL_STREAM");
	saved_fd = dup(2);
	log_fd = memfd_create("log", 0);
	dup2(log_fd, 2);
	log_init("test", level, format);
}

static void
log_end(void)
{
	ssize_t n = pread(log_fd, line, sizeof(line) - 1, 0);

	line[n < 0 ? 0 : n] = '\0';
	dup2(saved_fd, 2);
	close(saved_fd);
	close(log_fd);
}

static void
test_text(void)
{
	TEST_START("one line: time, program, level, event, values");
	log_begin(LOGL_INFO, LOGF_TEXT);
	errno = 7;
	log_info("device-auth", "result=%s device=%s", "denied",
	    log_q("a \"b\"\n\x1b[31m\xff\\"));
	ASSERT_INT_EQ(errno, 7);
	log_debug("hidden", "x=1");
	log_end();
	ASSERT_STRING_EQ(line + 8, " test info event=device-auth "
	    "result=denied device=\"a \\\"b\\\"\\x0a\\x1b[31m\\xff\\\\\"\n");
	TEST_START("a newline in the values cannot forge a line");
	log_begin(LOGL_DEBUG, LOGF_TEXT);
	log_debug("x", "text=%s", "a\nevent=forged");
	log_end();
	ASSERT_STRING_EQ(line + 8, " test debug event=x text=a event=forged\n");
	TEST_START("no values, no trailing space");
	log_begin(LOGL_WARN, LOGF_TEXT);
	log_warn("only", "%s", "");
	log_info("hidden", "x=1");
	log_end();
	ASSERT_STRING_EQ(line + 8, " test warn event=only\n");
}

static void
test_journal(void)
{
	int fds[2];
	ssize_t n;

	TEST_START("under the journal a line begins with its priority");
	log_begin(LOGL_INFO, LOGF_TEXT);
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_init("test", LOGL_INFO, LOGF_TEXT);
	log_error("bad", "x=1");
	log_end();
	unsetenv("JOURNAL_STREAM");
	ASSERT_STRING_EQ(line, "<3>event=bad x=1\n");
	TEST_START("a socket as stderr is the journal's");
	ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	saved_fd = dup(2);
	dup2(fds[0], 2);
	log_init("test", LOGL_INFO, LOGF_TEXT);
	log_info("good", "x=1");
	dup2(saved_fd, 2);
	n = read(fds[1], line, sizeof(line));
	ASSERT_BYTES_EQ(line, (size_t)n, "<6>event=good x=1\n", 18);
	close(saved_fd);
	close(fds[0]);
	close(fds[1]);
}

static void
test_json(void)
{
	char *pairs, big[6000];

	TEST_START("JSON: strings, numbers, escapes undone once");
	log_begin(LOGL_INFO, LOGF_JSON);
	log_info("x", "n=12 neg=-3 zero=0 id=007 s=%s t=a/b bare",
	    log_q("1\"\\\n"));
	log_end();
	ASSERT_MEM_EQ(line, "{\"time\":\"2", 10);
	pairs = strstr(line, "\"level\"");
	ASSERT_STRING_EQ(pairs, "\"level\":\"info\",\"prog\":\"test\","
	    "\"event\":\"x\",\"n\":12,\"neg\":-3,\"zero\":0,\"id\":\"007\","
	    "\"s\":\"1\\\"\\\\\\u000a\",\"t\":\"a/b\",\"bare\":true}\n");
	TEST_START("a line too long stays one line, and JSON stays JSON");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_begin(LOGL_INFO, LOGF_JSON);
	log_info("x", "s=%s", big);
	log_end();
	ASSERT_PTR_NE(strstr(line, "\"event\":\"x\",\"truncated\":true}\n"),
	    NULL);
	log_begin(LOGL_INFO, LOGF_TEXT);
	log_info("x", "s=%s", big);
	log_end();
	ASSERT_INT_LE(strlen(line), 4096);
	ASSERT_INT_EQ(line[strlen(line) - 1], '\n');
}

static void
test_quote(void)
{
	char value[LOG_VALUE_MAX + 2], want[LOG_VALUE_MAX + 8];

	TEST_START("a value of LOG_VALUE_MAX is whole, one more is cut");
	memset(value, 'v', sizeof(value));
	value[LOG_VALUE_MAX] = '\0';
	snprintf(want, sizeof(want), "\"%s\"", value);
	ASSERT_STRING_EQ(log_q(value), want);
	value[LOG_VALUE_MAX] = 'v';
	value[LOG_VALUE_MAX + 1] = '\0';
	snprintf(want, sizeof(want), "\"%.*s...\"", LOG_VALUE_MAX, value);
	ASSERT_STRING_EQ(log_q(value), want);
	ASSERT_STRING_EQ(log_q(NULL), "-");
	ASSERT_STRING_EQ(log_qn("a\0b", 3), "\"a\\x00b\"");
	TEST_START("levels by name");
	ASSERT_INT_EQ(log_parse_level("fatal"), LOGL_FATAL);
	ASSERT_INT_EQ(log_parse_level("debug"), LOGL_DEBUG);
	ASSERT_INT_EQ(log_parse_level("INFO"), -1);
}

static void
test_ratelimit(void)
{
	struct log_ratelimit rl = { 0 };
	unsigned int n;

	TEST_START("burst lines pass, the next does not, then it is told");
	ASSERT_INT_EQ(log_ratelimit(&rl, 2, 3600, &n), 1);
	ASSERT_INT_EQ(log_ratelimit(&rl, 2, 3600, NULL), 1);
	ASSERT_INT_EQ(log_ratelimit(&rl, 2, 3600, &n), 0);
	ASSERT_INT_EQ(log_ratelimit(&rl, 2, 3600, NULL), 0);
	rl.window_at -= 3600 * 1000;
	ASSERT_INT_EQ(log_ratelimit(&rl, 2, 3600, &n), 1);
	ASSERT_INT_EQ(n, 2);
}

static void
test_err(void)
{
	TEST_START("every code has a name and a text");
	ASSERT_STRING_EQ(cl_errname(CL_OK), "OK");
	ASSERT_STRING_EQ(cl_errname(CL_UNSUPPORTED), "UNSUPPORTED");
	ASSERT_STRING_EQ(cl_errname(-1000), "UNKNOWN");
	ASSERT_STRING_EQ(cl_strerror(CL_TOOBIG), "too big");
	ASSERT_STRING_EQ(cl_strerror(1), "unknown error");
	errno = ENOSPC;
	ASSERT_STRING_EQ(cl_strerror(CL_SYSTEM), "No space left on device");
	errno = 0;
	ASSERT_STRING_EQ(cl_strerror(CL_SYSTEM), "system error");
}

static void
test_secret(void)
{
	struct secret a = SECRET_INIT, b = SECRET_INIT;
	int fds[2];

	TEST_START("max bytes fit, one more does not");
	ASSERT_ERR(secret_init(&a, "secret", 6, 6), CL_OK);
	ASSERT_STRING_EQ((char *)a.data, "secret");
	ASSERT_ERR(secret_init(&b, "secret", 6, 5), CL_TOOBIG);
	ASSERT_PTR_EQ(b.data, NULL);
	TEST_START("equal only in content and length");
	ASSERT_FALSE(secret_is_equal(&a, &b));
	ASSERT_ERR(secret_init(&b, "secret", 6, 6), CL_OK);
	ASSERT_TRUE(secret_is_equal(&a, &b));
	b.data[5] ^= 0x80;
	ASSERT_FALSE(secret_is_equal(&a, &b));
	secret_clear(&b);
	ASSERT_ERR(secret_init(&b, "secre", 5, 6), CL_OK);
	ASSERT_FALSE(secret_is_equal(&a, &b));
	secret_clear(&b);
	secret_clear(&b);
	ASSERT_TRUE(secret_is_equal_mem("", "", 0));
	TEST_START("from a descriptor: exactly max, one more");
	ASSERT_INT_EQ(pipe(fds), 0);
	ASSERT_INT_EQ(write(fds[1], "0123456789", 10), 10);
	close(fds[1]);
	ASSERT_ERR(secret_load_fd(&b, fds[0], 10), CL_OK);
	ASSERT_BYTES_EQ(b.data, b.len, "0123456789", 10);
	secret_clear(&b);
	close(fds[0]);
	ASSERT_INT_EQ(pipe(fds), 0);
	ASSERT_INT_EQ(write(fds[1], "0123456789", 10), 10);
	close(fds[1]);
	ASSERT_ERR(secret_load_fd(&b, fds[0], 9), CL_TOOBIG);
	ASSERT_PTR_EQ(b.data, NULL);
	close(fds[0]);
	ASSERT_ERR(secret_load_fd(&b, -1, 9), CL_SYSTEM);
	secret_clear(&a);
}

static void
test_idgen(void)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij"
	    "klmnopqrstuvwxyz0123456789-_";
	char a[IDGEN_SECRET_LEN + 1], b[IDGEN_SECRET_LEN + 1];

	TEST_START("ids: base64url of 12, 8 and 32 random bytes");
	idgen_handle(a);
	ASSERT_INT_EQ(strlen(a), 16);
	ASSERT_INT_EQ(strspn(a, alphabet), 16);
	idgen_corr(a);
	ASSERT_INT_EQ(strlen(a), 11);
	idgen_secret(a);
	idgen_secret(b);
	ASSERT_INT_EQ(strlen(a), 43);
	ASSERT_INT_NE(strcmp(a, b), 0);
}

UNIT_MAIN(test_text, test_journal, test_json, test_quote, test_ratelimit,
    test_err, test_secret, test_idgen)
