/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rendering a lease, in the monitor: the one place where stored secrets are
 * plaintext, in struct secret and in a spec that is wiped when its message
 * is made.  Names and paths go into the bindings, values never.
 */
#include "lease.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/json/canon.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"
#include "monitor.h"
#include "refuse.h"
#include "secretkind.h"

#include "store/db/store_lease.h"

/* The directory that the Go hub declares; the device has its own. */
void
lease_format_dir(const char *lease_id, char dst[LEASE_DIR_MAX])
{
	const char *p = strchr(lease_id, '_');
	size_t n;

	p = p != NULL ? p + 1 : lease_id;
	n = strlcpy(dst, "/run/cloop/cloop-lease-", LEASE_DIR_MAX);
	for (; *p != '\0' && n < LEASE_DIR_MAX - 1; p++)
		if (isalnum((unsigned char)*p) || *p == '-')
			dst[n++] = (char)tolower((unsigned char)*p);
	dst[n] = '\0';
}

/* ------------------------------------------------------------- redactions */

static int
lease_put_var(void *arg, const char *name, size_t name_len, const char *value,
    size_t value_len)
{
	(void)name;
	(void)name_len;
	buf_put_blob(arg, value, value_len);
	return CL_OK;
}

int
lease_put_values(const char *kind, const struct secret *value, struct buf *b)
{
	const struct secret_kind *k;
	const char *why;

	if ((k = kind_find(kind, &why)) == NULL)
		return CL_UNSUPPORTED;
	if (k->file != NULL)
		buf_put_blob(b, value->data, value->len);
	return kind_walk_vars(k, value, lease_put_var, b);
}

/* ------------------------------------------------------------ environment */

struct lease_env {
	struct spec *spec;
	struct spec_secret *binding;
	const struct grant_terms *terms;
	char redact[KIND_VARS_MAX * MAX_WANTS * 64];
	size_t nbefore;		/* variables of the operator's own */
	const char *twice;	/* set by two secrets; borrowed from env */
};

static int
lease_add_str(char ***v, size_t *n, char *owned)
{
	char **grown;

	if (owned == NULL)
		return CL_NOMEM;
	if ((grown = recallocarray(*v, *n, *n + 1, sizeof(**v))) == NULL) {
		freezero(owned, strlen(owned));
		return CL_NOMEM;
	}
	*v = grown;
	grown[(*n)++] = owned;
	return CL_OK;
}

/* NAME=value; value may be a secret: it is copied exactly once. */
static int
lease_add_env(struct lease_env *e, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	struct spec *s = e->spec;
	char *text;
	size_t i;

	for (i = e->nbefore; i < s->nenv; i++)
		if (strncmp(s->env[i], name, name_len) == 0 &&
		    s->env[i][name_len] == '=') {
			e->twice = s->env[i];
			return CL_EXISTS;
		}
	if ((text = malloc(name_len + value_len + 2)) == NULL)
		return CL_NOMEM;
	memcpy(text, name, name_len);
	text[name_len] = '=';
	memcpy(text + name_len + 1, value, value_len);
	text[name_len + 1 + value_len] = '\0';
	return lease_add_str(&s->env, &s->nenv, text);
}

static int
lease_add_key(struct lease_env *e, const char *name, size_t name_len)
{
	return lease_add_str(&e->binding->env_keys, &e->binding->nenv_keys,
	    strndup(name, name_len));
}

static int
lease_on_var(void *arg, const char *name, size_t name_len, const char *value,
    size_t value_len)
{
	struct lease_env *e = arg;
	size_t n;
	int r;

	if (!grant_has_env(e->terms, name, name_len))
		return CL_OK;
	if ((r = lease_add_env(e, name, name_len, value, value_len)) != 0 ||
	    (r = lease_add_key(e, name, name_len)) != 0)
		return r;
	n = strlen(e->redact);
	if (name_len + 2 > sizeof(e->redact) - n)
		return CL_LIMIT;
	if (n > 0)
		e->redact[n++] = ',';
	memcpy(e->redact + n, name, name_len);
	e->redact[n + name_len] = '\0';
	return CL_OK;
}

