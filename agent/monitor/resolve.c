/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's side of a name look-up.  The resolver child talks to name
 * servers, so its answer is outside text: it is read field by field and
 * written anew for the fetcher; at most MAX_RESOLVED addresses of 4 or 16
 * bytes get through.  The child is killed once it has answered.
 */
#include <netinet/in.h>
#include <arpa/inet.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "resolve.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/model/url.h"
#include "sandbox/box/spawn.h"
#include "kern.h"

#define RESOLVE_ERROR_MAX 256
#define RESOLVE_QUEUE_MAX 8

static void
resolve_finish(struct resolve *r, const struct buf *answer)
{
	uint64_t id = r->id;

	if (!r->is_asking)
		return;
	resolve_stop(r);
	r->done(r->arg, id, answer);
}

static void
resolve_finish_error(struct resolve *r, const char *text)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_u8(&b, 0);
	buf_put_str(&b, text);
	buf_put_u8(&b, 0);
	resolve_finish(r, &b);
	buf_clear(&b);
}

/* Copy one address; its length must fit its family. */
static int
resolve_copy_address(struct buf *in, struct buf *out)
{
	const uint8_t *p;
	uint8_t family = buf_get_u8(in);
	size_t len;

	p = buf_get_blob(in, 16, &len);
	if (p == NULL || (family != 4 && family != 6) ||
	    len != (family == 4 ? 4U : 16U))
		return CL_FORMAT;
	buf_put_u8(out, family);
	buf_put_blob(out, p, len);
	return CL_OK;
}

static int
resolve_copy_answer(struct buf *in, struct buf *out)
{
	char error[RESOLVE_ERROR_MAX + 1];
	uint8_t n, i;
	int ok;

	ok = buf_get_bool(in);
	buf_get_str(in, error, RESOLVE_ERROR_MAX);
	n = buf_get_u8(in);
	if (n > MAX_RESOLVED || (ok && n == 0))
		return CL_FORMAT;
	buf_put_u8(out, ok == 1);
	buf_put_str(out, error);
	buf_put_u8(out, n);
	for (i = 0; i < n; i++)
		if (resolve_copy_address(in, out) != 0)
			return CL_FORMAT;
	return buf_end(in);
}

static int
resolve_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	struct resolve *r = arg;
	struct buf b;
	int ret = CL_FORMAT;

	(void)v;
	if (m->type != MSG_RES_ADDRS)
		return CL_FORMAT;
	buf_init(&b, MSG_BODY_MAX);
	if (resolve_copy_answer(&m->body, &b) == 0) {
		resolve_finish(r, &b);
		ret = CL_OK;
	}
	buf_clear(&b);
	return ret;
}

static void
resolve_on_end(void *arg, const char *why)
{
	if (why != NULL)
		log_error("child-violation", "child=agentd-fetch "
		    "role=resolver reason=%s", log_q(why));
	resolve_finish_error(arg, "the resolver process ended");
}

static void resolve_try(struct resolve *r);

static void
resolve_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (((struct resolve *)arg)->ntries > 0)
		resolve_try(arg);
	else
		resolve_finish_error(arg, "no answer from the resolver");
}

int
resolve_init(struct resolve *r, struct event_base *base, resolve_fn *done,
    void *arg)
{
	memset(r, 0, sizeof(*r));
	r->base = base;
	r->done = done;
	r->arg = arg;
	r->timer = event_new(base, -1, 0, resolve_on_timer, r);
	return r->timer == NULL ? CL_NOMEM : CL_OK;
}

void
resolve_clear(struct resolve *r)
{
	resolve_stop(r);
	if (r->timer != NULL)
		event_free(r->timer);
	r->timer = NULL;
}

void
resolve_stop(struct resolve *r)
{
	r->is_asking = 0;
	chan_close(&r->chan);
	if (r->timer != NULL)
		event_del(r->timer);
	if (r->pid > 0)
		(void)kill(r->pid, SIGKILL);	/* reaped by on_exit */
}

/* A literal address; inet_pton reads exactly that form. */
static int
resolve_parse_literal(const char *host, struct buf *b)
{
	uint8_t addr[16];
	int family = 0;

	if (inet_pton(AF_INET, host, addr) == 1)
		family = 4;
	else if (inet_pton(AF_INET6, host, addr) == 1)
		family = 6;
	else
		return CL_NOTFOUND;
	buf_put_u8(b, 1);
	buf_put_str(b, "");
	buf_put_u8(b, 1);
	buf_put_u8(b, (uint8_t)family);
	buf_put_blob(b, addr, family == 4 ? 4 : 16);
	return CL_OK;
}

static int
resolve_spawn(struct resolve *r)
{
	static const char *const args[] = { "resolver", NULL };
	struct spawn_opts o = { .program = "agentd-fetch", .args = args,
	    .user = geteuid() == 0 ? USER_FETCH : NULL };
	struct buf b;
	int fd, ret;

	if ((ret = spawn_start(&o, &r->pid, &fd)) != 0 ||
	    (ret = chan_open(&r->chan, r->base, fd, MSG_F2M, MSG_M2F,
	    RESOLVE_QUEUE_MAX, resolve_on_msg, resolve_on_end, r)) != 0)
		return ret;
	buf_init(&b, 512);
	buf_put_str(&b, r->host);
	buf_put_u16(&b, r->port);
	ret = chan_send_buf(&r->chan, MSG_RES_NAME, 0, &b, -1);
	buf_clear(&b);
	return ret;
}

static void
resolve_try(struct resolve *r)
{
	struct timeval tv = { .tv_sec = RESOLVE_TIMEOUT_MS / 1000 };
	int ret = resolve_spawn(r);

	if (ret != 0 && kern_is_short(ret) && r->ntries < tv.tv_sec) {
		chan_close(&r->chan);
		if (r->pid > 0)
			(void)kill(r->pid, SIGKILL);
		r->ntries++;
		tv.tv_sec = 1;
	} else if (ret != 0) {
		resolve_finish_error(r, "the resolver cannot be started");
		return;
	} else
		r->ntries = 0;
	event_add(r->timer, &tv);
}

void
resolve_start(struct resolve *r, uint64_t id, const struct url *u)
{
	struct buf b;

	resolve_stop(r);
	r->id = id;
	r->is_asking = 1;
	r->ntries = 0;
	strlcpy(r->host, u->host, sizeof(r->host));
	r->port = u->port;
	buf_init(&b, 64);
	if (resolve_parse_literal(u->host, &b) == 0)
		resolve_finish(r, &b);
	else
		resolve_try(r);
	buf_clear(&b);
}

int
resolve_on_exit(struct resolve *r, pid_t pid)
{
	if (r->pid != pid)
		return 0;
	r->pid = 0;
	return 1;
}
