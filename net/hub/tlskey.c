/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The hub's TLS key as cloopd-net sees it: a public key whose signatures
 * are made by cloopd-key.  A taken-over cloopd-net can have things signed
 * while it lives; it never sees the key.  cloopd-key is one of ours, but its
 * answers are checked like everybody's.
 */

/* EC_KEY_METHOD: tlskey.h says why. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "tlskey.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/msg/chan.h"

#define TLSKEY_SIG_MAX 72	/* DER of two 33-byte integers */
#define TLSKEY_QUEUE_MAX 4	/* one question at a time */

/* Owned by the EC_KEY: freed with the last context that uses the key. */
struct tlskey {
	EVP_PKEY *pkey;
	struct chan chan;
	uint64_t next_id;	/* an answer that came too late is not ours */
};

static int tlskey_index = -1;
static EC_KEY_METHOD *tlskey_method;

static void
tlskey_close_channel(struct tlskey *k)
{
	chan_close(&k->chan);
}

static void
tlskey_on_free(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int idx,
    long argl, void *argp)
{
	struct tlskey *k = ptr;

	(void)parent;
	(void)ad;
	(void)idx;
	(void)argl;
	(void)argp;
	if (k == NULL)
		return;
	tlskey_close_channel(k);
	free(k);
}

/* EC_KEY_METHOD sign: DER of the signature over an already made digest. */
static int
tlskey_on_sign(int type, const unsigned char *digest, int digest_len,
    unsigned char *sig, unsigned int *sig_lenp, const BIGNUM *kinv,
    const BIGNUM *r, EC_KEY *ec)
{
	struct tlskey *k = EC_KEY_get_ex_data(ec, tlskey_index);
	size_t len = TLSKEY_SIG_MAX;

	(void)type;
	(void)kinv;
	(void)r;
	*sig_lenp = 0;
	if (k == NULL || digest_len != KEY_DIGEST_LEN)
		return 0;
	if (tlskey_sign(k, digest, sig, &len) != 0)
		return 0;
	*sig_lenp = (unsigned int)len;
	return 1;
}

/* Once per process. */
static int
tlskey_init_method(void)
{
	if (tlskey_index == -1)
		tlskey_index = EC_KEY_get_ex_new_index(0, NULL, NULL, NULL,
		    tlskey_on_free);
	if (tlskey_method == NULL &&
	    (tlskey_method = EC_KEY_METHOD_new(EC_KEY_OpenSSL())) != NULL)
		EC_KEY_METHOD_set_sign(tlskey_method, tlskey_on_sign, NULL,
		    NULL);
	return tlskey_index == -1 || tlskey_method == NULL ? CL_NOMEM : CL_OK;
}

/*
 * The leaf's public key as a legacy EC_KEY of our own.  CL_UNSUPPORTED for
 * anything but P-256.
 */
static int
tlskey_load_public(const uint8_t *chain_pem, size_t len, EC_KEY **ecp)
{
	EVP_PKEY *pkey = NULL;
	X509 *leaf = NULL;
	BIO *bio = NULL;
	int r = CL_FORMAT;

	*ecp = NULL;
	if (len > INT32_MAX || (bio = BIO_new_mem_buf(chain_pem, (int)len)) ==
	    NULL || (leaf = PEM_read_bio_X509(bio, NULL, NULL, NULL)) == NULL)
		goto out;
	r = CL_UNSUPPORTED;
	if ((pkey = X509_get_pubkey(leaf)) == NULL ||
	    EVP_PKEY_get_base_id(pkey) != EVP_PKEY_EC ||
	    (*ecp = EVP_PKEY_get1_EC_KEY(pkey)) == NULL)
		goto out;
	if (EC_GROUP_get_curve_name(EC_KEY_get0_group(*ecp)) ==
	    NID_X9_62_prime256v1)
		r = CL_OK;
 out:
	if (r != 0) {
		EC_KEY_free(*ecp);
		*ecp = NULL;
	}
	EVP_PKEY_free(pkey);
	X509_free(leaf);
	BIO_free(bio);
	ERR_clear_error();
	return r;
}

/* Tie k to ec: whoever frees ec last frees k.  Takes ec. */
static int
tlskey_set_pkey(struct tlskey *k, EC_KEY *ec)
{
	if ((k->pkey = EVP_PKEY_new()) == NULL ||
	    EC_KEY_set_method(ec, tlskey_method) != 1 ||
	    EVP_PKEY_assign_EC_KEY(k->pkey, ec) != 1) {
		EVP_PKEY_free(k->pkey);
		EC_KEY_free(ec);
		return CL_NOMEM;
	}
	if (EC_KEY_set_ex_data(ec, tlskey_index, k) != 1) {
		EVP_PKEY_free(k->pkey);
		return CL_NOMEM;
	}
	return CL_OK;
}

