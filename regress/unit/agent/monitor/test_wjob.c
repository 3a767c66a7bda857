/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/monitor/wjob: a job and its shim, played here over the real channels:
 * what they are given, and that however they end, die or lie, the owner hears
 * of it once, with a reason.
 */
#include "regress/unit/msgtest.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <poll.h>

#include "agent/monitor/wjob.c"

static struct agentd a;
static struct handledir dir;
static struct wjob *job;
static struct chan shim, inner;	/* our ends */
static int shim_fd, ndone, spawn_result;
static pid_t child;
static struct devjob_result got;

int
shims_start(struct agentd *ag, pid_t *pidp, int *fdp)
{
	int fds[2], ready[2];
	char byte;

	if (spawn_result != 0) {
		errno = EMFILE;
		return spawn_result;
	}
	ASSERT_ERR(imsg_pair(fds), CL_OK);
	ASSERT_INT_EQ(pipe(ready), 0);
	fflush(stdout);
	if ((child = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close_range(3, ~0U, 0);	/* our ends too */
		for (;;)
			(void)pause();
	}
	/* It holds our ends until here. */
	close(ready[1]);
	ASSERT_INT_EQ(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	*pidp = child;
	*fdp = fds[0];
	shim_fd = fds[1];
	return CL_OK;
}

void
shims_sweep(struct agentd *ag)
{
	ASSERT_PTR_EQ(ag, &a);
}

/* All but the job's channel; any shim gets it alike. */
int
shims_send_setup(const struct agentd *ag, struct chan *c,
    const struct shims_setup *s)
{
	ASSERT_STRING_EQ(s->job->argv.v[0], "cloop-git");
	ASSERT_PTR_EQ(s->dir, &dir);
	ASSERT_INT_EQ(s->wake_fd, 5);
	ASSERT_INT_EQ(s->tree_fd, 1);
	return CL_OK;
}

int
shims_send_fd(struct chan *c, uint32_t type, int fd)
{
	return chan_send(c, type, 0, NULL, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

int
kern_load_ticks(pid_t pid, uint64_t *ticksp)
{
	*ticksp = 42;
	return CL_OK;
}

int
kern_kill(pid_t pid, uint64_t ticks)
{
	if (pid != child || ticks != 42)
		return CL_NOTFOUND;
	(void)kill(pid, SIGKILL);
	return CL_OK;
}

int
start_make_step(const struct agentd *ag, const char *handle_id,
    const char *program, const char *tree, int64_t timeout_s,
    struct shim_job *j)
{
	memset(j, 0, sizeof(*j));
	j->mode = SHIM_MODE_CONFINED;
	j->uid = j->gid = SHIM_STAY;
	j->handle = strdup(handle_id);
	j->tree = strdup(tree);
	j->timeout_s = (uint64_t)timeout_s;
	j->argv.v = calloc(2, sizeof(char *));
	j->argv.v[j->argv.n++] = strdup(program);
	return CL_OK;
}

static void
on_done(void *arg, const struct devjob_result *res)
{
	ASSERT_PTR_EQ(arg, &ndone);
	ndone++;
	got.outcome = res->outcome;
	free(got.error);
	got.error = strdup(res->error == NULL ? "" : res->error);
	free(got.head);
	got.head = strdup(res->head == NULL ? "" : res->head);
	/* As its owners do. */
	wjob_free(job);
	job = NULL;
}

static void
turn(void)
{
	int i;

	for (i = 0; i < 8; i++)
		(void)event_base_loop(a.base, EVLOOP_NONBLOCK);
}

/* What it is, and of a signal which; its descriptor, or -1. */
static uint32_t
next(struct chan *c, int *fdp)
{
	union msg_any v;
	struct imsg m;
	uint32_t type;

	turn();
	*fdp = -1;
	if ((type = msgtest_hear(c, &m, &v)) == 0)
		return 0;
	if (type == MSG_SHIM_SIGNAL)
		ASSERT_INT_EQ(v.SHIM_SIGNAL.sig, SIG_TERMINATE);
	if (type == MSG_SHIM_STDIN)
		*fdp = imsg_take_fd(&m);
	msgtest_free(&m, &v);
	return type;
}

static void
begin(void)
{
	struct devjob_plan plan;
	struct wjob_opts o = { .program = "cloop-git", .plan = &plan,
	    .handle_id = "h", .dir = &dir, .wake_fd = 5, .tree = "/tree",
	    .tree_fd = 1, .file_fd = -1, .done = on_done, .arg = &ndone };

	ndone = 0;
	field_init(&devjob_plan_table, &plan);
	plan.op = DEVJOB_PROVISION;
	plan.timeout_s = 100;
	plan.repo = strdup("https://forge/r.git");
	ASSERT_ERR(secret_init(&plan.password, "hunter22", 8, 100), CL_OK);
	o.file_fd = memfd_create("file", MFD_CLOEXEC);
	ASSERT_ERR(wjob_start(&a, &o, &job), CL_OK);
	ASSERT_SIZE_T_EQ(plan.password.len, 0);
	ASSERT_INT_EQ(fcntl(o.file_fd, F_GETFD), -1);
	field_clear(&devjob_plan_table, &plan);
	msgtest_open(&shim, shim_fd, MSG_M2S, MSG_S2M);
}

/* What the shim is sent; its STDIN is the job's channel. */
static void
take_orders(void)
{
	int fd, none;

	ASSERT_INT_EQ(next(&shim, &fd), MSG_SHIM_STDIN);
	msgtest_open(&inner, fd, MSG_M2J, MSG_J2M);
	ASSERT_INT_EQ(next(&shim, &none), MSG_SHIM_GO);
}

static void
say_bytes(struct chan *c, uint32_t type, size_t len)
{
	static const uint8_t zero[16];

	msgtest_send_bytes(c, type, 0, zero, len, -1);
	turn();
}

static void
say_started(void)
{
	struct msg_shim_started body = { .pid = 5, .started_at = 6 };

	MSGTEST_SEND(&shim, SHIM_STARTED, 0, &body, -1);
	turn();
}

static void
say_done(uint64_t outcome, const char *head, int extra)
{
	struct devjob_result res;
	struct buf b;

	field_init(&devjob_result_table, &res);
	res.outcome = outcome;
	res.head = strdup(head);
	buf_init(&b, MSG_BODY_MAX);
	field_put(&devjob_result_table, &res, &b);
	if (extra)
		buf_put_u8(&b, 0);
	(void)chan_send_buf(&inner, MSG_JOB_DONE, 0, &b, -1);
	turn();
	buf_clear(&b);
	field_clear(&devjob_result_table, &res);
}

static void
say_exited(int64_t state, int64_t code, const char *error)
{
	struct shim_exit x = { .state = state, .exit_code = code,
	    .error = error };

	MSGTEST_SEND(&shim, SHIM_EXITED, 0, &x, -1);
	turn();
}

static int
is_killed(void)
{
	int status, i;
	pid_t pid = 0;

	for (i = 0; i < 400 && (pid = waitpid(child, &status, WNOHANG)) == 0;
	    i++)
		(void)poll(NULL, 0, 5);
	if (pid != child)
		return 0;
	child = 0;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* The channels end, as with the processes; on_done is called once. */
static void
end(void)
{
	chan_close(&inner);
	chan_close(&shim);
	turn();
	ASSERT_INT_EQ(ndone, 1);
	ASSERT_PTR_EQ(job, NULL);
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
}

static void
test_good(void)
{
	int fd;

	a.base = event_base_new();
	TEST_START("the job gets its plan, the shim all else; one result");
	begin();
	take_orders();
	ASSERT_INT_EQ(next(&inner, &fd), MSG_JOB_PLAN);
	ASSERT_INT_EQ(next(&inner, &fd), MSG_JOB_FILE);
	ASSERT_INT_EQ(next(&inner, &fd), MSG_JOB_GO);
	say_started();
	say_done(DEVJOB_OK, "abc", 0);
	ASSERT_INT_EQ(ndone, 0);
	say_exited(HS_EXITED, 0, "");
	ASSERT_INT_EQ(next(&shim, &fd), MSG_SHIM_RELEASE);
	ASSERT_INT_EQ(wjob_on_exit(job, child + 1), 0);
	ASSERT_INT_EQ(wjob_on_exit(job, child), 1);
	end();
	ASSERT_INT_EQ(got.outcome, DEVJOB_OK);
	ASSERT_STRING_EQ(got.head, "abc");
}

static void
test_deaths(void)
{
	struct msg_text why = { .text = "no such program" };

	TEST_START("a job without a result failed, with the shim's reason");
	begin(), take_orders(), say_started();
	say_exited(HS_KILLED, 137, "killed by a signal");
	end();
	ASSERT_INT_EQ(got.outcome, DEVJOB_FAILED);
	ASSERT_STRING_EQ(got.error, "killed by a signal");
	begin(), take_orders(), say_started();
	say_exited(HS_EXITED, 1, "");
	end();
	ASSERT_STRING_EQ(got.error, "the job died");
	TEST_START("a shim that could not start, one that died");
	begin(), take_orders();
	MSGTEST_SEND(&shim, SHIM_FAILED, 0, &why, -1);
	turn();
	end();
	ASSERT_STRING_EQ(got.error, "no such program");
	begin(), take_orders(), say_started();
	end();
	ASSERT_STRING_EQ(got.error, "the job's supervisor died");
	TEST_START("a result that came before the shim's death counts");
	begin(), take_orders(), say_started();
	say_done(DEVJOB_OK, "abc", 0);
	end();
	ASSERT_INT_EQ(got.outcome, DEVJOB_OK);
}

/* A lie: the shim is killed, and whatever was said is worth nothing. */
static void
test_lies(void)
{
	TEST_START("a result with a byte too many, one of no outcome");
	begin(), take_orders(), say_started();
	say_done(DEVJOB_OK, "abc", 1);
	ASSERT_TRUE(is_killed());
	end();
	ASSERT_INT_EQ(got.outcome, DEVJOB_FAILED);
	ASSERT_STRING_EQ(got.error, "the job broke the rules of its channel");
	begin(), take_orders(), say_started();
	say_done(0, "abc", 0);
	ASSERT_TRUE(is_killed());
	end();
	ASSERT_INT_EQ(got.outcome, DEVJOB_FAILED);
	TEST_START("a message that is not a job's, a second result");
	begin(), take_orders(), say_started();
	say_bytes(&inner, MSG_SHIM_GO, 0);
	ASSERT_TRUE(is_killed());
	end();
	ASSERT_STRING_EQ(got.error, "the job broke the rules of its channel");
	begin(), take_orders(), say_started();
	say_done(DEVJOB_OK, "abc", 0);
	say_done(DEVJOB_OK, "def", 0);
	ASSERT_TRUE(is_killed());
	end();
	TEST_START("a shim that breaks its rules");
	begin(), take_orders();
	say_bytes(&shim, MSG_SHIM_EXITED, 1);
	ASSERT_TRUE(is_killed());
	end();
	ASSERT_INT_EQ(got.outcome, DEVJOB_FAILED);
}

static void
test_time(void)
{
	struct devjob_plan plan;
	struct wjob_opts o = { .program = "cloop-git", .plan = &plan,
	    .handle_id = "h", .dir = &dir, .wake_fd = 5, .tree = "/tree",
	    .tree_fd = 1, .file_fd = -1, .done = on_done, .arg = &ndone };
	int fd;

	TEST_START("a cancelled job is asked once, and then killed");
	begin(), take_orders(), say_started();
	wjob_cancel(job);
	wjob_cancel(job);
	ASSERT_INT_EQ(next(&shim, &fd), MSG_SHIM_SIGNAL);
	ASSERT_INT_EQ(next(&shim, &fd), 0);
	event_active(job->timer, EV_TIMEOUT, 0);
	turn();
	ASSERT_TRUE(is_killed());
	end();
	ASSERT_STRING_EQ(got.error, "cancelled by a signal");
	TEST_START("one that does not end in time");
	begin(), take_orders(), say_started();
	event_active(job->timer, EV_TIMEOUT, 0);
	turn();
	ASSERT_TRUE(is_killed());
	end();
	ASSERT_STRING_EQ(got.error, "the job did not end in time");
	TEST_START("one that cannot be started is no job");
	ndone = 0;
	spawn_result = CL_NOTFOUND;
	field_init(&devjob_plan_table, &plan);
	ASSERT_ERR(wjob_start(&a, &o, &job), CL_NOTFOUND);
	field_clear(&devjob_plan_table, &plan);
	ASSERT_PTR_EQ(job, NULL);
	TEST_START("which takes nothing: it may be tried again");
	spawn_result = CL_SYSTEM;
	ASSERT_ERR(secret_init(&plan.password, "hunter22", 8, 100), CL_OK);
	o.file_fd = memfd_create("file", MFD_CLOEXEC);
	ASSERT_ERR(wjob_start(&a, &o, &job), CL_SYSTEM);
	ASSERT_INT_EQ(errno, EMFILE);
	ASSERT_INT_GE(fcntl(o.file_fd, F_GETFD), 0);
	close(o.file_fd);
	ASSERT_SIZE_T_EQ(plan.password.len, 8);
	secret_clear(&plan.password);
	turn();
	ASSERT_INT_EQ(ndone, 0);
	wjob_cancel(NULL);
	wjob_free(NULL);
	ASSERT_INT_EQ(wjob_on_exit(NULL, 1), 0);
	free(got.error);
	free(got.head);
	event_base_free(a.base);
}

UNIT_MAIN(test_good, test_deaths, test_lies, test_time)
