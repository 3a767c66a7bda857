/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Start, loop and stop of the monitor.  Order matters: the store's lock
 * comes before anything another hub could notice, tables are loaded before
 * the first connection is accepted, and the monitor gives up its
 * capabilities before the first child runs.
 */
#include "boot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "hfiles.h"
#include "hwork.h"
#include "life.h"
#include "listen.h"
#include "logseal.h"
#include "monitor.h"
#include "reload.h"
#include "setup.h"
#include "supervise.h"

#include "sandbox/self/self.h"
#include "store/db/store.h"
#include "store/db/token.h"

#define STORE_WAIT_MS 2000	/* a predecessor may still be closing it */
#define TICK_MS 1000
#define SWEEP_MS (60 * 60 * 1000)

static void
boot_on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct monitor *mon = arg;
	char err[512];

	(void)what;
	/* Runs from the event loop, not in signal context (BC-96). */
	switch (sig) {
	case SIGTERM:
	case SIGINT:
		boot_stop(mon);
		break;
	case SIGHUP:
		(void)reload_conf(mon, err, sizeof(err));
		break;
	case SIGUSR1:
		mon_dump(mon);
		break;
	case SIGCHLD:
		child_reap_all(mon);
		break;
	}
}

static void
boot_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct monitor *mon = arg;
	int64_t now = util_now_ms(), late = now - mon->ticked_at - TICK_MS;
	size_t i;

	(void)fd;
	(void)what;
	/* A child is not slow for what we ourselves were late. */
	for (i = 0; i < mon->nchildren; i++)
		child_on_second(&mon->children[i], mon->ticked_at != 0 &&
		    late > 0 ? late : 0);
	mon->ticked_at = now;
	life_check_drops(mon);
	life_retry_saves(mon);
	lease_on_tick(mon);
	work_on_tick(mon);
	logseal_on_tick(mon);
	enforce_on_tick(mon);
	if (now - mon->probed_at >= HEARTBEAT_S * 1000) {
		mon->probed_at = now;
		supervise_probe(mon);
	}
	if (now - mon->swept_at >= SWEEP_MS) {
		mon->swept_at = now;
		life_sweep(mon);
	}
}

static void
boot_on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	(void)util_notify("WATCHDOG=1");
}

static struct event *
boot_add_timer(struct monitor *mon, event_callback_fn fn, long long ms)
{
	struct timeval tv = { (time_t)(ms / 1000),
	    (suseconds_t)(ms % 1000 * 1000) };
	struct event *ev = event_new(mon->base, -1, EV_PERSIST, fn, mon);

	if (ev == NULL || event_add(ev, &tv) == -1)
		fatal("boot", "reason=\"no timer\"");
	return ev;
}

static void
boot_add_events(struct monitor *mon)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1,
		SIGCHLD };
	const char *usec = getenv("WATCHDOG_USEC"), *why;
	long long n;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		mon->signals[i] = evsignal_new(mon->base, signals[i],
		    boot_on_signal, mon);
		if (mon->signals[i] == NULL ||
		    event_add(mon->signals[i], NULL) == -1)
			fatal("boot", "reason=\"no signal event\"");
	}
	mon->tick = boot_add_timer(mon, boot_on_tick, TICK_MS);
	if (usec == NULL)
		return;
	n = strtonum(usec, 1000, 3600000000LL, &why);
	if (why == NULL)
		mon->watchdog = boot_add_timer(mon, boot_on_watchdog,
		    n / 2000);
}

/* A directory without a row: a crash came between the two. */
static int
boot_is_known(const char *handle_id, void *arg)
{
	struct monitor *mon = arg;
	struct store_handle row;
	int r;

	memset(&row, 0, sizeof(row));
	r = store_find_handle(mon->store, handle_id, &row);
	store_handle_clear(&row);
	if (r == CL_OK)
		work_load_closed(mon, handle_id);
	return r != CL_NOTFOUND;
}

