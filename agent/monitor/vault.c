/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Holdings, in the device monitor.  Ids, names and paths come from the hub
 * by way of the fetcher; a path is only ever compared with those of files
 * this process placed itself.  The record in the handle directory was
 * written by an earlier self, or by a disk that failed: it is checked.
 */
#include "vault.h"

#include <sys/stat.h>

#include <bsd/stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"
#include "handledir.h"
#include "secretfiles.h"

#define DEF_FILE "agent/monitor/record.def"
#include "common/msg/def_table.h"

#define VAULT_VERSION 1

void
holding_init(struct holding *h)
{
	field_init(&holding_table, h);
	secretset_init(&h->set);
}

void
holding_clear(struct holding *h)
{
	secretset_clear(&h->set);
	field_clear(&holding_table, h);
}

int
holding_is_empty(const struct holding *h)
{
	return h->ngrants == 0 && h->set.nfiles == 0;
}

/* -------------------------------------------------------------------- bind */

static int
vault_is_id(const char *a, const char *b)
{
	size_t alen, blen;

	a = rule_trim(a == NULL ? "" : a, &alen);
	b = rule_trim(b == NULL ? "" : b, &blen);
	return alen == blen && memcmp(a, b, alen) == 0;
}

static struct vault_grant *
holding_find_grant(const struct holding *h, const char *lease,
    const char *grant)
{
	size_t i;

	for (i = 0; i < h->ngrants; i++)
		if (vault_is_id(h->grants[i].lease_id, lease) &&
		    vault_is_id(h->grants[i].grant_id, grant))
			return &h->grants[i];
	return NULL;
}

/* Of two bindings with the same ids one entry is made. */
static int
holding_add_grant(struct holding *h, const char *lease, const char *grant,
    struct vault_grant **gp)
{
	struct vault_grant *g;

	if ((*gp = holding_find_grant(h, lease, grant)) != NULL)
		return CL_OK;
	if (h->ngrants == MAX_VAULT_GRANTS)
		return CL_LIMIT;
	g = recallocarray(h->grants, h->ngrants, h->ngrants + 1, sizeof(*g));
	if (g == NULL)
		return CL_NOMEM;
	h->grants = g;
	g += h->ngrants++;
	g->lease_id = secretfiles_trim(lease);
	g->grant_id = secretfiles_trim(grant);
	*gp = g;
	return g->lease_id == NULL || g->grant_id == NULL ? CL_NOMEM : CL_OK;
}

static int
vault_add_string(char ***vp, size_t *np, const char *text)
{
	char **v = recallocarray(*vp, *np, *np + 1, sizeof(*v));

	if (v == NULL)
		return CL_NOMEM;
	*vp = v;
	if ((v[*np] = strdup(text)) == NULL)
		return CL_NOMEM;
	++*np;
	return CL_OK;
}

static int
vault_add_index(struct vault_grant *g, size_t file)
{
	int64_t *v;
	size_t i;

	for (i = 0; i < g->nfiles; i++)
		if (g->files[i] == (int64_t)file)
			return CL_OK;
	v = recallocarray(g->files, g->nfiles, g->nfiles + 1, sizeof(*v));
	if (v == NULL)
		return CL_NOMEM;
	v[g->nfiles++] = (int64_t)file;
	g->files = v;
	return CL_OK;
}

/* The planned file with this path, in the lease directory. */
static int
vault_find_path(const struct secretset *s, const char *path, size_t *filep)
{
	const char *dir;
	size_t i, len;

	for (i = 0; i < s->nfiles; i++) {
		dir = s->dirs[s->files[i].dir].path;
		len = strlen(dir);
		if (strncmp(path, dir, len) == 0 && path[len] == '/' &&
		    strcmp(path + len + 1, s->files[i].name) == 0) {
			*filep = i;
			return CL_OK;
		}
	}
	return CL_NOTFOUND;
}

