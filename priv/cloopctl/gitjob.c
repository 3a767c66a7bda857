/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Child processes of cloopctl.  They run as the operator, who owns the
 * repositories, and not as a user of the hub, who must not: what comes from
 * a device is imported into a repository of its own first, by a git that
 * Landlock keeps from writing anywhere else, and seccomp from everything
 * that is no file and no child of its own.
 */
#include "bundlevet.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <bsd/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "sandbox/self/filter_git.h"
#include "sandbox/self/bpf.h"
#include "sandbox/self/landlock.h"

#define GITJOB_TIMEOUT_MS 300000
#define GITJOB_CPU_S 120
#define GITJOB_MEMORY (UINT64_C(3) << 30)
#define GITJOB_FILE (UINT64_C(1) << 30)

/* No hook, filter, monitor, pager or credential of anybody. */
static char *const gitjob_env[] = {
	(char *)(uintptr_t)"PATH=/usr/local/bin:/usr/bin:/bin",
	(char *)(uintptr_t)"HOME=/nonexistent",
	(char *)(uintptr_t)"LC_ALL=C",
	(char *)(uintptr_t)"GIT_CONFIG_NOSYSTEM=1",
	(char *)(uintptr_t)"GIT_CONFIG_GLOBAL=/dev/null",
	(char *)(uintptr_t)"GIT_ATTR_NOSYSTEM=1",
	(char *)(uintptr_t)"GIT_NO_REPLACE_OBJECTS=1",
	(char *)(uintptr_t)"GIT_NO_LAZY_FETCH=1",
	(char *)(uintptr_t)"GIT_OPTIONAL_LOCKS=0",
	(char *)(uintptr_t)"GIT_TERMINAL_PROMPT=0",
	(char *)(uintptr_t)"GIT_ALLOW_PROTOCOL=file",
	NULL
};
static const char *const gitjob_first[] = {
	"git", "--no-pager", "-c", "core.hooksPath=/dev/null", "-c",
	"core.fsmonitor=false", "-c", "core.attributesFile=/dev/null", "-c",
	"gc.auto=0", "-c", "maintenance.auto=false", "-c",
	"core.commitGraph=false", "-c", "pack.threads=1", "-c",
	"core.packedGitWindowSize=32m", "-c", "core.packedGitLimit=512m",
};
#define NFIRST (sizeof(gitjob_first) / sizeof(gitjob_first[0]))

void
gitjob_init(struct gitjob *j, const char *repo, const char *write_dir)
{
	memset(j, 0, sizeof(*j));
	j->repo = repo;
	j->write_dir = write_dir;
	j->in_fd = j->out_fd = -1;
	j->out_max = 65536;
}

void
gitjob_clear(struct gitjob *j)
{
	free(j->out);
	j->out = NULL;
	j->out_len = 0;
}

const char *
gitjob_get_line(struct gitjob *j)
{
	char *text = (char *)j->out;

	if (text == NULL || j->out_len < 2 || text[j->out_len - 1] != '\n' ||
	    strlen(text) != j->out_len ||
	    strchr(text, '\n') != text + j->out_len - 1)
		return "";
	text[j->out_len - 1] = '\0';
	return text;
}

static int
gitjob_make_walls(const struct gitjob *j, struct landlock **lp)
{
	int r;

	*lp = NULL;
	if (j->write_dir == NULL)
		return CL_OK;
	r = landlock_new(LL_NO_TCP | LL_NO_ABSTRACT | LL_NO_SIGNAL, lp);
	if (r == CL_UNSUPPORTED)
		return CL_OK;	/* the other bounds hold all the same */
	if (r == CL_OK)
		r = landlock_add_path(*lp, "/", LL_READONLY);
	if (r == CL_OK)
		r = landlock_add_path(*lp, "/dev/null", LL_READ | LL_WRITE);
	if (r == CL_OK)
		r = landlock_add_path(*lp, j->write_dir, LL_ALL);
	if (r != CL_OK) {
		landlock_free(*lp);
		*lp = NULL;
	}
	return r;
}

static void
gitjob_set_limit(int what, uint64_t value)
{
	struct rlimit rl = { value, value };

	(void)setrlimit((__rlimit_resource_t)what, &rl);
}

static void
gitjob_exec(const struct gitjob *j, const struct landlock *walls,
    const struct sock_fprog *filter, int out, int err, char *const *argv)
{
	int in = j->in_fd != -1 ? j->in_fd :
	    open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (in == -1 || dup2(in, 0) == -1 || dup2(out, 1) == -1 ||
	    dup2(err, 2) == -1)
		_exit(127);
	(void)signal(SIGPIPE, SIG_DFL);
	gitjob_set_limit(RLIMIT_CORE, 0);
	if (j->write_dir != NULL) {
		gitjob_set_limit(RLIMIT_CPU, GITJOB_CPU_S);
		gitjob_set_limit(RLIMIT_FSIZE, GITJOB_FILE);
		gitjob_set_limit(RLIMIT_AS, GITJOB_MEMORY);
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    (walls != NULL && landlock_start(walls) != CL_OK))
		_exit(127);
	closefrom(3);	/* the rules have a descriptor, too */
	(void)setpgid(0, 0);
	if (filter != NULL && bpf_start(filter) != CL_OK)
		_exit(127);
	(void)execvpe(argv[0], argv, gitjob_env);
	_exit(127);
}

