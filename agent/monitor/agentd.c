/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-agentd, the device monitor: root, or one unprivileged user.  It
 * starts and watches agentd-fetch, which talks to the hub, and has one
 * cloop-shim for each workload, which outlives it; it opens files and passes
 * descriptors.  It has no network socket and parses no byte of the hub's: the
 * catalogue in common/msg/msgcat.h is all that reaches it.
 *
 * SIGTERM hands the workloads over: the hub is told "reconnect", the shims
 * go on and write their spools, and the next agent on this StateDirectory
 * adopts them.  Only bye{reconnect:false} ends them.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include <event2/event.h>

#include "agentd.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "sandbox/box/probe.h"
#include "sandbox/self/self.h"
#include "fetchctl.h"
#include "fetchmsg.h"
#include "leasing.h"
#include "workloads.h"

#define AGENTD_STOP_MS 25000	/* gone within this, whatever hangs */
#define AGENTD_NSIGNALS 5
#define AGENTD_SWEEP_AGE_S 60	/* a neighbour may just be making one */

struct agentd_events {
	struct event *signals[AGENTD_NSIGNALS];
	struct event *watchdog;
	struct event *stop;
};

static void
agentd_init_log(const struct agent_conf *c, const struct agent_flags *f)
{
	int level = c->log_level;

	if (f->quiet)
		level = LOGL_ERROR;
	else if (f->ndebug > 1)
		level = LOGL_DEBUG;
	log_init("cloop-agentd", (enum log_level)level,
	    (enum log_format)c->log_format);
}

/* ------------------------------------------------------------------ ending */

/* The parts report: is there nothing more to wait for? */
static void
agentd_check_stopped(struct agentd *a)
{
	if (!a->stopping || !fetchctl_is_stopped(a->fetch) ||
	    (a->is_killing && workloads_get_count(a->workloads) > 0))
		return;
	event_base_loopbreak(a->base);
}

/*
 * End the loop: how the process exits once its children are gone.  Workloads
 * are ended first when `kill_workloads` is set, else they stay with their
 * shims and are adopted at the next start.
 */
static void
agentd_stop(struct agentd *a, int exit_status, int kill_workloads)
{
	struct timeval tv = { .tv_sec = AGENTD_STOP_MS / 1000 };

	if (a->stopping)
		return;
	log_info("stop", "status=%d workloads=%s", exit_status,
	    kill_workloads ? "ended" : "handed over");
	a->stopping = 1;
	a->exit_status = exit_status;
	a->is_killing = kill_workloads;
	(void)util_notify("STOPPING=1");
	event_base_loopexit(a->base, &tv);
	if (kill_workloads)
		workloads_stop_all(a->workloads, "the hub ended this agent");
	fetchctl_stop(a->fetch);
	agentd_check_stopped(a);
}

/* ----------------------------------------------------------------- signals */

static void
agentd_reap(struct agentd *a)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!fetchctl_on_exit(a->fetch, pid, status))
			(void)workloads_on_exit(a->workloads, pid, status);
}

/*
 * SIGHUP: what is marked CONF_RELOAD takes effect, a bad file changes
 * nothing.  The labels are read at the next hello or inventory.
 */
static void
agentd_reload(struct agentd *a)
{
	char err[AGENT_CONF_ERR_MAX];
	struct agent_conf next;
	struct conf_list labels;
	size_t i;

	if (agent_conf_reload(a->argc, a->argv, &next, err) != 0) {
		log_error("reload", "result=failed reason=\"%s\"", err);
		agent_conf_clear(&next);
		return;
	}
	for (i = 0; agent_conf_rows[i].keyword != NULL; i++)
		if (!(agent_conf_rows[i].flags & CONF_RELOAD) &&
		    conf_is_changed(&agent_conf_rows[i], &a->conf, &next))
			log_warn("reload", "keyword=%s reason=\"takes effect "
			    "after a restart\"", agent_conf_rows[i].keyword);
	labels = a->conf.labels;
	a->conf.labels = next.labels;
	next.labels = labels;
	a->conf.log_level = next.log_level;
	a->conf.log_format = next.log_format;
	agent_conf_clear(&next);
	agentd_init_log(&a->conf, &a->flags);
	log_info("reload", "result=ok");
}

static void
agentd_log_state(struct agentd *a)
{
	log_info("state", "pid=%ld enrolled=%d stopping=%d workloads=%u "
	    "max=%u", (long)getpid(), a->enrolled, a->stopping,
	    workloads_get_count(a->workloads), a->max_concurrent);
	fetchctl_log_state(a->fetch);
	workloads_log_state(a->workloads);
}

