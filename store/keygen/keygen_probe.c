/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen -l host:port: the certificate served there, to compare its
 * pin with what `cloop-keygen -l` says on the hub.  Nothing is verified.
 * This program links no TLS; openssl(1) makes the connection.  Both it and
 * the parser of what it prints run in a child that has given up root and
 * has no key in memory; the parent passes its text on, filtered to printable
 * characters, and ends everything at a deadline.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>

#include <bsd/string.h>
#include <bsd/unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "keygen.h"

#define PROBE_TIMEOUT_MS 20000
#define PROBE_PEM_MAX 262144	/* what openssl may print */
#define PROBE_TEXT_MAX 65536	/* what the child may print */
#define PROBE_NOBODY 65534

struct probe {
	char connect[300];	/* host:port, [v6]:port */
	char host[256];
	int is_name;		/* a name, to be sent as SNI */
};

static int
probe_parse(const char *target, struct probe *p)
{
	const char *host = target, *colon = strrchr(target, ':'), *end;
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *res;
	size_t len;

	if (colon == NULL || colon == target ||
	    !util_is_word(colon + 1, "0123456789"))
		return -1;
	end = colon;
	if (*host == '[') {
		if (colon[-1] != ']')
			return -1;
		host++;
		end = colon - 1;
	}
	len = (size_t)(end - host);
	if (len == 0 || len >= sizeof(p->host) ||
	    strlcpy(p->connect, target, sizeof(p->connect)) >=
	    sizeof(p->connect))
		return -1;
	memcpy(p->host, host, len);
	p->host[len] = '\0';
	/* openssl takes its operands from argv: no option look-alikes. */
	if (*p->host == '-' || !util_is_word(p->host,
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789-._:%"))
		return -1;
	p->is_name = getaddrinfo(p->host, NULL, &hints, &res) != 0;
	if (!p->is_name)
		freeaddrinfo(res);
	return 0;
}

/* Give up root; what cannot be given up ends the child. */
static int
probe_drop(void)
{
	struct rlimit none = { 0, 0 };

	if (geteuid() == 0 && (setgroups(0, NULL) == -1 ||
	    setresgid(PROBE_NOBODY, PROBE_NOBODY, PROBE_NOBODY) == -1 ||
	    setresuid(PROBE_NOBODY, PROBE_NOBODY, PROBE_NOBODY) == -1 ||
	    setuid(0) == 0))
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    setrlimit(RLIMIT_FSIZE, &none) == -1)
		return -1;
	return 0;
}

static void __attribute__((__noreturn__))
probe_exec_client(const struct probe *p, int out_fd)
{
	const char *argv[] = { "openssl", "s_client", "-connect", p->connect,
		p->is_name ? "-servername" : "-noservername",
		p->is_name ? p->host : NULL, NULL };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd == -1 || dup2(null_fd, 0) == -1 ||
	    dup2(out_fd, 1) == -1 || dup2(null_fd, 2) == -1)
		_exit(126);
	closefrom(3);
	execvp(argv[0], (char **)(uintptr_t)argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Run openssl and collect what it prints; its exit status, or -1. */
static int
probe_run_client(const struct probe *p, char *pem, size_t *lenp)
{
	ssize_t n = 0;
	int fds[2], status;
	pid_t pid;

	*lenp = 0;
	if (pipe2(fds, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		return -1;
	if (pid == 0)
		probe_exec_client(p, fds[1]);
	close(fds[1]);
	while (*lenp < PROBE_PEM_MAX && (n = read(fds[0], pem + *lenp,
	    PROBE_PEM_MAX - *lenp)) > 0)
		*lenp += (size_t)n;
	close(fds[0]);
	if (waitpid(pid, &status, 0) == -1 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* The child: connect, parse, print. */
static int
probe_show(const struct probe *p, const char *target)
{
	X509 *cert = NULL;
	BIO *bio;
	char *pem;
	size_t len;
	int status, r;

	if ((pem = malloc(PROBE_PEM_MAX)) == NULL)
		return keygen_fail("out of memory");
	status = probe_run_client(p, pem, &len);
	if (status == 127) {
		free(pem);
		return keygen_fail("%s: the program openssl is needed to "
		    "look and is not installed", target);
	}
	if ((bio = BIO_new_mem_buf(pem, (int)len)) != NULL)
		cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	if (cert != NULL)
		r = keygen_show_cert(target, cert);
	else
		r = keygen_fail("%s: no certificate came; is a TLS server "
		    "listening there?", target);
	X509_free(cert);
	BIO_free(bio);
	free(pem);
	return r;
}

/* Read the child's text until its end or the deadline. */
static int
probe_read_text(int fd, char *text, size_t *lenp)
{
	const int64_t end = util_now_ms() + PROBE_TIMEOUT_MS;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int64_t left;
	ssize_t n;

	*lenp = 0;
	while (*lenp < PROBE_TEXT_MAX) {
		if ((left = end - util_now_ms()) <= 0)
			return CL_TIMEOUT;
		if (poll(&pfd, 1, (int)left) <= 0)
			continue;
		n = read(fd, text + *lenp, PROBE_TEXT_MAX - *lenp);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return CL_OK;
		*lenp += (size_t)n;
	}
	return CL_TOOBIG;
}

static void
probe_print(const char *text, size_t len, FILE *out)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f))
			putc(text[i], out);
}

static void __attribute__((__noreturn__))
probe_child(const struct probe *p, const char *target, int out_fd)
{
	int r;

	(void)setpgid(0, 0);	/* so that the deadline ends both */
	if (probe_drop() == -1 || dup2(out_fd, 1) == -1 ||
	    dup2(out_fd, 2) == -1)
		_exit(KEYGEN_FAILED);
	r = probe_show(p, target);
	fflush(stdout);
	_exit(r);
}

int
keygen_show_host(const char *target)
{
	struct probe p = { .is_name = 0 };
	char *text;
	size_t len = 0;
	pid_t pid;
	int fds[2], r, status = 0;

	if (probe_parse(target, &p) != 0)
		return keygen_fail("%s: not host:port", target);
	if ((text = malloc(PROBE_TEXT_MAX)) == NULL)
		return keygen_fail("out of memory");
	if (pipe2(fds, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
		free(text);
		return keygen_fail("%s", cl_strerror(CL_SYSTEM));
	}
	if (pid == 0)
		probe_child(&p, target, fds[1]);
	(void)setpgid(pid, pid);
	close(fds[1]);
	if ((r = probe_read_text(fds[0], text, &len)) != 0)
		(void)kill(-pid, SIGKILL);
	close(fds[0]);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (r != 0)
		r = keygen_fail("%s: no answer within %d s", target,
		    PROBE_TIMEOUT_MS / 1000);
	else {
		r = WIFEXITED(status) ? WEXITSTATUS(status) : KEYGEN_FAILED;
		probe_print(text, len, r == 0 ? stdout : stderr);
	}
	free(text);
	return r;
}
