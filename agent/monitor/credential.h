/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The device's credential file and the token file.
 */
#ifndef CLOOP_CREDENTIAL_H
#define CLOOP_CREDENTIAL_H

#include <stddef.h>

#include "common/json/flatjson.h"
#include "common/model/bundle.h"

#define CREDENTIAL_READABLE 0x01	/* others may read the file: warn */

/*
 * A stored credential.  The strings borrow from `doc`, which also keeps the
 * members we do not know, so that they survive a rewrite.
 */
struct credential {
	struct flatjson doc;
	const char *server;		/* not blank */
	const char *agent_id;		/* a usable id (util_is_id), or NULL */
	const char *name;		/* or NULL, as the rest */
	const char *credential;		/* not blank */
	const char *workdir_root;
	const char *pin;
};

/*
 * Load and check.  CL_NOTFOUND: there is no such file (not enrolled).
 * Otherwise an error is fatal for the daemon: CL_DENIED (symbolic link,
 * foreign owner), CL_FORMAT, CL_TOOBIG, CL_SYSTEM, CL_NOMEM; *whyp is a
 * constant text.  *flagsp gets CREDENTIAL_*.
 */
int credential_load(const char *path, struct credential *c, int *flagsp,
    const char **whyp);
/* The same from memory: what load does once the bytes are there. */
int credential_parse(const void *p, size_t len, struct credential *c,
    const char **whyp);

/* What to change; NULL leaves a member as it is. */
struct credential_change {
	const char *server;
	const char *agent_id;
	const char *name;
	const char *credential;
	const char *workdir_root;
	const char *pin;
	const char *enrolled_at;
};
/*
 * Apply the change to *c and write the file: known members first, in their
 * order, two spaces, final newline, 0600, atomically; the directory is made
 * 0700.  CL_SYSTEM, CL_NOMEM, CL_TOOBIG, CL_FORMAT; *c keeps its old content
 * on failure.
 */
int credential_save(const char *path, struct credential *c,
    const struct credential_change *change);
void credential_clear(struct credential *c);

/*
 * A token or bundle text: a bundle is decoded, anything else is a bare token
 * (then b has only `token`).  White space around is ignored.  CL_NOTFOUND
 * for blank text, CL_FORMAT, CL_TOOBIG, CL_NOMEM with *whyp set.
 */
int credential_parse_token(const char *text, size_t len, struct bundle *b,
    const char **whyp);
/*
 * The same from a file of at most 64 KiB.  CL_NOTFOUND: missing or blank
 * (*whyp says which); CL_DENIED, CL_SYSTEM, and as above.
 */
int credential_load_token(const char *path, struct bundle *b, int *flagsp,
    const char **whyp);

/* 1 when the text may stand in an Authorization header: 1..512 visible
 * ASCII characters. */
int credential_is_bearer(const char *text);

#endif