int
tlskey_new(const uint8_t *chain_pem, size_t len, int fd,
    struct tlskey **kp, const char **whyp)
{
	struct tlskey *k;
	EC_KEY *ec = NULL, *own = NULL;
	int r;

	*kp = NULL;
	if ((r = tlskey_init_method()) != 0 ||
	    (r = tlskey_load_public(chain_pem, len, &ec)) != 0) {
		if (whyp != NULL)
			*whyp = r == CL_FORMAT ? "there is no certificate" :
			    r == CL_UNSUPPORTED ? "the TLS key must be ECDSA "
			    "P-256 (RSA and other keys are not supported)" :
			    cl_strerror(r);
		goto out;
	}
	/* A copy: the certificate's own object must keep its method. */
	r = CL_NOMEM;
	if (whyp != NULL)
		*whyp = cl_strerror(r);
	if ((own = EC_KEY_dup(ec)) == NULL || (k = calloc(1, sizeof(*k))) ==
	    NULL) {
		EC_KEY_free(own);
		goto out;
	}
	k->next_id = 1;
	if (tlskey_set_pkey(k, own) != 0) {
		free(k);
		goto out;
	}
	*kp = k;
	r = tlskey_set_channel(k, fd);
	fd = -1;
	if (r != 0) {
		tlskey_free(k);
		*kp = NULL;
	}
 out:
	EC_KEY_free(ec);
	if (fd != -1)
		close(fd);
	return r;
}

void
tlskey_free(struct tlskey *k)
{
	if (k != NULL)
		EVP_PKEY_free(k->pkey);
}

int
tlskey_set_channel(struct tlskey *k, int fd)
{
	int r;

	tlskey_close_channel(k);
	if (fd == -1)
		return CL_OK;
	if ((r = chan_init(&k->chan, fd, MSG_K2N, MSG_N2K, TLSKEY_QUEUE_MAX,
	    NULL, NULL, NULL)) != 0)
		return r;
	k->chan.state = MS_SERVING;
	return CL_OK;
}

struct evp_pkey_st *
tlskey_get_pkey(struct tlskey *k)
{
	return k->pkey;
}

static int
tlskey_put_question(struct tlskey *k, const uint8_t *digest)
{
	uint8_t copy[KEY_DIGEST_LEN];
	struct msg_key_sign q = { .scheme = TLSKEY_SCHEME, .digest = copy,
	    .digest_len = sizeof(copy) };

	memcpy(copy, digest, sizeof(copy));
	return CHAN_SEND(&k->chan, KEY_SIGN, k->next_id, &q, -1);
}

static int
tlskey_take_answer(const struct msg_key_sign_ans *a, uint8_t *sig,
    size_t *lenp)
{
	if (a->signature_len > *lenp || (a->ok && a->signature_len == 0))
		return CL_FORMAT;
	if (!a->ok)
		return CL_DENIED;
	memcpy(sig, a->signature, a->signature_len);
	*lenp = a->signature_len;
	return CL_OK;
}

static int
tlskey_get_answer(struct tlskey *k, uint8_t *sig, size_t *lenp,
    int64_t deadline)
{
	union msg_any v;
	struct imsg m;
	const char *why;
	int r;

	do {
		if ((r = chan_wait(&k->chan, deadline, &m, &v, &why)) != 0)
			return r;
		if (m.id == k->next_id)
			r = tlskey_take_answer(&v.KEY_SIGN_ANS, sig, lenp);
		else if (m.id < k->next_id)
			r = CL_INCOMPLETE;	/* to one that timed out */
		else
			r = CL_FORMAT;
		msg_clear(m.type, &v);
		imsg_free(&m);
	} while (r == CL_INCOMPLETE);
	return r;
}

int
tlskey_sign(struct tlskey *k, const uint8_t digest[32], uint8_t *sig,
    size_t *lenp)
{
	int64_t deadline = util_now_ms() + KEY_SIGN_TIMEOUT_MS;
	int r;

	if (!k->chan.is_open)
		return CL_EOF;
	if ((r = tlskey_put_question(k, digest)) == 0)
		r = tlskey_get_answer(k, sig, lenp, deadline);
	k->next_id++;
	if (r != 0 && r != CL_TIMEOUT && r != CL_DENIED)
		tlskey_close_channel(k);
	return r;
}
