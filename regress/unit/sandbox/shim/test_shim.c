/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The real cloop-shim, driven over its channel, as root and (run again by
 * itself) as an ordinary user (BC-48, BC-51, BC-76).
 */
#include "regress/unit/unit.h"

#include "shimtest.c"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <grp.h>
#include <sched.h>
#include <stddef.h>

static struct rig g;

#define RIG_OPEN() do { rig_open(&g); } while (0)

static void
test_echo(void)
{
	TEST_START("output, exit code and record of a plain echo");
	RIG_OPEN();
	rig_run(&g, "echo hello; echo err >&2; printf '%s' \"$MARK\"; exit 7");
	ASSERT_STRING_EQ(g.out, "hello\nerr\n1");
	ASSERT_INT_EQ(g.end.state, HS_EXITED);
	ASSERT_INT_EQ(g.end.exit_code, 7);
	ASSERT_STRING_EQ(g.end.error, "");
	ASSERT_U64_EQ(g.end.total_raw, 11);
	ASSERT_TRUE(g.end.finished_at >= g.end.started_at);
	rig_close(&g);
}

static void
test_record(void)
{
	struct shim_exit x;

	TEST_START("the exit record is there before SHIM_EXITED");
	RIG_OPEN();
	rig_set(&g, "exit 3");
	ASSERT_TRUE(rig_start(&g));
	rig_wait(&g, 40000);
	ASSERT_ERR(shim_exit_load(g.dir_fd, &x), CL_OK);
	ASSERT_INT_EQ(x.exit_code, 3);
	ASSERT_INT_EQ(x.finished_at, g.end.finished_at);
	field_clear(&shim_exit_table, &x);
	rig_finish(&g);
	rig_close(&g);
}

static void
test_environment(void)
{
	TEST_START("descriptors 0-2, exact environment, umask, cwd (BC-76)");
	RIG_OPEN();
	rig_run(&g, "ls /proc/self/fd; readlink /proc/self/fd/0; umask; pwd; "
	    "ulimit -c; env | sort | grep -Ev "
	    "'^(_|PWD|WORD)'; cat");
	ASSERT_PTR_NE(strstr(g.out, "0\n1\n2\n3\n/dev/null\n0077\n"), NULL);
	ASSERT_PTR_NE(strstr(g.out, g.tree), NULL);
	ASSERT_PTR_NE(strstr(g.out, "\n0\nMARK=1\nPATH=/usr/local/bin:"),
	    NULL);
	rig_close(&g);
}

static void
test_privileges(void)
{
	char id[64];

	TEST_START("another user, no capability, no new privileges");
	RIG_OPEN();
	rig_run(&g, "id -u; id -G; grep -E '^(CapEff|CapPrm|CapInh|CapBnd|"
	    "CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'; "
	    "echo end");
	if (g.is_root) {
		snprintf(id, sizeof(id), "%u\n%u\n", g.uid, g.uid);
		ASSERT_MEM_EQ(g.out, id, strlen(id));
	}
	ASSERT_PTR_NE(strstr(g.out, "CapInh:0000000000000000\n"
	    "CapPrm:0000000000000000\nCapEff:0000000000000000\n"
	    "CapBnd:0000000000000000\nCapAmb:0000000000000000\n"
	    "NoNewPrivs:1\nSeccomp:2\n"), NULL);
	rig_close(&g);
}

