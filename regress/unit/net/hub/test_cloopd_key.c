/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/key/cloopd_key: the program itself, confined, beside this test's own
 * file; the test is its monitor and its cloopd-net.
 */
#include "regress/unit/unit.h"

#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "net/hub/tlskey.h"
#include "regress/unit/net/codec/tlscert.h"

#define WAIT_MS 10000

static EVP_PKEY *key;
static char *cert;
static struct imsg_chan monitor;
static pid_t pid;

static void
start(void)
{
	char path[4096];
	ssize_t n;
	char *p;
	int fds[2];

	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	ASSERT_INT_GT(n, 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++)
		if ((p = strrchr(path, '/')) != NULL)
			*p = '\0';
	snprintf(path + strlen(path), 32, "/cloopd-key");
	if (access(path, X_OK) != 0)
		TEST_SKIP("cloopd-key is not built");
	ASSERT_ERR(imsg_pair(fds), CL_OK);
	if ((pid = fork()) == 0) {
		dup2(fds[1], 3);
		execl(path, "cloopd-key", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	ASSERT_ERR(imsg_init(&monitor, fds[0], 16), CL_OK);
}

static int
stop(void)
{
	int status;

	imsg_clear(&monitor);
	waitpid(pid, &status, 0);
	return status;
}

/* A message with this descriptor. */
static void
send_fd(uint32_t type, const struct buf *body, int fd)
{
	ASSERT_ERR(imsg_compose(&monitor, type, 0, body, fd), CL_OK);
	ASSERT_ERR(imsg_write(&monitor), CL_OK);
}

static void
load(EVP_PKEY *k)
{
	char *pem = tlscert_format_key(k);
	int fd;

	ASSERT_ERR(util_make_memfd(pem, strlen(pem), &fd), CL_OK);
	free(pem);
	send_fd(MSG_KEY_LOAD, NULL, fd);
}

static int
read_answer(struct imsg_chan *c, struct imsg *m)
{
	struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
	int r;

	while ((r = imsg_read(c, m)) == CL_INCOMPLETE) {
		if (poll(&pfd, 1, WAIT_MS) != 1)
			return CL_TIMEOUT;
	}
	return r;
}

/* KEY_CLIENT; our end of the channel. */
static int
add_client(uint16_t worker)
{
	struct buf b;
	int fds[2];

	ASSERT_ERR(imsg_pair(fds), CL_OK);
	buf_init(&b, 2);
	buf_put_u16(&b, worker);
	send_fd(MSG_KEY_CLIENT, &b, fds[1]);
	buf_clear(&b);
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
	const uint8_t *spki;
	struct tlskey *k;
	struct imsg m;
	size_t len, i;
	int der_len;

	TEST_START("READY has the public key; clients get signatures");
	start();
	load(key);
	ASSERT_ERR(read_answer(&monitor, &m), CL_OK);
	ASSERT_INT_EQ(m.type, MSG_KEY_READY);
	ASSERT_INT_EQ(buf_get_u32(&m.body), MSGCAT_VERSION);
	spki = buf_get_blob(&m.body, 1024, &len);
	ASSERT_ERR(buf_end(&m.body), CL_OK);
	der_len = i2d_PUBKEY(key, &der);
	ASSERT_BYTES_EQ(spki, len, der, (size_t)der_len);
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

static void
test_violation(void)
{
	uint8_t digest[32] = { 5 }, sig[72];
	struct imsg_chan bad;
	struct tlskey *k;
	struct imsg m;
	struct buf b;
	size_t len = sizeof(sig);

	TEST_START("a client that breaks the rules is dropped, others are not");
	start();
	load(key);
	ASSERT_ERR(read_answer(&monitor, &m), CL_OK);
	ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), add_client(2),
	    &k, NULL), CL_OK);
	ASSERT_ERR(imsg_init(&bad, add_client(3), 4), CL_OK);
	buf_init(&b, 64);
	buf_put_u16(&b, TLSKEY_SCHEME);
	buf_put_blob(&b, digest, 31);
	buf_put_u8(&b, 0);
	ASSERT_ERR(imsg_compose(&bad, MSG_KEY_SIGN, 1, &b, -1), CL_OK);
	ASSERT_ERR(imsg_write(&bad), CL_OK);
	buf_clear(&b);
	ASSERT_ERR(read_answer(&bad, &m), CL_EOF);
	imsg_clear(&bad);
	ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_OK);

	TEST_START("another scheme is refused, the client stays");
	ASSERT_ERR(imsg_init(&bad, add_client(3), 4), CL_OK);
	buf_init(&b, 64);
	buf_put_u16(&b, 0x0804);
	buf_put_blob(&b, digest, 32);
	ASSERT_ERR(imsg_compose(&bad, MSG_KEY_SIGN, 7, &b, -1), CL_OK);
	ASSERT_ERR(imsg_write(&bad), CL_OK);
	buf_clear(&b);
	ASSERT_ERR(read_answer(&bad, &m), CL_OK);
	ASSERT_U64_EQ(m.id, 7);
	ASSERT_INT_EQ(buf_get_bool(&m.body), 0);
	imsg_clear(&bad);
	tlskey_free(k);
	ASSERT_INT_EQ(stop(), 0);
}

static void
test_refused(void)
{
	EVP_PKEY *other;
	struct imsg m;
	int i;

	TEST_START("RSA, other curves and no key at all: it does not serve");
	for (i = 0; i < 3; i++) {
		start();
		other = i == 0 ? EVP_RSA_gen(2048) : EVP_EC_gen("P-384");
		if (i < 2)
			load(other);
		else
			send_fd(MSG_KEY_LOAD, NULL,
			    open("/dev/null", O_RDONLY | O_CLOEXEC));
		ASSERT_ERR(read_answer(&monitor, &m), CL_EOF);
		ASSERT_INT_NE(stop(), 0);
		EVP_PKEY_free(other);
	}
	EVP_PKEY_free(key);
	free(cert);
}

UNIT_MAIN(test_setup, test_serve, test_violation, test_refused)
