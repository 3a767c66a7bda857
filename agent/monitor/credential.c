/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The credential file and the token file.  Runs in the device monitor, as
 * root or as the service user.  The credential file was written by us (or by
 * the reference agent) and lies in a directory of ours; the token file was
 * put there by an administrator.  Both are opened first and judged by their
 * descriptor, and read by common/json/flatjson, which knows one flat object and
 * nothing else: the monitor has no JSON library.  Every copy is wiped.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "credential.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"

#define CREDENTIAL_SPACE " \t\r\n\v\f"
#define MAX_TOKEN_FILE_LEN 65536

static int
credential_is_blank(const char *s)
{
	return s == NULL || s[strspn(s, CREDENTIAL_SPACE)] == '\0';
}

int
credential_is_bearer(const char *text)
{
	size_t n;

	for (n = 0; text[n] != '\0'; n++)
		if (n == MAX_TOKEN_LEN || text[n] <= ' ' || text[n] > '~')
			return 0;
	return n > 0;
}

void
credential_clear(struct credential *c)
{
	if (c == NULL)
		return;
	flatjson_clear(&c->doc);
	memset(c, 0, sizeof(*c));
}

/* The members of the file in the order in which they are written. */
static const struct credential_row {
	const char *key;
	size_t offset;		/* in struct credential; 0: not kept */
	size_t change;		/* in struct credential_change */
} credential_rows[] = {
#define ROW(m)                                                                 \
	{ #m, offsetof(struct credential, m),                                  \
	    offsetof(struct credential_change, m) }
	ROW(server), ROW(agent_id), ROW(name), ROW(credential),
	ROW(workdir_root), ROW(pin),
#undef ROW
	{ "enrolled_at", 0, offsetof(struct credential_change, enrolled_at) },
};
#define CREDENTIAL_NROWS (sizeof(credential_rows) / sizeof(credential_rows[0]))

/* Point the strings into the document. */
static int
credential_bind(struct credential *c)
{
	const char *s;
	size_t i;
	int r;

	for (i = 0; i < CREDENTIAL_NROWS; i++) {
		r = flatjson_find_string(&c->doc, credential_rows[i].key, &s);
		if (r != 0 && r != CL_NOTFOUND)
			return r;
		if (credential_rows[i].offset != 0)
			memcpy((char *)c + credential_rows[i].offset, &s,
			    sizeof(s));
	}
	return CL_OK;
}

static int
credential_check(struct credential *c, const char **whyp)
{
	*whyp = "it holds no credential; enroll this device again";
	if (credential_is_blank(c->credential))
		return CL_FORMAT;
	*whyp = "its credential is damaged; enroll this device again";
	if (!credential_is_bearer(c->credential))
		return CL_FORMAT;
	*whyp = "it names no server; enroll this device again";
	if (credential_is_blank(c->server))
		return CL_FORMAT;
	*whyp = "its agent_id is not usable; enroll this device again";
	if (c->agent_id != NULL && *c->agent_id == '\0')
		c->agent_id = NULL;
	if (c->agent_id != NULL && !util_is_id(c->agent_id))
		return CL_FORMAT;
	*whyp = NULL;
	return CL_OK;
}

int
credential_parse(const void *p, size_t len, struct credential *c,
    const char **whyp)
{
	int r;

	memset(c, 0, sizeof(*c));
	*whyp = "it is not a JSON object of strings; enroll this device again";
	if ((r = flatjson_parse(p, len, &c->doc)) != 0 ||
	    (r = credential_bind(c)) != 0 ||
	    (r = credential_check(c, whyp)) != 0)
		credential_clear(c);
	return r;
}

/*
 * Open and read a file that holds a secret: no link, owner root or us.
 * Permission bits are only reported: a warning, no refusal.
 */
static int
credential_load_bytes(const char *path, size_t max, uint8_t **datap,
    size_t *lenp, int *flagsp, const char **whyp)
{
	mode_t mode;
	int fd, r;

	*datap = NULL;
	*lenp = 0;
	*flagsp = 0;
	r = util_open_file(path, UTIL_OPEN_OWNED, &fd, &mode);
	if (r == CL_SYSTEM && errno == ENOENT) {
		*whyp = "it does not exist";
		return CL_NOTFOUND;
	}
	if (r != 0) {
		*whyp = r == CL_DENIED ?
		    "it belongs neither to root nor to this user" :
		    r == CL_FORMAT ? "it is not a regular file" :
		    errno == ELOOP ? "it is a symbolic link" :
		    "it cannot be opened";
		return r == CL_SYSTEM && errno == ELOOP ? CL_DENIED : r;
	}
	if (mode & 077)
		*flagsp = CREDENTIAL_READABLE;
	r = util_load_fd(fd, max, datap, lenp);
	if (r != 0)
		*whyp = r == CL_TOOBIG ? "it is longer than 64 KiB" :
		    "it cannot be read";
	close(fd);
	return r;
}