static void
test_signals(void)
{
	TEST_START("interrupt and terminate reach the process group");
	RIG_OPEN();
	rig_set(&g, "trap 'echo int' INT; trap 'echo term; exit 9' TERM; "
	    "echo ready; while :; do sleep 0.05; done");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "ready");
	rig_signal(&g, SIG_INTERRUPT);
	rig_wait_text(&g, "int");
	rig_signal(&g, SIG_TERMINATE);
	rig_wait(&g, 40000);
	ASSERT_INT_EQ(g.end.state, HS_EXITED);
	ASSERT_INT_EQ(g.end.exit_code, 9);
	rig_finish(&g);
	rig_close(&g);

	TEST_START("died of a requested signal: killed, 128 + n");
	RIG_OPEN();
	rig_set(&g, "echo ready; exec sleep 1000");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "ready");
	rig_signal(&g, SIG_TERMINATE);
	rig_wait(&g, 40000);
	ASSERT_INT_EQ(g.end.state, HS_KILLED);
	ASSERT_INT_EQ(g.end.exit_code, 128 + SIGTERM);
	ASSERT_STRING_EQ(g.end.error, "SIGTERM on request");
	rig_finish(&g);
	rig_close(&g);

	TEST_START("died of its own signal: killed, the name");
	RIG_OPEN();
	rig_run(&g, "kill -SEGV $$");
	ASSERT_INT_EQ(g.end.state, HS_KILLED);
	ASSERT_INT_EQ(g.end.exit_code, 128 + SIGSEGV);
	ASSERT_STRING_EQ(g.end.error, "SIGSEGV");
	rig_close(&g);
}

static void
test_timeout(void)
{
	TEST_START("the timeout kills what ignores signals");
	RIG_OPEN();
	rig_set(&g, "trap '' TERM INT; while :; do sleep 0.05; done");
	g.job.timeout_s = 1;
	ASSERT_TRUE(rig_start(&g));
	rig_wait(&g, 40000);
	ASSERT_INT_EQ(g.end.state, HS_KILLED);
	ASSERT_INT_EQ(g.end.exit_code, 137);
	ASSERT_STRING_EQ(g.end.error, "timeout after 1 seconds");
	rig_finish(&g);
	rig_close(&g);
}

static void
test_refused(void)
{
	static const struct {
		const char *argv0;
		const char *want;
	} rows[] = {
		{ "/nonexistent/prog", "No such file" },
		{ "no-such-program-4711", "not found on PATH" },
		{ "/usr", "Permission denied" },
		{ "/etc/passwd", "Permission denied" },
	};
	const char *argv[2] = { NULL, NULL };
	size_t i;

	TEST_START("a program that cannot be run is SHIM_FAILED with the "
	    "reason");
	RIG_OPEN();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("%s", rows[i].argv0);
		argv[0] = rows[i].argv0;
		rig_set_argv(&g, argv);
		ASSERT_FALSE(rig_start(&g));
		ASSERT_PTR_NE(strstr(g.failed, rows[i].want), NULL);
		ASSERT_PTR_NE(strstr(g.failed, rows[i].argv0), NULL);
		ASSERT_INT_EQ(access(g.socket, F_OK), -1);
	}
	rig_close(&g);
}

/* Kill while these run; nothing may be left (BC-48). */
static const struct {
	const char *name;
	const char *script;	/* says "up"; its processes carry the mark */
} hostile[] = {
	{ "setsid", "setsid sh -c 'trap \"\" TERM HUP INT; echo up; "
	    "sleep $WORD' & wait" },
	{ "double fork", "(setsid sh -c '(sleep $WORD &) ; sleep $WORD' &) ; "
	    "sleep 0.1; echo up; sleep $WORD" },
	{ "ignoring signals", "trap '' HUP INT TERM QUIT; echo up; "
	    "while :; do sleep $WORD; done" },
	{ "stopped", "sh -c 'kill -STOP $$; sleep $WORD' & echo up; "
	    "sleep $WORD" },
	{ "fork bomb of 200", "b() { i=$1; while [ $i -gt 0 ]; do "
	    "(setsid sleep $WORD &) ; i=$((i-1)); done; }; b 100; b 100; "
	    "echo up; wait; sleep $WORD" },
	{ "closed output", "echo up; exec >/dev/null 2>&1; setsid sleep $WORD "
	    "& sleep $WORD" },
};

