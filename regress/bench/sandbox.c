/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Starts one small program again and again, and measures start to first byte
 * to reaped: through cloop-shim, as cloop-agentd does it, or as a plain
 * child, which is how bwrap and runc are started.
 *
 *	sandbox shim|exec COUNT PARALLEL PROGRAM [ARGUMENT...]
 *
 * prints the median ms to the first byte, the median ms until it was reaped,
 * and starts per second of all workers together.  PROGRAM prints one line.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "common/msg/chan.h"
#include "common/output/spool.h"
#include "sandbox/box/shim.h"
#include "sandbox/box/spawn.h"
#include "sandbox/self/bpf.h"
#include "sandbox/self/self.h"

#define MAX_RUNS 100000
#define MAX_PARALLEL 64
#define WAIT_MS 20000		/* nothing here takes a second */

struct rig {
	char base[32], work[48], tree[64], home[64], state[64], dir[80];
	char sock[80];
	struct shim_job job;
	char *env[1], *hide[1];
	struct chan chan;
	struct spool spool;
	int wake_fd, dir_fd;
	pid_t pid;
};

struct sample {
	double first, reaped;
};

static double
clock_now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		err(1, "clock_gettime");
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void
rig_make(char *dst, size_t len, const char *dir, const char *name, uid_t uid)
{
	(void)snprintf(dst, len, "%s/%s", dir, name);
	if (mkdir(dst, 0755) == -1 || chown(dst, uid, uid) == -1)
		err(1, "%s", dst);
}

/* The directories and the job of one worker. */
static void
rig_open(struct rig *g, char **argv)
{
	struct self_user user;
	size_t n;

	memset(g, 0, sizeof(*g));
	if (self_find_user(USER_WORK, &user) != CL_OK)
		errx(1, "no user for workloads");
	(void)snprintf(g->base, sizeof(g->base), "/tmp/cloop-bench.XXXXXX");
	if (mkdtemp(g->base) == NULL || chmod(g->base, 0755) == -1)
		err(1, "%s", g->base);
	rig_make(g->work, sizeof(g->work), g->base, "work", 0);
	rig_make(g->tree, sizeof(g->tree), g->work, "w", user.uid);
	rig_make(g->home, sizeof(g->home), g->work, ".w.home", user.uid);
	rig_make(g->state, sizeof(g->state), g->base, "state", 0);
	rig_make(g->dir, sizeof(g->dir), g->state, "h", 0);
	(void)snprintf(g->sock, sizeof(g->sock), "%s/shim.sock", g->state);
	for (n = 0; argv[n] != NULL; n++)
		;
	g->env[0] = (char *)(uintptr_t)"PATH=/usr/local/bin:/usr/bin:/bin";
	g->hide[0] = g->state;
	g->job = (struct shim_job){ .handle = (char *)(uintptr_t)"bench",
		.mode = SHIM_MODE_CONFINED, .log_level = LOGL_ERROR,
		.uid = user.uid, .gid = user.gid, .argv = { argv, n },
		.env = { g->env, 1 }, .hide = { g->hide, 1 },
		.tree = g->tree, .home = g->home, .work_root = g->work,
		.socket = g->sock };
}

static void
rig_close(struct rig *g)
{
	(void)rmdir(g->dir);
	(void)rmdir(g->state);
	(void)rmdir(g->home);
	(void)rmdir(g->tree);
	(void)rmdir(g->work);
	if (rmdir(g->base) == -1)
		warn("%s", g->base);
}

static void
rig_send(struct rig *g, uint32_t type, int fd)
{
	if (chan_send(&g->chan, type, 0, NULL, fd) != CL_OK)
		errx(1, "message %s", msgcat_name(type));
}

static void
rig_send_job(struct rig *g)
{
	struct buf job;

	buf_init(&job, MAX_SPEC_LEN);
	shim_job_put(&job, &g->job);
	if (buf_error(&job) != CL_OK || chan_send_memfd(&g->chan,
	    MSG_SHIM_JOB, 0, job.data, job.len) != CL_OK)
		errx(1, "job");
	buf_clear(&job);
}

/* Compiled once, before the clock runs, as cloop-agentd does it. */
static struct buf filters;

static void
make_filters(void)
{
	struct bpf_set set;

	if (bpf_set_make(&set) != CL_OK)
		errx(1, "no filters");
	buf_init(&filters, MAX_FILTERS_LEN);
	bpf_set_put(&filters, &set);
	bpf_set_clear(&set);
	if (buf_error(&filters) != CL_OK)
		errx(1, "no filters");
}

static void
rig_send_filters(struct rig *g)
{
	if (chan_send_memfd(&g->chan, MSG_SHIM_FILTERS, 0, filters.data,
	    filters.len) != CL_OK)
		err(1, "filters");
}

