/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Enrollment bundles: `cloopenroll1.` + base64url of compact JSON.  Made by
 * the hub's tools, read by the device and by `cloop-enroll join`.
 */
#ifndef CLOOP_BUNDLE_H
#define CLOOP_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#define BUNDLE_PREFIX "cloopenroll1."
#define TOKEN_PREFIX "clet1."
#define MAX_BUNDLE_TEXT_LEN 65536	/* at most 64 KiB are read */

/* Every text is owned by the struct; NULL when the member is absent. */
struct bundle {
	char *server;
	char *token;		/* secret: wiped by bundle_clear */
	char *pin;
	char *enrollment_id;
	char *name;
	char *workdir_root;
	char *expires_at;	/* RFC 3339, as written; not checked here */
};

/* 1 when the text, after white space, begins as a bundle. */
int bundle_has_prefix(const char *text, size_t len);
/*
 * Decode; white space around is ignored.  `server` and `token` must not be
 * blank.  On failure *whyp is a constant text saying what is wrong.
 * CL_FORMAT, CL_TOOBIG, CL_NOMEM.
 */
int bundle_parse(const char *text, size_t len, struct bundle *b,
    const char **whyp);
/* The text form, owned by the caller (wipe it).  CL_FORMAT when server or
 * token are blank; CL_TOOBIG, CL_NOMEM. */
int bundle_format(const struct bundle *b, char **textp);
/* Wipe and free. */
void bundle_clear(struct bundle *b);

#endif
