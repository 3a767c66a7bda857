/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A spec with secret files in two directories, for the tests of the device's
 * lease modules, and small looks at what is on the file system.
 */
#ifndef CLOOP_LEASETEST_H
#define CLOOP_LEASETEST_H

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/monitor/vault.h"
#include "common/base/err.h"
#include "common/model/spec.h"
#include "regress/unit/unit.h"

#define LT_DIR "/run/cloop/cloop-lease-t"
#define LT_OTHER LT_DIR "-other"
#define LT_MARK "top-secret-content-0123456789"

static char lt_base[] = "/tmp/cloop-unit-XXXXXX";

UNIT_STATIC char *
lt_dup(const char *s)
{
	char *p = strdup(s);

	ASSERT_PTR_NE(p, NULL);
	return p;
}

UNIT_STATIC void
lt_add_file(struct spec *s, const char *dir, const char *name,
    const char *lease, const char *grant)
{
	struct spec_secret_file *f;

	s->secret_files = reallocarray(s->secret_files, s->nsecret_files + 1,
	    sizeof(*f));
	ASSERT_PTR_NE(s->secret_files, NULL);
	f = &s->secret_files[s->nsecret_files++];
	memset(f, 0, sizeof(*f));
	f->dir = lt_dup(dir);
	f->name = lt_dup(name);
	f->lease_id = lt_dup(lease);
	f->grant_id = lt_dup(grant);
	ASSERT_ERR(secret_init(&f->content, LT_MARK, strlen(LT_MARK), 1024),
	    CL_OK);
}

UNIT_STATIC void
lt_add_binding(struct spec *s, const char *lease, const char *grant,
    const char *file)
{
	struct spec_secret *b;

	s->secrets = reallocarray(s->secrets, s->nsecrets + 1, sizeof(*b));
	ASSERT_PTR_NE(s->secrets, NULL);
	b = &s->secrets[s->nsecrets++];
	memset(b, 0, sizeof(*b));
	b->lease_id = lt_dup(lease);
	b->grant_id = lt_dup(grant);
	b->dir = lt_dup(LT_DIR);
	b->env_keys = calloc(1, sizeof(char *));
	b->env_keys[b->nenv_keys++] = lt_dup("CFG");
	if (file == NULL)
		return;
	b->files = calloc(1, sizeof(char *));
	b->files[b->nfiles++] = lt_dup(file);
}

UNIT_STATIC void
lt_add_env(struct spec *s, const char *text)
{
	s->env = reallocarray(s->env, s->nenv + 1, sizeof(char *));
	ASSERT_PTR_NE(s->env, NULL);
	s->env[s->nenv++] = lt_dup(text);
}

/* Entries of a directory. */
UNIT_STATIC size_t
lt_count(const char *path)
{
	struct dirent *e;
	size_t n = 0;
	DIR *d = opendir(path);

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL)
		n += strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

UNIT_STATIC const char *
lt_path(const struct secretset *s, size_t dir, const char *name)
{
	static char bufs[4][512];
	static unsigned int next;
	char *p = bufs[next++ % 4];

	snprintf(p, sizeof(bufs[0]), "%s/%s", s->dirs[dir].path, name);
	return p;
}

/* The text of a file; "" when it cannot be read. */
UNIT_STATIC const char *
lt_text(const char *path)
{
	static char text[1024];
	ssize_t n = -1;
	int fd = open(path, O_RDONLY);

	if (fd != -1) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return text;
}

UNIT_STATIC void
lt_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	ASSERT_TRUE(fd != -1 && write(fd, text, strlen(text)) ==
	    (ssize_t)strlen(text));
	close(fd);
}

#endif
