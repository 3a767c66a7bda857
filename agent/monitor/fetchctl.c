/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's side of agentd-fetch.  That process speaks with the hub and
 * holds the credential; taken over, it can say here only what the catalogue
 * allows, and gets only what this device's own configuration would give any
 * hub: a start runs confined below the work root, a signal reaches a workload
 * we started, marks move within what was written.  A message that is not
 * allowed ends the process, not us; workloads do not notice, the next one
 * learns of them and resumes.
 */
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"
#include "fetchctl.h"
#include "kern.h"

#define FETCH_STEADY_MS 10000	/* it served, rather than just started */

static void fetchctl_check_gone(struct fetchctl *f);

static const char *const fetchctl_links[] = {
	"?", "connecting", "up", "down"
};

/* ----------------------------------------------------------------- sending */

static void
fetchctl_send_failed(struct fetchctl *f, int r)
{
	if (r == 0 || r == CL_STATE || f->pid <= 0)
		return;
	/* It does not read: whatever it is doing, another one may do it. */
	log_error("child-stuck", "child=agentd-fetch reason=\"%s\"",
	    cl_strerror(r));
	(void)kill(f->pid, SIGKILL);
}

void
fetchctl_send(struct fetchctl *f, uint32_t type, uint64_t id,
    uint64_t generation, const void *v, int fd)
{
	if (!f->is_serving || (generation != 0 &&
	    generation != f->generation)) {
		if (fd != -1)
			close(fd);
		return;
	}
	fetchctl_send_failed(f, chan_send(&f->chan, type, id, v, fd));
}

int
fetchctl_is_serving(const struct fetchctl *f, uint64_t *generationp)
{
	if (generationp != NULL)
		*generationp = f->generation;
	return f->is_serving;
}

int
fetchctl_is_link_up(const struct fetchctl *f)
{
	return f->link == LINK_UP;
}

static void
fetchctl_on_resolved(void *arg, uint64_t id, const struct msg_addrs *ans)
{
	FETCHCTL_SEND(arg, RESOLVE_ANS, id, 0, ans, -1);
}

static int
fetchctl_send_config(struct fetchctl *f)
{
	const struct agentd *a = f->a;
	struct msg_fetch_config c = {
		.host = a->url.host, .port = a->url.port, .tls = a->url.tls,
		.path = a->url.path,
		.insecure = !a->url.tls && !url_is_loopback(a->url.host),
		.pins = (uint8_t *)(uintptr_t)a->pins,
		.pins_len = a->npins * sizeof(*a->pins),
		.agent_id = a->enrolled ? a->cred.agent_id : NULL,
		.name = a->cred.name != NULL ? a->cred.name : a->bundle.name,
		.agent_version = CLOOP_VERSION,
		.max_protocol = a->conf.max_protocol < AGENT_PROTOCOL_MAX ?
		    a->conf.max_protocol : AGENT_PROTOCOL_MAX,
		.max_concurrent = a->max_concurrent,
		.log_level = log_get_level()
	};

	return CHAN_SEND(&f->chan, FETCH_CONFIG, 0, &c, -1);
}

int
fetchctl_send_bearer(struct fetchctl *f)
{
	struct msg_fetch_bearer b = { .bearer = f->a->bearer,
	    .enrolling = !f->a->enrolled };

	return CHAN_SEND(&f->chan, FETCH_BEARER, 0, &b, -1);
}

static int
fetchctl_send_setup(struct fetchctl *f)
{
	int r;

	if ((r = fetchctl_send_config(f)) != 0)
		return r;
	if (f->a->ca != NULL && (r = chan_send_memfd(&f->chan, MSG_FETCH_CA,
	    0, f->a->ca, f->a->ca_len)) != 0)
		return r;
	if ((r = fetchctl_send_bearer(f)) != 0)
		return r;
	return chan_send(&f->chan, MSG_FETCH_START, 0, NULL, -1);
}

/* -------------------------------------------------------------------- life */

static void
fetchctl_set_timer(struct fetchctl *f, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
	    .tv_usec = (ms % 1000) * 1000 };

	event_add(f->timer, &tv);
}

static void
fetchctl_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct fetchctl *f = arg;

	(void)fd;
	(void)what;
	if (f->pid > 0) {
		log_warn("child-stuck", "child=agentd-fetch reason=\"%s\"",
		    f->is_stopping ? "it does not stop" :
		    "it does not get ready");
		(void)kill(f->pid, SIGKILL);
	} else if (!f->is_stopping)
		(void)fetchctl_start(f);
}

struct fetchctl *
fetchctl_new(struct agentd *a, const struct fetchctl_ops *ops)
{
	struct fetchctl *f = xcalloc(1, sizeof(*f));

	f->a = a;
	f->ops = ops;
	f->backoff_ms = CHILD_BACKOFF_MIN_MS;
	f->link = LINK_DOWN;
	f->timer = event_new(a->base, -1, 0, fetchctl_on_timer, f);
	if (f->timer == NULL ||
	    resolve_init(&f->resolve, a->base, fetchctl_on_resolved,
	    f) != 0) {
		fetchctl_free(f);
		return NULL;
	}
	return f;
}

void
fetchctl_free(struct fetchctl *f)
{
	if (f == NULL)
		return;
	resolve_clear(&f->resolve);
	chan_close(&f->chan);
	if (f->timer != NULL)
		event_free(f->timer);
	free(f);
}

void
fetchctl_set_link(struct fetchctl *f, int link)
{
	f->link = link;
	f->ops->on_link(f->a, link == LINK_UP);
}

