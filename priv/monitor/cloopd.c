/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopd(8), the hub's monitor: options, configuration, start, loop, stop.
 * Runs as root with a cut capability set; links neither TLS nor JSON, reads
 * no byte that came from an agent but in typed, bounded messages of its own
 * children, and opens every file and socket they use.
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "boot.h"
#include "monitor.h"
#include "reload.h"

#define MAX_OPTIONS 64

struct cloopd_args {
	const char *options[MAX_OPTIONS];
	int test;		/* -t */
	int dump;		/* -T */
};

static void __attribute__((__noreturn__))
cloopd_usage(void)
{
	fprintf(stderr, "usage: cloopd [-dqTt] [-f file] [-o "
	    "Keyword=value]...\n");
	exit(2);
}

static void
cloopd_parse_args(int argc, char **argv, struct monitor *mon,
    struct cloopd_args *a)
{
	int ch;

	mon->args.file = PATH_CLOOPD_CONF;
	mon->args.options = a->options;
	while ((ch = getopt(argc, argv, "df:o:qTt")) != -1) {
		switch (ch) {
		case 'd':
			mon->ndebug++;
			break;
		case 'f':
			mon->args.file = optarg;
			break;
		case 'o':
			if (mon->args.noptions == MAX_OPTIONS)
				cloopd_usage();
			a->options[mon->args.noptions++] = optarg;
			break;
		case 'q':
			mon->quiet = 1;
			break;
		case 'T':
			a->dump = 1;
			break;
		case 't':
			a->test = 1;
			break;
		default:
			cloopd_usage();
		}
	}
	if (optind != argc)
		cloopd_usage();
}

/* -T: text that parses to itself. */
static int
cloopd_dump(struct monitor *mon)
{
	char *text;
	int r;

	if ((r = conf_format(config_rows, &mon->conf, &text)) != CL_OK) {
		fprintf(stderr, "cloopd: %s\n", cl_strerror(r));
		return 1;
	}
	fputs(text, stdout);
	free(text);
	return fflush(stdout) == EOF;
}

/* Without -d the log goes to syslog's socket: each line is a datagram. */
static int
cloopd_open_syslog(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	strlcpy(sun.sun_path, "/dev/log", sizeof(sun.sun_path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd != -1 && connect(fd, (struct sockaddr *)&sun,
	    sizeof(sun)) == 0)
		return fd;
	if (fd != -1)
		close(fd);
	return open("/dev/null", O_WRONLY | O_CLOEXEC);
}

/*
 * Go to the background.  The starter waits until the hub is ready, so that
 * its exit status tells; errors until then still go to its stderr.
 */
static void
cloopd_detach(struct monitor *mon)
{
	char ready;
	pid_t pid;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
		fprintf(stderr, "cloopd: cannot detach: %s\n",
		    strerror(errno));
		exit(1);
	}
	if (pid != 0) {
		close(fds[1]);
		_exit(read(fds[0], &ready, 1) == 1 ? 0 : 1);
	}
	close(fds[0]);
	mon->detached_fd = fds[1];
	(void)setsid();
}

/* Once everything that the starter should see has been said. */
static void
cloopd_detach_stdio(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log_fd = cloopd_open_syslog();

	if (null_fd == -1 || log_fd == -1 || dup2(null_fd, 0) == -1 ||
	    dup2(null_fd, 1) == -1 || dup2(log_fd, 2) == -1)
		fatal("detach", "reason=%s", log_q(strerror(errno)));
	if (null_fd > 2)
		close(null_fd);
	if (log_fd > 2)
		close(log_fd);
}

/* A log, its index, a bundle: each is a descriptor under way.  Children
 * take less of it (their profiles). */
static void
cloopd_raise_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1 || rl.rlim_cur == rl.rlim_max)
		return;
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		log_warn("limits", "what=descriptors reason=%s",
		    log_q(strerror(errno)));
}

static int
cloopd_run(struct monitor *mon)
{
	char err[512];
	int err_fd = 2, status;

	if (geteuid() != 0) {
		fprintf(stderr, "cloopd: must be started by root: it opens "
		    "the keys and the store, and starts its children as "
		    "other users\n");
		return 1;
	}
	if (mon->ndebug == 0) {
		cloopd_detach(mon);
		err_fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
		cloopd_detach_stdio();
	}
	reload_log(mon);
	umask(077);
	cloopd_raise_limit();
	if (boot_start(mon, err, sizeof(err)) != CL_OK) {
		dprintf(err_fd, "cloopd: %s\n", err);
		status = 1;
	} else
		status = boot_serve(mon);
	if (err_fd > 2)
		close(err_fd);
	boot_clear(mon);
	return status;
}

int
main(int argc, char **argv)
{
	static struct monitor mon;
	static struct cloopd_args args;	/* mon points into them */
	char err[1024];
	int fd, status;

	/* Descriptors 0 to 2 must exist: what we open must not land there. */
	while ((fd = open("/dev/null", O_RDWR)) != -1 && fd < 3)
		continue;
	if (fd > 2)
		close(fd);
	mon.ctl_fd = mon.detached_fd = -1;
	cloopd_parse_args(argc, argv, &mon, &args);
	log_init("cloopd", LOGL_INFO, LOGF_TEXT);
	if (config_load(&mon.args, &mon.conf, err, sizeof(err)) != CL_OK ||
	    (!args.dump && enforce_check(&mon.conf, mon.args.file, err,
	    sizeof(err)) != CL_OK)) {
		fprintf(stderr, "cloopd: %s\n", err);
		return 1;
	}
	if (args.dump)
		status = cloopd_dump(&mon);
	else if (args.test)
		status = 0;
	else
		return cloopd_run(&mon);
	config_clear(&mon.conf);
	return status;
}
