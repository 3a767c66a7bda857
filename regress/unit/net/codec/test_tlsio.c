/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/tlsio: both ends of a connection over a socketpair.
 */
#include "regress/unit/unit.h"

#include <sys/socket.h>

#include <event2/buffer.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/pin.h"
#include "net/codec/tlsio.h"
#include "tlscert.h"

static EVP_PKEY *key;
static char *cert;
static struct tlsio_ctx *server_ctx, *client_ctx;

/* One pair of ends, with their buffers. */
struct ends {
	struct tlsio *server, *client;
	struct evbuffer *in, *out;
};

static void
open_ends(struct ends *e, struct tlsio_ctx *s, struct tlsio_ctx *c,
    const char *host, const struct pin *pins, size_t npins)
{
	int fds[2];

	memset(e, 0, sizeof(*e));
	e->in = evbuffer_new();
	e->out = evbuffer_new();
	ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    fds), 0);
	ASSERT_ERR(tlsio_new_server(s, fds[0], &e->server), CL_OK);
	ASSERT_ERR(tlsio_new_client(c, fds[1], host, pins, npins, &e->client),
	    CL_OK);
}

static void
close_ends(struct ends *e)
{
	tlsio_free(e->server);
	tlsio_free(e->client);
	evbuffer_free(e->in);
	evbuffer_free(e->out);
}

/* Both handshakes in turn, until neither waits for the other. */
static int
shake(struct ends *e, int *serverp)
{
	int i, c = CL_INCOMPLETE, s = CL_INCOMPLETE;

	for (i = 0; i < 20; i++) {
		if (c == CL_INCOMPLETE)
			c = tlsio_handshake(e->client);
		if (s == CL_INCOMPLETE)
			s = tlsio_handshake(e->server);
	}
	if (serverp != NULL)
		*serverp = s;
	return c;
}

static void
test_setup(void)
{
	const char *why = "";

	TEST_START("contexts of both sides");
	signal(SIGPIPE, SIG_IGN);
	key = EVP_EC_gen("P-256");
	cert = tlscert_make(key, "DNS:hub.example,IP:127.0.0.1,IP:::1");
	ASSERT_ERR(tlsio_ctx_new_server((uint8_t *)cert, strlen(cert), key,
	    &server_ctx, &why), CL_OK);
	ASSERT_ERR(tlsio_ctx_new_client((uint8_t *)cert, strlen(cert),
	    &client_ctx, &why), CL_OK);
}

static void
test_setup_bad(void)
{
	struct tlsio_ctx *ctx;
	EVP_PKEY *other = EVP_EC_gen("P-256");
	const char *why = NULL;

	TEST_START("text without a certificate is an error with a reason");
	ASSERT_ERR(tlsio_ctx_new_client((const uint8_t *)"none\n", 5, &ctx,
	    &why), CL_FORMAT);
	ASSERT_TRUE(why != NULL && *why != '\0');
	ASSERT_ERR(tlsio_ctx_new_server((const uint8_t *)"none\n", 5, key,
	    &ctx, &why), CL_FORMAT);

	TEST_START("a key of another certificate is refused");
	ASSERT_ERR(tlsio_ctx_new_server((uint8_t *)cert, strlen(cert), other,
	    &ctx, &why), CL_CRYPTO);
	ASSERT_PTR_EQ(ctx, NULL);
	EVP_PKEY_free(other);
}