static int
vault_bind_one(struct holding *h, const struct spec_secret *b, char *named)
{
	struct vault_grant *g;
	size_t i, file;
	int r;

	if ((r = holding_add_grant(h, b->lease_id, b->grant_id, &g)) != CL_OK)
		return r;
	if (g->name == NULL && b->secret_name != NULL)
		g->name = strdup(b->secret_name);
	if (g->kind == NULL && b->kind != NULL)
		g->kind = strdup(b->kind);
	g->egress |= b->egress;
	for (i = 0; r == CL_OK && i < b->nenv_keys; i++)
		r = vault_add_string(&g->env_keys, &g->nenv_keys,
		    b->env_keys[i]);
	for (i = 0; r == CL_OK && i < b->nfiles; i++) {
		if (vault_find_path(&h->set, b->files[i], &file) != CL_OK) {
			r = vault_add_string(&g->refused, &g->nrefused,
			    b->files[i]);
			continue;
		}
		named[file] = 1;
		r = vault_add_index(g, file);
	}
	return r;
}

int
holding_bind(struct holding *h, const struct spec *spec)
{
	const struct secretfile *f;
	struct vault_grant *g;
	char *named;
	size_t i;
	int r = CL_OK;

	if ((named = calloc(h->set.nfiles + 1, 1)) == NULL)
		return CL_NOMEM;
	for (i = 0; r == CL_OK && i < spec->nsecrets; i++)
		if (spec_is_revocable(&spec->secrets[i]))
			r = vault_bind_one(h, &spec->secrets[i], named);
	for (i = 0; r == CL_OK && i < h->set.nfiles; i++) {
		f = &h->set.files[i];
		if (named[i] || *f->lease_id == '\0')
			continue;
		r = holding_add_grant(h, f->lease_id, f->grant_id, &g);
		if (r == CL_OK)
			r = vault_add_index(g, i);
	}
	free(named);
	return r;
}

/* ------------------------------------------------------------------ record */

int
holding_save(const struct holding *h, int dir_fd)
{
	struct buf b;
	int r;

	buf_init(&b, MAX_VAULT_RECORD);
	buf_put_u32(&b, VAULT_VERSION);
	field_put(&holding_table, h, &b);
	/* The files it tells of do not survive the machine either. */
	r = handledir_save_file(dir_fd, VAULT_RECORD, &b);
	buf_clear(&b);
	return r;
}

static int
holding_check(const struct holding *h)
{
	size_t i, k;
	int r;

	if ((r = secretset_check(&h->set)) != CL_OK)
		return r;
	for (i = 0; i < h->ngrants; i++) {
		if (rule_is_blank(h->grants[i].lease_id))
			return CL_FORMAT;
		for (k = 0; k < h->grants[i].nfiles; k++)
			if ((uint64_t)h->grants[i].files[k] >= h->set.nfiles)
				return CL_FORMAT;
	}
	return CL_OK;
}

int
holding_parse(struct holding *h, const void *data, size_t len)
{
	struct buf b;
	size_t i;
	int r;

	holding_init(h);
	buf_init_read(&b, data, len);
	if (buf_get_u32(&b) != VAULT_VERSION)
		return CL_FORMAT;
	if ((r = field_get(&holding_table, &b, h)) != CL_OK) {
		holding_init(h);
		return r;
	}
	for (i = 0; i < h->set.ndirs; i++)
		h->set.dirs[i].lock_fd = -1;
	if ((r = buf_end(&b)) != CL_OK || (r = holding_check(h)) != CL_OK)
		holding_clear(h);
	return r;
}