static void
rig_start(struct rig *g)
{
	struct spawn_opts o = { .program = "cloop-shim",
		.flags = SPAWN_SURVIVE };
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/spool", g->dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	g->dir_fd = open(g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd == -1 || g->dir_fd == -1 || g->wake_fd == -1 ||
	    spool_init(&g->spool, fd, 1 << 20, 1 << 22) != CL_OK ||
	    spawn_start(&o, &g->pid, &fd) != CL_OK ||
	    chan_init(&g->chan, fd, MSG_S2M, MSG_M2S, 64, NULL, NULL,
	    NULL) != CL_OK)
		err(1, "cloop-shim");
	g->chan.state = MS_ANY;
	rig_send_job(g);
	rig_send(g, MSG_SHIM_SPOOL, open(path, O_RDWR | O_CLOEXEC));
	rig_send(g, MSG_SHIM_WAKE,
	    fcntl(g->wake_fd, F_DUPFD_CLOEXEC, 0));
	rig_send(g, MSG_SHIM_DIR, fcntl(g->dir_fd, F_DUPFD_CLOEXEC, 0));
	rig_send(g, MSG_SHIM_TREE,
	    open(g->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	rig_send_filters(g);
	rig_send(g, MSG_SHIM_GO, -1);
}

/* What came; the type of a message, 0: something else. */
static uint32_t
rig_turn(struct rig *g, struct sample *s)
{
	struct pollfd pfd[2] = { { .fd = g->chan.im.fd, .events = POLLIN },
		{ .fd = s->first == 0 ? g->wake_fd : -1, .events = POLLIN } };
	const char *why;
	union msg_any v;
	struct imsg m;
	uint32_t type;

	if (poll(pfd, 2, WAIT_MS) <= 0)
		errx(1, "nothing comes");
	if (pfd[1].revents != 0)
		s->first = clock_now();
	if (pfd[0].revents == 0)
		return 0;
	if (chan_read_one(&g->chan, &m, &v, &why) != CL_OK)
		errx(1, "the shim went");
	if ((type = m.type) == MSG_SHIM_FAILED)
		errx(1, "refused: %s", v.SHIM_FAILED.text);
	msg_clear(type, &v);
	imsg_free(&m);
	return type;
}

static void
run_shim(struct rig *g, struct sample *s)
{
	double begin = clock_now();
	int status;

	s->first = 0;
	rig_start(g);
	while (rig_turn(g, s) != MSG_SHIM_EXITED)
		;
	if (s->first == 0)
		s->first = clock_now();
	rig_send(g, MSG_SHIM_RELEASE, -1);
	if (waitpid(g->pid, &status, 0) != g->pid || status != 0)
		errx(1, "the shim ended with status %d", status);
	s->reaped = clock_now() - begin;
	s->first -= begin;
	if (spool_load_u64(&g->spool.head->total) == 0)
		errx(1, "no output");
	chan_close(&g->chan);
	spool_close(&g->spool);
	(void)unlinkat(g->dir_fd, SHIM_EXIT_FILE, 0);
	(void)unlinkat(g->dir_fd, "spool", 0);
	close(g->dir_fd);
	close(g->wake_fd);
}

static void
run_exec(char **argv, struct sample *s)
{
	double begin = clock_now();
	char text[256];
	int out[2], status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		err(1, "fork");
	if (pid == 0) {
		if (dup2(out[1], 1) == -1)
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], text, sizeof(text)) <= 0)
		errx(1, "%s: no output", argv[0]);
	s->first = clock_now() - begin;
	while (read(out[0], text, sizeof(text)) > 0)
		;
	close(out[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "%s: status %d", argv[0], status);
	s->reaped = clock_now() - begin;
}

/* runc wants a name for each container: an argument %d is its number. */
static void
set_number(char **argv, char **with, char *number, size_t len, int n)
{
	size_t i;

	(void)snprintf(number, len, "b%ld-%d", (long)getpid(), n);
	for (i = 0; argv[i] != NULL && i < 63; i++)
		with[i] = strcmp(argv[i], "%d") == 0 ? number : argv[i];
	with[i] = NULL;
}

static void
work(int is_shim, int count, char **argv, struct sample *samples)
{
	static struct rig g;
	char *with[64], number[64];
	int i;

	if (is_shim)
		rig_open(&g, argv);
	for (i = 0; i < count; i++) {
		if (is_shim) {
			run_shim(&g, &samples[i]);
			continue;
		}
		set_number(argv, with, number, sizeof(number), i);
		run_exec(with, &samples[i]);
	}
	if (is_shim)
		rig_close(&g);
	_exit(0);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
find_median(const struct sample *s, size_t n, size_t off)
{
	double *v = calloc(n, sizeof(*v)), median;
	size_t i;

	if (v == NULL)
		err(1, NULL);
	for (i = 0; i < n; i++)
		memcpy(&v[i], (const char *)&s[i] + off, sizeof(*v));
	qsort(v, n, sizeof(*v), compare);
	median = v[n / 2];
	free(v);
	return median;
}

static long
read_number(const char *text, long max)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end != '\0' || v < 1 || v > max)
		errx(1, "not from 1 to %ld: %s", max, text);
	return v;
}

int
main(int argc, char **argv)
{
	struct sample *s;
	double begin;
	size_t n;
	int count, parallel, i, status, failed = 0;

	if (argc < 5)
		errx(1, "sandbox shim|exec COUNT PARALLEL PROGRAM...");
	count = (int)read_number(argv[2], MAX_RUNS);
	parallel = (int)read_number(argv[3], MAX_PARALLEL);
	n = (size_t)count * (size_t)parallel;
	s = mmap(NULL, n * sizeof(*s), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		err(1, "mmap");
	make_filters();
	begin = clock_now();
	for (i = 0; i < parallel; i++) {
		switch (fork()) {
		case -1:
			err(1, "fork");
		case 0:
			work(strcmp(argv[1], "shim") == 0, count, argv + 4,
			    s + (size_t)i * (size_t)count);
		}
	}
	for (i = 0; i < parallel; i++)
		if (wait(&status) == -1 || status != 0)
			failed = 1;
	if (failed)
		errx(1, "a worker failed");
	printf("%.3f %.3f %.2f\n",
	    find_median(s, n, offsetof(struct sample, first)),
	    find_median(s, n, offsetof(struct sample, reaped)),
	    (double)n * 1e3 / (clock_now() - begin));
	return 0;
}
