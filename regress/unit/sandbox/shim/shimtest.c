/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's side of cloop-shim, for tests (see shimtest.h).  Included by
 * the tests, because assertions jump within one program.
 */
#include "shimtest.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "sandbox/box/cgroup.h"
#include "sandbox/box/spawn.h"
#include "sandbox/self/bpf.h"
#include "sandbox/self/self.h"

static void
rig_make(char *dst, size_t len, const char *base, const char *name,
    mode_t mode, uid_t uid)
{
	snprintf(dst, len, "%s/%s", base, name);
	ASSERT_INT_EQ(mkdir(dst, mode), 0);
	ASSERT_INT_EQ(chmod(dst, mode), 0);
	if (uid != (uid_t)-1)
		ASSERT_INT_EQ(chown(dst, uid, uid), 0);
}

static void
rig_write(const char *dir, const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ASSERT_INT_GE(fd, 0);
	ASSERT_INT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* build/unit/test_x: the programs are one directory up. */
static void
rig_set_libexec(void)
{
	char path[4096];
	ssize_t n;

	if (getenv("CLOOP_LIBEXEC") != NULL)
		return;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	ASSERT_INT_GT(n, 0);
	path[n] = '\0';
	setenv("CLOOP_LIBEXEC", dirname(dirname(path)), 1);
}

/* What a failed assertion jumped away from is ended all the same. */
static struct rig *rig_live[4];

static void
rig_close_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(rig_live) / sizeof(rig_live[0]); i++)
		if (rig_live[i] != NULL)
			rig_close(rig_live[i]);
}

static void
rig_add_live(struct rig *g)
{
	static int is_set;
	size_t i;

	if (!is_set)
		atexit(rig_close_all);
	is_set = 1;
	for (i = 0; i < sizeof(rig_live) / sizeof(rig_live[0]); i++)
		if (rig_live[i] == g)
			rig_close(g);
	for (i = 0; rig_live[i] != NULL; i++)
		;
	rig_live[i] = g;
}

void
rig_open(struct rig *g)
{
	struct self_user user;
	uid_t uid = (uid_t)-1;

	rig_add_live(g);
	memset(g, 0, sizeof(*g));
	g->shim = -1;
	g->dir_fd = g->wake_fd = -1;
	g->spool.fd = -1;
	g->is_root = geteuid() == 0;
	rig_set_libexec();
	snprintf(g->base, sizeof(g->base), "/tmp/cloop-shim.XXXXXX");
	ASSERT_PTR_NE(mkdtemp(g->base), NULL);
	ASSERT_INT_EQ(chmod(g->base, 0755), 0);
	if (g->is_root) {
		ASSERT_ERR(self_find_user("_cloop-work", &user), CL_OK);
		uid = user.uid;
	}
	g->uid = uid;
	rig_make(g->root, sizeof(g->root), g->base, "work", 0755,
	    (uid_t)-1);
	rig_make(g->tree, sizeof(g->tree), g->root, "w", 0700, uid);
	rig_make(g->home, sizeof(g->home), g->root, ".w.home", 0700, uid);
	rig_make(g->other, sizeof(g->other), g->root, "other", 0777, uid);
	rig_make(g->state, sizeof(g->state), g->base, "state", 0700,
	    (uid_t)-1);
	rig_make(g->dir, sizeof(g->dir), g->state, "h", 0700, (uid_t)-1);
	rig_write(g->state, "agent.json", "clac1.secret\n");
	rig_write(g->other, "secret", "of-another-workload\n");
	snprintf(g->socket, sizeof(g->socket), "%s/shim.sock", g->state);
}

static int
rig_remove(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
rig_clear(struct rig *g)
{
	chan_close(&g->chan);
	spool_close(&g->spool);
	if (g->dir_fd != -1)
		close(g->dir_fd);
	if (g->wake_fd != -1)
		close(g->wake_fd);
	g->dir_fd = g->wake_fd = -1;
}

/* Without assertions: it runs after one failed. */
static void
rig_stop(struct rig *g)
{
	struct msg_shim_signal body = { .sig = SIG_KILL };
	int i;

	if (CHAN_SEND(&g->chan, SHIM_SIGNAL, 0, &body, -1) == CL_OK)
		for (i = 0; i < 3000 && faccessat(g->dir_fd, SHIM_EXIT_FILE,
		    F_OK, 0) == -1; i++)
			poll(NULL, 0, 1);
	kill(g->shim, SIGKILL);
	waitpid(g->shim, NULL, 0);
	g->shim = -1;
}

void
rig_close(struct rig *g)
{
	size_t i;

	for (i = 0; i < sizeof(rig_live) / sizeof(rig_live[0]); i++)
		if (rig_live[i] == g)
			rig_live[i] = NULL;
	if (g->shim > 0)
		rig_stop(g);
	rig_clear(g);
	field_clear(&shim_exit_table, &g->end);
	cgroup_sweep();
	nftw(g->base, rig_remove, 16, FTW_DEPTH | FTW_PHYS);
}

void
rig_set_argv(struct rig *g, const char *const *argv)
{
	size_t n = 0;

	memset(&g->job, 0, sizeof(g->job));
	for (; argv[n] != NULL; n++)
		g->argv[n] = argv[n];
	g->job.argv.v = (char **)(uintptr_t)g->argv;
	g->job.argv.n = n;
	g->env[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
	g->env[1] = "MARK=1";
	snprintf(g->word, sizeof(g->word), "7001.%d", (int)getpid());
	snprintf(g->word_env, sizeof(g->word_env), "WORD=%s", g->word);
	g->env[2] = g->word_env;
	g->job.env.v = (char **)(uintptr_t)g->env;
	g->job.env.n = 3;
	g->hide[0] = g->state;
	g->job.hide.v = (char **)(uintptr_t)g->hide;
	g->job.hide.n = 1;
	g->job.mode = SHIM_MODE_CONFINED;
	g->job.log_level = getenv("SHIM_DEBUG") != NULL ? LOGL_DEBUG :
	    LOGL_ERROR;
	g->job.uid = g->is_root ? g->uid : SHIM_STAY;
	g->job.gid = g->job.uid;
	g->job.handle = (char *)(uintptr_t)"test";
	g->job.tree = g->tree;
	g->job.home = g->home;
	g->job.work_root = g->root;
	g->job.socket = g->socket;
}

void
rig_set(struct rig *g, const char *script)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };

	rig_set_argv(g, argv);
}

