/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Encoding of a shim's job and of its exit record; in cloop-agentd and in
 * cloop-shim.  The job comes from the monitor, which is trusted; it is
 * checked all the same, as every message of ours is.
 */
#include "shim.h"

#include <sys/stat.h>

#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"

#define SHIM_EXIT_TMP SHIM_EXIT_FILE ".tmp"
#define SHIM_EXIT_LEN 2048	/* fixed fields and MAX_SHIM_ERROR_LEN fit */
#define SHIM_EXIT_MAGIC 0x43584933U	/* "CXI3" */
#define MAX_SHIM_SOCKET_LEN 107	/* sun_path with its NUL */

static const struct shim_str {
	size_t offset;
	size_t max;
	int is_path;
} shim_strs[] = {
	{ offsetof(struct shim_job, handle), MAX_ID_LEN, 0 },
	{ offsetof(struct shim_job, tree), MAX_PATH_LEN, 1 },
	{ offsetof(struct shim_job, home), MAX_PATH_LEN, 1 },
	{ offsetof(struct shim_job, work_root), MAX_PATH_LEN, 1 },
	{ offsetof(struct shim_job, timeout_text), 256, 0 },
	{ offsetof(struct shim_job, socket), MAX_SHIM_SOCKET_LEN, 1 },
};

static const struct shim_vec {
	size_t offset;
	size_t max;
	size_t max_len;
	int is_path;
} shim_vecs[] = {
	{ offsetof(struct shim_job, argv), MAX_ARGV, MAX_SPEC_LEN, 0 },
	{ offsetof(struct shim_job, env), MAX_ENV, MAX_SPEC_LEN, 0 },
	{ offsetof(struct shim_job, hide), MAX_SHIM_PATHS, MAX_PATH_LEN, 1 },
	{ offsetof(struct shim_job, writable), MAX_SHIM_PATHS, MAX_PATH_LEN,
	    1 },
	{ offsetof(struct shim_job, readable), MAX_SHIM_PATHS, MAX_PATH_LEN,
	    1 },
	{ offsetof(struct shim_job, peers), MAX_SHIM_PEERS, INET6_ADDRSTRLEN,
	    0 },
};

#define NSTRS (sizeof(shim_strs) / sizeof(shim_strs[0]))
#define NVECS (sizeof(shim_vecs) / sizeof(shim_vecs[0]))

static char *const *
shim_str_at(const struct shim_job *j, size_t i)
{
	return (char *const *)((const char *)j + shim_strs[i].offset);
}

static const struct shim_list *
shim_vec_at(const struct shim_job *j, size_t i)
{
	return (const struct shim_list *)((const char *)j +
	    shim_vecs[i].offset);
}

void
shim_job_put(struct buf *b, const struct shim_job *j)
{
	const struct shim_list *l;
	size_t i, k;

	buf_put_u8(b, j->mode);
	buf_put_u8(b, j->flags);
	buf_put_u8(b, j->log_level);
	buf_put_u32(b, j->uid);
	buf_put_u32(b, j->gid);
	buf_put_u64(b, j->timeout_s);
	for (i = 0; i < NSTRS; i++)
		buf_put_str(b, *shim_str_at(j, i));
	for (i = 0; i < NVECS; i++) {
		l = shim_vec_at(j, i);
		buf_put_u32(b, (uint32_t)l->n);
		for (k = 0; k < l->n; k++)
			buf_put_str(b, l->v[k]);
	}
}

static int
shim_list_get(struct buf *b, const struct shim_vec *row, struct shim_list *l)
{
	uint32_t n = buf_get_u32(b);

	if (buf_error(b) != CL_OK)
		return buf_error(b);
	if (n > row->max)
		return CL_TOOBIG;
	if ((l->v = calloc((size_t)n + 1, sizeof(*l->v))) == NULL)
		return CL_NOMEM;
	while (l->n < n) {
		if ((l->v[l->n] = buf_get_strdup(b, row->max_len)) == NULL)
			return buf_error(b) != CL_OK ? buf_error(b) :
			    CL_NOMEM;
		l->n++;
	}
	return CL_OK;
}

int
shim_job_get(struct buf *b, struct shim_job *j)
{
	size_t i;
	char *s;
	int r;

	memset(j, 0, sizeof(*j));
	j->mode = buf_get_u8(b);
	j->flags = buf_get_u8(b);
	j->log_level = buf_get_u8(b);
	j->uid = buf_get_u32(b);
	j->gid = buf_get_u32(b);
	j->timeout_s = buf_get_u64(b);
	for (i = 0; i < NSTRS; i++) {
		if ((s = buf_get_strdup(b, shim_strs[i].max)) == NULL) {
			r = buf_error(b) != CL_OK ? buf_error(b) : CL_NOMEM;
			goto out;
		}
		*(char **)((char *)j + shim_strs[i].offset) = s;
	}
	for (i = 0; i < NVECS; i++) {
		if ((r = shim_list_get(b, &shim_vecs[i], (struct shim_list *)
		    ((char *)j + shim_vecs[i].offset))) != CL_OK)
			goto out;
	}
	if ((r = buf_end(b)) == CL_OK)
		r = shim_job_check(j);
out:
	if (r != CL_OK)
		shim_job_clear(j);
	return r;
}

/*
 * Absolute, and nothing in it that a mount would resolve elsewhere: no "."
 * or ".." component, no empty one, no trailing slash.
 */
