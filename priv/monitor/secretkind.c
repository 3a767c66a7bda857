/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Kinds of secrets, in the monitor.  A value is read where it lies, inside
 * its struct secret; nothing of it is copied here and no text quotes it.
 */
#include "secretkind.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"

#define KIND_NAME_MAX 128
#define KIND_NAMES "it serves env, github_pat, registry, kubeconfig"

static const struct secret_kind kinds[] = {
	{ "env", NULL, NULL, 0 },
	{ "github_pat", NULL, NULL, 0 },
	{ "registry", "config.json", "DOCKER_CONFIG", 1 },
	{ "kubeconfig", "kubeconfig", "KUBECONFIG", 0 },
};

/* Where programs look for the token. */
static const char *const kind_pat_vars[] = { "GITHUB_TOKEN", "GH_TOKEN" };

const struct secret_kind *
kind_find(const char *name, const char **whyp)
{
	static const char *const known[] = { "github_app", "egress_proxy",
		"local_repo", "host_device", "host_interface" };
	size_t i;

	*whyp = NULL;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	*whyp = "is not a kind: " KIND_NAMES;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i], name) == 0)
			*whyp = "is not supported by this hub: " KIND_NAMES;
	return NULL;
}

static int
kind_is_name(const char *p, size_t len)
{
	size_t i;

	if (len == 0 || len > KIND_NAME_MAX || isdigit((unsigned char)*p))
		return 0;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '_')
			return 0;
	return 1;
}

/*
 * The next KEY=VALUE line from *pp on: CL_OK, CL_NOTFOUND at the end,
 * CL_FORMAT.  Empty lines and those with # are passed over.
 */
static int
kind_next_line(const char **pp, const char *end, const char **namep,
    size_t *name_lenp, const char **valuep, size_t *value_lenp)
{
	const char *p, *eol, *eq;

	for (p = *pp; p < end; p = eol + 1) {
		if ((eol = memchr(p, '\n', (size_t)(end - p))) == NULL)
			eol = end;
		if (p == eol || *p == '#' || (eol - p == 1 && *p == '\r'))
			continue;
		if ((eq = memchr(p, '=', (size_t)(eol - p))) == NULL)
			return CL_FORMAT;
		*namep = p;
		*name_lenp = (size_t)(eq - p);
		*valuep = eq + 1;
		*value_lenp = (size_t)(eol - eq - 1);
		if (*value_lenp > 0 && eol[-1] == '\r')
			(*value_lenp)--;
		*pp = eol < end ? eol + 1 : end;
		return CL_OK;
	}
	return CL_NOTFOUND;
}

/* The token without the white space an editor left around it. */
static const char *
kind_trim(const struct secret *value, size_t *lenp)
{
	const char *p = (const char *)value->data;
	size_t len = value->len;

	while (len > 0 && isspace((unsigned char)p[len - 1]))
		len--;
	while (len > 0 && isspace((unsigned char)*p)) {
		p++;
		len--;
	}
	*lenp = len;
	return p;
}

int
kind_walk_vars(const struct secret_kind *k, const struct secret *value,
    kind_var_fn *fn, void *arg)
{
	const char *p, *name, *v;
	size_t i, name_len, len;
	int r;

	if (k->file != NULL)
		return CL_OK;
	if (strcmp(k->name, "github_pat") == 0) {
		v = kind_trim(value, &len);
		for (i = 0; i < 2; i++)
			if ((r = fn(arg, kind_pat_vars[i],
			    strlen(kind_pat_vars[i]), v, len)) != 0)
				return r;
		return CL_OK;
	}
	for (p = (const char *)value->data;;) {
		r = kind_next_line(&p, (const char *)value->data + value->len,
		    &name, &name_len, &v, &len);
		if (r == CL_NOTFOUND)
			return CL_OK;
		if (r != CL_OK || (r = fn(arg, name, name_len, v, len)) != 0)
			return r;
	}
}

struct kind_names {
	char *text;
	size_t len;
	unsigned int n;
};

static int
kind_add_name(void *arg, const char *name, size_t name_len, const char *value,
    size_t value_len)
{
	struct kind_names *list = arg;
	char *text, *line = list->text;
	size_t n;

	(void)value;
	(void)value_len;
	if (!kind_is_name(name, name_len))
		return CL_FORMAT;
	if (++list->n > KIND_VARS_MAX)
		return CL_LIMIT;
	for (; line != NULL && *line != '\0'; line += n + 1) {
		n = strcspn(line, "\n");
		if (n == name_len && memcmp(line, name, n) == 0)
			return CL_EXISTS;
		if (line[n] == '\0')
			break;
	}
	if ((text = realloc(list->text, list->len + name_len + 2)) == NULL)
		return CL_NOMEM;
	list->text = text;
	if (list->len > 0)
		text[list->len++] = '\n';
	memcpy(text + list->len, name, name_len);
	list->len += name_len;
	text[list->len] = '\0';
	return CL_OK;
}

static const char *
kind_check_vars(const struct secret_kind *k, const struct secret *value,
    struct kind_names *list)
{
	const char *p;
	size_t len, i;

	if (!utf8_is_valid(value->data, value->len) ||
	    memchr(value->data, '\0', value->len) != NULL)
		return "must be UTF-8 text";
	if (strcmp(k->name, "github_pat") == 0) {
		p = kind_trim(value, &len);
		for (i = 0; i < len; i++)
			if (!isgraph((unsigned char)p[i]))
				return "must be one token";
		if (len < 8 || len > 1024)
			return "is too short or too long for a token";
	}
	switch (kind_walk_vars(k, value, kind_add_name, list)) {
	case CL_OK:
		return list->n == 0 ? "has no KEY=VALUE line" : NULL;
	case CL_EXISTS:
		return "sets a variable twice";
	case CL_LIMIT:
		return "sets more than 64 variables";
	case CL_NOMEM:
		return "cannot be kept: out of memory";
	default:
		return "must be KEY=VALUE lines with KEY of letters, digits "
		    "and _";
	}
}

const char *
kind_check(const struct secret_kind *k, const struct secret *value,
    char **namesp)
{
	struct kind_names list = { NULL, 0, 0 };
	const char *why = NULL, *p;
	size_t len;

	*namesp = NULL;
	if (value->len == 0)
		return "is empty";
	if (value->len > MAX_SECRET_FILE_LEN)
		return "is over 256 KiB";
	if (k->file == NULL)
		why = kind_check_vars(k, value, &list);
	else if (strcmp(k->name, "registry") == 0) {
		p = kind_trim(value, &len);
		if (len < 2 || *p != '{' || p[len - 1] != '}')
			why = "must be a registry config.json";
	}
	if (why == NULL && list.text == NULL)
		list.text = strdup(k->var != NULL ? k->var : "");
	if (why != NULL || list.text == NULL) {
		free(list.text);
		return why != NULL ? why : "cannot be kept: out of memory";
	}
	*namesp = list.text;
	return NULL;
}
