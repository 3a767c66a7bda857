/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopd-key: the process that holds the hub's TLS private key and does
 * nothing but sign.  Runs as _cloop-key, chrooted, under seccomp.  It
 * touches its channels: descriptor 3 to the monitor, which it trusts, and
 * one per cloopd-net, which it does not: whoever breaks the rules is
 * dropped.  A question is a 32-byte digest, the answer a signature; the key
 * itself leaves in no message.
 */
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/secret.h"
#include "common/msg/chan.h"
#include "sandbox/self/self.h"

#define KEY_CHANNEL_FD 3
#define KEY_FILE_MAX 65536
#define KEY_QUEUE_MAX 16	/* a cloopd-net asks one at a time */
#define KEY_SCHEME 0x0403	/* ecdsa_secp256r1_sha256 */
#define KEY_NAME_MAX 32

struct key_state;

struct key_client {
	struct key_state *ks;
	struct chan chan;
};

struct key_state {
	struct chan monitor;
	EVP_PKEY *pkey;
	EVP_PKEY_CTX *signer;
	struct key_client clients[MAX_NET_WORKERS];
};

/* A passphrase cannot be asked for here: an encrypted key is refused. */
static int
key_on_passphrase(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}

static void
key_check_type(const EVP_PKEY *pkey)
{
	char group[KEY_NAME_MAX] = "";

	if (EVP_PKEY_get_base_id(pkey) != EVP_PKEY_EC)
		fatal("key-load", "reason=\"the TLS key must be ECDSA P-256; "
		    "RSA and other keys are not supported\"");
	if (EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL) != 1 ||
	    strcmp(group, "prime256v1") != 0)
		fatal("key-load", "reason=\"the TLS key must be on curve "
		    "P-256\" curve=%s", log_q(group));
}

static void
key_load(struct key_state *ks, int fd)
{
	struct secret pem = SECRET_INIT;
	BIO *bio;
	int r;

	if ((r = secret_load_fd(&pem, fd, KEY_FILE_MAX)) != 0)
		fatal("key-load", "reason=\"cannot read the key: %s\"",
		    cl_strerror(r));
	close(fd);
	if ((bio = BIO_new_mem_buf(pem.data, (int)pem.len)) == NULL)
		fatal("key-load", "reason=\"out of memory\"");
	ks->pkey = PEM_read_bio_PrivateKey(bio, NULL, key_on_passphrase, NULL);
	BIO_free(bio);
	secret_clear(&pem);
	if (ks->pkey == NULL)
		fatal("key-load", "reason=\"not an unencrypted PEM private "
		    "key\"");
	key_check_type(ks->pkey);
	if ((ks->signer = EVP_PKEY_CTX_new(ks->pkey, NULL)) == NULL ||
	    EVP_PKEY_sign_init(ks->signer) != 1 ||
	    EVP_PKEY_CTX_set_signature_md(ks->signer, EVP_sha256()) != 1)
		fatal("key-load", "reason=\"cannot sign with this key\"");
}

/* CL_CRYPTO when libcrypto fails. */
static int
key_sign(struct key_state *ks, const uint8_t *digest, uint8_t *sig,
    size_t *lenp)
{
	if (EVP_PKEY_sign(ks->signer, sig, lenp, digest, KEY_DIGEST_LEN) !=
	    1) {
		ERR_clear_error();
		*lenp = 0;
		return CL_CRYPTO;
	}
	return CL_OK;
}

/*
 * One signature before confinement: it draws the random generator's seed
 * and whatever libcrypto looks up once.
 */
static void
key_start_signer(struct key_state *ks)
{
	uint8_t digest[KEY_DIGEST_LEN] = { 0 }, sig[KEY_SIG_MAX];
	size_t len = sizeof(sig);

	if (key_sign(ks, digest, sig, &len) != 0)
		fatal("key-load", "reason=\"a test signature failed\"");
}

static void
key_confine(void)
{
	struct self_opts o = { .profile = SELF_KEY, .user = USER_KEY };
	struct self_report rep;
	char text[SELF_REPORT_MAX];
	int r;

	if ((r = self_confine(&o, &rep)) != 0)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_info("confined", "%s", self_format_report(&rep, text));
}

static int
key_put_ready(struct key_state *ks)
{
	struct msg_key_ready ready = { .version = MSGCAT_VERSION };
	unsigned char *der = NULL;
	int len, r;

	if ((len = i2d_PUBKEY(ks->pkey, &der)) <= 0)
		fatal("key-load", "reason=\"cannot encode the public key\"");
	ready.spki = der;
	ready.spki_len = (size_t)len;
	r = CHAN_SEND(&ks->monitor, KEY_READY, 0, &ready, -1);
	OPENSSL_free(der);
	return r;
}

