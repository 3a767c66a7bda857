/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Enrollment bundles.  Runs in `cloop-enroll` on the hub and on the device,
 * and in the device monitor at its start.  The text comes from an operator's
 * clipboard or a file: nothing in it is trusted beyond its form; what the
 * server URL and the pin mean is the caller's business.  The decoded text
 * carries an enrollment token, so every copy is wiped.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include "bundle.h"
#include "common/base/b64.h"
#include "common/base/err.h"
#include "common/json/flatjson.h"

#define BUNDLE_SPACE " \t\r\n\v\f"

static void
bundle_trim(const char **textp, size_t *lenp)
{
	const char *p = *textp, *end = p + *lenp;

	while (p < end && *p != '\0' && strchr(BUNDLE_SPACE, *p) != NULL)
		p++;
	while (end > p && end[-1] != '\0' &&
	    strchr(BUNDLE_SPACE, end[-1]) != NULL)
		end--;
	*textp = p;
	*lenp = (size_t)(end - p);
}

static int
bundle_is_blank(const char *s)
{
	return s == NULL || s[strspn(s, BUNDLE_SPACE)] == '\0';
}

int
bundle_has_prefix(const char *text, size_t len)
{
	bundle_trim(&text, &len);
	return len >= strlen(BUNDLE_PREFIX) &&
	    memcmp(text, BUNDLE_PREFIX, strlen(BUNDLE_PREFIX)) == 0;
}

/* The members in the order in which Go writes them. */
static const struct bundle_row {
	const char *key;
	size_t offset;
	int required;		/* present even when empty */
} bundle_rows[] = {
	{ "server", offsetof(struct bundle, server), 1 },
	{ "token", offsetof(struct bundle, token), 1 },
	{ "pin", offsetof(struct bundle, pin), 0 },
	{ "enrollment_id", offsetof(struct bundle, enrollment_id), 1 },
	{ "name", offsetof(struct bundle, name), 1 },
	{ "workdir_root", offsetof(struct bundle, workdir_root), 0 },
	{ "expires_at", offsetof(struct bundle, expires_at), 1 },
};
#define BUNDLE_NROWS (sizeof(bundle_rows) / sizeof(bundle_rows[0]))

static char **
bundle_find_field(const struct bundle *b, size_t i)
{
	return (char **)((char *)(uintptr_t)b + bundle_rows[i].offset);
}

void
bundle_clear(struct bundle *b)
{
	char **field;
	size_t i;

	if (b == NULL)
		return;
	for (i = 0; i < BUNDLE_NROWS; i++) {
		field = bundle_find_field(b, i);
		if (*field != NULL)
			freezero(*field, strlen(*field));
		*field = NULL;
	}
}

static int
bundle_load_fields(const struct flatjson *doc, struct bundle *b,
    const char **whyp)
{
	const char *s;
	char **field;
	size_t i;
	int r;

	for (i = 0; i < BUNDLE_NROWS; i++) {
		r = flatjson_find_string(doc, bundle_rows[i].key, &s);
		if (r == CL_NOTFOUND)
			continue;
		if (r != 0) {
			*whyp = "a member of the bundle is not a string";
			return r;
		}
		field = bundle_find_field(b, i);
		if ((*field = strdup(s)) == NULL) {
			*whyp = "out of memory";
			return CL_NOMEM;
		}
	}
	if (bundle_is_blank(b->server) || bundle_is_blank(b->token)) {
		*whyp = "the bundle names no server or holds no token";
		return CL_FORMAT;
	}
	return CL_OK;
}

/* Drop line ends inside, as Go's decoder does: mail wraps lines. */
static char *
bundle_copy_body(const char *text, size_t len, size_t *lenp)
{
	char *body;
	size_t i, n = 0;

	if ((body = calloc(1, len + 1)) == NULL)
		return NULL;
	for (i = 0; i < len; i++)
		if (text[i] != '\r' && text[i] != '\n')
			body[n++] = text[i];
	*lenp = n;
	return body;
}

int
bundle_parse(const char *text, size_t len, struct bundle *b,
    const char **whyp)
{
	struct flatjson doc;
	char *body = NULL;
	uint8_t *json = NULL;
	size_t body_len = 0, json_len = 0;
	int r = CL_FORMAT;

	memset(b, 0, sizeof(*b));
	flatjson_init(&doc);
	bundle_trim(&text, &len);
	*whyp = "the bundle is longer than 64 KiB";
	if (len > MAX_BUNDLE_TEXT_LEN)
		return CL_TOOBIG;
	*whyp = "the bundle does not begin with " BUNDLE_PREFIX;
	if (!bundle_has_prefix(text, len))
		return CL_FORMAT;
	text += strlen(BUNDLE_PREFIX);
	len -= strlen(BUNDLE_PREFIX);
	*whyp = "out of memory";
	if ((body = bundle_copy_body(text, len, &body_len)) == NULL ||
	    (json = calloc(1, len + 1)) == NULL) {
		r = CL_NOMEM;
		goto out;
	}
	*whyp = "the bundle is not base64url without padding";
	if ((r = b64url_decode(body, body_len, json, len, &json_len)) != 0)
		goto out;
	*whyp = "the bundle does not hold a JSON object of strings";
	if ((r = flatjson_parse(json, json_len, &doc)) != 0)
		goto out;
	if ((r = bundle_load_fields(&doc, b, whyp)) == 0)
		*whyp = NULL;
 out:
	if (r != 0)
		bundle_clear(b);
	flatjson_clear(&doc);
	freezero(body, len + 1);
	freezero(json, len + 1);
	return r;
}

int
bundle_format(const struct bundle *b, char **textp)
{
	struct flatjson doc;
	char *json = NULL, *text = NULL, *value;
	size_t json_len = 0, i, n = strlen(BUNDLE_PREFIX);
	int r = CL_FORMAT;

	*textp = NULL;
	flatjson_init(&doc);
	if (bundle_is_blank(b->server) || bundle_is_blank(b->token))
		goto out;
	for (i = 0; i < BUNDLE_NROWS; i++) {
		value = *bundle_find_field(b, i);
		if ((value == NULL || *value == '\0') &&
		    !bundle_rows[i].required)
			continue;
		if ((r = flatjson_put_string(&doc, bundle_rows[i].key,
		    value == NULL ? "" : value)) != 0)
			goto out;
	}
	if ((r = flatjson_format(&doc, 0, &json, &json_len)) != 0)
		goto out;
	r = CL_TOOBIG;
	if (n + B64_LEN(json_len) > MAX_BUNDLE_TEXT_LEN)
		goto out;
	r = CL_NOMEM;
	if ((text = calloc(1, n + B64_LEN(json_len) + 1)) == NULL)
		goto out;
	memcpy(text, BUNDLE_PREFIX, n);
	b64url_encode(json, json_len, text + n);
	*textp = text;
	r = CL_OK;
 out:
	freezero(json, json_len);
	flatjson_clear(&doc);
	return r;
}