static void
agentd_on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct agentd *a = arg;

	(void)what;
	switch (sig) {
	case SIGTERM:
	case SIGINT:
		agentd_stop(a, 0, 0);
		break;
	case SIGHUP:
		agentd_reload(a);
		break;
	case SIGUSR1:
		agentd_log_state(a);
		break;
	case SIGCHLD:
		agentd_reap(a);
		break;
	}
}

static void
agentd_on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	(void)util_notify("WATCHDOG=1");
}

static int
agentd_add_events(struct agentd *a, struct agentd_events *ev)
{
	static const int numbers[AGENTD_NSIGNALS] = {
		SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD
	};
	const char *text = getenv("WATCHDOG_USEC"), *why;
	struct timeval tv;
	long long usec;
	size_t i;

	for (i = 0; i < AGENTD_NSIGNALS; i++) {
		ev->signals[i] = evsignal_new(a->base, numbers[i],
		    agentd_on_signal, a);
		if (ev->signals[i] == NULL ||
		    event_add(ev->signals[i], NULL) == -1)
			return CL_NOMEM;
	}
	if (text == NULL)
		return CL_OK;
	usec = strtonum(text, 2, 86400LL * 1000000, &why);
	if (why != NULL)
		return CL_OK;
	tv.tv_sec = usec / 2 / 1000000;
	tv.tv_usec = usec / 2 % 1000000;
	ev->watchdog = event_new(a->base, -1, EV_PERSIST, agentd_on_watchdog,
	    a);
	if (ev->watchdog == NULL || event_add(ev->watchdog, &tv) == -1)
		return CL_NOMEM;
	return CL_OK;
}

static void
agentd_del_events(struct agentd_events *ev)
{
	size_t i;

	for (i = 0; i < AGENTD_NSIGNALS; i++)
		if (ev->signals[i] != NULL)
			event_free(ev->signals[i]);
	if (ev->watchdog != NULL)
		event_free(ev->watchdog);
}

/* ----------------------------------------------------- who is told of what */

static const struct fetchctl_row agentd_fetch_rows[] = {
	{ MSG_FETCH_READY, fetchmsg_on_ready },
	{ MSG_FETCH_STOPPED, fetchmsg_on_stopped },
	{ MSG_RESOLVE, fetchmsg_on_resolve },
	{ MSG_SESSION, fetchmsg_on_session },
	{ MSG_ENROLLED, fetchmsg_on_enrolled },
	{ MSG_DEV_CAPS, fetchmsg_on_caps },
	{ MSG_DEV_START, fetchmsg_on_start },
	{ MSG_BRANCH_OPEN, fetchmsg_on_branch_open },
	{ MSG_BRANCH_END, fetchmsg_on_branch_end },
	{ MSG_BRANCH_DROP, fetchmsg_on_branch_drop },
	{ MSG_DEV_SENT, fetchmsg_on_sent },
	{ MSG_DEV_ACKED, fetchmsg_on_acked },
	{ MSG_DEV_TOLD, fetchmsg_on_told },
	{ MSG_DEV_DONE, fetchmsg_on_done },
	{ MSG_DEV_STOP, fetchmsg_on_refused },
	{ MSG_DEV_SIGNAL, fetchmsg_on_signal },
	{ MSG_DEV_REVOKE, fetchmsg_on_revoke },
	{ MSG_DEV_REFRESH, fetchmsg_on_refresh },
	{ 0, NULL }
};

static void
agentd_on_link(struct agentd *a, int up)
{
	workloads_set_link(a->workloads, up);
}

static const struct fetchctl_ops agentd_fetch_ops = {
	.rows = agentd_fetch_rows,
	.on_link = agentd_on_link,
	.on_end = incoming_drop_all,
	.on_stopped = agentd_check_stopped,
	.stop = agentd_stop,
};

static const struct workloads_ops agentd_workloads_ops = {
	.on_fewer = agentd_check_stopped,
	.on_end = leasing_on_end,
	.on_forced = leasing_on_forced,
	.on_redacted = leasing_on_redacted,
	.on_free = leasing_clear,
};

/* -------------------------------------------------------------------- main */

/* -t and -T: the exit status, or -1 when there is more to do. */
static int
agentd_check_only(struct agentd *a)
{
	char *text;

	if (!a->flags.dump && !a->flags.check)
		return -1;
	if (startup_check_conf(a) != 0)
		return 1;
	if (a->flags.dump) {
		if (agent_conf_format(&a->conf, &text) != 0)
			fatal("config", "reason=\"out of memory\"");
		fputs(text, stdout);
		free(text);
	}
	return 0;
}