static void
rig_send(struct rig *g, uint32_t type, int fd)
{
	ASSERT_ERR(chan_send(&g->chan, type, 0, NULL, fd), CL_OK);
}

static void
rig_send_job(struct rig *g)
{
	struct buf job;

	buf_init(&job, MAX_SPEC_LEN);
	shim_job_put(&job, &g->job);
	ASSERT_ERR(buf_error(&job), CL_OK);
	ASSERT_ERR(chan_send_memfd(&g->chan, MSG_SHIM_JOB, 0, job.data,
	    job.len), CL_OK);
	buf_clear(&job);
}

/* Compiled once, as cloop-agentd does it. */
static void
rig_send_filters(struct rig *g)
{
	static struct buf filters;
	struct bpf_set set;

	if (filters.len == 0) {
		ASSERT_ERR(bpf_set_make(&set), CL_OK);
		buf_init(&filters, MAX_FILTERS_LEN);
		bpf_set_put(&filters, &set);
		bpf_set_clear(&set);
		ASSERT_ERR(buf_error(&filters), CL_OK);
	}
	ASSERT_ERR(chan_send_memfd(&g->chan, MSG_SHIM_FILTERS, 0,
	    filters.data, filters.len - g->cut_filters), CL_OK);
}

/* The next message, handled; 0 at the deadline, -1 at the end. */
static int
rig_turn(struct rig *g, int64_t until)
{
	union msg_any v;
	struct imsg m;
	const char *why;
	int r, type;

	memset(&g->chan.seen, 0, sizeof(g->chan.seen));
	if ((r = chan_wait(&g->chan, until, &m, &v, &why)) != CL_OK)
		return r == CL_TIMEOUT ? 0 : -1;
	type = (int)m.type;
	if (m.type == MSG_SHIM_STARTED) {
		g->pid = v.SHIM_STARTED.pid;
	} else if (m.type == MSG_SHIM_FAILED) {
		(void)snprintf(g->failed, sizeof(g->failed), "%s",
		    v.SHIM_FAILED.text);
	} else if (m.type == MSG_SHIM_EXITED) {
		ASSERT_ERR(shim_exit_check(&v.SHIM_EXITED), CL_OK);
		field_clear(&shim_exit_table, &g->end);
		g->end = v.SHIM_EXITED;
		field_init(&shim_exit_table, &v.SHIM_EXITED);
	}
	msg_clear(m.type, &v);
	imsg_free(&m);
	return type;
}

/* Any of the shim's messages, any number of times. */
static void
rig_open_chan(struct rig *g, int fd)
{
	ASSERT_ERR(chan_init(&g->chan, fd, MSG_S2M, MSG_M2S, 64, NULL, NULL,
	    NULL), CL_OK);
	g->chan.state = MS_ANY;
}

