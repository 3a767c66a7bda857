/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Canonical JSON: strict reader (a document that is not its own canonical
 * form is refused) and writer.  The one JSON reader that may run in a
 * privileged process: it accepts exactly one spelling of each value.
 */
#ifndef CLOOP_CANON_H
#define CLOOP_CANON_H

#include <stddef.h>
#include <stdint.h>

enum canon_type { CANON_NULL, CANON_BOOL, CANON_INT, CANON_STRING,
	CANON_ARRAY, CANON_OBJECT };

struct canon;	/* a value; a tree owned by its root */

/* Parse exactly len bytes.  CL_FORMAT, CL_TOOBIG, CL_LIMIT, CL_NOMEM. */
int canon_parse(const void *p, size_t len, struct canon **rootp);
void canon_free(struct canon *root);
enum canon_type canon_get_type(const struct canon *v);
/* Accessors: CL_FORMAT on another type, CL_NOTFOUND for a missing member. */
int canon_get_bool(const struct canon *v, int *bp);
int canon_get_int(const struct canon *v, int64_t *np);
int canon_get_string(const struct canon *v, const char **sp, size_t *lenp);
size_t canon_get_count(const struct canon *v);	/* elements or members */
int canon_get_element(const struct canon *v, size_t i,
    const struct canon **ep);
int canon_get_member(const struct canon *v, size_t i, const char **keyp,
    const struct canon **mp);
int canon_find_member(const struct canon *v, const char *key,
    const struct canon **mp);

/* Building (each takes ownership of its children on success). */
struct canon *canon_new_null(void);
struct canon *canon_new_bool(int b);
struct canon *canon_new_int(int64_t n);
struct canon *canon_new_string(const char *s, size_t len);
struct canon *canon_new_array(void);
struct canon *canon_new_object(void);
int canon_add_element(struct canon *array, struct canon *v);
int canon_add_member(struct canon *object, const char *key, struct canon *v);
/* The canonical text, NUL-terminated, owned by the caller. */
int canon_format(const struct canon *v, char **textp, size_t *lenp);

#endif