/* Keep the newest words of standard error, fit for a terminal. */
static void
gitjob_add_words(struct gitjob *j, const char *p, size_t n)
{
	size_t have = strlen(j->err), max = sizeof(j->err) - 1, i;

	if (n > max) {
		p += n - max;
		n = max;
	}
	if (have + n > max) {
		memmove(j->err, j->err + (have + n - max), max - n);
		have = max - n;
	}
	for (i = 0; i < n; i++)
		j->err[have + i] = p[i] == '\n' ? ' ' :
		    (unsigned char)p[i] < 0x20 || p[i] == 0x7f ||
		    p[i] == '\0' ? '?' : p[i];
	j->err[have + n] = '\0';
}

static void
gitjob_say(struct gitjob *j, const char *words)
{
	gitjob_add_words(j, words, strlen(words));
}

static int
gitjob_add_output(struct gitjob *j, const char *p, size_t n)
{
	uint8_t *grown;

	if (n > j->out_max - j->out_len)
		return CL_TOOBIG;
	if ((grown = realloc(j->out, j->out_len + n + 1)) == NULL)
		return CL_NOMEM;
	j->out = grown;
	memcpy(j->out + j->out_len, p, n);
	j->out_len += n;
	j->out[j->out_len] = '\0';
	return CL_OK;
}

/* Until both pipes are closed. */
static int
gitjob_read(struct gitjob *j, int out, int err)
{
	struct pollfd p[2] = { { out, POLLIN, 0 }, { err, POLLIN, 0 } };
	int64_t left, end = util_now_ms() + GITJOB_TIMEOUT_MS;
	char block[16384];
	ssize_t n;
	int i, r;

	while (p[0].fd != -1 || p[1].fd != -1) {
		if ((left = end - util_now_ms()) <= 0)
			return CL_TIMEOUT;
		if (poll(p, 2, (int)left) == -1 && errno != EINTR)
			return CL_SYSTEM;
		for (i = 0; i < 2; i++) {
			if (p[i].fd == -1 || p[i].revents == 0)
				continue;
			n = read(p[i].fd, block, sizeof(block));
			if (n == -1 && errno == EINTR)
				continue;
			if (n <= 0)
				p[i].fd = -1;
			else if (i == 1)
				gitjob_add_words(j, block, (size_t)n);
			else if ((r = gitjob_add_output(j, block,
			    (size_t)n)) != CL_OK)
				return r;
		}
	}
	return CL_OK;
}

static int
gitjob_wait(struct gitjob *j, pid_t pid, int r)
{
	int status;

	if (r != CL_OK)
		(void)kill(-pid, SIGKILL);
	if (r != CL_OK)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return CL_SYSTEM;
	j->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (r != CL_OK)
		return r;
	if (j->status == -1 && WTERMSIG(status) == SIGSYS)
		gitjob_say(j, "killed: it asked for what git needs not");
	else if (j->status == -1)
		gitjob_say(j, "killed: out of time or memory");
	else if (j->status == 127 && j->err[0] == '\0')
		gitjob_say(j, "it cannot be started");
	return j->status == 0 ? CL_OK : CL_STATE;
}

static int
gitjob_start(struct gitjob *j, char *const *argv)
{
	const struct sock_fprog *filter = NULL;
	struct landlock *walls;
	int out[2] = { -1, -1 }, err[2], r;
	pid_t pid = -1;

	gitjob_clear(j);
	j->err[0] = '\0';
	if (j->write_dir != NULL && (r = filter_find_git(&filter)) != CL_OK)
		return r;
	if ((r = gitjob_make_walls(j, &walls)) != CL_OK)
		return r;
	if (pipe2(err, O_CLOEXEC) == -1) {
		landlock_free(walls);
		return CL_SYSTEM;
	}
	if (j->out_fd == -1 && pipe2(out, O_CLOEXEC) == -1)
		r = CL_SYSTEM;
	if (r == CL_OK && (pid = fork()) == 0)
		gitjob_exec(j, walls, filter, j->out_fd != -1 ? j->out_fd :
		    out[1], err[1], argv);
	close(err[1]);
	if (out[1] != -1)
		close(out[1]);
	if (r == CL_OK && pid == -1)
		r = CL_SYSTEM;
	else if (r == CL_OK)
		r = gitjob_wait(j, pid, gitjob_read(j, out[0], err[0]));
	close(err[0]);
	if (out[0] != -1)
		close(out[0]);
	landlock_free(walls);
	return r;
}

int
gitjob_run_program(struct gitjob *j, const char *program,
    const char *const *args)
{
	char *argv[GITJOB_ARGS];
	size_t n = 0;

	argv[n++] = (char *)(uintptr_t)program;
	while (*args != NULL && n < GITJOB_ARGS - 1)
		argv[n++] = (char *)(uintptr_t)*args++;
	argv[n] = NULL;
	return *args == NULL ? gitjob_start(j, argv) : CL_LIMIT;
}

int
gitjob_run(struct gitjob *j, const char *const *args)
{
	char *argv[NFIRST + 2 + GITJOB_ARGS];
	size_t n = 0, i;

	for (i = 0; i < NFIRST; i++)
		argv[n++] = (char *)(uintptr_t)gitjob_first[i];
	if (j->repo != NULL) {
		argv[n++] = (char *)(uintptr_t)"-C";
		argv[n++] = (char *)(uintptr_t)j->repo;
	}
	for (i = 0; i < GITJOB_ARGS - 1 && args[i] != NULL; i++)
		argv[n++] = (char *)(uintptr_t)args[i];
	argv[n] = NULL;
	return args[i] == NULL ? gitjob_start(j, argv) : CL_LIMIT;
}

const char *
gitjob_ask(struct gitjob *j, const char *const *args)
{
	return gitjob_run(j, args) == CL_OK ? gitjob_get_line(j) : "";
}
