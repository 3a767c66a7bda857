/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The start of the device monitor: who we are, whom we may talk to, where we
 * work.  Runs before any child and any socket exists; reads files of the
 * administrator and our own.  Every way to fail is said in one line that
 * names the file or the value, and ends the process: an agent that half
 * understood its configuration would be worse than none.
 */
#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "sandbox/self/self.h"
#include "agentd.h"
#include "kern.h"
#include "secretfiles.h"

#define MAX_CA_LEN (1024 * 1024)
#define STARTUP_INCOMING ".cloop-branch-incoming"

/* One clear line; the caller returns -1. */
static int
startup_fail(const char *what, const char *value, const char *why)
{
	log_error("start", "result=failed what=%s value=%s reason=\"%s\"",
	    what, value == NULL ? "-" : value, why);
	return -1;
}

/* ------------------------------------------------------ who and where to */

static int
startup_load_credential(struct agentd *a)
{
	const char *why;
	int flags, r;

	r = credential_load(a->conf.credential_file, &a->cred, &flags, &why);
	if (r == CL_NOTFOUND)
		return 0;
	if (r != 0)
		return startup_fail("CredentialFile",
		    a->conf.credential_file, why);
	if (flags & CREDENTIAL_READABLE)
		log_warn("credential-mode", "path=%s reason=\"others than "
		    "its owner may read it\"", a->conf.credential_file);
	a->enrolled = 1;
	return 0;
}

static void
startup_move_string(char **dst, char **src)
{
	if (*dst != NULL || *src == NULL || **src == '\0')
		return;
	*dst = *src;
	*src = NULL;
}

/* Fill the empty fields only: the earlier source wins. */
static void
startup_merge_bundle(struct bundle *dst, struct bundle *src)
{
	startup_move_string(&dst->server, &src->server);
	startup_move_string(&dst->token, &src->token);
	startup_move_string(&dst->pin, &src->pin);
	startup_move_string(&dst->name, &src->name);
	startup_move_string(&dst->workdir_root, &src->workdir_root);
	bundle_clear(src);
}

static int
startup_load_flag_token(struct agentd *a)
{
	struct bundle b;
	const char *why;

	if (a->flags.token != NULL) {
		if (credential_parse_token(a->flags.token,
		    strlen(a->flags.token), &b, &why) != 0)
			return startup_fail("--token", NULL, why);
		startup_merge_bundle(&a->bundle, &b);
	}
	if (a->flags.bundle != NULL) {
		if (bundle_parse(a->flags.bundle, strlen(a->flags.bundle), &b,
		    &why) != 0)
			return startup_fail("--bundle", NULL, why);
		startup_merge_bundle(&a->bundle, &b);
	}
	return 0;
}

/*
 * The token file is only looked at while there is something to learn from it:
 * an installed service keeps naming it after it was deleted.
 */
static int
startup_load_token_file(struct agentd *a)
{
	const char *why, *path = a->conf.token_file;
	struct bundle b;
	int flags, r, had_token = a->bundle.token != NULL;

	if (a->enrolled)
		return 0;
	if (path == NULL) {
		if (had_token)
			return 0;
		return startup_fail("CredentialFile", a->conf.credential_file,
		    "this device is not enrolled, and no token was given");
	}
	r = credential_load_token(path, &b, &flags, &why);
	if (r != 0)
		return had_token ? 0 : startup_fail("TokenFile", path,
		    r == CL_NOTFOUND && access(path, F_OK) == -1 ?
		    "this device is not enrolled, and its token file does "
		    "not exist" : why);
	if (flags & CREDENTIAL_READABLE)
		log_warn("token-mode", "path=%s reason=\"others than its "
		    "owner may read it\"", path);
	startup_merge_bundle(&a->bundle, &b);
	if (!had_token)
		a->token_path = path;
	return 0;
}