static int
fetchctl_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	const struct fetchctl *f = arg;
	const struct fetchctl_row *row;

	for (row = f->ops->rows; row->type != 0; row++)
		if (row->type == m->type)
			return row->fn(arg, m, v);
	return CL_FORMAT;	/* RES_ADDRS belongs to the other role */
}

/* The channel is over; the process is ended, whatever it still does. */
static void
fetchctl_on_end(void *arg, const char *why)
{
	struct fetchctl *f = arg;

	if (why != NULL)
		log_error("child-violation", "child=agentd-fetch reason=%s",
		    log_q(why));
	f->is_serving = 0;
	fetchctl_set_link(f, LINK_DOWN);
	resolve_stop(&f->resolve);
	f->ops->on_end(f->a);
	if (f->pid > 0)
		(void)kill(f->pid, SIGKILL);
	else
		fetchctl_check_gone(f);
}

void
fetchctl_pause(struct fetchctl *f, int r)
{
	f->is_short = kern_is_short(r);
	log_error("child-start", "child=agentd-fetch reason=\"%s\"",
	    cl_strerror(r));
	f->is_serving = 0;
	(void)kill(f->pid, SIGKILL);
}

int
fetchctl_start(struct fetchctl *f)
{
	static const char *const args[] = { "session", NULL };
	/* Before any workload's byte: the child gives up root by itself, the
	 * account is only checked here. */
	struct spawn_opts o = { .program = "agentd-fetch", .args = args,
	    .user = geteuid() == 0 ? USER_FETCH : NULL };
	int fd, r;

	f->generation++;
	f->is_short = 0;
	if ((r = spawn_start(&o, &f->pid, &fd)) != 0) {
		f->is_short = kern_is_short(r);
		log_error("child-start", "child=agentd-fetch reason=\"%s\"",
		    cl_strerror(r));
		f->pid = 0;
		fetchctl_check_gone(f);
		return r;
	}
	log_debug("child-start", "child=agentd-fetch pid=%ld", (long)f->pid);
	if ((r = chan_open(&f->chan, f->a->base, fd, MSG_F2M, MSG_M2F,
	    CHAN_QUEUE_MAX, fetchctl_on_msg, fetchctl_on_end, f)) != 0 ||
	    (r = fetchctl_send_setup(f)) != 0) {
		fetchctl_pause(f, r);
		return r;
	}
	fetchctl_set_timer(f, STOP_GRACE_MS * 2);
	return CL_OK;
}

/*
 * Process and channel are both gone: what next?  Before it was ready once,
 * its end is ours: it has said on stderr which value it cannot use (a CA
 * file without a certificate, for instance), and it would say it again.
 */
static void
fetchctl_check_gone(struct fetchctl *f)
{
	if (f->pid > 0 || f->chan.is_open)
		return;
	event_del(f->timer);
	if (f->is_stopping) {
		f->ops->on_stopped(f->a);
		return;
	}
	if (!f->was_ready && !f->is_short) {
		log_error("start", "result=failed what=agentd-fetch "
		    "reason=\"it ended before it was ready\"");
		f->ops->stop(f->a, 1, 0);
		return;
	}
	/* One that served for a while starts again without delay. */
	if (f->ready_at != 0 && util_now_ms() - f->ready_at > FETCH_STEADY_MS)
		f->backoff_ms = CHILD_BACKOFF_MIN_MS;
	f->ready_at = 0;
	log_info("child-respawn", "child=agentd-fetch in_ms=%lld",
	    (long long)f->backoff_ms);
	fetchctl_set_timer(f, f->backoff_ms);
	f->backoff_ms *= 2;
	if (f->backoff_ms > CHILD_BACKOFF_MAX_MS)
		f->backoff_ms = CHILD_BACKOFF_MAX_MS;
}

void
fetchctl_stop(struct fetchctl *f)
{
	if (f->is_stopping)
		return;
	f->is_stopping = 1;
	event_del(f->timer);
	resolve_stop(&f->resolve);
	if (!f->chan.is_open) {
		fetchctl_check_gone(f);
		return;
	}
	if (f->is_serving)
		f->chan.state = MS_STOPPING;
	(void)chan_send(&f->chan, MSG_FETCH_STOP, 0, NULL, -1);
	fetchctl_set_timer(f, STOP_GRACE_MS);
}

int
fetchctl_is_stopped(const struct fetchctl *f)
{
	return f->pid <= 0 && f->resolve.pid <= 0;
}

int
fetchctl_on_exit(struct fetchctl *f, pid_t pid, int status)
{
	if (resolve_on_exit(&f->resolve, pid)) {
		f->ops->on_stopped(f->a);
		return 1;
	}
	if (pid != f->pid)
		return 0;
	f->pid = 0;
	if (WIFSIGNALED(status))
		log_error("child-exit", "child=agentd-fetch signal=%d",
		    WTERMSIG(status));
	else
		log_debug("child-exit", "child=agentd-fetch status=%d",
		    WEXITSTATUS(status));
	/* Unless its channel is still being read: then the end of that. */
	fetchctl_check_gone(f);
	return 1;
}

void
fetchctl_log_state(const struct fetchctl *f)
{
	log_info("state-fetch", "pid=%ld generation=%llu serving=%d link=%s "
	    "version=%u", (long)f->pid, (unsigned long long)f->generation,
	    f->is_serving, fetchctl_links[f->link],
	    (unsigned int)f->negotiated);
}
