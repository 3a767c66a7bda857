/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll join: place a bundle on a device.  Runs as the device's
 * administrator; the bundle is what he pasted, so it is decoded here and not
 * in a child: by common/model/bundle, which reads one flat object of strings,
 * strictly, without a library, and which the device's root monitor uses on
 * the same file a moment later.  A child in between would protect nothing
 * that the monitor does not expose again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bsd/string.h>
#include <bsd/unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/pin.h"
#include "common/base/util.h"
#include "common/model/bundle.h"
#include "enroll.h"

#define JOIN_UNIT "cloop-agentd"
#define JOIN_WAIT_MS 60000
#define JOIN_POLL_MS 100

static int
join_load(struct enroll *e, const char *arg, struct secret *text)
{
	int r;

	if (arg != NULL && strcmp(arg, "-") != 0) {
		r = secret_init(text, arg, strlen(arg), MAX_BUNDLE_TEXT_LEN);
		return r == CL_OK ? EXIT_DONE : tool_fail(&e->t, "usage", "",
		    "the bundle is %s", cl_strerror(r));
	}
	if (arg == NULL && isatty(STDIN_FILENO))
		fprintf(stderr, "Paste the bundle, then end with ^D:\n");
	r = secret_load_fd(text, STDIN_FILENO, MAX_BUNDLE_TEXT_LEN);
	return r == CL_OK ? EXIT_DONE : tool_fail(&e->t, "usage", "",
	    "standard input: %s", cl_strerror(r));
}

/* What the agent would refuse later is refused here, where somebody reads
 * it.  The MAC cannot be checked: only the hub has the key. */