/* ------------------------------------------------------------------ files */

int
lease_render_file(const struct store_item *item, const struct secret *value,
    struct spec_secret_file *f)
{
	const struct secret_kind *k;
	char dir[LEASE_DIR_MAX];
	const char *why;

	field_init(&spec_secret_file_table, f);
	if ((k = kind_find(item->kind, &why)) == NULL || k->file == NULL)
		return CL_NOTFOUND;
	lease_format_dir(item->lease_id, dir);
	f->lease_id = strdup(item->lease_id);
	f->grant_id = strdup(item->grant_id);
	f->dir = strdup(dir);
	f->name = strdup(k->file);
	f->mode = item->mode != 0 ? (uint64_t)item->mode : 0600;
	if (f->lease_id == NULL || f->grant_id == NULL || f->dir == NULL ||
	    f->name == NULL || secret_init(&f->content, value->data,
	    value->len, MAX_SECRET_FILE_LEN) != CL_OK) {
		field_clear(&spec_secret_file_table, f);
		return CL_NOMEM;
	}
	return CL_OK;
}

static int
lease_add_file(struct lease_env *e, const struct lease_plan *p,
    const struct lease_plan_item *pi, const struct secret_kind *k,
    const struct secret *value)
{
	struct store_item item = { .lease_id = (char *)(uintptr_t)p->id,
	    .grant_id = (char *)(uintptr_t)pi->grant_id,
	    .kind = pi->secret.kind, .mode = pi->mode };
	struct spec *s = e->spec;
	struct spec_secret_file *v;
	char path[LEASE_DIR_MAX + 64], dir[LEASE_DIR_MAX];
	const char *at;
	int r;

	v = recallocarray(s->secret_files, s->nsecret_files,
	    s->nsecret_files + 1, sizeof(*v));
	if (v == NULL)
		return CL_NOMEM;
	s->secret_files = v;
	if ((r = lease_render_file(&item, value, &v[s->nsecret_files])) != 0)
		return r;
	s->nsecret_files++;
	lease_format_dir(p->id, dir);
	snprintf(path, sizeof(path), "%s/%s", dir, k->file);
	if ((e->binding->dir = strdup(dir)) == NULL ||
	    lease_add_str(&e->binding->files, &e->binding->nfiles,
	    strdup(path)) != CL_OK)
		return CL_NOMEM;
	if (k->var == NULL)
		return CL_OK;
	at = k->var_is_dir ? dir : path;
	if ((r = lease_add_env(e, k->var, strlen(k->var), at,
	    strlen(at))) != CL_OK)
		return r;
	return lease_add_key(e, k->var, strlen(k->var));
}

/* ------------------------------------------------------------------- all */

static struct spec_secret *
lease_add_binding(struct spec *s, const struct lease_plan *p,
    const struct lease_plan_item *pi)
{
	struct spec_secret *v, *b;

	v = recallocarray(s->secrets, s->nsecrets, s->nsecrets + 1,
	    sizeof(*v));
	if (v == NULL)
		return NULL;
	s->secrets = v;
	b = &v[s->nsecrets++];
	b->lease_id = strdup(p->id);
	b->grant_id = strdup(pi->grant_id);
	b->secret_name = strdup(pi->secret.name);
	b->kind = strdup(pi->secret.kind);
	b->expires_at = p->expires_at;
	return b->lease_id == NULL || b->grant_id == NULL ||
	    b->secret_name == NULL || b->kind == NULL ? NULL : b;
}

