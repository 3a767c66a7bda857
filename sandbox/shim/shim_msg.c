/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages between cloop-shim and cloop-agentd (dev_shim.def): the
 * channel it was born with, later the socket on which a new monitor finds
 * it.  A message that is not as its row says ends the channel, never the
 * workload.
 */
#include "shim_int.h"

#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"

#define SHIM_QUEUE_MAX 32	/* it says a handful of things in its life */

int
shim_msg_has_all(const struct shim *s)
{
	return s->job.argv.n > 0 && s->pump.spool.head != NULL &&
	    s->pump.wake_fd != -1 && s->dir_fd != -1 && s->tree_fd != -1 &&
	    s->has_filters;
}

static int
shim_msg_on_job(struct shim *s, const struct imsg *m,
    const struct msg_memfd *v)
{
	size_t len = (size_t)v->len;
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	r = shim_job_get(&b, &s->job);
	explicit_bzero(data, len);
	free(data);
	if (r == CL_OK && s->job.log_level <= LOGL_DEBUG)
		log_init("cloop-shim", (enum log_level)s->job.log_level,
		    LOGF_TEXT);
	return r;
}

/* Again after re-adoption: the new monitor's consumer has its own. */
static int
shim_msg_on_wake(struct shim *s, struct imsg *m)
{
	if (s->pump.wake_fd != -1)
		close(s->pump.wake_fd);
	s->pump.wake_fd = imsg_take_fd(m);
	return util_set_nonblock(s->pump.wake_fd);
}

static int
shim_msg_on_filters(struct shim *s, const struct imsg *m,
    const struct msg_memfd *v)
{
	size_t len = (size_t)v->len;
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_FILTERS_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	r = bpf_set_get(&b, &s->filters);
	free(data);
	s->has_filters = r == CL_OK;
	return r;
}

/* The monitor died behind its last message. */
static int
shim_msg_is_hung_up(const struct shim *s)
{
	struct pollfd pfd = { .fd = s->chan.im.fd };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP) != 0;
}

static int
shim_msg_on_go(struct shim *s)
{
	char why[MAX_SHIM_ERROR_LEN];

	if (!shim_msg_has_all(s))
		return CL_STATE;
	if (s->no_redact || shim_pump_add_env(&s->pump, s->job.env.v,
	    s->job.env.n) != CL_OK) {
		shim_msg_send_failed(s, "sandbox: the output cannot be "
		    "redacted");
		shim_enter_state(s, SHIM_DONE);
		return CL_OK;
	}
	/* Nobody could have told the hub that it runs: it need not begin. */
	if (shim_msg_is_hung_up(s)) {
		shim_enter_state(s, SHIM_DONE);
		return CL_OK;
	}
	CRASH_POINT("start.shim");
	if (shim_start(s, why, sizeof(why)) != CL_OK) {
		shim_msg_send_failed(s, why);
		shim_enter_state(s, SHIM_DONE);
		return CL_OK;
	}
	/* The workload has its own: nothing in here needs the values. */
	shim_job_wipe_env(&s->job);
	shim_enter_state(s, SHIM_RUNNING);
	CRASH_POINT("start.shim-ran");
	return shim_msg_send_started(s);
}

static int
shim_msg_load_values(struct shim *s, int fd, uint64_t len)
{
	struct msg_values set;
	size_t i;
	int r;

	if ((r = msg_load_memfd(fd, len, MAX_SPEC_LEN, &msg_values_table,
	    &set)) != CL_OK)
		return r;
	for (i = 0; r == CL_OK && i < set.nvalues; i++)
		r = shim_pump_add_value(&s->pump, set.values[i].value.data,
		    set.values[i].value.len);
	field_clear(&msg_values_table, &set);
	return r;
}

/*
 * Answered when it is known: what the pipe holds by now may be from before,
 * and is held against the values all the same.
 */
static int
shim_msg_on_redact(struct shim *s, const struct imsg *m,
    const struct msg_memfd *v)
{
	struct msg_ok ans;
	int r;

	r = shim_msg_load_values(s, m->fd, v->len);
	if (r != CL_OK && r != CL_NOMEM && r != CL_LIMIT)
		return r;
	if (r != CL_OK && s->state == SHIM_SETUP)
		s->no_redact = 1;
	ans.ok = r == CL_OK;
	return CHAN_SEND(&s->chan, SHIM_REDACT_ANS, m->id, &ans, -1);
}

static int
shim_msg_on_lease(struct shim *s, struct imsg *m)
{
	if (s->nleases == MAX_SHIM_PATHS)
		return CL_LIMIT;
	s->lease_fds[s->nleases++] = imsg_take_fd(m);
	return CL_OK;
}