static void
check_hostile(int mode)
{
	size_t i;

	for (i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		unit_note("%s", hostile[i].name);
		rig_set(&g, hostile[i].script);
		g.job.mode = (uint8_t)mode;
		ASSERT_TRUE(rig_start(&g));
		rig_wait_text(&g, "up");
		rig_signal(&g, SIG_KILL);
		rig_wait(&g, 40000);
		/* Before "it is over" is said, it is over. */
		ASSERT_INT_EQ(rig_count(g.word), 0);
		ASSERT_INT_EQ(g.end.state, HS_KILLED);
		ASSERT_INT_EQ(g.end.exit_code, 137);
		ASSERT_STRING_EQ(g.end.error, "SIGKILL on request");
		rig_finish(&g);
	}
}

static void
test_hostile(void)
{
	TEST_START("nothing survives kill, confined (BC-48)");
	RIG_OPEN();
	check_hostile(SHIM_MODE_CONFINED);
	rig_close(&g);

	TEST_START("nothing survives kill, plain (BC-48)");
	RIG_OPEN();
	check_hostile(SHIM_MODE_PLAIN);
	rig_close(&g);
}

static void
test_bomb(void)
{
	struct rig *other = calloc(1, sizeof(*other));

	TEST_START("an endless fork bomb stops no other workload and dies");
	RIG_OPEN();
	rig_set(&g, "echo up; f() { f | f & }; f; sleep $WORD");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	poll(NULL, 0, 200);
	rig_open(other);
	rig_run(other, "for i in 1 2 3; do sh -c 'echo fine'; done");
	ASSERT_STRING_EQ(other->out, "fine\nfine\nfine\n");
	rig_close(other);
	free(other);
	rig_signal(&g, SIG_KILL);
	rig_wait(&g, 60000);
	rig_finish(&g);
	rig_close(&g);
}

static void
test_leftovers(void)
{
	int64_t began;

	TEST_START("background children die with the leader");
	RIG_OPEN();
	rig_run(&g, "setsid sleep $WORD >/dev/null 2>&1 & sleep 0.1; exit 0");
	ASSERT_INT_EQ(rig_count(g.word), 0);
	ASSERT_INT_EQ(g.end.state, HS_EXITED);
	ASSERT_INT_EQ(g.end.exit_code, 0);
	rig_close(&g);

	TEST_START("a held pipe delays the end 2 s at most");
	RIG_OPEN();
	began = util_now_ms();
	rig_run(&g, "(trap '' TERM HUP; exec sleep $WORD) & echo done");
	ASSERT_INT_GE(util_now_ms() - began, DRAIN_GRACE_MS - 100);
	ASSERT_INT_LT(util_now_ms() - began, DRAIN_GRACE_MS + 3000);
	ASSERT_STRING_EQ(g.out, "done\n");
	ASSERT_INT_EQ(g.end.exit_code, 0);
	ASSERT_INT_EQ(rig_count(g.word), 0);
	rig_close(&g);

	TEST_START("none when it is stopped: what forked away dies with the "
	    "leader");
	RIG_OPEN();
	rig_set(&g, "setsid sh -c 'trap \"\" TERM HUP INT; echo ready; "
	    "exec sleep $WORD' & wait");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "ready");
	began = util_now_ms();
	rig_signal(&g, SHIM_SIG_STOP);
	rig_wait(&g, 40000);
	ASSERT_INT_LT(util_now_ms() - began, DRAIN_GRACE_MS - 500);
	ASSERT_INT_EQ(g.end.state, HS_KILLED);
	ASSERT_INT_EQ(rig_count(g.word), 0);
	rig_finish(&g);
	rig_close(&g);

	TEST_START("nor when the leader was gone before");
	RIG_OPEN();
	rig_set(&g, "(trap '' TERM HUP; exec sleep $WORD) & echo ready");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "ready");
	began = util_now_ms();
	rig_signal(&g, SHIM_SIG_STOP);
	rig_wait(&g, 40000);
	ASSERT_INT_LT(util_now_ms() - began, DRAIN_GRACE_MS - 500);
	ASSERT_INT_EQ(rig_count(g.word), 0);
	rig_finish(&g);
	rig_close(&g);

	TEST_START("output of a grandchild within the grace is kept");
	RIG_OPEN();
	rig_run(&g, "(sleep 0.3; echo late) & echo early");
	ASSERT_STRING_EQ(g.out, "early\nlate\n");
	rig_close(&g);
}

