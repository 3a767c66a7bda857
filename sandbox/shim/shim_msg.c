/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages between cloop-shim and cloop-agentd (DEV_SHIM_CATALOGUE): the
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

static int shim_msg_send_id(struct shim *s, uint32_t type, uint64_t id,
    struct buf *b);

int
shim_msg_has_all(const struct shim *s)
{
	return s->job.argv.n > 0 && s->pump.spool.head != NULL &&
	    s->pump.wake_fd != -1 && s->dir_fd != -1 && s->tree_fd != -1 &&
	    s->has_filters;
}

static int
shim_msg_on_job(struct shim *s, struct imsg *m)
{
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = buf_end(&m->body)) != CL_OK ||
	    (r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
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

static int
shim_msg_on_spool(struct shim *s, struct imsg *m)
{
	return spool_open(&s->pump.spool, imsg_take_fd(m), 1);
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
shim_msg_on_dir(struct shim *s, struct imsg *m)
{
	s->dir_fd = imsg_take_fd(m);
	return CL_OK;
}

static int
shim_msg_on_filters(struct shim *s, struct imsg *m)
{
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = buf_end(&m->body)) != CL_OK ||
	    (r = util_load_memfd(m->fd, len, MAX_FILTERS_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	r = bpf_set_get(&b, &s->filters);
	free(data);
	s->has_filters = r == CL_OK;
	return r;
}

static int
shim_msg_on_stdin(struct shim *s, struct imsg *m)
{
	s->stdin_fd = imsg_take_fd(m);
	return CL_OK;
}

static int
shim_msg_on_tree(struct shim *s, struct imsg *m)
{
	s->tree_fd = imsg_take_fd(m);
	return CL_OK;
}

/* The monitor died behind its last message. */
static int
shim_msg_is_hung_up(const struct shim *s)
{
	struct pollfd pfd = { .fd = s->chan.fd };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP) != 0;
}

static int
shim_msg_on_go(struct shim *s, struct imsg *m)
{
	char why[MAX_SHIM_ERROR_LEN];

	(void)m;
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
shim_msg_load_values(struct shim *s, struct imsg *m)
{
	uint32_t i, n, len = buf_get_u32(&m->body);
	const uint8_t *value;
	uint8_t *data = NULL;
	struct buf b;
	size_t value_len;
	int r;

	if ((r = buf_end(&m->body)) != CL_OK ||
	    (r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	n = buf_get_u32(&b);
	for (i = 0; r == CL_OK && i < n; i++) {
		value = buf_get_blob(&b, MAX_SPEC_LEN, &value_len);
		if (value == NULL)
			break;
		r = shim_pump_add_value(&s->pump, value, value_len);
	}
	if (r == CL_OK)
		r = buf_end(&b);
	explicit_bzero(data, len);
	free(data);
	return r;
}

/*
 * Answered when it is known: what the pipe holds by now may be from before,
 * and is held against the values all the same.
 */
static int
shim_msg_on_redact(struct shim *s, struct imsg *m)
{
	struct buf b;
	int r;

	r = shim_msg_load_values(s, m);
	if (r != CL_OK && r != CL_NOMEM && r != CL_LIMIT)
		return r;
	if (r != CL_OK && s->state == SHIM_SETUP)
		s->no_redact = 1;
	buf_init(&b, 1);
	buf_put_u8(&b, r == CL_OK);
	return shim_msg_send_id(s, MSG_SHIM_REDACT_ANS, m->id, &b);
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
shim_msg_on_signal(struct shim *s, struct imsg *m)
{
	uint8_t sig = buf_get_u8(&m->body);

	if (buf_end(&m->body) != CL_OK || sig < SIG_INTERRUPT ||
	    sig > SHIM_SIG_STOP)
		return CL_FORMAT;
	shim_kill_signal(s, sig);
	return CL_OK;
}

static int
shim_msg_on_adopt(struct shim *s, struct imsg *m)
{
	uint32_t version = buf_get_u32(&m->body);
	int r;

	if (buf_end(&m->body) != CL_OK)
		return CL_FORMAT;
	if (version != MSGCAT_VERSION)
		return CL_VERSION;
	if ((r = shim_msg_send_started(s)) == CL_OK && s->state == SHIM_ENDED)
		r = shim_msg_send_exited(s);
	return r;
}

static int
shim_msg_on_release(struct shim *s, struct imsg *m)
{
	(void)m;
	if (s->state != SHIM_ENDED)
		return CL_STATE;
	/* Else it stays for the record; the caller gives the channel up. */
	if (!s->is_saved)
		return CL_EOF;
	shim_enter_state(s, SHIM_DONE);
	return CL_OK;
}

static const struct shim_msg_row {
	uint32_t type;
	int (*on)(struct shim *s, struct imsg *m);
} shim_msg_rows[] = {
	{ MSG_SHIM_JOB, shim_msg_on_job },
	{ MSG_SHIM_SPOOL, shim_msg_on_spool },
	{ MSG_SHIM_WAKE, shim_msg_on_wake },
	{ MSG_SHIM_DIR, shim_msg_on_dir },
	{ MSG_SHIM_TREE, shim_msg_on_tree },
	{ MSG_SHIM_STDIN, shim_msg_on_stdin },
	{ MSG_SHIM_FILTERS, shim_msg_on_filters },
	{ MSG_SHIM_GO, shim_msg_on_go },
	{ MSG_SHIM_SIGNAL, shim_msg_on_signal },
	{ MSG_SHIM_ADOPT, shim_msg_on_adopt },
	{ MSG_SHIM_RELEASE, shim_msg_on_release },
	{ MSG_SHIM_REDACT, shim_msg_on_redact },
	{ MSG_SHIM_LEASE, shim_msg_on_lease },
};

static int
shim_msg_handle(struct shim *s, struct imsg *m)
{
	unsigned int state = s->state == SHIM_SETUP ? MS_STARTING :
	    s->state == SHIM_ENDED ? MS_STOPPING : MS_SERVING;
	const char *why = "not as declared";
	size_t i;
	int r;

	r = msgcat_check(MSG_M2S, state, m, &s->seen, &why);
	for (i = 0; r == CL_OK &&
	    i < sizeof(shim_msg_rows) / sizeof(shim_msg_rows[0]); i++) {
		if (shim_msg_rows[i].type != m->type)
			continue;
		if ((r = shim_msg_rows[i].on(s, m)) != CL_OK)
			why = cl_strerror(r);
		break;
	}
	if (r != CL_OK && r != CL_EOF)
		log_warn("monitor-violation", "handle=%s type=%s reason=%s",
		    log_q(s->job.handle), msgcat_name(m->type), log_q(why));
	imsg_free(m);
	return r;
}

int
shim_msg_read(struct shim *s)
{
	struct imsg m;
	int r;

	while (s->has_chan && s->state != SHIM_DONE) {
		if ((r = imsg_read(&s->chan, &m)) == CL_INCOMPLETE)
			return CL_OK;
		if (r != CL_OK)
			return r;
		if ((r = shim_msg_handle(s, &m)) != CL_OK)
			return r;
	}
	return CL_OK;
}

void
shim_msg_close(struct shim *s)
{
	if (s->has_chan)
		imsg_clear(&s->chan);
	s->has_chan = 0;
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
	shim_msg_close(s);
	memset(&s->seen, 0, sizeof(s->seen));
	s->has_chan = imsg_init(&s->chan, fd, SHIM_QUEUE_MAX) == CL_OK;
}

/* Send; a monitor that is gone is no error: another one will ask. */
static int
shim_msg_send_id(struct shim *s, uint32_t type, uint64_t id, struct buf *b)
{
	int r;

	if (!s->has_chan) {
		buf_clear(b);
		return CL_OK;
	}
	r = imsg_compose(&s->chan, type, id, b, -1);
	buf_clear(b);
	if (r == CL_OK)
		r = imsg_write(&s->chan);
	return r == CL_INCOMPLETE ? CL_OK : r;
}

static int
shim_msg_send(struct shim *s, uint32_t type, struct buf *b)
{
	return shim_msg_send_id(s, type, 0, b);
}

int
shim_msg_send_started(struct shim *s)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_i64(&b, s->reported_pid);
	buf_put_i64(&b, s->end.started_at);
	return shim_msg_send(s, MSG_SHIM_STARTED, &b);
}

int
shim_msg_send_exited(struct shim *s)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	shim_exit_put(&b, &s->end);
	return shim_msg_send(s, MSG_SHIM_EXITED, &b);
}

void
shim_msg_send_failed(struct shim *s, const char *text)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, text);
	(void)shim_msg_send(s, MSG_SHIM_FAILED, &b);
}
