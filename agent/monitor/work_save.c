/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The record of a workload's work in its handle directory, in the device
 * monitor: an agent that comes after us gives the work back all the same.
 * No secret is in it; who could write it is us.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/msg/buf.h"
#include "agentd.h"
#include "handledir.h"
#include "work.h"

#define WORK_FILE "work"
#define WORK_TMP "work.tmp"
#define WORK_MAGIC 0x43574b31U		/* "CWK1" */
#define MAX_WORK_LEN 65536

static const struct field work_record_table_rows[] = {
	F_STR(struct work_record, tree, "tree", 0, MAX_PATH_LEN),
	F_STR(struct work_record, git, "git", 0, MAX_PATH_LEN),
	F_STR(struct work_record, mode, "mode", 0, 64),
	F_STR(struct work_record, branch, "branch", 0, 255),
	F_STR(struct work_record, base, "base", 0, 64),
	F_STR(struct work_record, message, "message", 0, 4096),
	F_INT(struct work_record, max_bundle_bytes, "max_bundle_bytes", 0, 0,
	    MAX_BUNDLE_LEN),
	F_STR(struct work_record, repo, "repo", 0, MAX_URL_LEN),
	F_STR(struct work_record, username, "username", 0, MAX_PATH_LEN),
	F_BOOL(struct work_record, has_password, "has_password", 0),
	F_BOOL(struct work_record, hide_cloop, "hide_cloop", 0),
	F_BOOL(struct work_record, is_seeded, "is_seeded", 0),
	F_BOOL(struct work_record, is_returned, "is_returned", 0),
	F_OBJ(struct work_record, res, "res", 0, &devjob_result_table),
	F_BOOL(struct work_record, has_project, "has_project", 0),
	F_STR(struct work_record, project_error, "project_error", 0,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(work_record_table, struct work_record);

void
work_clear_record(struct work_record *rec)
{
	field_clear(&work_record_table, rec);
}

int
work_save(const struct work *k, const struct handledir *d)
{
	struct buf b;
	int fd = -1, r;

	buf_init(&b, MAX_WORK_LEN);
	buf_put_u32(&b, WORK_MAGIC);
	field_put(&work_record_table, &k->rec, &b);
	if ((r = buf_error(&b)) != 0)
		goto out;
	(void)unlinkat(d->fd, WORK_TMP, 0);
	fd = openat(d->fd, WORK_TMP, O_WRONLY | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 || util_write_all(fd, b.data, b.len) != 0 ||
	    renameat(d->fd, WORK_TMP, d->fd, WORK_FILE) == -1)
		r = CL_SYSTEM;
out:
	if (fd != -1)
		close(fd);
	buf_clear(&b);
	return r;
}

static int
work_load_record(const struct handledir *d, struct work_record *rec)
{
	uint8_t *data = NULL;
	struct buf b;
	size_t len;
	int fd, r;

	fd = openat(d->fd, WORK_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? CL_NOTFOUND : CL_SYSTEM;
	r = util_load_fd(fd, MAX_WORK_LEN, &data, &len);
	close(fd);
	if (r != 0)
		return r;
	buf_init_read(&b, data, len);
	if (buf_get_u32(&b) != WORK_MAGIC)
		r = CL_FORMAT;
	else if ((r = field_get(&work_record_table, &b, rec)) == 0 &&
	    (r = buf_end(&b)) != 0)
		field_clear(&work_record_table, rec);
	free(data);
	return r;
}

int
work_load(struct agentd *a, const struct handledir *d, struct work **workp)
{
	struct work *k = xcalloc(1, sizeof(*k));
	struct workdir wd = { .fd = -1 };
	int r;

	*workp = NULL;
	k->tree_fd = k->file_fd = -1;
	k->expires_at = UTIL_TIME_ZERO;
	field_init(&devjob_plan_table, &k->prov);
	if ((r = work_load_record(d, &k->rec)) != 0) {
		free(k);
		return r;
	}
	/* The way back goes through the same door as the way in. */
	if (!k->rec.is_returned && (r = workdir_open(&a->root, k->rec.tree,
	    &wd)) == 0) {
		k->tree_fd = wd.fd;
		wd.fd = -1;
	}
	workdir_close(&wd);
	if (r != 0) {
		work_free(k);
		return r;
	}
	*workp = k;
	return CL_OK;
}