static void
test_transfer(void)
{
	struct ends e;
	char block[100000];
	size_t i, total = 0;
	int r;

	TEST_START("name and IP are verified; bytes go both ways");
	for (i = 0; i < 3; i++) {
		open_ends(&e, server_ctx, client_ctx, i == 0 ?
		    "hub.example" : i == 1 ? "127.0.0.1" : "::1", NULL, 0);
		ASSERT_ERR(shake(&e, &r), CL_OK);
		ASSERT_ERR(r, CL_OK);
		if (i < 2)
			close_ends(&e);
	}
	memset(block, 'x', sizeof(block));
	evbuffer_add(e.out, block, sizeof(block));
	for (i = 0; i < 100 && total < sizeof(block); i++) {
		r = tlsio_write(e.client, e.out);
		ASSERT_TRUE(r == CL_OK || r == CL_INCOMPLETE);
		r = tlsio_read(e.server, e.in, 50000);
		ASSERT_TRUE(r == CL_OK || r == CL_INCOMPLETE);
		total = evbuffer_get_length(e.in);
	}
	ASSERT_SIZE_T_EQ(total, sizeof(block));
	ASSERT_MEM_EQ(evbuffer_pullup(e.in, -1), block, sizeof(block));

	TEST_START("a clean close is told from a bare end");
	ASSERT_ERR(tlsio_close(e.client), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 10), CL_EOF);
	ASSERT_TRUE(tlsio_is_clean(e.server));
	close_ends(&e);
	open_ends(&e, server_ctx, client_ctx, "hub.example", NULL, 0);
	ASSERT_ERR(shake(&e, NULL), CL_OK);
	shutdown(tlsio_get_fd(e.client), SHUT_RDWR);
	ASSERT_ERR(tlsio_read(e.server, e.in, 10), CL_EOF);
	ASSERT_FALSE(tlsio_is_clean(e.server));
	close_ends(&e);
}

static void
test_pending(void)
{
	struct ends e;
	char block[40000];

	TEST_START("what max leaves inside is said to be there");
	open_ends(&e, server_ctx, client_ctx, "hub.example", NULL, 0);
	ASSERT_ERR(shake(&e, NULL), CL_OK);
	memset(block, 'x', sizeof(block));
	evbuffer_add(e.out, block, sizeof(block));
	ASSERT_ERR(tlsio_write(e.client, e.out), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 100), CL_OK);
	ASSERT_SIZE_T_EQ(evbuffer_get_length(e.in), 100);
	ASSERT_TRUE(tlsio_has_pending(e.server));
	ASSERT_ERR(tlsio_read(e.server, e.in, sizeof(block)), CL_OK);
	ASSERT_SIZE_T_EQ(evbuffer_get_length(e.in), sizeof(block));
	ASSERT_FALSE(tlsio_has_pending(e.server));
	ASSERT_ERR(tlsio_read(e.server, e.in, 10), CL_INCOMPLETE);
	ASSERT_INT_EQ(tlsio_get_wants(e.server, 1, 0), TLSIO_READ);
	ASSERT_INT_EQ(tlsio_get_wants(e.server, 0, 1), TLSIO_WRITE);
	ASSERT_INT_EQ(tlsio_get_wants(e.server, 0, 0), 0);
	close_ends(&e);
}

static void
test_small(void)
{
	struct ends e;

	TEST_START("small records that came together are read together");
	open_ends(&e, server_ctx, client_ctx, "hub.example", NULL, 0);
	ASSERT_ERR(shake(&e, NULL), CL_OK);
	evbuffer_add(e.out, "one", 3);
	ASSERT_ERR(tlsio_write(e.client, e.out), CL_OK);
	evbuffer_add(e.out, "three", 5);
	ASSERT_ERR(tlsio_write(e.client, e.out), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 65536), CL_OK);
	ASSERT_SIZE_T_EQ(evbuffer_get_length(e.in), 8);
	ASSERT_MEM_EQ(evbuffer_pullup(e.in, -1), "onethree", 8);
	ASSERT_FALSE(tlsio_has_pending(e.server));

	TEST_START("the end behind a small record is told by the next call");
	evbuffer_add(e.out, "end", 3);
	ASSERT_ERR(tlsio_write(e.client, e.out), CL_OK);
	ASSERT_ERR(tlsio_close(e.client), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 65536), CL_OK);
	ASSERT_SIZE_T_EQ(evbuffer_get_length(e.in), 11);
	ASSERT_ERR(tlsio_read(e.server, e.in, 65536), CL_EOF);
	ASSERT_TRUE(tlsio_is_clean(e.server));
	close_ends(&e);
}