static void
test_hidden(void)
{
	const char *own;
	char script[2048];

	TEST_START("credential, other trees, foreign /tmp are not there");
	RIG_OPEN();
	snprintf(script, sizeof(script), "cat %s/agent.json; cat %s/secret; "
	    "ls -A %s %s; ls /tmp; ls /run /home /root; ls .. ; "
	    "cat ../other/secret; cat /proc/1/environ | tr '\\0' '\\n'; "
	    "find / -name agent.json 2>/dev/null; true", g.state, g.other,
	    g.state, g.root);
	rig_run(&g, script);
	ASSERT_PTR_EQ(strstr(g.out, "clac1"), NULL);
	ASSERT_PTR_EQ(strstr(g.out, "of-another"), NULL);
	ASSERT_PTR_EQ(strstr(g.out, "other\n"), NULL);
	rig_close(&g);

	TEST_START("only its own processes are in /proc; no signal, no ptrace "
	    "outside");
	RIG_OPEN();
	snprintf(script, sizeof(script), "ls /proc | grep -c '^[0-9]'; "
	    "kill -0 %d && echo hit; ls /proc/%d && echo seen; "
	    "echo own-$$; true", (int)getpid(), 999999);
	rig_run(&g, script);
	ASSERT_PTR_EQ(strstr(g.out, "hit"), NULL);
	ASSERT_INT_LT(strtol(g.out, NULL, 10), 8);
	/* A number of its own namespace, not far from the host's. */
	ASSERT_PTR_NE(own = strstr(g.out, "own-"), NULL);
	ASSERT_INT_GT(strtol(own + 4, NULL, 10), 2);
	rig_close(&g);
}

static void
test_writable(void)
{
	char script[1024];

	TEST_START("its tree, home and /tmp are its own, the system is not");
	RIG_OPEN();
	snprintf(script, sizeof(script), "echo a >in && cat in; "
	    "echo b >%s/h && cat %s/h; echo c >/tmp/t && cat /tmp/t; "
	    "echo d >/dev/shm/s && cat /dev/shm/s; mkdir d && mv in d/in && "
	    "cat %s/d/in; touch /etc/x /usr/x /var/x /x 2>/dev/null && "
	    "echo bad; echo e >/dev/null && echo null", g.home, g.home,
	    g.tree);
	rig_run(&g, script);
	ASSERT_STRING_EQ(g.out, "a\nb\nc\nd\na\nnull\n");
	snprintf(script, sizeof(script), "%s/d/in", g.tree);
	ASSERT_INT_EQ(access(script, F_OK), 0);
	ASSERT_INT_EQ(access("/tmp/t", F_OK), -1);
	rig_close(&g);
}

static void
test_syscalls(void)
{
	TEST_START("mount, unshare, ptrace, keyctl are refused");
	RIG_OPEN();
	rig_run(&g, "unshare -U true 2>&1; unshare -m true 2>&1; "
	    "mount -t tmpfs none /tmp 2>&1; umount /tmp 2>&1; "
	    "setpriv --dump 2>/dev/null | grep -i no_new; "
	    "chroot / true 2>&1; echo end");
	ASSERT_PTR_NE(strstr(g.out, "end\n"), NULL);
	ASSERT_PTR_NE(strstr(g.out, "unshare"), NULL);
	ASSERT_PTR_NE(strstr(g.out, "ot permitted"), NULL);
	rig_close(&g);

	TEST_START("compiler, git and Python work inside");
	RIG_OPEN();
	rig_run(&g, "export HOME=/tmp; echo 'int main(void){return 0;}' >a.c "
	    "&& cc a.c -o a && ./a && echo cc; git init -q . && git add a.c && "
	    "git -c user.name=n -c user.email=e commit -qm m && echo git; "
	    "python3 -c 'import subprocess, threading, multiprocessing; "
	    "subprocess.run([\"echo\", \"py\"])'");
	ASSERT_STRING_EQ(g.out, "cc\ngit\npy\n");
	rig_close(&g);
}

