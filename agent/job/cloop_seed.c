/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-seed: places a project's document in a workload's tree before its
 * command, and takes the result it left.  A job in a shim of its own, as the
 * workload's user, because it unpacks and reads what the hub or a workload
 * wrote: gzip and JSON.  It sees the tree and the system; its descriptor 0 is
 * the channel to the monitor.  The name begins with fetch_ since it may
 * include the JSON reader; it links no TLS and has no use for a network.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include <zlib.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "net/codec/json.h"
#include "git_job.h"

#define SEED_MAX_INFLATED (32 * 1048576)
#define RESULT_MAX_INFLATED (16 * 1048576)
#define RESULT_MAX 655360
#define SEED_DIR ".cloop"
#define SEED_STATE "state.json"
#define SEED_RESULT SEED_DIR "/result.json.gz"

/* Inflate a whole gzip stream of at most max bytes, owned. */
static int
seed_inflate(struct git_job *g, const uint8_t *src, size_t len, size_t max,
    uint8_t **datap, size_t *lenp)
{
	z_stream z;
	uint8_t *data;
	size_t cap = len * 4 + 65536;
	int rc;

	*datap = NULL;
	memset(&z, 0, sizeof(z));
	if (len < 2 || src[0] != 0x1f || src[1] != 0x8b)
		return git_job_fail(g, "it is not gzip");
	if (cap > max + 1)
		cap = max + 1;
	if ((data = malloc(cap)) == NULL ||
	    inflateInit2(&z, 15 + 16) != Z_OK) {
		free(data);
		return git_job_fail(g, "out of memory");
	}
	z.next_in = (Bytef *)(uintptr_t)src;
	z.avail_in = (uInt)len;
	for (;;) {
		uint8_t *more;

		z.next_out = data + z.total_out;
		z.avail_out = (uInt)(cap - z.total_out);
		rc = inflate(&z, Z_FINISH);
		if (rc == Z_STREAM_END || z.avail_out != 0 || cap > max ||
		    (rc != Z_OK && rc != Z_BUF_ERROR))
			break;
		cap = cap * 2 > max ? max + 1 : cap * 2;
		if ((more = realloc(data, cap)) == NULL)
			break;
		data = more;
	}
	*lenp = z.total_out;
	len = z.avail_in;
	(void)inflateEnd(&z);
	if (rc == Z_STREAM_END && len == 0 && *lenp <= max) {
		*datap = data;
		return CL_OK;
	}
	free(data);
	return git_job_fail(g, *lenp > max ? "it inflates past %zu MiB" :
	    "it is damaged (limit %zu MiB)", max / 1048576);
}

/* One JSON object, strictly. */
static int
seed_check_object(struct git_job *g, const uint8_t *data, size_t len)
{
	struct jx x;
	int r;

	jx_init(&x);
	r = jx_scan(&x, data, len);
	if (r != 0)
		r = git_job_fail(g, "it is not JSON: %.128s", x.why);
	else if (x.tokens[0].type != JX_OBJECT)
		r = git_job_fail(g, "it is not a JSON object");
	jx_clear(&x);
	return r;
}

/* ------------------------------------------------------------------- place */

static int
seed_open_dir(struct git_job *g, int *fdp)
{
	if (mkdirat(g->dir_fd, SEED_DIR, 0700) == -1 && errno != EEXIST)
		return git_job_fail(g, SEED_DIR ": %s", strerror(errno));
	if (git_tree_open_dir(g->dir_fd, SEED_DIR, fdp) != 0)
		return git_job_fail(g, SEED_DIR " is no directory");
	(void)fchmod(*fdp, 0700);
	return CL_OK;
}