static int
shim_msg_on_adopt(struct shim *s, const struct msg_version *v)
{
	int r;

	if (v->version != MSGCAT_VERSION) {
		log_error("monitor-version", "handle=%s version=%u ours=%d",
		    log_q(s->job.handle), (unsigned int)v->version,
		    MSGCAT_VERSION);
		return CL_VERSION;
	}
	if ((r = shim_msg_send_started(s)) == CL_OK && s->state == SHIM_ENDED)
		r = shim_msg_send_exited(s);
	return r;
}

static int
shim_msg_on_release(struct shim *s)
{
	if (s->state != SHIM_ENDED)
		return CL_STATE;
	/* Else it stays for the record. */
	if (s->is_saved)
		shim_enter_state(s, SHIM_DONE);
	else
		chan_close(&s->chan);
	return CL_OK;
}

static int
shim_msg_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	struct shim *s = arg;

	switch (m->type) {
	case MSG_SHIM_JOB:
		return shim_msg_on_job(s, m, &v->SHIM_JOB);
	case MSG_SHIM_SPOOL:
		return spool_open(&s->pump.spool, imsg_take_fd(m), 1);
	case MSG_SHIM_WAKE:
		return shim_msg_on_wake(s, m);
	case MSG_SHIM_DIR:
		s->dir_fd = imsg_take_fd(m);
		return CL_OK;
	case MSG_SHIM_TREE:
		s->tree_fd = imsg_take_fd(m);
		return CL_OK;
	case MSG_SHIM_STDIN:
		s->stdin_fd = imsg_take_fd(m);
		return CL_OK;
	case MSG_SHIM_FILTERS:
		return shim_msg_on_filters(s, m, &v->SHIM_FILTERS);
	case MSG_SHIM_GO:
		return shim_msg_on_go(s);
	case MSG_SHIM_SIGNAL:
		shim_kill_signal(s, (int)v->SHIM_SIGNAL.sig);
		return CL_OK;
	case MSG_SHIM_ADOPT:
		return shim_msg_on_adopt(s, &v->SHIM_ADOPT);
	case MSG_SHIM_RELEASE:
		return shim_msg_on_release(s);
	case MSG_SHIM_REDACT:
		return shim_msg_on_redact(s, m, &v->SHIM_REDACT);
	case MSG_SHIM_LEASE:
		return shim_msg_on_lease(s, m);
	default:
		return CL_FORMAT;
	}
}

static void
shim_msg_on_end(void *arg, const char *why)
{
	const struct shim *s = arg;

	if (why != NULL)
		log_warn("monitor-violation", "handle=%s reason=%s",
		    log_q(s->job.handle), log_q(why));
}

void
shim_msg_set_state(struct shim *s)
{
	s->chan.state = s->state == SHIM_SETUP ? MS_STARTING :
	    s->state == SHIM_ENDED ? MS_STOPPING : MS_SERVING;
	if (s->state == SHIM_DONE)
		chan_hold(&s->chan);	/* nothing more is read */
}

int
shim_msg_open(struct shim *s, int fd)
{
	int r = chan_init(&s->chan, fd, MSG_M2S, MSG_S2M, SHIM_QUEUE_MAX,
	    shim_msg_on_msg, shim_msg_on_end, s);

	shim_msg_set_state(s);
	return r;
}

/* Only who we are ourselves may adopt us: root's monitor, or our user's. */
void
shim_msg_accept(struct shim *s)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd;

	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd == -1)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
	    peer.uid != geteuid()) {
		log_warn("adopt-denied", "uid=%u", peer.uid);
		close(fd);
		return;
	}
	chan_close(&s->chan);
	(void)shim_msg_open(s, fd);
}

/* A monitor that is gone is no error: another one will ask. */
static int
shim_msg_check_sent(int r)
{
	return r == CL_STATE ? CL_OK : r;
}

int
shim_msg_send_started(struct shim *s)
{
	struct msg_shim_started body = { .pid = s->reported_pid,
	    .started_at = s->end.started_at };

	return shim_msg_check_sent(CHAN_SEND(&s->chan, SHIM_STARTED, 0, &body,
	    -1));
}

int
shim_msg_send_exited(struct shim *s)
{
	return shim_msg_check_sent(CHAN_SEND(&s->chan, SHIM_EXITED, 0, &s->end,
	    -1));
}

void
shim_msg_send_failed(struct shim *s, const char *text)
{
	struct msg_text body = { .text = text };

	(void)CHAN_SEND(&s->chan, SHIM_FAILED, 0, &body, -1);
}
