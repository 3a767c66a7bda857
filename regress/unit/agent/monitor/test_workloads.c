/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The table of workloads when a device has no descriptors left: what cannot be
 * told now ends nothing, and every ask has its answer.  The fetcher and the
 * shims are played here; directories, spools and records are real.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "agent/monitor/agentd.h"
#include "agent/monitor/fetchctl.h"
#include "agent/monitor/kern.h"
#include "agent/monitor/workload_int.h"
#include "common/base/err.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "regress/unit/msgtest.h"

static struct agentd a;
static struct workloads *ws;
static char dir[] = "/tmp/cloop-unit-XXXXXX";
static int base_fd, shim_fd = -1, nadopted, start_result;
static int nstarted, nbusy, nfailed, nhandles, nexits;
static int64_t exit_code;
static char exit_error[256];
static uint64_t next_slot = 100;

/* ------------------------------------------------------------- played here */

void
fetchctl_send(struct fetchctl *f, uint32_t type, uint64_t id,
    uint64_t generation, const void *v, int fd)
{
	const struct shim_exit *end;
	int64_t result;

	(void)f;
	(void)id;
	(void)generation;
	if (fd != -1)
		close(fd);
	if (type == MSG_DEV_START_ANS) {
		result = ((const struct msg_dev_start_ans *)v)->result;
		nstarted += result == RES_OK;
		nbusy += result == RES_ERROR_FRAME;
		nfailed += result == RES_NOT_STARTED;
	} else if (type == MSG_DEV_HANDLE)
		nhandles++;
	else if (type == MSG_DEV_EXIT) {
		nexits++;
		end = &((const struct msg_dev_exit *)v)->end;
		exit_code = end->exit_code;
		strlcpy(exit_error, end->error, sizeof(exit_error));
	}
}

int
fetchctl_is_serving(const struct fetchctl *f, uint64_t *generationp)
{
	(void)f;
	(void)generationp;
	return 1;
}

static pid_t
make_process(void)
{
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close_range(3, ~0U, 0);
		for (;;)
			(void)pause();
	}
	return pid;
}

int
shims_start(struct agentd *ag, pid_t *pidp, int *fdp)
{
	int fds[2];

	(void)ag;
	if (start_result != 0) {
		errno = EMFILE;
		return start_result;
	}
	ASSERT_ERR(imsg_pair(fds), CL_OK);
	*pidp = make_process();
	*fdp = fds[0];
	shim_fd = fds[1];
	return CL_OK;
}

int
shims_send_setup(const struct agentd *ag, struct chan *c,
    const struct shims_setup *s)
{
	(void)ag;
	(void)c;
	(void)s;
	return CL_OK;
}

int
shims_send_fd(struct chan *c, uint32_t type, int fd)
{
	(void)c;
	(void)type;
	(void)fd;
	return CL_OK;
}

void
shims_sweep(struct agentd *ag)
{
	(void)ag;
}

static void
on_fewer(struct agentd *ag)
{
	(void)ag;
}

static void
on_slot(struct workloads *w, uint64_t slot)
{
	(void)w;
	(void)slot;
}

static void
on_redacted(struct workloads *w, uint64_t slot, uint64_t id, int ok)
{
	(void)w;
	(void)slot;
	(void)id;
	(void)ok;
}

static void
on_free(struct workloads *w)
{
	(void)w;
}

static const struct workloads_ops ops = { on_fewer, on_slot, on_slot,
    on_redacted, on_free };

static void
on_adopted(struct agentd *ag)
{
	ASSERT_PTR_EQ(ag, &a);
	nadopted++;
}

/* -------------------------------------------------------------------- tools */

static void
turn(int ms)
{
	int64_t until = util_now_ms() + ms;

	do {
		(void)event_base_loop(a.base, EVLOOP_NONBLOCK);
		(void)poll(NULL, 0, 5);
	} while (util_now_ms() < until);
}

static void
open_table(void)
{
	const char *what;

	nadopted = nstarted = nbusy = nfailed = nhandles = nexits = 0;
	ASSERT_ERR(workloads_new(&a, &ops, &ws, &what), CL_OK);
}

static void
close_table(void)
{
	workloads_free(ws);
	ws = NULL;
}