static const char *
startup_pick(const char *first, const char *second, const char *third)
{
	if (first != NULL && *first != '\0')
		return first;
	if (second != NULL && *second != '\0')
		return second;
	return third != NULL && *third != '\0' ? third : NULL;
}

static int
startup_check_transport(struct agentd *a)
{
	const char *server, *pin, *why;

	server = startup_pick(a->conf.server, a->bundle.server,
	    a->cred.server);
	if (server == NULL)
		return startup_fail("Server", NULL, "no server is configured, "
		    "and neither a bundle nor a stored credential names one");
	if (url_parse(server, &a->url, &why) != 0)
		return startup_fail("Server", server, why);
	if (!a->url.tls && !url_is_loopback(a->url.host) &&
	    !a->flags.insecure)
		return startup_fail("Server", server, "plaintext to a host "
		    "that is not this machine; use wss://, or "
		    "--insecure-transport if you must");
	pin = startup_pick(a->conf.pin, a->bundle.pin, a->cred.pin);
	if (pin == NULL)
		return 0;
	if (pin_parse_list(pin, a->pins, MAX_PINS, &a->npins, &why) != 0)
		return startup_fail("Pin", log_q(pin), why == NULL ?
		    "too many pins" : why);
	if (a->npins > 0 && !a->url.tls)
		return startup_fail("Pin", log_q(pin), "a pin needs TLS, and "
		    "the server URL is plaintext");
	a->pin_text = xstrdup(pin);
	return 0;
}

/*
 * Extra roots.  Root parses no certificate: the bytes go to agentd-fetch,
 * which refuses to start when they hold none; here only the obvious.
 */
static int
startup_load_ca(struct agentd *a)
{
	const char *path = a->conf.ca_file;
	int fd, r;

	if (path == NULL)
		return 0;
	/* May be a link into /etc/ssl: it is public, and read only. */
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) == -1)
		return startup_fail("CAFile", path, strerror(errno));
	r = util_load_fd(fd, MAX_CA_LEN, &a->ca, &a->ca_len);
	close(fd);
	if (r != 0)
		return startup_fail("CAFile", path, cl_strerror(r));
	if (memmem(a->ca, a->ca_len, "-----BEGIN CERTIFICATE-----", 27) ==
	    NULL)
		return startup_fail("CAFile", path,
		    "it holds no certificate");
	return 0;
}

void
startup_init(struct agentd *a)
{
	a->lock_fd = a->root.fd = a->filters_fd = -1;
	a->work_uid = (uid_t)-1;
	a->work_gid = (gid_t)-1;
}

int
startup_check_conf(struct agentd *a)
{
	return a->conf.server == NULL ? 0 : startup_check_transport(a);
}

int
startup_load(struct agentd *a)
{
	const char *bearer;

	if (startup_load_credential(a) != 0 ||
	    startup_load_flag_token(a) != 0 ||
	    startup_load_token_file(a) != 0 ||
	    startup_check_transport(a) != 0 ||
	    startup_load_ca(a) != 0)
		return -1;
	bearer = a->enrolled ? a->cred.credential : a->bundle.token;
	if (bearer == NULL)
		return startup_fail("CredentialFile", a->conf.credential_file,
		    "this device is not enrolled, and no token was given");
	if (secret_init(&a->bearer, bearer, strlen(bearer),
	    MAX_TOKEN_LEN) != 0)
		return startup_fail("token", NULL, "too long");
	return 0;
}

/* ----------------------------------------------------- files, root, lock */

/*
 * Taken first, although the text lists it last: nothing of a running agent
 * may be touched by a second one that is about to be refused.
 */
static int
startup_take_lock(struct agentd *a)
{
	char *path;
	int r = 0;

	xasprintf(&path, "%s/agentd.lock", a->conf.state_dir);
	a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (a->lock_fd == -1)
		r = startup_fail("StateDirectory", path, strerror(errno));
	else if (flock(a->lock_fd, LOCK_EX | LOCK_NB) == -1)
		r = startup_fail("StateDirectory", path,
		    errno == EWOULDBLOCK ? "another agent runs on this "
		    "directory" : strerror(errno));
	free(path);
	return r;
}