static void
test_verify(void)
{
	struct tlsio_ctx *alone = NULL;
	EVP_PKEY *other = EVP_EC_gen("P-256");
	char *wrong = tlscert_make(other, "DNS:other");
	struct ends e;
	const char *why;

	TEST_START("another name is refused, by its reason");
	open_ends(&e, server_ctx, client_ctx, "evil.example", NULL, 0);
	ASSERT_ERR(shake(&e, NULL), CL_CRYPTO);
	ASSERT_TRUE(strstr(tlsio_get_error(e.client), "hostname") != NULL);
	close_ends(&e);

	TEST_START("an address that is not in the certificate is refused");
	open_ends(&e, server_ctx, client_ctx, "127.0.0.2", NULL, 0);
	ASSERT_ERR(shake(&e, NULL), CL_CRYPTO);
	close_ends(&e);

	TEST_START("an unknown root is refused");
	ASSERT_ERR(tlsio_ctx_new_client((uint8_t *)wrong, strlen(wrong),
	    &alone, &why), CL_OK);
	open_ends(&e, server_ctx, alone, "hub.example", NULL, 0);
	ASSERT_ERR(shake(&e, NULL), CL_CRYPTO);
	ASSERT_TRUE(strstr(tlsio_get_error(e.client), "self") != NULL);
	close_ends(&e);
	tlsio_ctx_free(alone);
	EVP_PKEY_free(other);
	free(wrong);
}

static void
test_pin(void)
{
	struct pin pins[2];
	char text[PIN_TEXT_LEN + 1];
	struct ends e;

	TEST_START("one of several pins is enough");
	memset(pins, 0, sizeof(pins));
	ASSERT_ERR(tlsio_load_pin((uint8_t *)cert, strlen(cert), &pins[1]),
	    CL_OK);
	open_ends(&e, server_ctx, client_ctx, "hub.example", pins, 2);
	ASSERT_ERR(shake(&e, NULL), CL_OK);
	close_ends(&e);

	TEST_START("a mismatch is an error of its own with both digests");
	open_ends(&e, server_ctx, client_ctx, "hub.example", pins, 1);
	ASSERT_ERR(shake(&e, NULL), CL_DENIED);
	pin_format(&pins[1], text);
	ASSERT_TRUE(strstr(tlsio_get_error(e.client), text) != NULL);
	pin_format(&pins[0], text);
	ASSERT_TRUE(strstr(tlsio_get_error(e.client), text) != NULL);
	ASSERT_ERR(tlsio_read(e.client, e.in, 1), CL_DENIED);
	close_ends(&e);

	TEST_START("a pin does not replace verification");
	open_ends(&e, server_ctx, client_ctx, "evil.example", &pins[1], 1);
	ASSERT_ERR(shake(&e, NULL), CL_CRYPTO);
	close_ends(&e);
}

/* A client of plain OpenSSL with these versions, suites and ALPN. */
static SSL *
connect_raw(int fd, int version, const char *suites, const char *alpn)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl;

	SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(ctx, version);
	if (suites != NULL)
		SSL_CTX_set_cipher_list(ctx, suites);
	if (alpn != NULL)
		SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)alpn,
		    (unsigned int)strlen(alpn));
	ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	SSL_set_fd(ssl, fd);
	SSL_set_connect_state(ssl);
	return ssl;
}

/* Shake hands with our server; 1 when it works. */
static int
shake_raw(SSL *ssl, struct tlsio *server)
{
	int i, s = CL_INCOMPLETE, c = 0;

	for (i = 0; i < 20; i++) {
		if (c != 1)
			c = SSL_do_handshake(ssl);
		if (s == CL_INCOMPLETE)
			s = tlsio_handshake(server);
	}
	return c == 1 && s == CL_OK;
}

static void
test_server_policy(void)
{
	static const struct {
		int version, ok;
		const char *suites, *want;
	} rows[] = {
		{ TLS1_1_VERSION, 0, "ALL:@SECLEVEL=0", NULL },
		{ TLS1_3_VERSION, 1, NULL, NULL },
		{ TLS1_2_VERSION, 0, "ECDHE-ECDSA-AES128-SHA", NULL },
		{ TLS1_2_VERSION, 0, "ECDHE-ECDSA-AES128-CCM", NULL },
		{ TLS1_2_VERSION, 1, "ECDHE-ECDSA-CHACHA20-POLY1305:"
		    "ECDHE-ECDSA-AES256-GCM-SHA384:"
		    "ECDHE-ECDSA-AES128-GCM-SHA256",
		    "ECDHE-ECDSA-AES128-GCM-SHA256" },
		{ TLS1_2_VERSION, 1, "ECDHE-ECDSA-CHACHA20-POLY1305:"
		    "ECDHE-ECDSA-AES256-GCM-SHA384",
		    "ECDHE-ECDSA-AES256-GCM-SHA384" },
		{ TLS1_2_VERSION, 1, "ECDHE-ECDSA-CHACHA20-POLY1305",
		    "ECDHE-ECDSA-CHACHA20-POLY1305" },
	};
	struct tlsio *server;
	size_t i;
	SSL *ssl;
	int fds[2];

	TEST_START("TLS 1.2 and up, three ciphers, the server's order");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("row %zu", i);
		ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK,
		    0, fds), 0);
		ASSERT_ERR(tlsio_new_server(server_ctx, fds[0], &server),
		    CL_OK);
		ssl = connect_raw(fds[1], rows[i].version, rows[i].suites,
		    NULL);
		ASSERT_INT_EQ(shake_raw(ssl, server), rows[i].ok);
		if (rows[i].want != NULL)
			ASSERT_STRING_EQ(tlsio_get_suite(server),
			    rows[i].want);
		ASSERT_INT_EQ(SSL_session_reused(ssl), 0);
		SSL_free(ssl);
		close(fds[1]);
		tlsio_free(server);
	}
}

