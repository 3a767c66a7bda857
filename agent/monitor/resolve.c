/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's side of a name look-up.  The resolver child talks to name
 * servers, so its answer is outside text: it is decoded and written anew for
 * the fetcher; at most MAX_RESOLVED addresses of 4 or 16 bytes get through.
 * The child is killed once it has answered.
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

#define RESOLVE_QUEUE_MAX 8

static void
resolve_finish(struct resolve *r, const struct msg_addrs *ans)
{
	uint64_t id = r->id;

	if (!r->is_asking)
		return;
	resolve_stop(r);
	r->done(r->arg, id, ans);
}

static void
resolve_finish_error(struct resolve *r, const char *text)
{
	struct msg_addrs ans = { .error = text };

	resolve_finish(r, &ans);
}

static int
resolve_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	const struct msg_addrs *ans = &v->RES_ADDRS;
	size_t i;

	if (m->type != MSG_RES_ADDRS)
		return CL_FORMAT;
	for (i = 0; i < ans->naddrs; i++)
		if (ans->addrs[i].bytes_len != 4 &&
		    ans->addrs[i].bytes_len != 16)
			return CL_FORMAT;
	resolve_finish(arg, ans);
	return CL_OK;
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

/* A literal address, into 16 bytes of a; inet_pton reads exactly that form. */
static int
resolve_parse_literal(const char *host, struct msg_addr *a)
{
	a->bytes_len = inet_pton(AF_INET, host, a->bytes) == 1 ? 4 :
	    inet_pton(AF_INET6, host, a->bytes) == 1 ? 16 : 0;
	return a->bytes_len != 0 ? CL_OK : CL_NOTFOUND;
}

static int
resolve_spawn(struct resolve *r)
{
	static const char *const args[] = { "resolver", NULL };
	struct spawn_opts o = { .program = "agentd-fetch", .args = args,
	    .user = geteuid() == 0 ? USER_FETCH : NULL };
	struct msg_res_name name = { .host = r->host, .port = r->port };
	int fd, ret;

	if ((ret = spawn_start(&o, &r->pid, &fd)) != 0 ||
	    (ret = chan_open(&r->chan, r->base, fd, MSG_F2M, MSG_M2F,
	    RESOLVE_QUEUE_MAX, resolve_on_msg, resolve_on_end, r)) != 0)
		return ret;
	return CHAN_SEND(&r->chan, RES_NAME, 0, &name, -1);
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
	uint8_t bytes[16];
	struct msg_addr literal = { .bytes = bytes };
	struct msg_addrs ans = { .addrs = &literal, .naddrs = 1 };

	resolve_stop(r);
	r->id = id;
	r->is_asking = 1;
	r->ntries = 0;
	strlcpy(r->host, u->host, sizeof(r->host));
	r->port = u->port;
	if (resolve_parse_literal(u->host, &literal) == 0)
		resolve_finish(r, &ans);
	else
		resolve_try(r);
}

int
resolve_on_exit(struct resolve *r, pid_t pid)
{
	if (r->pid != pid)
		return 0;
	r->pid = 0;
	return 1;
}