static int
startup_make_dirs(struct agentd *a)
{
	char *copy;
	int r;

	if (util_make_dirs(a->conf.state_dir, 0700, (uid_t)-1,
	    (gid_t)-1) != 0)
		return startup_fail("StateDirectory", a->conf.state_dir,
		    strerror(errno));
	if (util_make_dirs(a->conf.runtime_dir, 0755, (uid_t)-1,
	    (gid_t)-1) != 0)
		return startup_fail("RuntimeDirectory", a->conf.runtime_dir,
		    strerror(errno));
	if (a->enrolled)
		return 0;
	/* Before the token is spent: can its fruit be kept? */
	copy = xstrdup(a->conf.credential_file);
	r = util_make_dirs(dirname(copy), 0700, (uid_t)-1, (gid_t)-1);
	if (r == 0 && access(copy, W_OK | X_OK) == -1)
		r = CL_SYSTEM;
	free(copy);
	return r == 0 ? 0 : startup_fail("CredentialFile",
	    a->conf.credential_file, strerror(errno));
}

static int
startup_find_user(struct agentd *a)
{
	struct self_user u;
	struct passwd *pw;
	int r;

	if (geteuid() != 0) {
		log_warn("unprivileged", "reason=\"workloads run as this "
		    "user and can read what the agent can, unless they are "
		    "confined\"");
		if ((pw = getpwuid(geteuid())) != NULL && *pw->pw_dir == '/')
			a->work_home = xstrdup(pw->pw_dir);
		return 0;
	}
	if ((r = self_find_user(a->conf.workload_user, &u)) != 0)
		return startup_fail("WorkloadUser", a->conf.workload_user,
		    r == CL_DENIED ? "workloads never run as root" :
		    "there is no such user");
	if (u.fallback)
		log_warn("user-fallback", "user=%s uid=%u reason=\"the "
		    "account does not exist\"", a->conf.workload_user,
		    (unsigned int)u.uid);
	a->work_uid = u.uid;
	a->work_gid = u.gid;
	pw = getpwuid(u.uid);
	if (pw != NULL && *pw->pw_dir == '/')
		a->work_home = xstrdup(pw->pw_dir);
	return 0;
}

static void
startup_save_pin(struct agentd *a)
{
	struct credential_change change = { .pin = a->pin_text };
	const char *stored = a->cred.pin == NULL ? "" : a->cred.pin;

	if (!a->enrolled || a->pin_text == NULL ||
	    strcmp(a->pin_text, stored) == 0)
		return;
	if (credential_save(a->conf.credential_file, &a->cred, &change) != 0)
		log_warn("pin-save", "path=%s reason=\"%s\"",
		    a->conf.credential_file, strerror(errno));
	else
		log_info("pin-save", "path=%s", a->conf.credential_file);
}