static void
test_adopt(void)
{
	struct shim_exit x;
	char path[128];
	int dir_fd;

	TEST_START("it outlives its monitor and is found by its socket "
	    "(BC-51)");
	RIG_OPEN();
	rig_set(&g, "echo up; while [ ! -e go ]; do sleep 0.02; done; "
	    "echo end; exit 5");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	rig_abandon(&g);
	rig_adopt(&g);
	rig_abandon(&g);
	rig_adopt(&g);
	rig_write(g.tree, "go", "");
	rig_wait(&g, 40000);
	ASSERT_INT_EQ(g.end.exit_code, 5);
	rig_finish(&g);
	rig_close(&g);

	TEST_START("without a monitor it leaves its record and goes");
	RIG_OPEN();
	rig_set(&g, "echo up; while [ ! -e go ]; do sleep 0.02; done; "
	    "echo end; exit 6");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	rig_abandon(&g);
	rig_write(g.tree, "go", "");
	dir_fd = fcntl(g.dir_fd, F_DUPFD_CLOEXEC, 0);
	rig_wait_text(&g, "end");
	rig_wait_end(&g);
	ASSERT_ERR(shim_exit_load(dir_fd, &x), CL_OK);
	close(dir_fd);
	ASSERT_INT_EQ(x.exit_code, 6);
	ASSERT_U64_EQ(x.total_raw, 7);
	field_clear(&shim_exit_table, &x);
	rig_close(&g);

	TEST_START("a monitor that is gone before SHIM_GO started nothing");
	RIG_OPEN();
	rig_set(&g, "touch began");
	rig_prepare(&g);
	rig_abandon(&g);
	rig_wait_end(&g);
	rig_prepare(&g);
	kill(g.shim, SIGSTOP);
	rig_go(&g);
	rig_abandon(&g);
	kill(g.shim, SIGCONT);
	rig_wait_end(&g);
	snprintf(path, sizeof(path), "%s/began", g.tree);
	ASSERT_INT_EQ(access(path, F_OK), -1);
	rig_close(&g);

	TEST_START("an adopted workload can be killed (BC-51)");
	RIG_OPEN();
	rig_set(&g, "echo up; setsid sleep $WORD & sleep $WORD");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	rig_abandon(&g);
	rig_adopt(&g);
	rig_signal(&g, SIG_KILL);
	rig_wait(&g, 40000);
	ASSERT_INT_EQ(rig_count(g.word), 0);
	rig_finish(&g);
	rig_close(&g);

	TEST_START("when the shim is killed the workload goes with it");
	RIG_OPEN();
	rig_set(&g, "echo up; setsid sleep $WORD & sleep $WORD");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	kill(g.shim, SIGKILL);
	waitpid(g.shim, NULL, 0);
	g.shim = -1;
	rig_wait_gone(g.word);
	rig_close(&g);
}

static void
test_violation(void)
{
	TEST_START("a message out of its state ends the channel, not the "
	    "workload");
	RIG_OPEN();
	rig_set(&g, "echo up; while [ ! -e go ]; do sleep 0.02; done; exit 4");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	rig_go(&g);
	ASSERT_INT_EQ(rig_turn(&g, util_now_ms() + 5000), -1);
	rig_abandon(&g);
	rig_adopt(&g);
	rig_write(g.tree, "go", "");
	rig_wait(&g, 40000);
	ASSERT_INT_EQ(g.end.exit_code, 4);
	rig_finish(&g);
	rig_close(&g);
}

