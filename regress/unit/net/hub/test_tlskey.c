/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/tlskey: signatures asked of a process that stands in for cloopd-key.
 */
#include "regress/unit/msgtest.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <event2/buffer.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "net/codec/tlsio.h"
#include "net/hub/tlskey.h"
#include "regress/unit/net/codec/tlscert.h"

/* How the stand-in behaves. */
enum manner { SIGN, REFUSE, SILENT, LATE, GARBAGE, WRONG_ID, HANG_UP };

static EVP_PKEY *key;
static char *cert;

static size_t
sign(const uint8_t *digest, uint8_t sig[128])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
	size_t len = 128;

	EVP_PKEY_sign_init(ctx);
	EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256());
	if (EVP_PKEY_sign(ctx, sig, &len, digest, 32) != 1)
		len = 0;
	EVP_PKEY_CTX_free(ctx);
	return len;
}

static void
answer(struct chan *c, const struct imsg *m, const struct msg_key_sign *ask,
    enum manner how)
{
	static const uint8_t garbage[] = { 7, 0, 0, 0, 0, 0 };
	struct msg_key_sign_ans ans = { .ok = how != REFUSE };
	uint8_t sig[128];

	if (ask->digest_len != 32)
		_exit(3);
	if (how == SILENT)
		return;
	if (how == HANG_UP)
		_exit(0);
	if (how == LATE)
		poll(NULL, 0, KEY_SIGN_TIMEOUT_MS + 200);
	if (how == GARBAGE) {
		msgtest_send_bytes(c, MSG_KEY_SIGN_ANS, m->id, garbage,
		    sizeof(garbage), -1);
		return;
	}
	ans.signature = sig;
	ans.signature_len = how == REFUSE ? 0 : sign(ask->digest, sig);
	(void)CHAN_SEND(c, KEY_SIGN_ANS, how == WRONG_ID ? m->id + 1 : m->id,
	    &ans, -1);
}

/* The stand-in: the first question in this manner, then properly. */
static pid_t
start(enum manner how, int *fdp)
{
	union msg_any v;
	struct chan c;
	struct imsg m;
	pid_t pid;

	*fdp = msgtest_pair(&c, MSG_N2K, MSG_K2N);
	fflush(stdout);
	if ((pid = fork()) != 0) {
		chan_close(&c);
		return pid;
	}
	close(*fdp);
	for (;;) {
		if (msgtest_read(&c, &m, &v) != CL_OK)
			_exit(0);
		answer(&c, &m, &v.KEY_SIGN, how);
		msgtest_free(&m, &v);
		how = SIGN;
	}
}

static void
stop(pid_t pid)
{
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

static void
test_setup(void)
{
	TEST_START("a key is made for a P-256 certificate");
	signal(SIGPIPE, SIG_IGN);
	key = EVP_EC_gen("P-256");
	cert = tlscert_make(key, "DNS:hub.example");
	ASSERT_TRUE(cert != NULL);
}

static void
test_refused(void)
{
	EVP_PKEY *other;
	char *text;
	struct tlskey *k;
	const char *why;
	int i;

	TEST_START("RSA and other curves are refused, and why");
	for (i = 0; i < 2; i++) {
		other = i == 0 ? EVP_RSA_gen(2048) : EVP_EC_gen("P-384");
		text = tlscert_make(other, "DNS:hub.example");
		why = NULL;
		ASSERT_ERR(tlskey_new((uint8_t *)text, strlen(text), -1, &k,
		    &why), CL_UNSUPPORTED);
		ASSERT_TRUE(strstr(why, "P-256") != NULL);
		free(text);
		EVP_PKEY_free(other);
	}
	ASSERT_ERR(tlskey_new((const uint8_t *)"x", 1, -1, &k, &why),
	    CL_FORMAT);
}

static void
check_signature(const uint8_t *sig, size_t len, const uint8_t digest[32])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);

	EVP_PKEY_verify_init(ctx);
	ASSERT_INT_EQ(EVP_PKEY_verify(ctx, sig, len, digest, 32), 1);
	EVP_PKEY_CTX_free(ctx);
}

