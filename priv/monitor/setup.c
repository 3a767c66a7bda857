/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor opens; the children use.  Everything here happens with the
 * operator's own configuration as input, never with a byte from outside.
 * The TLS key passes through as a descriptor and is not read.
 */
#include "setup.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "listen.h"
#include "monitor.h"
#include "penalty.h"

#define MAX_CERT_LEN 262144	/* a chain is a few KiB */
#define NO_GROUP UINT32_MAX

int
setup_make_dirs(struct monitor *mon, char *err, size_t errlen)
{
	static const struct {
		const char *below;
		mode_t mode;
	} dirs[] = { { "", 0755 }, { "/hub", 0700 }, { "/hub/handles", 0700 } };
	char path[MAX_PATH_LEN + 32];
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", mon->conf.state_dir,
		    dirs[i].below);
		if (util_make_dirs(path, dirs[i].mode, (uid_t)-1,
		    (gid_t)-1) != CL_OK)
			goto bad;
	}
	snprintf(path, sizeof(path), "%s", mon->conf.runtime_dir);
	if (util_make_dirs(path, 0755, (uid_t)-1, (gid_t)-1) == CL_OK)
		return CL_OK;
bad:
	snprintf(err, errlen, "%s: cannot make directory: %s", path,
	    strerror(errno));
	return CL_SYSTEM;
}