static int
boot_load(struct monitor *mon, char *err, size_t errlen)
{
	struct handle *h;
	int r;

	if ((r = store_open(mon->conf.state_dir, STORE_WAIT_MS, &mon->store,
	    err, errlen)) != CL_OK)
		return r;
	auditlog_start(mon);
	if ((r = token_load_key(mon->conf.key_dir, &mon->mac_key, err,
	    errlen)) != CL_OK)
		return r;
	r = store_begin_turn(mon->store);
	if (r == CL_OK)
		r = store_reset_executors(mon->store, util_wall_ns(),
		    "the hub started");
	if (r == CL_OK)
		r = store_commit_turn(mon->store);
	if (r == CL_OK)
		r = agents_load(&mon->agents, mon->store);
	if (r == CL_OK)
		r = handles_load(&mon->handles, &mon->agents, mon->store);
	if (r != CL_OK) {
		snprintf(err, errlen, "the hub's store cannot be read: %s",
		    r == CL_DB ? store_error(mon->store) : cl_strerror(r));
		return r;
	}
	if ((r = store_begin_turn(mon->store)) != CL_OK ||
	    (r = lease_load(mon, err, errlen)) != CL_OK ||
	    (r = store_commit_turn(mon->store)) != CL_OK) {
		if (err[0] == '\0')
			snprintf(err, errlen, "the hub's store cannot be "
			    "written: %s", store_error(mon->store));
		return r;
	}
	for (h = handles_next(&mon->handles, NULL); h != NULL;
	    h = handles_next(&mon->handles, h))
		work_load_open(mon, h);
	(void)hfiles_sweep(mon->conf.state_dir, boot_is_known, mon);
	log_info("loaded", "agents=%zu handles=%zu", mon->agents.nagents,
	    mon->handles.nhandles);
	return CL_OK;
}

static int
boot_start_child(struct child *c, char *err, size_t errlen)
{
	int r;

	if ((r = child_start(c)) != CL_OK)
		snprintf(err, errlen, "%s cannot be started: %s", c->program,
		    cl_strerror(r));
	return r;
}

/*
 * The slots, and cloopd-fence: it needs a capability that the monitor is
 * about to give up, so there is one try.
 */
static int
boot_make_children(struct monitor *mon, char *err, size_t errlen)
{
	unsigned int i, n = config_find_workers(&mon->conf);
	struct config_penalty p;
	struct child *fence = NULL;

	(void)config_parse_penalty(mon->conf.penalty, &p);
	mon->nchildren = 2 + n + (p.enforce != 0);
	mon->children = xcalloc(mon->nchildren, sizeof(*mon->children));
	child_init(&mon->children[0], mon, CHILD_KEY, 1);
	child_init(&mon->children[1], mon, CHILD_CTL, 1);
	for (i = 0; i < n; i++)
		child_init(&mon->children[2 + i], mon, CHILD_NET, i + 1);
	if (p.enforce)
		fence = &mon->children[2 + n];
	enforce_init(mon, fence);
	mon_begin_turn(mon);
	return fence != NULL ? boot_start_child(fence, err, errlen) : CL_OK;
}

static int
boot_start_children(struct monitor *mon, char *err, size_t errlen)
{
	struct child *c;
	size_t i;
	int r;

	for (i = 0; i < mon->nchildren; i++) {
		c = &mon->children[i];
		if ((c->kind == CHILD_KEY && !mon->has_tls) ||
		    c->kind == CHILD_FENCE)
			continue;
		if ((r = boot_start_child(c, err, errlen)) != CL_OK)
			return r;
	}
	mon_end_turn(mon);
	return CL_OK;
}

static int
boot_confine(char *err, size_t errlen)
{
	struct self_report rep;
	char text[SELF_REPORT_MAX];
	int r;

	memset(&rep, 0, sizeof(rep));
	if ((r = self_confine_monitor(SELF_MONITOR_HUB, &rep)) != CL_OK) {
		snprintf(err, errlen, "cannot confine myself: %s: %s",
		    rep.step != NULL ? rep.step : "?", cl_strerror(r));
		return r;
	}
	log_info("confined", "%s", self_format_report(&rep, text));
	return CL_OK;
}

static void
boot_save_pid(struct monitor *mon)
{
	char path[MAX_PATH_LEN + 32], text[32];
	int n;

	snprintf(path, sizeof(path), "%s/cloopd.pid", mon->conf.runtime_dir);
	n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (util_save_file(path, 0644, text, (size_t)n) != CL_OK)
		log_warn("pid-file", "file=%s reason=%s", path,
		    log_q(strerror(errno)));
}

