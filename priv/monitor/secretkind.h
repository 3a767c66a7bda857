/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Kinds of secrets: what a value must look like, and how it reaches a
 * workload: as variables, or as a file that a variable names.
 */
#ifndef PRIV_SECRETKIND_H
#define PRIV_SECRETKIND_H

#include <stddef.h>

#include "common/base/secret.h"

#define KIND_VARS_MAX 64

struct secret_kind {
	const char *name;
	const char *file;	/* NULL: variables */
	const char *var;	/* names the file */
	int var_is_dir;		/* or rather its directory */
};

/* NULL: unknown, or not supported; *whyp says which. */
const struct secret_kind *kind_find(const char *name, const char **whyp);
/*
 * Is it a value of that kind?  NULL, or a constant text that says what is
 * wrong (never what was given).  *namesp: the variables it sets, one a
 * line, owned.
 */
const char *kind_check(const struct secret_kind *k,
    const struct secret *value, char **namesp);
/* Visit the variables of a value that kind_check passed; a file kind has
 * none.  Stops at the first result that is not 0. */
typedef int kind_var_fn(void *arg, const char *name, size_t name_len,
    const char *value, size_t value_len);
int kind_walk_vars(const struct secret_kind *k, const struct secret *value,
    kind_var_fn *fn, void *arg);

#endif