static int
lease_render_item(struct monitor *mon, struct lease_env *e,
    const struct lease_plan *p, const struct lease_plan_item *pi)
{
	struct secret value = SECRET_INIT;
	const struct secret_kind *k;
	const char *why;
	int r;

	if ((k = kind_find(pi->secret.kind, &why)) == NULL)
		return CL_UNSUPPORTED;
	if ((e->binding = lease_add_binding(e->spec, p, pi)) == NULL)
		return CL_NOMEM;
	e->terms = &pi->terms;
	if ((r = store_load_secret(mon->store, &mon->leases.keks,
	    pi->secret.id, pi->secret.version, &value)) != CL_OK)
		return r;
	if (pi->is_workspace)
		r = lease_render_workspace(p, &value, e->spec);
	else
		r = k->file != NULL ? lease_add_file(e, p, pi, k, &value) :
	    kind_walk_vars(k, &value, lease_on_var, e);
	secret_clear(&value);
	return r;
}

/* The variables that tell a workload about its lease. */
static int
lease_add_own_env(struct lease_env *e, const struct lease_plan *p)
{
	static const char redact[] = "CLOOP_REDACT_ENV";
	char dir[LEASE_DIR_MAX], when[UTIL_TIME_MAX];
	size_t i, n = sizeof(redact) - 1;
	int r;

	/* What the operator declared sensitive stays so. */
	for (i = 0; i < e->nbefore; i++)
		if (strncmp(e->spec->env[i], redact, n) == 0 &&
		    e->spec->env[i][n] == '=' &&
		    e->spec->env[i][n + 1] != '\0') {
			if (e->redact[0] != '\0')
				strlcat(e->redact, ",", sizeof(e->redact));
			if (strlcat(e->redact, e->spec->env[i] + n + 1,
			    sizeof(e->redact)) >= sizeof(e->redact))
				return CL_LIMIT;
		}
	lease_format_dir(p->id, dir);
	util_format_time(p->expires_at, when);
	if ((r = lease_add_env(e, "CLOOP_LEASE_ID", 14, p->id,
	    strlen(p->id))) != 0 ||
	    (r = lease_add_env(e, "CLOOP_LEASE_EXPIRES_AT", 22, when,
	    strlen(when))) != 0)
		return r;
	/* Without a file the device makes no directory. */
	if (e->spec->nsecret_files > 0 && (r = lease_add_env(e,
	    "CLOOP_LEASE_DIR", 15, dir, strlen(dir))) != 0)
		return r;
	return e->redact[0] == '\0' ? CL_OK :
	    lease_add_env(e, redact, n, e->redact, strlen(e->redact));
}

int
lease_render(struct monitor *mon, const struct lease_plan *p,
    struct spec *spec, struct refusal *r)
{
	struct lease_env *e;
	size_t i;
	int rc = CL_OK;

	if ((e = calloc(1, sizeof(*e))) == NULL) {
		refuse_set(r, "internal", "%s", cl_strerror(CL_NOMEM));
		return 1;
	}
	e->spec = spec;
	e->nbefore = spec->nenv;
	for (i = 0; rc == CL_OK && i < p->n; i++)
		if ((rc = lease_render_item(mon, e, p, &p->items[i])) !=
		    CL_OK)
			break;
	if (rc == CL_OK)
		rc = lease_add_own_env(e, p);
	if (rc == CL_EXISTS && e->twice != NULL)
		refuse_set(r, "usage", "two secrets of this run set the "
		    "variable %.*s", (int)strcspn(e->twice, "="), e->twice);
	else if (rc == CL_DENIED || rc == CL_NOTFOUND || rc == CL_FORMAT)
		refuse_set(r, "secret_unreadable", "the secret %s cannot be "
		    "opened: %s", p->items[i < p->n ? i : 0].secret.name,
		    rc == CL_DENIED ? "it is sealed under another key, or "
		    "the store was changed" : cl_strerror(rc));
	else if (rc != CL_OK)
		refuse_set(r, "internal", "the secrets cannot be prepared: "
		    "%s", cl_strerror(rc));
	free(e);
	return rc != CL_OK;
}

/* --------------------------------------------------------------- bindings */

