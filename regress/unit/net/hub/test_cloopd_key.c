/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/key/cloopd_key: the program itself, confined, beside this test's own
 * file; the test is its monitor and its cloopd-net.
 */
#include "regress/unit/msgtest.h"

#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "net/hub/tlskey.h"
#include "regress/unit/net/codec/tlscert.h"

static EVP_PKEY *key;
static char *cert;
static struct chan monitor;
static pid_t pid;

static void
start(void)
{
	char path[4096];
	ssize_t n;
	char *p;
	int fd;

	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	ASSERT_INT_GT(n, 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++)
		if ((p = strrchr(path, '/')) != NULL)
			*p = '\0';
	snprintf(path + strlen(path), 32, "/cloopd-key");
	if (access(path, X_OK) != 0)
		TEST_SKIP("cloopd-key is not built");
	fd = msgtest_pair(&monitor, MSG_K2M, MSG_M2K);
	if ((pid = fork()) == 0) {
		dup2(fd, 3);
		execl(path, "cloopd-key", (char *)NULL);
		_exit(127);
	}
	close(fd);
}

static int
stop(void)
{
	int status;

	chan_close(&monitor);
	waitpid(pid, &status, 0);
	return status;
}

static void
load(EVP_PKEY *k)
{
	char *pem = tlscert_format_key(k);
	int fd;

	ASSERT_ERR(util_make_memfd(pem, strlen(pem), &fd), CL_OK);
	free(pem);
	MSGTEST_SEND(&monitor, KEY_LOAD, 0, NULL, fd);
}

/* KEY_CLIENT; our end of the channel. */
static int
add_client(uint16_t worker)
{
	struct msg_key_client client = { worker };
	int fds[2];

	ASSERT_ERR(imsg_pair(fds), CL_OK);
	MSGTEST_SEND(&monitor, KEY_CLIENT, 0, &client, fds[1]);
	return fds[0];
}

static void
test_setup(void)
{
	TEST_START("a key for the test");
	signal(SIGPIPE, SIG_IGN);
	key = EVP_EC_gen("P-256");
	cert = tlscert_make(key, "DNS:hub");
	ASSERT_TRUE(cert != NULL);
}

static void
test_serve(void)
{
	uint8_t digest[32] = { 5 }, sig[72];
	unsigned char *der = NULL;
	struct tlskey *k;
	union msg_any v;
	struct imsg m;
	size_t len, i;
	int der_len;

	TEST_START("READY has the public key; clients get signatures");
	start();
	load(key);
	msgtest_expect(&monitor, MSG_KEY_READY, &m, &v);
	ASSERT_U64_EQ(v.KEY_READY.version, MSGCAT_VERSION);
	der_len = i2d_PUBKEY(key, &der);
	ASSERT_BYTES_EQ(v.KEY_READY.spki, v.KEY_READY.spki_len, der,
	    (size_t)der_len);
	msgtest_free(&m, &v);
	OPENSSL_free(der);
	ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), add_client(1),
	    &k, NULL), CL_OK);
	for (i = 0; i < 50; i++) {
		len = sizeof(sig);
		digest[1] = (uint8_t)i;
		ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_OK);
	}

	TEST_START("a new client of a worker replaces the old one");
	ASSERT_ERR(tlskey_set_channel(k, add_client(1)), CL_OK);
	len = sizeof(sig);
	ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_OK);
	tlskey_free(k);

	TEST_START("it ends with its monitor");
	ASSERT_INT_EQ(stop(), 0);
}

/* A client; it asks for this. */
static void
ask(struct chan *c, uint16_t worker, uint64_t id, struct msg_key_sign *what)
{
	msgtest_open(c, add_client(worker), MSG_K2N, MSG_N2K);
	MSGTEST_SEND(c, KEY_SIGN, id, what, -1);
}

static void
test_violation(void)
{
	uint8_t digest[32] = { 5 }, sig[72];
	struct msg_key_sign what = { TLSKEY_SCHEME, digest, sizeof(digest) };
	struct chan bad;
	struct tlskey *k;
	union msg_any v;
	struct imsg m;
	struct buf b;
	size_t len = sizeof(sig);

	TEST_START("a client that breaks the rules is dropped, others are not");
	start();
	load(key);
	msgtest_expect(&monitor, MSG_KEY_READY, &m, &v);
	msgtest_free(&m, &v);
	ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), add_client(2),
	    &k, NULL), CL_OK);
	/* A byte of the digest too few, and one too many behind it. */
	buf_init(&b, 64);
	what.digest_len = 31;
	ASSERT_ERR(msg_put(MSG_KEY_SIGN, &what, &b), CL_OK);
	buf_put_u8(&b, 0);
	msgtest_open(&bad, add_client(3), MSG_K2N, MSG_N2K);
	ASSERT_ERR(chan_send_buf(&bad, MSG_KEY_SIGN, 1, &b, -1), CL_OK);
	buf_clear(&b);
	ASSERT_ERR(msgtest_read(&bad, &m, &v), CL_EOF);
	chan_close(&bad);
	ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_OK);

	TEST_START("so is one that asks for what cannot be signed");
	ask(&bad, 3, 1, &what);
	ASSERT_ERR(msgtest_read(&bad, &m, &v), CL_EOF);
	chan_close(&bad);

	TEST_START("another scheme is refused, the client stays");
	what.digest_len = 32;
	what.scheme = 0x0804;
	ask(&bad, 3, 7, &what);
	msgtest_expect(&bad, MSG_KEY_SIGN_ANS, &m, &v);
	ASSERT_U64_EQ(m.id, 7);
	ASSERT_FALSE(v.KEY_SIGN_ANS.ok);
	msgtest_free(&m, &v);
	what.scheme = TLSKEY_SCHEME;
	MSGTEST_SEND(&bad, KEY_SIGN, 8, &what, -1);
	msgtest_expect(&bad, MSG_KEY_SIGN_ANS, &m, &v);
	ASSERT_TRUE(v.KEY_SIGN_ANS.ok);
	msgtest_free(&m, &v);
	chan_close(&bad);
	tlskey_free(k);
	ASSERT_INT_EQ(stop(), 0);
}

static void
test_refused(void)
{
	EVP_PKEY *other;
	union msg_any v;
	struct imsg m;
	int i;

	TEST_START("RSA, other curves and no key at all: it does not serve");
	for (i = 0; i < 3; i++) {
		start();
		other = i == 0 ? EVP_RSA_gen(2048) : EVP_EC_gen("P-384");
		if (i < 2)
			load(other);
		else
			MSGTEST_SEND(&monitor, KEY_LOAD, 0, NULL,
			    open("/dev/null", O_RDONLY | O_CLOEXEC));
		ASSERT_ERR(msgtest_read(&monitor, &m, &v), CL_EOF);
		ASSERT_INT_NE(stop(), 0);
		EVP_PKEY_free(other);
	}
	EVP_PKEY_free(key);
	free(cert);
}

UNIT_MAIN(test_setup, test_serve, test_violation, test_refused)