/* One question.  Anything but a well-formed one is CL_FORMAT. */
static int
key_on_question(void *arg, struct imsg *m, union msg_any *v)
{
	struct key_client *c = arg;
	const struct msg_key_sign *q = &v->KEY_SIGN;
	uint8_t sig[KEY_SIG_MAX];
	struct msg_key_sign_ans ans = { .signature = sig,
	    .signature_len = sizeof(sig) };

	if (q->digest_len != KEY_DIGEST_LEN)
		return CL_FORMAT;
	ans.ok = q->scheme == KEY_SCHEME && key_sign(c->ks, q->digest, sig,
	    &ans.signature_len) == 0;
	if (!ans.ok)
		ans.signature_len = 0;
	return CHAN_SEND(&c->chan, KEY_SIGN_ANS, m->id, &ans, -1);
}

static void
key_on_client_end(void *arg, const char *why)
{
	struct key_client *c = arg;

	if (why != NULL)
		log_warn("client-violation", "worker=%zu reason=\"%s\"",
		    (size_t)(c - c->ks->clients) + 1, why);
}

/* The monitor gives a new cloopd-net its channel; it replaces the old one. */
static int
key_on_new_client(struct key_state *ks, struct imsg *m, uint64_t worker)
{
	struct key_client *c;
	int r;

	/* Workers count from 1. */
	if (worker == 0 || worker > MAX_NET_WORKERS)
		return CL_FORMAT;
	c = &ks->clients[worker - 1u];
	chan_close(&c->chan);
	c->ks = ks;
	r = chan_init(&c->chan, imsg_take_fd(m), MSG_N2K, MSG_K2N,
	    KEY_QUEUE_MAX, key_on_question, key_on_client_end, c);
	c->chan.state = MS_SERVING;
	return r;
}

static int
key_on_order(void *arg, struct imsg *m, union msg_any *v)
{
	struct key_state *ks = arg;

	if (m->type == MSG_KEY_CLIENT)
		return key_on_new_client(ks, m, v->KEY_CLIENT.worker);
	key_load(ks, imsg_take_fd(m));
	key_start_signer(ks);
	key_confine();
	ks->monitor.state = MS_SERVING;
	return key_put_ready(ks);
}

/* The monitor is gone, so are we. */
static void
key_on_monitor_end(void *arg, const char *why)
{
	(void)arg;
	if (why != NULL)
		fatal("monitor-violation", "reason=\"%s\"", why);
	_exit(0);
}

/* A negative descriptor makes poll skip the slot. */
static void
key_set_pollfd(struct pollfd *pfd, const struct chan *c)
{
	pfd->fd = c->is_open ? c->im.fd : -1;
	pfd->events = c->is_paused ? 0 : POLLIN;
	if (chan_has_output(c))
		pfd->events |= POLLOUT;
	pfd->revents = 0;
}

static void
key_on_poll(struct chan *c, const struct pollfd *pfd)
{
	if ((pfd->revents & POLLOUT) != 0)
		chan_flush(c);
	if ((pfd->revents & (POLLIN | POLLHUP | POLLERR)) != 0)
		chan_turn(c);
}

static void
key_loop(struct key_state *ks)
{
	struct pollfd pfds[MAX_NET_WORKERS + 1];
	size_t i;

	for (;;) {
		for (i = 0; i < MAX_NET_WORKERS; i++)
			key_set_pollfd(&pfds[i], &ks->clients[i].chan);
		key_set_pollfd(&pfds[i], &ks->monitor);
		if (poll(pfds, MAX_NET_WORKERS + 1, -1) == -1) {
			if (errno == EINTR)
				continue;
			fatal("poll", "reason=\"%s\"", strerror(errno));
		}
		for (i = 0; i < MAX_NET_WORKERS; i++)
			key_on_poll(&ks->clients[i].chan, &pfds[i]);
		key_on_poll(&ks->monitor, &pfds[i]);
	}
}

int
main(void)
{
	static struct key_state ks;
	int r;

	umask(077);
	log_init("cloopd-key", LOGL_INFO, LOGF_TEXT);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);	/* a terminal's ^C is the monitor's */
	if ((r = chan_init(&ks.monitor, KEY_CHANNEL_FD, MSG_M2K, MSG_K2M,
	    KEY_QUEUE_MAX, key_on_order, key_on_monitor_end, &ks)) != 0)
		fatal("start", "reason=\"no channel on descriptor 3: %s\"",
		    cl_strerror(r));
	key_loop(&ks);
	return 0;
}
