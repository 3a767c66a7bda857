/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One flat JSON object: strings, and other scalars that are kept but not
 * understood.  For the two documents that a privileged program must read
 * itself, both made by us: the credential file and the enrollment bundle.
 * canon.h reads one spelling only, without indentation, and json-c may not
 * run as root; hence this one, as small as those two need: no nesting, no
 * numbers as values, no duplicate members, valid UTF-8, no NUL inside a
 * string.
 */
#ifndef CLOOP_FLATJSON_H
#define CLOOP_FLATJSON_H

#include <stddef.h>

#define FLATJSON_MAX_LEN 65536		/* the token file's bound */
#define FLATJSON_MAX_MEMBERS 64

struct flatjson_member {
	char *key;
	char *value;		/* decoded string, or the scalar's own text */
	int is_string;
};

struct flatjson {
	struct flatjson_member member[FLATJSON_MAX_MEMBERS];
	size_t nmembers;
};

/*
 * Parse exactly len bytes; white space around is allowed.  `doc` is set on
 * success and empty otherwise.  CL_FORMAT, CL_TOOBIG (length, members),
 * CL_NOMEM.
 */
int flatjson_parse(const void *p, size_t len, struct flatjson *doc);
void flatjson_init(struct flatjson *doc);
/* Wipe and free: the document may hold a credential. */
void flatjson_clear(struct flatjson *doc);

/*
 * The string under this key, borrowed.  CL_NOTFOUND when the member is
 * absent, CL_FORMAT when it is not a string (null counts as absent).
 */
int flatjson_find_string(const struct flatjson *doc, const char *key,
    const char **sp);
/* Set a string member: in place, or at the end.  CL_TOOBIG, CL_NOMEM. */
int flatjson_put_string(struct flatjson *doc, const char *key,
    const char *value);
/* Remove a member; no effect when it is absent. */
void flatjson_del_member(struct flatjson *doc, const char *key);

/*
 * The document as Go's encoding/json writes it: compact when `indent` is 0,
 * else indented by that many spaces and with a final newline.  *textp is
 * NUL-terminated and owned by the caller (wipe it).  CL_NOMEM.
 */
int flatjson_format(const struct flatjson *doc, unsigned int indent,
    char **textp, size_t *lenp);

#endif