static int
seed_save(struct git_job *g, int dir_fd, const uint8_t *data, size_t len)
{
	char tmp[32];
	int fd, r = CL_OK;

	(void)snprintf(tmp, sizeof(tmp), ".seed-%08x", arc4random());
	fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	if (fd == -1 || util_write_all(fd, data, len) != 0 ||
	    fsync(fd) == -1 ||
	    renameat(dir_fd, tmp, dir_fd, SEED_STATE) == -1)
		r = git_job_fail(g, SEED_DIR "/" SEED_STATE ": %s",
		    strerror(errno));
	if (fd != -1)
		close(fd);
	if (r != 0)
		(void)unlinkat(dir_fd, tmp, 0);
	return r;
}

static int
seed_place(struct git_job *g)
{
	/* The harness would prefer them to what is placed now. */
	static const char *const stale[] = { "state.db", "state.db-wal",
	    "state.db-shm" };
	const struct devjob_plan *p = &g->plan;
	uint8_t *data = NULL;
	size_t len = 0, i;
	int fd = -1, r;

	if ((r = seed_inflate(g, p->seed.data, p->seed.len,
	    SEED_MAX_INFLATED, &data, &len)) != 0 ||
	    (r = seed_check_object(g, data, len)) != 0 ||
	    (r = seed_open_dir(g, &fd)) != 0)
		goto out;
	for (i = 0; i < sizeof(stale) / sizeof(stale[0]) && r == 0; i++)
		if (git_tree_remove(fd, stale[i]) != 0)
			r = git_job_fail(g, SEED_DIR "/%s: %s", stale[i],
			    strerror(errno));
	/* What lies at its place may be anything of an earlier run. */
	if (r == 0 && git_tree_remove(fd, SEED_STATE) != 0)
		r = git_job_fail(g, SEED_DIR "/" SEED_STATE ": %s",
		    strerror(errno));
	if (r == 0)
		r = seed_save(g, fd, data, len);
	if (r == 0 && !rule_is_empty(p->record))
		(void)git_tree_save(fd, "sandbox-run.json", p->record,
		    strlen(p->record));
	/* An earlier run's result is not this one's. */
	(void)git_tree_remove(fd, "result.json.gz");
out:
	if (fd != -1)
		close(fd);
	free(data);
	return r;
}

/* -------------------------------------------------------------------- take */

static int
seed_take(struct git_job *g)
{
	uint8_t *inflated = NULL;
	size_t len = 0, n = 0;
	char *data = NULL;
	int r;

	r = git_tree_load(g->dir_fd, SEED_RESULT, RESULT_MAX, &data, &len);
	if (r == CL_NOTFOUND)
		return git_job_fail(g, "no project result was left by the "
		    "workload");
	if (r != 0)
		return git_job_fail(g, SEED_RESULT ": %s", r == CL_FORMAT ?
		    "it is no regular file" : cl_strerror(r));
	if ((r = seed_inflate(g, (uint8_t *)data, len, RESULT_MAX_INFLATED,
	    &inflated, &n)) == 0 &&
	    (r = seed_check_object(g, inflated, n)) == 0) {
		if (g->file_fd == -1 ||
		    util_write_all(g->file_fd, data, len) != 0)
			r = git_job_fail(g, "the result cannot be kept");
		g->res.bytes = (int64_t)len;
	}
	free(inflated);
	free(data);
	return r;
}

int
main(int argc, char **argv)
{
	static struct git_job g;
	int r;

	(void)argv;
	git_job_harden();
	if (argc != 1)
		return 2;
	if (git_job_open(&g) != 0 || git_job_read_orders(&g) != 1)
		return 1;
	g.deadline_at = util_now_ms() + g.plan.timeout_s * 1000;
	g.dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g.dir_fd == -1)
		r = git_job_fail(&g, "the work directory: %s", strerror(errno));
	else if (g.plan.op == DEVJOB_SEED)
		r = seed_place(&g);
	else
		r = g.plan.op == DEVJOB_PROJECT ? seed_take(&g) :
		    git_job_fail(&g, "not a job for this program");
	git_job_send_result(&g, r);
	field_clear(&devjob_plan_table, &g.plan);
	return 0;
}