static void
test_sign(void)
{
	uint8_t digest[32] = { 1, 2, 3 }, sig[72];
	struct tlskey *k;
	size_t len = sizeof(sig);
	pid_t pid;
	int fd;

	TEST_START("a signature comes back and verifies");
	pid = start(SIGN, &fd);
	ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), fd, &k, NULL),
	    CL_OK);
	ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_OK);
	check_signature(sig, len, digest);
	tlskey_free(k);
	stop(pid);

	TEST_START("without a channel there is none");
	ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), -1, &k, NULL),
	    CL_OK);
	len = sizeof(sig);
	ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_EOF);

	TEST_START("a new channel heals it");
	pid = start(SIGN, &fd);
	ASSERT_ERR(tlskey_set_channel(k, fd), CL_OK);
	ASSERT_ERR(tlskey_sign(k, digest, sig, &len), CL_OK);
	tlskey_free(k);
	stop(pid);
}

static void
test_failures(void)
{
	static const struct {
		enum manner how;
		int first, second;
	} rows[] = {
		{ REFUSE, CL_DENIED, CL_OK },
		{ SILENT, CL_TIMEOUT, CL_OK },
		{ LATE, CL_TIMEOUT, CL_OK },
		{ GARBAGE, CL_FORMAT, CL_EOF },
		{ WRONG_ID, CL_FORMAT, CL_EOF },
		{ HANG_UP, CL_EOF, CL_EOF },
	};
	uint8_t digest[32] = { 9 }, sig[72];
	struct tlskey *k;
	size_t i, len;
	int64_t began;
	pid_t pid;
	int fd;

	TEST_START("refusals, silence, late and wrong answers");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("manner %d", rows[i].how);
		pid = start(rows[i].how, &fd);
		ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), fd, &k,
		    NULL), CL_OK);
		len = sizeof(sig);
		began = util_now_ms();
		ASSERT_ERR(tlskey_sign(k, digest, sig, &len), rows[i].first);
		ASSERT_INT_LT(util_now_ms() - began,
		    KEY_SIGN_TIMEOUT_MS + 1000);
		len = sizeof(sig);
		ASSERT_ERR(tlskey_sign(k, digest, sig, &len),
		    rows[i].second);
		tlskey_free(k);
		stop(pid);
	}
}

/* A whole handshake whose server has no private key. */
static void
test_handshake(void)
{
	struct tlsio_ctx *server_ctx, *client_ctx;
	struct tlsio *server, *client;
	struct tlskey *k;
	const char *why = "";
	pid_t pid;
	int fd, fds[2], i, s = CL_INCOMPLETE, c = CL_INCOMPLETE;

	TEST_START("TLS works with the key in another process");
	pid = start(SIGN, &fd);
	ASSERT_ERR(tlskey_new((uint8_t *)cert, strlen(cert), fd, &k, &why),
	    CL_OK);
	ASSERT_ERR(tlsio_ctx_new_server((uint8_t *)cert, strlen(cert),
	    tlskey_get_pkey(k), &server_ctx, &why), CL_OK);
	tlskey_free(k);		/* the context keeps it */
	ASSERT_ERR(tlsio_ctx_new_client((uint8_t *)cert, strlen(cert),
	    &client_ctx, &why), CL_OK);
	ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    fds), 0);
	ASSERT_ERR(tlsio_new_server(server_ctx, fds[0], &server), CL_OK);
	ASSERT_ERR(tlsio_new_client(client_ctx, fds[1], "hub.example", NULL,
	    0, &client), CL_OK);
	for (i = 0; i < 10; i++) {
		if (c == CL_INCOMPLETE)
			c = tlsio_handshake(client);
		if (s == CL_INCOMPLETE)
			s = tlsio_handshake(server);
	}
	unit_note("%s; %s", tlsio_get_error(client), tlsio_get_error(server));
	ASSERT_ERR(c, CL_OK);
	ASSERT_ERR(s, CL_OK);
	tlsio_free(server);
	tlsio_free(client);
	tlsio_ctx_free(server_ctx);
	tlsio_ctx_free(client_ctx);
	stop(pid);
}

static void
test_end(void)
{
	EVP_PKEY_free(key);
	free(cert);
}

UNIT_MAIN(test_setup, test_refused, test_sign, test_failures, test_handshake,
    test_end)