int
boot_start(struct monitor *mon, char *err, size_t errlen)
{
	int r;

	mon->started_at = util_now_ms();
	mon->probed_at = mon->started_at;	/* the fleet gets a beat */
	mon->swept_at = mon->started_at - SWEEP_MS + 10000;
	mon_init_turn(mon);
	agents_init(&mon->agents);
	handles_init(&mon->handles);
	devask_init(mon);
	auditlog_init(mon);
	revoke_init(mon);
	refresh_init(mon);
	LIST_INIT(&mon->clients);
	TAILQ_INIT(&mon->jobs);
	if ((r = setup_make_dirs(mon, err, errlen)) != CL_OK ||
	    (r = boot_load(mon, err, errlen)) != CL_OK ||
	    (r = listen_open(mon, err, errlen)) != CL_OK ||
	    (mon->has_tls &&
	    (r = setup_check_keys(mon, err, errlen)) != CL_OK) ||
	    (r = setup_open_control(mon, err, errlen)) != CL_OK)
		return r;
	if (mon->conf.listen_status != NULL)
		log_info("status-page", "address=%s reason=\"not served by "
		    "this build\"", mon->conf.listen_status);
	boot_save_pid(mon);
	if ((mon->base = event_base_new()) == NULL) {
		snprintf(err, errlen, "no event base");
		return CL_NOMEM;
	}
	boot_add_events(mon);
	if ((r = boot_make_children(mon, err, errlen)) != CL_OK ||
	    (r = boot_confine(err, errlen)) != CL_OK)
		return r;
	return boot_start_children(mon, err, errlen);
}

int
boot_serve(struct monitor *mon)
{
	int busy = 0;

	while (!mon->done) {
		if (event_base_loop(mon->base, EVLOOP_ONCE |
		    (busy ? EVLOOP_NONBLOCK : 0)) == -1)
			fatal("loop", "reason=%s", log_q(strerror(errno)));
		busy = jobs_run_busy(mon);
		mon_end_turn(mon);
	}
	log_info("stopped", "status=%d", mon->exit_status);
	return mon->exit_status;
}

static void
boot_on_stop_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct monitor *mon = arg;

	(void)fd;
	(void)what;
	log_warn("stop", "reason=\"children did not end in time\"");
	mon_stop(mon, mon->exit_status);
}

void
boot_stop(struct monitor *mon)
{
	size_t i;

	if (mon->phase == MON_STOPPING)
		return;
	log_info("stop", "agents=%zu running=%zu", mon->agents.nsessions,
	    mon->handles.nrunning);
	(void)util_notify("STOPPING=1");
	mon->phase = MON_STOPPING;
	for (i = 0; i < mon->nchildren; i++)
		if (mon->children[i].kind == CHILD_NET)
			child_stop(&mon->children[i]);
	mon->stop_timer = boot_add_timer(mon, boot_on_stop_timeout,
	    STOP_GRACE_MS);
	boot_check(mon);
}

void
boot_check(struct monitor *mon)
{
	struct child *c;
	size_t i, nserving = 0, nrunning = 0;

	for (i = 0; i < mon->nchildren; i++) {
		c = &mon->children[i];
		if (c->state == MS_SERVING ||
		    (c->kind == CHILD_KEY && !mon->has_tls))
			nserving++;
		if (c->kind == CHILD_NET && c->pid != 0)
			nrunning++;
	}
	if (mon->phase == MON_STOPPING && nrunning == 0)
		mon_stop(mon, mon->exit_status);
	if (mon->phase != MON_BOOTING || nserving != mon->nchildren)
		return;
	mon->phase = MON_SERVING;
	log_info("ready", "workers=%u agents=%zu enforce=%s",
	    config_find_workers(&mon->conf), mon->agents.nagents,
	    mon->enforce.child != NULL ? "nft" : "no");
	(void)util_notify("READY=1");
	if (mon->detached_fd != -1) {
		(void)util_write_all(mon->detached_fd, "", 1);
		close(mon->detached_fd);
		mon->detached_fd = -1;
	}
}

static void
boot_free_event(struct event **ev)
{
	if (*ev != NULL)
		event_free(*ev);
	*ev = NULL;
}

void
boot_clear(struct monitor *mon)
{
	char path[MAX_PATH_LEN + 32];
	size_t i;

	for (i = 0; i < mon->nchildren; i++)
		child_clear(&mon->children[i]);
	free(mon->children);
	mon->children = NULL;
	mon->nchildren = 0;
	setup_close(mon);
	clients_clear(mon);
	devask_clear(mon);
	revoke_clear(mon);
	refresh_clear(mon);
	lease_clear(mon);
	auditlog_clear(mon);
	handles_clear(&mon->handles);
	agents_clear(&mon->agents);
	mon_drop_turn(mon);
	store_close(mon->store);
	secret_clear(&mon->mac_key);
	boot_free_event(&mon->tick);
	boot_free_event(&mon->watchdog);
	boot_free_event(&mon->stop_timer);
	for (i = 0; i < sizeof(mon->signals) / sizeof(mon->signals[0]); i++)
		boot_free_event(&mon->signals[i]);
	if (mon->base != NULL) {
		event_base_free(mon->base);
		snprintf(path, sizeof(path), "%s/cloopd.pid",
		    mon->conf.runtime_dir);
		(void)unlink(path);
	}
	config_clear(&mon->conf);
}