static void
test_alpn(void)
{
	static const struct {
		const char *offer, *want;
	} rows[] = { { NULL, "" }, { "\x08http/1.1", "http/1.1" },
		{ "\x02h2\x08http/1.1", "http/1.1" }, { "\x02h2", "" } };
	const unsigned char *got;
	struct tlsio *server;
	unsigned int len;
	size_t i;
	SSL *ssl;
	int fds[2];

	TEST_START("ALPN: http/1.1 when offered, nothing otherwise");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("row %zu", i);
		ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK,
		    0, fds), 0);
		ASSERT_ERR(tlsio_new_server(server_ctx, fds[0], &server),
		    CL_OK);
		ssl = connect_raw(fds[1], TLS1_3_VERSION, NULL,
		    rows[i].offer);
		ASSERT_INT_EQ(shake_raw(ssl, server), 1);
		SSL_get0_alpn_selected(ssl, &got, &len);
		ASSERT_BYTES_EQ(got, len, rows[i].want,
		    strlen(rows[i].want));
		SSL_free(ssl);
		close(fds[1]);
		tlsio_free(server);
	}
}

static void
test_garbage(void)
{
	struct tlsio *server;
	struct evbuffer *in = evbuffer_new();
	int fds[2];

	TEST_START("something that is not TLS is an error with a text");
	ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    fds), 0);
	ASSERT_ERR(tlsio_new_server(server_ctx, fds[0], &server), CL_OK);
	ASSERT_INT_EQ(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
	ASSERT_ERR(tlsio_read(server, in, 100), CL_CRYPTO);
	ASSERT_TRUE(strstr(tlsio_get_error(server), "http request") != NULL);
	ASSERT_ERR(tlsio_close(server), CL_OK);
	tlsio_free(server);
	close(fds[1]);
	evbuffer_free(in);
}

static void
test_plaintext(void)
{
	struct ends e;
	struct pin pins[1] = { { { 0 } } };

	TEST_START("plaintext has the same calls");
	open_ends(&e, NULL, NULL, "localhost", pins, 0);
	ASSERT_ERR(shake(&e, NULL), CL_OK);
	ASSERT_FALSE(tlsio_is_tls(e.client));
	ASSERT_STRING_EQ(tlsio_get_version(e.client), "plaintext");
	evbuffer_add(e.out, "abc", 3);
	ASSERT_ERR(tlsio_write(e.client, e.out), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 2), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 2), CL_OK);
	ASSERT_SIZE_T_EQ(evbuffer_get_length(e.in), 3);
	ASSERT_ERR(tlsio_read(e.server, e.in, 2), CL_INCOMPLETE);
	ASSERT_ERR(tlsio_close(e.client), CL_OK);
	ASSERT_ERR(tlsio_read(e.server, e.in, 2), CL_EOF);
	close_ends(&e);
}

static void
test_end(void)
{
	tlsio_ctx_free(server_ctx);
	tlsio_ctx_free(client_ctx);
	EVP_PKEY_free(key);
	free(cert);
}

UNIT_MAIN(test_setup, test_setup_bad, test_transfer, test_pending, test_small,
    test_verify, test_pin, test_server_policy, test_alpn, test_garbage,
    test_plaintext, test_end)