/* Nothing came but the end of the channel, and the shim is gone. */
static void
check_not_started(void)
{
	rig_set(&g, "echo ran >ran");
	rig_prepare(&g);
	if (g.cut_filters == 0)
		rig_go(&g);
	ASSERT_INT_EQ(rig_turn(&g, util_now_ms() + 5000), -1);
	ASSERT_INT_EQ(waitpid(g.shim, NULL, 0), g.shim);
	g.shim = -1;
	ASSERT_INT_EQ(faccessat(g.dir_fd, SHIM_EXIT_FILE, F_OK, 0), -1);
}

static void
test_filters(void)
{
	TEST_START("without its filters, or with half of them, nothing starts");
	RIG_OPEN();
	g.no_filters = 1;
	check_not_started();
	g.no_filters = 0;
	g.cut_filters = 1;
	check_not_started();
	g.cut_filters = 0;
	rig_run(&g, "ls; exit 5");
	ASSERT_INT_EQ(g.end.exit_code, 5);
	ASSERT_STRING_EQ(g.out, "");
	rig_close(&g);
}

static void
test_flood(void)
{
	TEST_START("a flood keeps the window, not all of it (spool.h)");
	RIG_OPEN();
	rig_set(&g, "head -c 20000000 /dev/zero | tr '\\0' x");
	ASSERT_TRUE(rig_start(&g));
	while (rig_turn(&g, util_now_ms() + 20000) != MSG_SHIM_EXITED)
		;
	ASSERT_U64_EQ(g.end.total_raw, 20000000);
	/* Nothing was sent: all but SpoolLimit is evicted. */
	ASSERT_U64_EQ(spool_load_u64(&g.spool.head->base),
	    20000000 - (1 << 22));
	ASSERT_U64_EQ(spool_load_u64(&g.spool.head->ended), 1);
	rig_finish(&g);
	rig_close(&g);

	TEST_START("a connected consumer that is behind slows it (spool.h)");
	RIG_OPEN();
	rig_set(&g, "echo up; while [ ! -e go ]; do sleep 0.02; done; "
	    "head -c 20000000 /dev/zero");
	ASSERT_TRUE(rig_start(&g));
	rig_wait_text(&g, "up");
	spool_save_u64(&g.spool.head->limit, 1 << 28);
	spool_save_u64(&g.spool.head->link_up, 1);
	rig_write(g.tree, "go", "");
	poll(NULL, 0, 500);
	ASSERT_TRUE(spool_load_u64(&g.spool.head->total) <=
	    SPOOL_HIGH_LEN + 17 * SPOOL_BLOCK_LEN);
	spool_save_u64(&g.spool.head->sent, 1 << 30);
	while (rig_turn(&g, util_now_ms() + 20000) != MSG_SHIM_EXITED)
		;
	ASSERT_U64_EQ(g.end.total_raw, 20000003);
	rig_finish(&g);
	rig_close(&g);
}

static void
test_plain(void)
{
	TEST_START("plain: own session, no new privileges, no capabilities");
	RIG_OPEN();
	rig_set(&g, "grep -E '^(NoNewPrivs|Seccomp|CapEff):' "
	    "/proc/self/status | tr -d '\\t'; ps -o sid= -p $$ | tr -d ' '; "
	    "echo $$; id -u");
	g.job.mode = SHIM_MODE_PLAIN;
	ASSERT_TRUE(rig_start(&g));
	rig_wait(&g, 40000);
	ASSERT_PTR_NE(strstr(g.out, "CapEff:0000000000000000\n"
	    "NoNewPrivs:1\n"), NULL);
	if (g.is_root)
		ASSERT_PTR_EQ(strstr(g.out, "\n0\n"), NULL);
	rig_finish(&g);
	rig_close(&g);
}