void
rig_prepare(struct rig *g)
{
	struct spawn_opts o = { .program = "cloop-shim",
		.flags = SPAWN_SURVIVE };
	char path[256];
	int fd;

	rig_clear(g);
	field_clear(&shim_exit_table, &g->end);
	g->failed[0] = '\0';
	g->out_len = 0;
	g->out[0] = '\0';
	ASSERT_ERR(spawn_start(&o, &g->shim, &fd), CL_OK);
	rig_open_chan(g, fd);
	snprintf(path, sizeof(path), "%s/spool", g->dir);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ASSERT_ERR(spool_init(&g->spool, fd, 1 << 20, 1 << 22), CL_OK);
	g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->dir_fd = open(g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unlinkat(g->dir_fd, SHIM_EXIT_FILE, 0);
	rig_send_job(g);
	rig_send(g, MSG_SHIM_SPOOL,
	    open(path, O_RDWR | O_CLOEXEC));
	rig_send(g, MSG_SHIM_WAKE,
	    fcntl(g->wake_fd, F_DUPFD_CLOEXEC, 0));
	rig_send(g, MSG_SHIM_DIR,
	    fcntl(g->dir_fd, F_DUPFD_CLOEXEC, 0));
	rig_send(g, MSG_SHIM_TREE, open(g->tree,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!g->no_filters)
		rig_send_filters(g);
}

void
rig_go(struct rig *g)
{
	rig_send(g, MSG_SHIM_GO, -1);
}

int
rig_start(struct rig *g)
{
	int type;

	rig_prepare(g);
	rig_go(g);
	type = rig_turn(g, util_now_ms() + 20000);
	if (type == MSG_SHIM_STARTED)
		return 1;
	if (type != MSG_SHIM_FAILED)
		UNIT_FAIL("the shim answered %d", type);
	ASSERT_INT_EQ(waitpid(g->shim, NULL, 0), g->shim);
	g->shim = -1;
	return 0;
}

void
rig_signal(struct rig *g, int sig)
{
	struct msg_shim_signal body = { .sig = sig };

	ASSERT_ERR(CHAN_SEND(&g->chan, SHIM_SIGNAL, 0, &body, -1), CL_OK);
}

static void
rig_load(struct rig *g)
{
	uint64_t off = g->out_len;
	size_t n;

	do {
		ASSERT_ERR(spool_get(&g->spool, &off, g->out + g->out_len,
		    sizeof(g->out) - 1 - g->out_len, &n), CL_OK);
		g->out_len += n;
		off += n;
	} while (n > 0);
	g->out[g->out_len] = '\0';
}

void
rig_wait(struct rig *g, int timeout_ms)
{
	int64_t until = util_now_ms() + timeout_ms;
	int type;

	while ((type = rig_turn(g, until)) != MSG_SHIM_EXITED)
		if (type == 0 || type == -1)
			UNIT_FAIL("no SHIM_EXITED (%d); output: %s", type,
			    (rig_load(g), g->out));
	rig_load(g);
}

void
rig_wait_text(struct rig *g, const char *text)
{
	struct pollfd pfd = { .fd = g->wake_fd, .events = POLLIN };
	int64_t until = util_now_ms() + 60000, left;
	uint64_t n;

	for (;;) {
		rig_load(g);
		if (strstr(g->out, text) != NULL)
			return;
		left = until - util_now_ms();
		if (left <= 0 || poll(&pfd, 1, (int)left) <= 0)
			UNIT_FAIL("no \"%s\" in \"%s\"", text, g->out);
		(void)!read(g->wake_fd, &n, sizeof(n));
	}
}

void
rig_finish(struct rig *g)
{
	rig_send(g, MSG_SHIM_RELEASE, -1);
	rig_wait_end(g);
}

void
rig_wait_end(struct rig *g)
{
	int status = -1, i;

	for (i = 0; i < 30000 && waitpid(g->shim, &status, WNOHANG) == 0; i++)
		poll(NULL, 0, 1);
	ASSERT_INT_EQ(status, 0);
	g->shim = -1;
	rig_clear(g);
	ASSERT_INT_EQ(access(g->socket, F_OK), -1);
}

void
rig_run(struct rig *g, const char *script)
{
	rig_set(g, script);
	if (!rig_start(g))
		UNIT_FAIL("refused: %s", g->failed);
	rig_wait(g, 15000);
	rig_finish(g);
}

void
rig_abandon(struct rig *g)
{
	chan_close(&g->chan);
}

void
rig_adopt(struct rig *g)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct msg_version ours = { .version = MSGCAT_VERSION };
	int fd;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", g->socket);
	ASSERT_INT_EQ(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	rig_open_chan(g, fd);
	ASSERT_ERR(CHAN_SEND(&g->chan, SHIM_ADOPT, 0, &ours, -1), CL_OK);
	g->pid = -1;
	ASSERT_INT_EQ(rig_turn(g, util_now_ms() + 10000), MSG_SHIM_STARTED);
	ASSERT_INT_GT(g->pid, 1);
}

int
rig_count(const char *word)
{
	char path[300], text[4096];
	struct dirent *de;
	DIR *d = opendir("/proc");
	int fd, found = 0;
	ssize_t n, i;

	while (d != NULL && (de = readdir(d)) != NULL) {
		if (de->d_name[0] < '1' || de->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/cmdline", de->d_name);
		if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		for (i = 0; i < n; i += (ssize_t)strlen(text + i) + 1) {
			text[n] = '\0';
			if (strcmp(text + i, word) == 0) {
				found++;
				break;
			}
		}
	}
	if (d != NULL)
		closedir(d);
	return found;
}

void
rig_wait_gone(const char *word)
{
	int i, quiet = 0;

	/* A child between fork and exec does not have its word yet: one look
	 * that finds nothing is not enough. */
	for (i = 0; i < 6000 && quiet < 40; i++) {
		quiet = rig_count(word) == 0 ? quiet + 1 : 0;
		poll(NULL, 0, 5);
	}
	ASSERT_INT_EQ(quiet, 40);
}