static int
lease_add_member(struct canon *o, const char *key, const char *value)
{
	struct canon *v;
	int r;

	if (value == NULL || value[0] == '\0')
		return CL_OK;
	if ((v = canon_new_string(value, strlen(value))) == NULL)
		return CL_NOMEM;
	if ((r = canon_add_member(o, key, v)) != CL_OK)
		canon_free(v);
	return r;
}

static int
lease_add_names(struct canon *o, const char *key, char **v, size_t n)
{
	struct canon *list, *one;
	size_t i;
	int r = CL_OK;

	if (n == 0)
		return CL_OK;
	if ((list = canon_new_array()) == NULL)
		return CL_NOMEM;
	for (i = 0; r == CL_OK && i < n; i++) {
		if ((one = canon_new_string(v[i], strlen(v[i]))) == NULL)
			r = CL_NOMEM;
		else if ((r = canon_add_element(list, one)) != CL_OK)
			canon_free(one);
	}
	if (r == CL_OK)
		r = canon_add_member(o, key, list);
	if (r != CL_OK)
		canon_free(list);
	return r;
}

static int
lease_format_binding(const struct spec_secret *b, struct canon *list)
{
	struct canon *o;
	char when[UTIL_TIME_MAX];
	int r;

	if ((o = canon_new_object()) == NULL)
		return CL_NOMEM;
	util_format_time(b->expires_at, when);
	if ((r = lease_add_member(o, "lease_id", b->lease_id)) != 0 ||
	    (r = lease_add_member(o, "grant_id", b->grant_id)) != 0 ||
	    (r = lease_add_member(o, "secret_name", b->secret_name)) != 0 ||
	    (r = lease_add_member(o, "kind", b->kind)) != 0 ||
	    (r = lease_add_names(o, "env_keys", b->env_keys,
	    b->nenv_keys)) != 0 ||
	    (r = lease_add_names(o, "files", b->files, b->nfiles)) != 0 ||
	    (r = lease_add_member(o, "dir", b->dir)) != 0 ||
	    (r = lease_add_member(o, "expires_at", when)) != 0 ||
	    (r = canon_add_element(list, o)) != 0)
		canon_free(o);
	return r;
}

int
lease_format_bindings(const struct spec *spec, char **textp)
{
	struct canon *list;
	size_t i, len;
	int r = CL_OK;

	*textp = NULL;
	if ((list = canon_new_array()) == NULL)
		return CL_NOMEM;
	for (i = 0; r == CL_OK && i < spec->nsecrets; i++)
		r = lease_format_binding(&spec->secrets[i], list);
	if (r == CL_OK)
		r = canon_format(list, textp, &len);
	canon_free(list);
	return r;
}

size_t
lease_find_ids(const char *bindings, char ***idsp)
{
	const struct canon *list, *b, *v;
	struct canon *root;
	const char *id;
	char *doc;
	size_t i, n = 0, len;

	*idsp = NULL;
	/* "[]" is most of them; the reader wants an object around a list. */
	if (bindings == NULL || bindings[0] != '[' || bindings[1] == ']' ||
	    asprintf(&doc, "{\"b\":%s}", bindings) == -1)
		return 0;
	if (canon_parse(doc, strlen(doc), &root) != CL_OK)
		root = NULL;
	free(doc);
	if (root == NULL || canon_find_member(root, "b", &list) != CL_OK) {
		canon_free(root);
		return 0;
	}
	for (i = 0; i < canon_get_count(list); i++)
		if (canon_get_element(list, i, &b) == CL_OK &&
		    canon_find_member(b, "lease_id", &v) == CL_OK &&
		    canon_get_string(v, &id, &len) == CL_OK &&
		    (n == 0 || strcmp((*idsp)[n - 1], id) != 0) &&
		    lease_add_str(idsp, &n, strdup(id)) != CL_OK)
			break;
	canon_free(root);
	return n;
}