static int
join_check(struct enroll *e, const struct bundle *b)
{
	struct pin pins[MAX_PINS];
	const char *why = "";
	size_t n = 0;

	if (strncmp(b->server, "wss://", 6) != 0 &&
	    strncmp(b->server, "ws://", 5) != 0)
		return tool_fail(&e->t, "usage", "", "the bundle's server %s "
		    "is no ws:// or wss:// URL", tool_clean(b->server));
	if (strncmp(b->token, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0)
		return tool_fail(&e->t, "token_invalid", "mint a new one and "
		    "copy all of it", "the bundle holds no enrollment token");
	if (b->pin != NULL &&
	    pin_parse_list(b->pin, pins, MAX_PINS, &n, &why) != 0)
		return tool_fail(&e->t, "usage", "", "the bundle's pin: %s",
		    why);
	if (n > 0 && strncmp(b->server, "ws://", 5) == 0)
		return tool_fail(&e->t, "usage", "", "the bundle pins a "
		    "plaintext server, which cannot hold");
	return EXIT_DONE;
}

/* Only a warning: this clock may be the wrong one (BC-39). */
static void
join_warn_expiry(const struct bundle *b)
{
	int64_t expires;

	if (b->expires_at != NULL && util_parse_time(b->expires_at,
	    strlen(b->expires_at), &expires) == CL_OK &&
	    expires != UTIL_TIME_ZERO && expires < util_wall_ns())
		fprintf(stderr, "cloop-enroll: warning: by this machine's "
		    "clock the token expired at %s\n",
		    tool_clean(b->expires_at));
}

static int
join_save(struct enroll *e, const struct secret *text)
{
	char dir[MAX_PATH_LEN], *slash;
	struct secret line = SECRET_INIT;
	size_t len = text->len, start = 0;
	int r;

	while (len > 0 && strchr(" \t\r\n", text->data[len - 1]) != NULL)
		len--;
	while (start < len && strchr(" \t\r\n", text->data[start]) != NULL)
		start++;
	if ((r = secret_init(&line, text->data + start, len - start + 1,
	    MAX_BUNDLE_TEXT_LEN + 1)) != CL_OK)
		return tool_fail(&e->t, "internal", "", "%s", cl_strerror(r));
	line.data[line.len - 1] = '\n';
	strlcpy(dir, e->token_file, sizeof(dir));
	if ((slash = strrchr(dir, '/')) != NULL && slash != dir) {
		*slash = '\0';
		r = util_make_dirs(dir, 0755, (uid_t)-1, (gid_t)-1);
	}
	if (r == CL_OK)
		r = util_save_file(e->token_file, 0600, line.data, line.len);
	secret_clear(&line);
	return r == CL_OK ? EXIT_DONE : tool_fail(&e->t, "internal", "",
	    "%s: %s", e->token_file, cl_strerror(r));
}

static int
join_start_unit(struct enroll *e)
{
	const char *argv[] = { "systemctl", "enable", "--now", JOIN_UNIT,
		NULL };
	int status;
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == -1)
		return tool_fail(&e->t, "internal", "", "%s",
		    cl_strerror(CL_SYSTEM));
	if (pid == 0) {
		closefrom(3);
		/* Its chatter is not our document. */
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[0], (char **)(uintptr_t)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return EXIT_DONE;
	return tool_fail(&e->t, "internal", "start it as your system does; the "
	    "bundle is in place", "systemctl enable --now " JOIN_UNIT " %s",
	    WIFEXITED(status) && WEXITSTATUS(status) == 127 ?
	    "could not be run" : "failed");
}

/* Enrolled: the agent has its credential on disk.  Without a look inside:
 * the file appears by rename, whole. */
static int
join_wait(struct enroll *e)
{
	const int64_t end = util_now_ms() + JOIN_WAIT_MS;
	const struct timespec nap = { 0, JOIN_POLL_MS * 1000000L };
	struct stat sb;

	while (stat(e->credential_file, &sb) == -1) {
		if (util_now_ms() > end)
			return tool_fail(&e->t, "internal", "journalctl -u "
			    JOIN_UNIT " tells why", "the agent did not "
			    "enroll within %d s", JOIN_WAIT_MS / 1000);
		(void)nanosleep(&nap, NULL);
	}
	return EXIT_DONE;
}

static int
join_print(struct enroll *e, const struct bundle *b, int enrolled)
{
	struct jsonw *w = &e->t.doc;

	if (e->t.json) {
		tool_open_doc(&e->t);
		tool_put_str(w, "name", b->name);
		tool_put_str(w, "server", b->server);
		tool_put_str(w, "pin", b->pin);
		tool_put_str(w, "enrollment_id", b->enrollment_id);
		tool_put_str(w, "file", e->token_file);
		jsonw_put_key(w, "enrolled");
		jsonw_put_bool(w, enrolled);
		return tool_close_doc(&e->t, EXIT_DONE);
	}
	printf("%s: bundle for %s at %s\n", e->token_file,
	    b->name != NULL && *b->name != '\0' ? tool_clean(b->name) :
	    "this device", tool_clean(b->server));
	if (b->pin == NULL || *b->pin == '\0')
		fprintf(stderr, "cloop-enroll: warning: no pin: this device "
		    "relies on its system's certificate authorities alone\n");
	if (enrolled)
		printf("enrolled\n");
	else
		printf("start the agent: systemctl enable --now " JOIN_UNIT
		    "\n");
	return EXIT_DONE;
}

static int
join_run(struct enroll *e, const struct secret *text, int now)
{
	struct bundle b;
	const char *why;
	int r;

	if (bundle_parse((const char *)text->data, text->len, &b, &why) != 0)
		return tool_fail(&e->t, "token_invalid", "copy all of the line "
		    "that cloop-enroll mint printed", "%s", why);
	if ((r = join_check(e, &b)) != EXIT_DONE)
		goto out;
	join_warn_expiry(&b);
	if ((r = join_save(e, text)) != EXIT_DONE ||
	    (now && ((r = join_start_unit(e)) != EXIT_DONE ||
	    (r = join_wait(e)) != EXIT_DONE)))
		goto out;
	r = join_print(e, &b, now);
 out:
	bundle_clear(&b);
	return r;
}

int
enroll_cmd_join(struct enroll *e, int argc, char **argv)
{
	struct secret text = SECRET_INIT;
	const char *arg = NULL;
	int now = 0, n, r;
	const struct enroll_option options[] = {
		{ "now", NULL, &now, NULL },
		{ NULL, NULL, NULL, NULL }
	};

	if ((r = enroll_parse_options(e, argc, argv, options, NULL, &arg, 1,
	    &n)) != 0)
		return r;
	/* A stored credential always wins: the bundle would lie there unused,
	 * its token still good. */
	if (access(e->credential_file, F_OK) == 0)
		return tool_fail(&e->t, "usage", "remove that file first to "
		    "enroll again", "this device is enrolled already: %s",
		    e->credential_file);
	if ((r = join_load(e, arg, &text)) == EXIT_DONE)
		r = join_run(e, &text, now);
	secret_clear(&text);
	return r;
}
