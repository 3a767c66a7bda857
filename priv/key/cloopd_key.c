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
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "sandbox/self/self.h"

#define KEY_CHANNEL_FD 3
#define KEY_FILE_MAX 65536
#define KEY_QUEUE_MAX 16	/* a cloopd-net asks one at a time */
#define KEY_SCHEME 0x0403	/* ecdsa_secp256r1_sha256 */
#define KEY_DIGEST_LEN 32
#define KEY_SIG_MAX 128
#define KEY_NAME_MAX 32

struct key_client {
	int open;
	struct imsg_chan chan;
	struct msgcat_seen seen;
};

struct key_state {
	struct imsg_chan monitor;
	struct msgcat_seen seen;
	unsigned int state;	/* MS_* of the monitor's channel */
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

static void
key_put_ready(struct key_state *ks)
{
	struct buf b;
	unsigned char *der = NULL;
	int len, r;

	if ((len = i2d_PUBKEY(ks->pkey, &der)) <= 0)
		fatal("key-load", "reason=\"cannot encode the public key\"");
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, MSGCAT_VERSION);
	buf_put_blob(&b, der, (size_t)len);
	OPENSSL_free(der);
	r = imsg_compose(&ks->monitor, MSG_KEY_READY, 0, &b, -1);
	buf_clear(&b);
	if (r != 0)
		fatal("key-ready", "reason=\"%s\"", cl_strerror(r));
}

static void
key_close_client(struct key_state *ks, size_t worker)
{
	if (ks->clients[worker].open)
		imsg_clear(&ks->clients[worker].chan);
	memset(&ks->clients[worker], 0, sizeof(ks->clients[worker]));
}

/* The monitor gives a new cloopd-net its channel; it replaces the old one. */
static void
key_add_client(struct key_state *ks, struct imsg *m)
{
	struct key_client *c;
	uint16_t worker;
	int r;

	worker = buf_get_u16(&m->body);
	/* Workers count from 1. */
	if (buf_end(&m->body) != 0 || worker == 0 || worker > MAX_NET_WORKERS)
		fatal("monitor-violation", "type=KEY_CLIENT");
	key_close_client(ks, worker - 1u);
	c = &ks->clients[worker - 1u];
	if ((r = imsg_init(&c->chan, imsg_take_fd(m), KEY_QUEUE_MAX)) != 0)
		fatal("key-client", "reason=\"%s\"", cl_strerror(r));
	c->open = 1;
}

static void
key_on_monitor(struct key_state *ks)
{
	struct imsg m;
	const char *why;
	int r;

	while ((r = imsg_read(&ks->monitor, &m)) == 0) {
		if (msgcat_check(MSG_M2K, ks->state, &m, &ks->seen, &why) != 0)
			fatal("monitor-violation", "type=%s reason=\"%s\"",
			    msgcat_name(m.type), why);
		if (m.type == MSG_KEY_LOAD) {
			key_load(ks, imsg_take_fd(&m));
			key_start_signer(ks);
			key_confine();
			key_put_ready(ks);
			ks->state = MS_SERVING;
		} else
			key_add_client(ks, &m);
		imsg_free(&m);
	}
	if (r == CL_EOF)
		_exit(0);	/* the monitor is gone, so are we */
	if (r != CL_INCOMPLETE)
		fatal("monitor-read", "reason=\"%s\"", cl_strerror(r));
}

/* One question.  Anything but a well-formed one is CL_FORMAT. */
static int
key_answer_sign(struct key_state *ks, struct key_client *c, struct imsg *m)
{
	uint8_t sig[KEY_SIG_MAX];
	const uint8_t *digest;
	size_t digest_len, len = sizeof(sig);
	struct buf b;
	uint16_t scheme;
	int r;

	scheme = buf_get_u16(&m->body);
	digest = buf_get_blob(&m->body, KEY_DIGEST_LEN, &digest_len);
	if (buf_end(&m->body) != 0 || digest == NULL ||
	    digest_len != KEY_DIGEST_LEN)
		return CL_FORMAT;
	r = scheme == KEY_SCHEME ? key_sign(ks, digest, sig, &len) :
	    CL_UNSUPPORTED;
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u8(&b, r == 0);
	buf_put_blob(&b, sig, r == 0 ? len : 0);
	r = imsg_compose(&c->chan, MSG_KEY_SIGN_ANS, m->id, &b, -1);
	buf_clear(&b);
	return r;
}

static void
key_on_client(struct key_state *ks, size_t worker)
{
	struct key_client *c = &ks->clients[worker];
	struct imsg m;
	const char *why = NULL;
	int r;

	while ((r = imsg_read(&c->chan, &m)) == 0) {
		r = msgcat_check(MSG_N2K, MS_SERVING, &m, &c->seen, &why);
		if (r == 0)
			r = key_answer_sign(ks, c, &m);
		imsg_free(&m);
		if (r != 0)
			break;
	}
	if (r == CL_INCOMPLETE)
		return;
	if (r != CL_EOF)
		log_warn("client-violation", "worker=%zu reason=\"%s\"",
		    worker, why != NULL ? why :
		    "bad question, or answers are not read");
	key_close_client(ks, worker);
}

/* Send what is queued; what is left waits for POLLOUT. */
static void
key_write(struct key_state *ks)
{
	size_t i;
	int r;

	r = imsg_write(&ks->monitor);
	if (r == CL_EOF)
		_exit(0);
	if (r != 0 && r != CL_INCOMPLETE)
		fatal("monitor-write", "reason=\"%s\"", cl_strerror(r));
	for (i = 0; i < MAX_NET_WORKERS; i++) {
		if (!ks->clients[i].open)
			continue;
		r = imsg_write(&ks->clients[i].chan);
		if (r != 0 && r != CL_INCOMPLETE)
			key_close_client(ks, i);
	}
}

/* A negative descriptor makes poll skip the slot. */
static void
key_set_pollfd(struct pollfd *pfd, const struct imsg_chan *c, int open)
{
	pfd->fd = open ? c->fd : -1;
	pfd->events = POLLIN;
	if (open && c->nqueued > 0)
		pfd->events |= POLLOUT;
	pfd->revents = 0;
}

static void
key_loop(struct key_state *ks)
{
	struct pollfd pfds[MAX_NET_WORKERS + 1];
	size_t i;

	for (;;) {
		for (i = 0; i < MAX_NET_WORKERS; i++)
			key_set_pollfd(&pfds[i], &ks->clients[i].chan,
			    ks->clients[i].open);
		key_set_pollfd(&pfds[i], &ks->monitor, 1);
		if (poll(pfds, MAX_NET_WORKERS + 1, -1) == -1) {
			if (errno == EINTR)
				continue;
			fatal("poll", "reason=\"%s\"", strerror(errno));
		}
		for (i = 0; i < MAX_NET_WORKERS; i++) {
			if (pfds[i].revents & (POLLIN | POLLHUP | POLLERR))
				key_on_client(ks, i);
		}
		if (pfds[i].revents & (POLLIN | POLLHUP | POLLERR))
			key_on_monitor(ks);
		key_write(ks);
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
	if ((r = imsg_init(&ks.monitor, KEY_CHANNEL_FD, KEY_QUEUE_MAX)) != 0)
		fatal("start", "reason=\"no channel on descriptor 3: %s\"",
		    cl_strerror(r));
	ks.state = MS_STARTING;
	key_loop(&ks);
	return 0;
}