/* Confine ourselves; find what this machine lets us do for workloads. */
static void
agentd_confine(struct agentd *a)
{
	char text[SELF_REPORT_MAX], found[PROBE_TEXT_MAX];
	struct self_report rep;
	struct probe probe;
	int r;

	if ((r = shims_make_filters(a)) != 0)
		fatal("confine", "step=filters reason=\"%s\"",
		    cl_strerror(r));
	if (a->conf.shim_socket == NULL) {
		probe_load(&probe);
		log_info("confinement", "%s", probe_format(&probe, found));
	} else if ((r = shims_open(a)) != 0)
		fatal("start", "ShimSocket=%s reason=\"%s\" remedy=\"%s\"",
		    log_q(a->conf.shim_socket), cl_strerror(r),
		    r == CL_SYSTEM ? "systemctl start cloop-shimd.socket" :
		    "journalctl -u cloop-shimd says more");
	if ((r = self_confine_monitor(a->conf.shim_socket == NULL ?
	    SELF_MONITOR_DEVICE_SHIMS : SELF_MONITOR_DEVICE, &rep)) != 0)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_debug("confined", "%s", self_format_report(&rep, text));
}

/* Every shim of an earlier agent is accounted for: now the hub may ask. */
static void
agentd_on_adopted(struct agentd *a)
{
	if (workloads_get_count(a->workloads) > 0)
		log_info("adopted", "workloads=%u",
		    workloads_get_count(a->workloads));
	if (!a->stopping)
		(void)fetchctl_start(a->fetch);
}

static void
agentd_on_begin(evutil_socket_t fd, short what, void *arg)
{
	struct agentd *a = arg;

	(void)fd;
	(void)what;
	/* Those of living workloads are locked by their shims, those of dead
	 * ones are wiped as they are found. */
	workloads_sweep(a->workloads, AGENTD_SWEEP_AGE_S);
	workloads_adopt(a->workloads, agentd_on_adopted);
}

static int
agentd_serve(struct agentd *a)
{
	static const struct timeval now = { 0, 0 };
	struct agentd_events ev;
	const char *what;

	memset(&ev, 0, sizeof(ev));
	a->exit_status = 1;
	if ((a->base = event_base_new()) == NULL ||
	    (a->fetch = fetchctl_new(a, &agentd_fetch_ops)) == NULL)
		fatal("start", "reason=\"no event loop\"");
	if (workloads_new(a, &agentd_workloads_ops, &a->workloads,
	    &what) != 0) {
		log_error("start", "result=failed what=directory value=%s "
		    "reason=\"%s\"", what, strerror(errno));
	} else if (agentd_add_events(a, &ev) == 0 &&
	    event_base_once(a->base, -1, EV_TIMEOUT, agentd_on_begin, a,
	    &now) == 0) {
		startup_log_banner(a);
		event_base_dispatch(a->base);
	}
	agentd_del_events(&ev);
	fetchctl_free(a->fetch);
	workloads_free(a->workloads);
	shims_close(a);
	event_base_free(a->base);
	log_info("exit", "status=%d", a->exit_status);
	return a->exit_status;
}

/* Away from the terminal, unless -d; stderr stays the log. */
static void
agentd_detach(const struct agent_flags *f)
{
	if (f->ndebug == 0 && daemon(0, 1) == -1)
		fatal("detach", "reason=\"%s\"", strerror(errno));
}

int
main(int argc, char **argv)
{
	static struct agentd a;
	char err[AGENT_CONF_ERR_MAX];
	int r, status;

	umask(077);
	signal(SIGPIPE, SIG_IGN);
	log_init("cloop-agentd", LOGL_INFO, LOGF_TEXT);
	a.argc = argc;
	a.argv = argv;
	startup_init(&a);
	if ((r = agent_conf_load(argc, argv, &a.conf, &a.flags, err)) != 0) {
		fprintf(stderr, "cloop-agentd: %s\n", err);
		return r == -1 ? 2 : 1;
	}
	agentd_init_log(&a.conf, &a.flags);
	if ((status = agentd_check_only(&a)) != -1) {
		startup_clear(&a);
		return status;
	}
	if (startup_load(&a) != 0)
		return 1;
	agentd_detach(&a.flags);
	if (startup_prepare(&a) != 0)
		return 1;
	agentd_confine(&a);
	status = agentd_serve(&a);
	startup_clear(&a);
	return status;
}