/* What a monitor may still do once it is confined must be enough. */
static void
test_confined_monitor(void)
{
	struct self_report rep;
	int status;
	pid_t pid;

	TEST_START("a confined monitor's shim builds the same sandbox");
	fflush(stdout);
	if ((pid = fork()) == 0) {
		rig_open(&g);	/* directories: as cloop-agentd */
		if (self_confine_monitor(SELF_MONITOR_SHIMS, &rep) != CL_OK)
			_exit(2);
		rig_set(&g, "id -u; ls /proc | grep -c '^[0-9]'; "
		    "tr -s ' ' </proc/self/uid_map; "
		    "grep 'Max processes' /proc/self/limits | tr -s ' '");
		if (!rig_start(&g)) {
			printf("# %s\n", g.failed);
			_exit(3);
		}
		rig_wait(&g, 40000);
		rig_finish(&g);
		if (g.is_root && strstr(g.out, " 0 0 4294967295\n"
		    "Max processes 1024 1024 ") == NULL) {
			printf("# %s\n", g.out);
			_exit(4);
		}
		rig_close(&g);
		_exit(g.end.exit_code);
	}
	waitpid(pid, &status, 0);
	ASSERT_INT_EQ(status, 0);
}

/*
 * What the shipped units take away: RestrictNamespaces= refuses clone3 as a
 * whole (cloop-shimd), ProtectKernelTunables= makes /proc/sys read-only
 * (cloop-agentd).
 */
static int
restrict_like_unit(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { 4, code };

	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == -1 ||
	    mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) == -1 ||
	    mount(NULL, "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY,
	    NULL) == -1)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* Is a workload in a group of its own, and which number has it inside? */
static int
run_and_look(int *has_groupp, long *numberp)
{
	char *end;

	rig_open(&g);
	rig_set(&g, "grep '^0::' /proc/self/cgroup; echo $$");
	if (!rig_start(&g)) {
		printf("# %s\n", g.failed);
		return -1;
	}
	rig_wait(&g, 40000);
	rig_finish(&g);
	rig_close(&g);
	if ((end = strchr(g.out, '\n')) == NULL)
		return -1;
	*has_groupp = strstr(g.out, "/cloop/w") != NULL;
	*numberp = strtol(end, NULL, 10);
	return 0;
}

static void
test_unit(void)
{
	int status, before, after;
	long number, again;
	pid_t pid;

	if (geteuid() != 0)
		return;
	TEST_START("under the shipped unit: the same cgroup and numbers");
	ASSERT_INT_EQ(run_and_look(&before, &number), 0);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		if (restrict_like_unit() == -1)
			_exit(2);
		if (run_and_look(&after, &again) != 0 || before != after)
			_exit(3);
		/* Neither begins at 2. */
		_exit(number > 10 && again > 10 ? 0 : 4);
	}
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_INT_EQ(status, 0);
	if (!before)
		TEST_SKIP("no cgroup that could be kept");
}

/* The same again as nobody, by our own executable. */
static void
test_unprivileged(void)
{
	char *argv[] = { (char *)(uintptr_t)"test_shim", NULL };
	char line[1024];
	int out[2], status;
	FILE *f;
	pid_t pid;

	if (geteuid() != 0)
		return;
	TEST_START("all of it again as an ordinary user");
	ASSERT_INT_EQ(pipe2(out, O_CLOEXEC), 0);
	rig_set_libexec();
	fflush(stdout);
	if ((pid = fork()) == 0) {
		dup2(out[1], 1);
		if (setgroups(0, NULL) != 0 || setgid(65534) != 0 ||
		    setuid(65534) != 0)
			_exit(99);
		execv("/proc/self/exe", argv);
		_exit(98);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	while (fgets(line, sizeof(line), f) != NULL)
		printf("# %s", line);
	fclose(f);
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_INT_EQ(status, 0);
}

UNIT_MAIN(test_echo, test_record, test_environment, test_privileges,
    test_signals, test_timeout, test_refused, test_hostile, test_bomb,
    test_leftovers, test_hidden, test_writable, test_syscalls, test_adopt,
    test_violation, test_filters, test_flood, test_plain,
    test_confined_monitor, test_unit, test_unprivileged)