int
holding_load(struct holding *h, int dir_fd)
{
	uint8_t *data = NULL;
	size_t len;
	int fd, r;

	holding_init(h);
	fd = openat(dir_fd, VAULT_RECORD,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? CL_NOTFOUND : CL_SYSTEM;
	r = util_load_fd(fd, MAX_VAULT_RECORD, &data, &len);
	close(fd);
	if (r != CL_OK)
		return r;
	r = holding_parse(h, data, len);
	free(data);
	return r;
}

/* ----------------------------------------------------------- find and scrub */

unsigned int
holding_find(const struct holding *h, const char *lease, const char *grant)
{
	const struct vault_grant *g;
	unsigned int has = 0;
	size_t i;

	for (i = 0; i < h->ngrants; i++) {
		g = &h->grants[i];
		if (!vault_is_id(g->lease_id, lease))
			continue;
		has |= VAULT_HAS_LEASE;
		if (rule_is_empty(g->grant_id))
			has |= VAULT_HAS_LOOSE;
		if (!rule_is_blank(grant) && vault_is_id(g->grant_id, grant))
			has |= VAULT_HAS_GRANT;
		if (!g->is_scrubbed)
			has |= VAULT_HAS_LIVE;
	}
	return has;
}

int
vault_decide(unsigned int has, const char *grant, int *wholep)
{
	*wholep = 0;
	if ((has & VAULT_HAS_LEASE) == 0)
		return 0;
	if (!rule_is_blank(grant) && (has & VAULT_HAS_GRANT) != 0)
		return 1;
	*wholep = rule_is_blank(grant) || (has & VAULT_HAS_LOOSE) != 0;
	return *wholep;
}

/* No directory stays for the workload to fill when nothing live is in it. */
static void
holding_wipe_dirs(struct holding *h, struct secretnote *note)
{
	size_t i, k, live;

	for (i = 0; i < h->set.ndirs; i++) {
		if (h->set.dirs[i].is_gone)
			continue;
		for (k = live = 0; k < h->set.nfiles; k++)
			live += h->set.files[k].dir == i &&
			    !h->set.files[k].is_gone;
		if (live == 0)
			secretfiles_wipe_dir(&h->set, i, note);
	}
}

int64_t
holding_scrub(struct holding *h, const char *lease, const char *grant,
    int whole, struct secretnote *note)
{
	struct vault_grant *g;
	int64_t n = 0;
	size_t i, k;

	for (i = 0; i < h->ngrants; i++) {
		g = &h->grants[i];
		if (!vault_is_id(g->lease_id, lease) ||
		    (!whole && !vault_is_id(g->grant_id, grant)))
			continue;
		for (k = 0; k < g->nfiles; k++)
			n += secretfiles_wipe_file(&h->set,
			    (size_t)g->files[k], note);
		if (g->nrefused > 0)
			secretnote_add(note, "%zu paths of the binding are "
			    "outside the lease directory", g->nrefused);
		g->is_scrubbed = 1;
	}
	holding_wipe_dirs(h, note);
	return n;
}

/* 1 when a live grant of the lease has it. */
static int
holding_has_file(const struct holding *h, const char *lease, size_t file)
{
	const struct vault_grant *g;
	size_t i, k;

	for (i = 0; i < h->ngrants; i++) {
		g = &h->grants[i];
		if (g->is_scrubbed || !vault_is_id(g->lease_id, lease))
			continue;
		for (k = 0; k < g->nfiles; k++)
			if (g->files[k] == (int64_t)file)
				return 1;
	}
	return 0;
}

int
holding_find_file(const struct holding *h, const char *lease,
    const char *declared, const char *name, size_t *filep)
{
	const struct secretfile *f;
	size_t i, n = 0, exact = 0;
	int is_exact;

	for (i = 0; i < h->set.nfiles; i++) {
		f = &h->set.files[i];
		/* One file in two grants is one match. */
		if (f->is_gone || strcmp(f->name, name) != 0 ||
		    !holding_has_file(h, lease, i))
			continue;
		is_exact = rule_is_equal(h->set.dirs[f->dir].declared,
		    declared);
		if (is_exact || exact == 0)
			*filep = i;
		exact += (size_t)is_exact;
		n++;
	}
	if (n == 0)
		return CL_NOTFOUND;
	return n == 1 || exact == 1 ? CL_OK : CL_LIMIT;
}

/* -------------------------------------------------------------- tombstones */

int
tombstones_has(const struct tombstones *t, const char *lease)
{
	size_t i;

	for (i = 0; i < VAULT_TOMBSTONES; i++)
		if (t->ids[i] != NULL && vault_is_id(t->ids[i], lease))
			return 1;
	return 0;
}

void
tombstones_del(struct tombstones *t, const char *lease)
{
	size_t i;

	for (i = 0; i < VAULT_TOMBSTONES; i++) {
		if (t->ids[i] == NULL || !vault_is_id(t->ids[i], lease))
			continue;
		free(t->ids[i]);
		t->ids[i] = NULL;
	}
}

void
tombstones_add(struct tombstones *t, const char *lease)
{
	if (tombstones_has(t, lease))
		return;
	free(t->ids[t->next]);
	t->ids[t->next] = strdup(lease);
	t->next = (t->next + 1) % VAULT_TOMBSTONES;
}

void
tombstones_clear(struct tombstones *t)
{
	size_t i;

	for (i = 0; i < VAULT_TOMBSTONES; i++)
		free(t->ids[i]);
	memset(t, 0, sizeof(*t));
}