static int
shim_path_is_ok(const char *path)
{
	const char *p = path, *end;
	size_t len;

	if (path[0] != '/')
		return 0;
	if (path[1] == '\0')
		return 1;
	while (*p == '/') {
		p++;
		end = strchrnul(p, '/');
		len = (size_t)(end - p);
		if (len == 0 || len > 255 || (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return 0;
		p = end;
	}
	return 1;
}

static int
shim_list_check(const struct shim_list *l, const struct shim_vec *row)
{
	size_t k;

	if (l->n > row->max)
		return CL_FORMAT;
	for (k = 0; k < l->n; k++) {
		if (l->v[k] == NULL ||
		    (row->is_path && !shim_path_is_ok(l->v[k])))
			return CL_FORMAT;
	}
	return CL_OK;
}

int
shim_job_check(const struct shim_job *j)
{
	const char *s;
	size_t i;

	if ((j->mode != SHIM_MODE_CONFINED && j->mode != SHIM_MODE_PLAIN) ||
	    (j->flags & ~(SHIM_F_STEP | SHIM_F_NARROW)) != 0 ||
	    (j->uid == SHIM_STAY) != (j->gid == SHIM_STAY) ||
	    j->timeout_s > UINT32_MAX || j->argv.n == 0 ||
	    j->tree == NULL || j->tree[0] == '\0')
		return CL_FORMAT;
	for (i = 0; i < NSTRS; i++) {
		s = *shim_str_at(j, i);
		if (s == NULL || s[0] == '\0')
			continue;
		if (strlen(s) > shim_strs[i].max ||
		    (shim_strs[i].is_path && !shim_path_is_ok(s)))
			return CL_FORMAT;
	}
	for (i = 0; i < NVECS; i++) {
		if (shim_list_check(shim_vec_at(j, i), &shim_vecs[i]) !=
		    CL_OK)
			return CL_FORMAT;
	}
	if (j->argv.v[0][0] == '\0')
		return CL_FORMAT;
	for (i = 0; i < j->env.n; i++) {
		s = strchr(j->env.v[i], '=');
		if (s == NULL || s == j->env.v[i])
			return CL_FORMAT;
	}
	return CL_OK;
}

static void
shim_list_clear(struct shim_list *l)
{
	size_t k;

	for (k = 0; k < l->n; k++) {
		/* The environment may carry leased secrets. */
		explicit_bzero(l->v[k], strlen(l->v[k]));
		free(l->v[k]);
	}
	free(l->v);
	memset(l, 0, sizeof(*l));
}

void
shim_job_wipe_env(struct shim_job *j)
{
	shim_list_clear(&j->env);
}

void
shim_job_clear(struct shim_job *j)
{
	size_t i;

	for (i = 0; i < NSTRS; i++)
		free(*shim_str_at(j, i));
	for (i = 0; i < NVECS; i++)
		shim_list_clear((struct shim_list *)((char *)j +
		    shim_vecs[i].offset));
	memset(j, 0, sizeof(*j));
}

int
shim_exit_check(const struct shim_exit *x)
{
	return x->state == HS_FAILED || x->exit_code < 0 ? CL_FORMAT : CL_OK;
}

/* Its whole length is written now: a disk that is full by the time the
 * workload ends has room for the record all the same. */
int
shim_exit_open(int dir_fd, int *fdp)
{
	static const uint8_t zero[SHIM_EXIT_LEN];
	int saved;

	*fdp = -1;
	(void)unlinkat(dir_fd, SHIM_EXIT_TMP, 0);
	*fdp = openat(dir_fd, SHIM_EXIT_TMP, O_WRONLY | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fdp == -1)
		return CL_SYSTEM;
	if (util_write_all(*fdp, zero, sizeof(zero)) == CL_OK)
		return CL_OK;
	saved = errno;
	close(*fdp);
	(void)unlinkat(dir_fd, SHIM_EXIT_TMP, 0);
	*fdp = -1;
	errno = saved;
	return CL_SYSTEM;
}

/*
 * No fsync: the record tells a new monitor on the same boot.  After a crash
 * of the machine the workload is lost either way.
 */
int
shim_exit_save(int dir_fd, int fd, const struct shim_exit *x)
{
	struct buf b;
	int r;

	buf_init(&b, SHIM_EXIT_LEN);
	buf_put_u32(&b, SHIM_EXIT_MAGIC);
	field_put(&shim_exit_table, x, &b);
	/* At its place, so that an attempt that failed can be repeated. */
	if ((r = buf_error(&b)) == CL_OK &&
	    (pwrite(fd, b.data, b.len, 0) != (ssize_t)b.len ||
	    renameat(dir_fd, SHIM_EXIT_TMP, dir_fd, SHIM_EXIT_FILE) == -1))
		r = CL_SYSTEM;
	buf_clear(&b);
	return r;
}

int
shim_exit_load(int dir_fd, struct shim_exit *x)
{
	uint8_t data[SHIM_EXIT_LEN];
	struct buf b;
	ssize_t n;
	int fd, r;

	field_init(&shim_exit_table, x);
	fd = openat(dir_fd, SHIM_EXIT_FILE,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return errno == ENOENT ? CL_NOTFOUND : CL_SYSTEM;
	n = read(fd, data, sizeof(data));
	close(fd);
	if (n == -1)
		return CL_SYSTEM;
	buf_init_read(&b, data, (size_t)n);
	if (buf_get_u32(&b) != SHIM_EXIT_MAGIC)
		return CL_FORMAT;
	/* The rest of the file is the room it was given. */
	if ((r = field_get(&shim_exit_table, &b, x)) != CL_OK)
		return r == CL_NOMEM ? r : CL_FORMAT;
	if ((r = shim_exit_check(x)) != CL_OK)
		field_clear(&shim_exit_table, x);
	return r;
}