int
setup_open_control(struct monitor *mon, char *err, size_t errlen)
{
	struct sockaddr_un sun;
	struct stat st;
	mode_t old;
	int fd, r;

	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	/* The keyword's bound is smaller than sun_path. */
	strlcpy(sun.sun_path, mon->conf.control_socket, sizeof(sun.sun_path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		goto bad;
	/*
	 * We hold the store's lock, so whatever socket is there belongs to a
	 * hub that is gone.  Anything but a socket is not ours to remove.
	 */
	if (lstat(sun.sun_path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(sun.sun_path);
	/* Everybody may connect; cloopd-ctl asks the kernel who it is. */
	old = umask(0111);
	r = bind(fd, (struct sockaddr *)&sun, sizeof(sun));
	umask(old);
	if (r == -1 || listen(fd, 128) == -1)
		goto bad;
	mon->ctl_fd = fd;
	return CL_OK;
bad:
	snprintf(err, errlen, "ControlSocket %s: %s", sun.sun_path,
	    strerror(errno));
	if (fd != -1)
		close(fd);
	return CL_SYSTEM;
}

void
setup_close(struct monitor *mon)
{
	listen_close(mon);
	if (mon->ctl_fd != -1) {
		close(mon->ctl_fd);
		(void)unlink(mon->conf.control_socket);
	}
	mon->ctl_fd = -1;
}

static int
setup_open_key(struct monitor *mon, const char *name, int flags, int *fdp,
    mode_t *modep)
{
	char path[MAX_PATH_LEN + 32];

	snprintf(path, sizeof(path), "%s/%s", mon->conf.key_dir, name);
	return util_open_file(path, flags, fdp, modep);
}

/* The certificate chain as a sealed memfd. */
static int
setup_load_cert(struct monitor *mon, int *fdp, size_t *lenp)
{
	uint8_t *data;
	int fd, r;

	if ((r = setup_open_key(mon, "tls.crt", UTIL_OPEN_OWNED |
	    UTIL_OPEN_NOWRITE, &fd, NULL)) != CL_OK)
		return r;
	r = util_load_fd(fd, MAX_CERT_LEN, &data, lenp);
	close(fd);
	if (r != CL_OK)
		return r;
	r = util_make_memfd(data, *lenp, fdp);
	free(data);
	return r;
}

int
setup_check_keys(struct monitor *mon, char *err, size_t errlen)
{
	const char *name = "tls.key";
	mode_t mode;
	size_t len;
	int fd, r;

	r = setup_open_key(mon, name, UTIL_OPEN_OWNED | UTIL_OPEN_NOWRITE,
	    &fd, &mode);
	if (r == CL_OK) {
		close(fd);
		if (mode & 077)
			log_warn("key-mode", "file=%s/tls.key mode=%04o "
			    "reason=\"others may read the TLS key\"",
			    mon->conf.key_dir, (unsigned int)mode & 07777);
		name = "tls.crt";
		if ((r = setup_load_cert(mon, &fd, &len)) == CL_OK)
			close(fd);
	}
	if (r != CL_OK)
		snprintf(err, errlen, "%s/%s: %s; cloop-keygen -A makes "
		    "missing keys", mon->conf.key_dir, name, cl_strerror(r));
	return r;
}

/* One worker's part of a bound of the whole hub; never nothing. */
static uint32_t
setup_get_share(const struct hub_conf *conf, uint32_t max)
{
	unsigned int n = config_find_workers(conf);

	return max / n + (max % n != 0);
}

static void
setup_send_net_config(struct child *c)
{
	const struct hub_conf *conf = &c->mon->conf;
	struct config_penalty p;
	char origin[MAX_URL_LEN + 1];
	struct msg_net_config body = { .worker = c->index,
	    .max_agents = conf->max_agents,
	    /* The kernel deals connections out evenly (SO_REUSEPORT). */
	    .max_pending = setup_get_share(conf, conf->max_pending),
	    .max_per_source = setup_get_share(conf, conf->max_per_source),
	    .heartbeat_s = HEARTBEAT_S, .log_level = config_log_level(conf),
	    .external_origin = origin, .origins = conf->allowed_origins.v,
	    .norigins = conf->allowed_origins.n,
	    .proxies = conf->trusted_proxies.v,
	    .nproxies = conf->trusted_proxies.n };

	(void)config_parse_penalty(conf->penalty, &p);
	body.penalties = p.enabled;
	body.auth_ms = p.auth_ms;
	body.protocol_ms = p.protocol_ms;
	body.crash_ms = p.crash_ms;
	body.max_ms = p.max_ms;
	config_format_origin(conf, origin, sizeof(origin));
	MON_SEND(c, NET_CONFIG, 0, &body, -1);
}

static void
setup_send_cert(struct child *c)
{
	struct msg_memfd body;
	size_t len;
	int fd, r;

	if ((r = setup_load_cert(c->mon, &fd, &len)) != CL_OK) {
		log_error("certificate", "file=%s/tls.crt reason=%s",
		    c->mon->conf.key_dir, log_q(cl_strerror(r)));
		return;
	}
	body.len = len;
	MON_SEND(c, NET_CERT, 0, &body, fd);
}

/* It accepts from here on: whom it turns away comes before. */
static void
setup_start_net(struct child *c)
{
	penalty_send_all(c->mon, c);
	c->has_start = 1;
	MON_SEND(c, NET_START, 0, NULL, -1);
}

static void
setup_configure_net(struct child *c)
{
	struct msg_net_listen body;
	struct listener *l;
	size_t i;
	int fd;

	setup_send_net_config(c);
	for (i = 0; i < c->mon->nlisteners; i++) {
		l = &c->mon->listeners[i];
		fd = fcntl(l->fds[c->index - 1], F_DUPFD_CLOEXEC, 3);
		if (fd == -1) {
			log_error("listener", "address=%s reason=%s",
			    l->at.text, log_q(strerror(errno)));
			continue;
		}
		body.plaintext = l->at.plaintext;
		body.address = l->at.text;
		MON_SEND(c, NET_LISTEN, 0, &body, fd);
	}
	if (c->mon->has_tls) {
		setup_send_cert(c);
		setup_give_key(c);
	} else
		setup_start_net(c);
}

void
setup_give_key(struct child *net)
{
	struct child *key = &net->mon->children[0];
	struct msg_key_client client;
	int fds[2];

	if (!net->mon->has_tls || net->has_key ||
	    key->state != MS_SERVING || (net->state != MS_STARTING &&
	    net->state != MS_SERVING))
		return;
	if (imsg_pair(fds) != CL_OK) {
		log_error("key-channel", "reason=%s", log_q(strerror(errno)));
		return;
	}
	net->has_key = 1;
	client.worker = net->index;
	MON_SEND(key, KEY_CLIENT, 0, &client, fds[0]);
	MON_SEND(net, NET_KEY, 0, NULL, fds[1]);
	if (net->state == MS_STARTING && !net->has_start)
		setup_start_net(net);
}

static uint32_t
setup_find_group(const char *name)
{
	struct group *g;

	if (name == NULL)
		return NO_GROUP;
	if ((g = getgrnam(name)) == NULL) {
		log_warn("group-missing", "group=%s", log_q(name));
		return NO_GROUP;
	}
	return (uint32_t)g->gr_gid;
}

static void
setup_send_ctl_config(struct child *c)
{
	const struct hub_conf *conf = &c->mon->conf;
	struct msg_ctl_config v = {
		.operator_gid = setup_find_group(conf->operator_group),
		.viewer_gid = setup_find_group(conf->viewer_group),
		.log_level = config_log_level(conf),
	};

	MON_SEND(c, CTL_CONFIG, 0, &v, -1);
}

static void
setup_configure_key(struct child *c)
{
	int fd, r;

	if ((r = setup_open_key(c->mon, "tls.key", UTIL_OPEN_OWNED |
	    UTIL_OPEN_NOWRITE, &fd, NULL)) != CL_OK) {
		log_error("key-open", "file=%s/tls.key reason=%s",
		    c->mon->conf.key_dir, log_q(cl_strerror(r)));
		return;		/* its start deadline ends it */
	}
	MON_SEND(c, KEY_LOAD, 0, NULL, fd);
}

void
setup_configure(struct child *c)
{
	int fd;

	switch (c->kind) {
	case CHILD_KEY:
		setup_configure_key(c);
		break;
	case CHILD_NET:
		setup_configure_net(c);
		break;
	case CHILD_FENCE:
		enforce_configure(c);
		break;
	case CHILD_CTL:
		setup_send_ctl_config(c);
		if ((fd = fcntl(c->mon->ctl_fd, F_DUPFD_CLOEXEC, 3)) == -1)
			log_error("control-socket", "reason=%s",
			    log_q(strerror(errno)));
		else
			MON_SEND(c, CTL_LISTEN, 0, NULL, fd);
		break;
	}
}

void
setup_reconfigure(struct child *c)
{
	if (c->state != MS_STARTING && c->state != MS_SERVING)
		return;
	if (c->kind == CHILD_CTL)
		setup_send_ctl_config(c);
	if (c->kind == CHILD_NET) {
		setup_send_net_config(c);
		if (c->mon->has_tls)
			setup_send_cert(c);
	}
}