/* Left-over shipped branches of an earlier run. */
static void
startup_empty_incoming(struct agentd *a)
{
	struct dirent *e;
	DIR *d;
	int fd;

	fd = openat(a->root.fd, STARTUP_INCOMING,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

static int
startup_open_root(struct agentd *a)
{
	const char *path;
	char *own = NULL;
	int r;

	path = startup_pick(a->conf.workdir_root, a->bundle.workdir_root,
	    a->cred.workdir_root);
	if (path == NULL) {
		if (geteuid() == 0)
			own = xstrdup(PATH_STATE_DIR "/work");
		else
			xasprintf(&own, "%s/work", a->conf.state_dir);
		path = own;
	}
	r = workdir_open_root(path, a->work_uid, a->work_gid, &a->root);
	if (r == CL_SYSTEM && errno == EROFS)
		r = startup_fail("WorkDirRoot", path, "it is read-only here; "
		    "under systemd: ReadWritePaths= in a drop-in "
		    "(systemctl edit cloop-agentd)");
	else if (r != 0)
		r = startup_fail("WorkDirRoot", path, r == CL_FORMAT ?
		    "it is not an absolute path" : cl_strerror(r));
	free(own);
	return r;
}

/* The sweep itself follows once we know which workloads still live. */
static int
startup_find_lease_base(struct agentd *a)
{
	int is_memory;

	if (secretfiles_find_base(a->conf.runtime_dir, &a->lease_base,
	    &is_memory) != 0)
		return startup_fail("RuntimeDirectory", a->conf.runtime_dir,
		    "there is no directory for secret files");
	if (!is_memory)
		log_warn("lease-base", "path=%s reason=\"not a file system "
		    "in memory: secret files are written to a disk\"",
		    a->lease_base);
	return 0;
}

int
startup_prepare(struct agentd *a)
{
	if (startup_make_dirs(a) != 0 || startup_take_lock(a) != 0 ||
	    startup_find_user(a) != 0)
		return -1;
	startup_save_pin(a);
	a->max_concurrent = agent_conf_max_concurrent(&a->conf);
	a->max_files = kern_raise_files();
	if (startup_open_root(a) != 0)
		return -1;
	startup_empty_incoming(a);
	return startup_find_lease_base(a);
}

/* ------------------------------------------------------------- afterwards */

static const char *
startup_format_transport(const struct agentd *a)
{
	if (a->npins > 0)
		return "tls-pinned";
	if (a->url.tls)
		return "tls-system-trust";
	return url_is_loopback(a->url.host) ? "plaintext-loopback" :
	    "plaintext-by-override";
}

void
startup_log_banner(const struct agentd *a)
{
	static const char *const channels[] = { "stable", "edge", "none" };

	log_info("banner", "version=" CLOOP_VERSION " agent=%s server=%s "
	    "transport=%s root=%s max_concurrent=%u firewall=no "
	    "update_channel=%s remote_upgrade=no",
	    a->enrolled ? log_q(a->cred.agent_id) : "\"not enrolled\"",
	    log_q(a->url.text), startup_format_transport(a),
	    log_q(a->root.path), a->max_concurrent,
	    channels[a->conf.update_channel]);
}

int
startup_save_enrolled(struct agentd *a, const char *agent_id,
    const char *credential)
{
	char now[UTIL_TIME_MAX];
	struct credential_change change = {
		.server = a->url.text,
		.agent_id = agent_id,
		.name = a->bundle.name,
		.credential = credential,
		.workdir_root = a->root.path,
		.pin = a->pin_text,
		.enrolled_at = now,
	};
	int r;

	util_format_time(util_wall_ns(), now);
	if ((r = credential_save(a->conf.credential_file, &a->cred,
	    &change)) != 0)
		return r;
	log_info("enrolled", "agent=%s path=%s", log_q(agent_id),
	    a->conf.credential_file);
	a->enrolled = 1;
	if (a->token_path != NULL && unlink(a->token_path) == -1 &&
	    errno != ENOENT)
		log_warn("token-delete", "path=%s reason=\"%s\"",
		    a->token_path, strerror(errno));
	a->token_path = NULL;
	bundle_clear(&a->bundle);
	agent_flags_clear(&a->flags);
	secret_clear(&a->bearer);
	return secret_init(&a->bearer, credential, strlen(credential),
	    MAX_TOKEN_LEN);
}

void
startup_clear(struct agentd *a)
{
	secret_clear(&a->bearer);
	bundle_clear(&a->bundle);
	credential_clear(&a->cred);
	free(a->pin_text);
	free(a->ca);
	free(a->work_home);
	free(a->lease_base);
	if (a->root.fd != -1)
		workdir_close_root(&a->root);
	if (a->lock_fd != -1)
		close(a->lock_fd);
	if (a->filters_fd != -1)
		close(a->filters_fd);
	agent_flags_clear(&a->flags);
	agent_conf_clear(&a->conf);
}