/* No descriptor is free from here on. */
static void
set_full(int full)
{
	static struct rlimit old;
	struct rlimit rl;

	if (!full) {
		ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
		return;
	}
	ASSERT_INT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	rl = old;
	rl.rlim_cur = 3;	/* whatever is closed meanwhile */
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

/* What an agent leaves that died: a directory, its spool, its record. */
static void
leave_dir(const char *handle, pid_t pid, int64_t finished_at)
{
	struct shim_exit x = { .state = HS_EXITED, .exit_code = 3,
	    .started_at = 1, .finished_at = finished_at };
	struct handle_meta m = { .slot = next_slot++, .shim_pid = pid,
	    .created_at = 1 };
	struct handledir d;
	struct spool sp;
	int fd;

	strlcpy(m.handle_id, handle, sizeof(m.handle_id));
	ASSERT_ERR(kern_load_boot(m.boot_id), CL_OK);
	if (pid > 0)
		ASSERT_ERR(kern_load_ticks(pid, &m.shim_ticks), CL_OK);
	ASSERT_ERR(handledir_make(base_fd, handle, m.slot, &d), CL_OK);
	ASSERT_ERR(handledir_save_meta(&d, &m), CL_OK);
	ASSERT_ERR(handledir_open_spool(&d, O_RDWR | O_CREAT, &fd), CL_OK);
	ASSERT_ERR(spool_init(&sp, fd, 65536, 65536), CL_OK);
	spool_close(&sp);
	if (finished_at != 0) {
		ASSERT_ERR(shim_exit_open(d.fd, &fd), CL_OK);
		ASSERT_ERR(shim_exit_save(d.fd, fd, &x), CL_OK);
		close(fd);
	}
	handledir_close(&d);
}

static int
count_dirs(void)
{
	struct stat st;

	ASSERT_INT_EQ(fstat(base_fd, &st), 0);
	return (int)st.st_nlink - 2;
}

static int
is_running(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void
end_process(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static int
start(const char *handle)
{
	static const struct workload_ask ask = { 1, 1 };
	struct shim_job job = { 0 };
	struct spec s;
	struct workload_start st = { .handle_id = handle, .job = &job,
	    .tree_fd = dup(0), .spec = &s, .ask = &ask };
	int r;

	spec_init(&s);
	r = workloads_start(ws, &st);
	free(job.socket);
	return r;
}

static void
say_started(void)
{
	struct msg_shim_started body = { .pid = 5, .started_at = 6 };
	struct chan c;

	msgtest_open(&c, dup(shim_fd), MSG_M2S, MSG_S2M);
	MSGTEST_SEND(&c, SHIM_STARTED, 0, &body, -1);
	chan_close(&c);
	turn(20);
}

/* -------------------------------------------------------------------- tests */

static void
test_asks(void)
{
	static const struct workload_ask ask = { 2, 1 };
	pid_t shim;
	int i;

	TEST_START("who asks for a start too often hears \"busy\", at once");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	a.conf.state_dir = a.conf.runtime_dir = dir;
	a.base = event_base_new();
	a.max_concurrent = 2;
	a.max_files = 1024;
	ASSERT_ERR(handledir_open_base(dir, &base_fd), CL_OK);
	open_table();
	ASSERT_INT_EQ(workloads_answer_again(ws, "h", &ask), 0);
	ASSERT_ERR(start("h"), CL_OK);
	shim = TAILQ_FIRST(&ws->list)->shim_pid;
	for (i = 1; i < WORKLOAD_MAX_ASKS; i++)
		ASSERT_INT_EQ(workloads_answer_again(ws, "h", &ask), 1);
	ASSERT_INT_EQ(nbusy, 0);
	ASSERT_INT_EQ(workloads_answer_again(ws, "h", &ask), 1);
	ASSERT_INT_EQ(nbusy, 1);
	say_started();
	ASSERT_INT_EQ(nstarted, WORKLOAD_MAX_ASKS);
	ASSERT_INT_EQ(nhandles, 1);

	TEST_START("a fetcher that comes is told of one that launches");
	ASSERT_ERR(start("i"), CL_OK);
	ASSERT_INT_EQ(nhandles, 1);
	ASSERT_ERR(workloads_announce(ws), CL_OK);
	ASSERT_INT_EQ(nhandles, 3);
	TEST_START("which ends for it when the start comes to nothing");
	close(shim_fd);
	turn(20);
	ASSERT_INT_EQ(nfailed, 1);
	ASSERT_INT_EQ(nexits, 1);
	ASSERT_PTR_NE(strstr(exit_error, "before the start was decided"),
	    NULL);
	end_process(shim);
	close_table();
}

static void
test_shim_gone(void)
{
	struct workload *w;
	struct shim_exit x = { .state = HS_EXITED, .exit_code = 7,
	    .started_at = 1, .finished_at = 2 };
	pid_t shim;
	int fd;

	TEST_START("the end of a shim that cannot be looked up is no loss");
	open_table();
	ASSERT_ERR(start("h"), CL_OK);
	w = TAILQ_FIRST(&ws->list);
	shim = w->shim_pid;
	say_started();
	ASSERT_ERR(shim_exit_open(w->dir.fd, &fd), CL_OK);
	ASSERT_ERR(shim_exit_save(w->dir.fd, fd, &x), CL_OK);
	close(fd);
	end_process(shim);
	close(shim_fd);
	set_full(1);
	turn(100);
	ASSERT_INT_EQ(w->state, WL_RUNNING);
	ASSERT_INT_EQ(nexits, 0);
	set_full(0);
	turn(WORKLOAD_AGAIN_MS + 300);
	ASSERT_INT_EQ(nexits, 1);
	ASSERT_INT_EQ(exit_code, 7);
	TEST_START("the fetcher waits for what cannot be announced");
	nhandles = 0;
	set_full(1);
	ASSERT_ERR(workloads_announce(ws), CL_SYSTEM);
	set_full(0);
	ASSERT_INT_EQ(nhandles, 0);
	ASSERT_ERR(workloads_announce(ws), CL_OK);
	ASSERT_INT_EQ(nhandles, 1);
	ASSERT_ERR(workloads_on_done(ws, w->slot), CL_OK);
	turn(20);
	ASSERT_INT_EQ(count_dirs(), 0);
	TEST_START("a start without a descriptor leaves nothing");
	start_result = CL_SYSTEM;
	ASSERT_ERR(start("k"), CL_SYSTEM);
	ASSERT_TRUE(kern_is_short(CL_SYSTEM));
	start_result = 0;
	turn(20);
	ASSERT_INT_EQ(count_dirs(), 0);
	close_table();
}

static void
test_adopt(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	pid_t shim = make_process();
	struct workload *w;
	int fd;

	TEST_START("without descriptors nothing is adopted, removed or killed");
	leave_dir("living", shim, 0);
	leave_dir("ended", 0, 5);
	open_table();
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/shim/%016llx.sock",
	    dir, (unsigned long long)next_slot - 2);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_INT_EQ(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ASSERT_INT_EQ(listen(fd, 4), 0);
	set_full(1);
	workloads_adopt(ws, on_adopted);
	turn(100);
	set_full(0);
	ASSERT_INT_EQ(nadopted, 0);
	ASSERT_TRUE(is_running(shim));
	ASSERT_INT_EQ(count_dirs(), 2);

	TEST_START("once there are some, both are found");
	turn(WORKLOAD_AGAIN_MS + 300);
	ASSERT_INT_EQ(nexits, 1);
	ASSERT_INT_EQ(nadopted, 0);
	shim_fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ASSERT_INT_GE(shim_fd, 0);
	say_started();
	ASSERT_INT_EQ(nadopted, 1);
	ASSERT_INT_EQ(workloads_get_count(ws), 2);
	ASSERT_TRUE(is_running(shim));
	close(shim_fd);
	close(fd);
	turn(20);
	ASSERT_INT_EQ(nexits, 2);
	ASSERT_FALSE(is_running(shim));
	TAILQ_FOREACH(w, &ws->list, entry)
		ASSERT_ERR(workloads_on_done(ws, w->slot), CL_OK);
	turn(20);
	close_table();
	ASSERT_INT_EQ(count_dirs(), 0);
}

static void
test_probe(void)
{
	pid_t shim = make_process();
	struct workload *w;

	TEST_START("a shim that cannot be probed is not given up");
	leave_dir("living", shim, 0);
	open_table();
	workloads_adopt(ws, on_adopted);
	w = TAILQ_FIRST(&ws->list);
	ASSERT_INT_EQ(w->state, WL_ADOPTING);
	w->adopt_until = util_now_ms() + 300;
	set_full(1);
	turn(WORKLOAD_AGAIN_MS + 600);
	ASSERT_INT_EQ(w->state, WL_ADOPTING);
	ASSERT_TRUE(is_running(shim));
	set_full(0);
	TEST_START("one that does not answer when it can be is");
	turn(2 * WORKLOAD_AGAIN_MS + 300);
	ASSERT_INT_EQ(nexits, 1);
	ASSERT_PTR_NE(strstr(exit_error, "agent on the device restarted"),
	    NULL);
	ASSERT_FALSE(is_running(shim));
	ASSERT_ERR(workloads_on_done(ws, w->slot), CL_OK);
	turn(20);
	close_table();
}

static void
test_positive(void)
{
	struct handledir d;
	int fd;

	TEST_START("no spool, no record: these are a no");
	leave_dir("nospool", 0, 5);
	ASSERT_ERR(handledir_open(base_fd, "6e6f73706f6f6c", &d), CL_OK);
	ASSERT_INT_EQ(unlinkat(d.fd, "spool", 0), 0);
	handledir_close(&d);
	ASSERT_ERR(handledir_make(base_fd, "norecord", 1, &d), CL_OK);
	handledir_close(&d);
	open_table();
	workloads_adopt(ws, on_adopted);
	turn(20);
	ASSERT_INT_EQ(nadopted, 1);
	ASSERT_INT_EQ(count_dirs(), 0);
	TEST_START("the record of a later version is left alone");
	ASSERT_ERR(handledir_make(base_fd, "later", 1, &d), CL_OK);
	fd = openat(d.fd, "meta", O_WRONLY | O_CREAT, 0600);
	ASSERT_INT_EQ(write(fd, "\0\0\0\2", 4), 4);
	close(fd);
	workloads_adopt(ws, on_adopted);
	ASSERT_INT_EQ(nadopted, 2);
	ASSERT_INT_EQ(count_dirs(), 1);
	ASSERT_ERR(handledir_remove(base_fd, &d), CL_OK);
	close_table();
}

static const char *
find_oldest(void)
{
	const struct workload *w, *old = NULL;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state == WL_ENDED && (old == NULL ||
		    w->end.finished_at < old->end.finished_at))
			old = w;
	return old->handle_id;
}

static void
test_room(void)
{
	char name[32];
	struct workload *w;
	int i;

	TEST_START("more ended ones than descriptors: the newest are kept");
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "e%02d", i);
		leave_dir(name, 0, 1000 + i);
	}
	a.max_files = 160;	/* 160 - 40 - 48 are 24 of 3 */
	open_table();
	workloads_adopt(ws, on_adopted);
	turn(20);
	ASSERT_INT_EQ(nadopted, 1);
	ASSERT_INT_EQ(workloads_get_count(ws), 25);
	ASSERT_STRING_EQ(find_oldest(), "e15");
	ASSERT_INT_EQ(count_dirs(), 25);
	TEST_START("what the hub was not told of makes no room for a start");
	ASSERT_STRING_EQ(workloads_make_room(ws), "the device runs as many "
	    "workloads as it may");
	a.max_concurrent = 26;
	ASSERT_STRING_EQ(workloads_make_room(ws), "the device has no "
	    "descriptors left");
	TEST_START("what it was told of does, the oldest first");
	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->end.finished_at >= 1020)
			ASSERT_ERR(workloads_on_told(ws, w->slot), CL_OK);
	ASSERT_PTR_EQ(workloads_make_room(ws), NULL);
	turn(20);
	ASSERT_INT_EQ(workloads_get_count(ws), 24);
	ASSERT_STRING_EQ(find_oldest(), "e15");
	a.max_concurrent = 6;
	ASSERT_PTR_EQ(workloads_make_room(ws), NULL);
	ASSERT_INT_EQ(workloads_get_count(ws), 21);
	ASSERT_STRING_EQ(find_oldest(), "e15");
	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state == WL_ENDED)
			ASSERT_ERR(workloads_on_done(ws, w->slot), CL_OK);
	turn(20);
	close_table();
	event_base_free(a.base);
	snprintf(name, sizeof(name), "%s/shim", dir);
	ASSERT_INT_EQ(rmdir(name), 0);
	ASSERT_INT_EQ(unlinkat(base_fd, "../handles", AT_REMOVEDIR), 0);
	close(base_fd);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

UNIT_MAIN(test_asks, test_shim_gone, test_adopt, test_probe, test_positive,
    test_room)