int
credential_load(const char *path, struct credential *c, int *flagsp,
    const char **whyp)
{
	uint8_t *data;
	size_t len;
	int r;

	memset(c, 0, sizeof(*c));
	r = credential_load_bytes(path, FLATJSON_MAX_LEN, &data, &len, flagsp,
	    whyp);
	if (r != 0)
		return r;
	r = credential_parse(data, len, c, whyp);
	freezero(data, len);
	return r;
}

/* A document with the known members in their order, then the others. */
static int
credential_make_doc(const struct flatjson *old,
    const struct credential_change *change, struct flatjson *doc)
{
	const char *s;
	size_t i;
	int r;

	for (i = 0; i < CREDENTIAL_NROWS; i++) {
		memcpy(&s, (const char *)change + credential_rows[i].change,
		    sizeof(s));
		if (s == NULL)
			(void)flatjson_find_string(old,
			    credential_rows[i].key, &s);
		if (s != NULL && *s != '\0' && (r = flatjson_put_string(doc,
		    credential_rows[i].key, s)) != 0)
			return r;
	}
	for (i = 0; i < old->nmembers; i++) {
		if (flatjson_find_string(doc, old->member[i].key, &s) !=
		    CL_NOTFOUND)
			continue;
		if ((r = flatjson_put_string(doc, old->member[i].key,
		    old->member[i].value)) != 0)
			return r;
		doc->member[doc->nmembers - 1].is_string =
		    old->member[i].is_string;
	}
	return CL_OK;
}

static int
credential_make_dir(const char *path)
{
	char *copy;
	int r;

	if ((copy = strdup(path)) == NULL)
		return CL_NOMEM;
	r = util_make_dirs(dirname(copy), 0700, (uid_t)-1, (gid_t)-1);
	free(copy);
	return r;
}

int
credential_save(const char *path, struct credential *c,
    const struct credential_change *change)
{
	struct credential next;
	const char *why;
	char *text = NULL;
	size_t len = 0;
	int r;

	memset(&next, 0, sizeof(next));
	if ((r = credential_make_doc(&c->doc, change, &next.doc)) != 0 ||
	    (r = credential_bind(&next)) != 0 ||
	    (r = credential_check(&next, &why)) != 0 ||
	    (r = flatjson_format(&next.doc, 2, &text, &len)) != 0 ||
	    (r = credential_make_dir(path)) != 0 ||
	    (r = util_save_file(path, 0600, text, len)) != 0)
		goto out;
	credential_clear(c);
	*c = next;
	memset(&next, 0, sizeof(next));
	/* The copied strings were bound to next's members, which moved as
	 * pointers: they are still those of c->doc. */
 out:
	credential_clear(&next);
	freezero(text, len);
	return r;
}

int
credential_parse_token(const char *text, size_t len, struct bundle *b,
    const char **whyp)
{
	const char *end = text + len;

	memset(b, 0, sizeof(*b));
	if (bundle_has_prefix(text, len))
		return bundle_parse(text, len, b, whyp);
	while (text < end && *text != '\0' &&
	    strchr(CREDENTIAL_SPACE, *text) != NULL)
		text++;
	while (end > text && end[-1] != '\0' &&
	    strchr(CREDENTIAL_SPACE, end[-1]) != NULL)
		end--;
	*whyp = "it is empty";
	if (text == end)
		return CL_NOTFOUND;
	*whyp = "out of memory";
	if ((b->token = strndup(text, (size_t)(end - text))) == NULL)
		return CL_NOMEM;
	*whyp = "it holds neither a bundle nor a token";
	if (strlen(b->token) != (size_t)(end - text) ||
	    strncmp(b->token, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0 ||
	    !credential_is_bearer(b->token)) {
		bundle_clear(b);
		return CL_FORMAT;
	}
	*whyp = NULL;
	return CL_OK;
}

int
credential_load_token(const char *path, struct bundle *b, int *flagsp,
    const char **whyp)
{
	uint8_t *data;
	size_t len;
	int r;

	memset(b, 0, sizeof(*b));
	r = credential_load_bytes(path, MAX_TOKEN_FILE_LEN, &data, &len,
	    flagsp, whyp);
	if (r != 0)
		return r;
	r = credential_parse_token((const char *)data, len, b, whyp);
	freezero(data, len);
	return r;
}
