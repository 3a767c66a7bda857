/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen: symmetric keys, and -r kek.  Random bytes come from the
 * kernel, by arc4random; a key lives in memory only until it is in its file.
 *
 * A rotation holds the store's lock, so no hub runs.  Steps, each safe to be
 * cut short:
 *
 *	1 kek.key.new is made, unless a rotation before left it
 *	2 every data key is wrapped anew, in one transaction
 *	3 kek.key.new becomes kek.key
 *
 * Between 2 and 3 a hub that starts finds both keys and can open everything.
 * Only wrapped data keys are touched; no secret is opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "store/db/store.h"
#include "store/db/store_secret.h"
#include "keygen.h"

#define KEYGEN_STORE_WAIT_MS 1000

/* The fingerprint of a symmetric key says nothing about the key: a hash of
 * 256 random bits behind a prefix of its own. */
static int
keygen_print_raw(const char *path, const char *purpose,
    const uint8_t key[KEYFILE_RAW_LEN])
{
	static const char prefix[] = "cloop key fingerprint";
	uint8_t in[sizeof(prefix) + KEYFILE_RAW_LEN];
	uint8_t md[EVP_MAX_MD_SIZE];
	char text[KEYGEN_PRINT_LEN];
	int ok;

	memcpy(in, prefix, sizeof(prefix));
	memcpy(in + sizeof(prefix), key, KEYFILE_RAW_LEN);
	ok = EVP_Digest(in, sizeof(in), md, NULL, EVP_sha256(), NULL);
	explicit_bzero(in, sizeof(in));
	if (ok != 1)
		return keygen_fail("%s: SHA-256 failed", path);
	keygen_format_digest(md, text);
	printf("%s: %s key, 256 bits\n  fingerprint %s\n", path, purpose,
	    text);
	return KEYGEN_DONE;
}

int
keygen_make_raw(const struct keygen *kg, const char *name)
{
	uint8_t key[KEYFILE_RAW_LEN];
	char path[MAX_PATH_LEN], text[KEYFILE_RAW_MAX];
	const char *purpose = keyfile_find_purpose(name);
	size_t len;
	int r;

	if ((r = keygen_format_path(kg, name, path, sizeof(path))) != 0)
		return r;
	arc4random_buf(key, sizeof(key));
	len = keyfile_format_raw(purpose, key, text);
	if ((r = keygen_save(path, KEYFILE_MODE_KEY, text, len)) ==
	    KEYGEN_DONE)
		r = keygen_print_raw(path, purpose, key);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return r;
}

int
keygen_show_raw(const char *path, const char *purpose)
{
	struct secret text = SECRET_INIT;
	uint8_t key[KEYFILE_RAW_LEN];
	char err[512];
	int r;

	/* Read again as a key: one that others can read is refused. */
	if (keyfile_load(NULL, path, &text, err, sizeof(err)) != 0)
		return keygen_fail("%s", err);
	if (keyfile_parse_raw(purpose, (const char *)text.data, text.len,
	    key) != 0)
		r = keygen_fail("%s: not a %s key of cloop-keygen", path,
		    purpose);
	else
		r = keygen_print_raw(path, purpose, key);
	explicit_bzero(key, sizeof(key));
	secret_clear(&text);
	return r;
}

/* --------------------------------------------------------------- rotation */

static int
keygen_load_next(const struct keygen *kg, struct secret *next)
{
	char err[512];
	int r;

	r = keyfile_load_raw(kg->key_dir, KEYFILE_KEK_NEXT, next, err,
	    sizeof(err));
	if (r == CL_OK) {
		printf("an unfinished rotation goes on\n");
		return KEYGEN_DONE;
	}
	if (r != CL_NOTFOUND)
		return keygen_fail("%s", err);
	if ((r = keygen_make_raw(kg, KEYFILE_KEK_NEXT)) != KEYGEN_DONE)
		return r;
	if (keyfile_load_raw(kg->key_dir, KEYFILE_KEK_NEXT, next, err,
	    sizeof(err)) != CL_OK)
		return keygen_fail("%s", err);
	return KEYGEN_DONE;
}

static int
keygen_rewrap(struct store *s, const struct secret *old,
    const struct secret *next, unsigned int *np)
{
	char actor[32], n[16];
	int r;

	if ((r = store_begin_turn(s)) != CL_OK ||
	    (r = store_rewrap_secrets(s, old, next, np)) != CL_OK)
		return r;
	snprintf(actor, sizeof(actor), "uid:%ld", (long)getuid());
	snprintf(n, sizeof(n), "%u", *np);
	if ((r = store_add_event(s, util_wall_ns(), actor, "secret.rewrap",
	    "allow", "hub", "kek", "secrets", n, (char *)NULL)) != CL_OK)
		return r;
	return store_commit_turn(s);
}

/* The new key takes the old one's name, for good. */
static int
keygen_place_next(const struct keygen *kg)
{
	char from[MAX_PATH_LEN], to[MAX_PATH_LEN];
	int fd, bad;

	if (snprintf(from, sizeof(from), "%s/%s", kg->key_dir,
	    KEYFILE_KEK_NEXT) >= (int)sizeof(from) ||
	    snprintf(to, sizeof(to), "%s/%s", kg->key_dir, KEYFILE_KEK) >=
	    (int)sizeof(to))
		return keygen_fail("%s: path too long", kg->key_dir);
	if (rename(from, to) == -1)
		return keygen_fail("%s: %s", to, strerror(errno));
	if ((fd = open(kg->key_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) ==
	    -1)
		return keygen_fail("%s: %s", kg->key_dir, strerror(errno));
	bad = fsync(fd) == -1;
	close(fd);
	return bad ? keygen_fail("%s: %s", kg->key_dir, strerror(errno)) :
	    KEYGEN_DONE;
}

int
keygen_rotate(const struct keygen *kg)
{
	struct secret old = SECRET_INIT, next = SECRET_INIT;
	struct store *s = NULL;
	unsigned int n = 0;
	char err[512];
	int r, status;

	if ((r = store_open(kg->state_dir, KEYGEN_STORE_WAIT_MS, &s, err,
	    sizeof(err))) != CL_OK)
		return keygen_fail("%s%s", err, r == CL_STATE ?
		    "; stop cloopd first" : "");
	if (keyfile_load_raw(kg->key_dir, KEYFILE_KEK, &old, err,
	    sizeof(err)) != CL_OK)
		status = keygen_fail("%s", err);
	else if ((status = keygen_load_next(kg, &next)) == KEYGEN_DONE) {
		r = keygen_rewrap(s, &old, &next, &n);
		if (r == CL_DENIED)
			status = keygen_fail("a secret opens under neither "
			    "key: nothing was changed");
		else if (r != CL_OK)
			status = keygen_fail("the store failed: %s; run it "
			    "again", r == CL_DB ? store_error(s) :
			    cl_strerror(r));
		else
			status = keygen_place_next(kg);
	}
	if (status == KEYGEN_DONE)
		printf("%u secrets rewrapped; the old key opens nothing any "
		    "more\n", n);
	secret_clear(&old);
	secret_clear(&next);
	store_close(s);
	return status;
}
