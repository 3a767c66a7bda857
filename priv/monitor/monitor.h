/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor: its state, its turns, and the way messages take through it.
 *
 * One turn = everything one pass of the event loop brought.  What handlers
 * send is held until the turn's store writes are committed, so that nothing
 * is acknowledged that a power cut could take back; when the commit fails,
 * what was to be sent only then is dropped, and the functions that waited for
 * it put the tables right and say so.
 */
#ifndef PRIV_MONITOR_H
#define PRIV_MONITOR_H

#include <stdint.h>

#include "common/base/pin.h"
#include "common/base/secret.h"
#include "common/msg/buf.h"
#include "agents.h"
#include "auditlog.h"
#include "child.h"
#include "clients.h"
#include "config.h"
#include "devask.h"
#include "enforce.h"
#include "handles.h"
#include "lease.h"
#include "penalty.h"
#include "refresh.h"
#include "revoke.h"

struct event_base;
struct imsg;
union msg_any;
struct listener;
struct mon_out;
struct mon_after;
struct store;

enum mon_phase { MON_BOOTING, MON_SERVING, MON_STOPPING };

struct monitor {
	struct event_base *base;
	enum mon_phase phase;
	int exit_status;
	int done;		/* leave the loop */
	unsigned int ndebug;	/* -d given */
	int quiet;		/* -q */
	int64_t started_at;	/* monotonic ms */
	struct config_args args;
	struct hub_conf conf;
	struct store *store;
	struct secret mac_key;
	char pin[PIN_TEXT_LEN + 1];	/* "" without TLS */
	int has_tls;
	/* children */
	struct child *children;	/* key, ctl, net 1..n, fence */
	size_t nchildren;
	uint64_t last_generation;
	struct listener *listeners;
	size_t nlisteners;
	int ctl_fd;		/* listening control socket */
	/* tables */
	struct agents agents;
	struct handles handles;
	struct devasks asks;
	struct auditlog auditlog;
	struct leases leases;
	struct revokes revokes;
	struct enforce enforce;
	struct penalties penalties;
	struct refreshes refreshes;
	struct ctl_client_list clients;
	struct ctl_job_list jobs;
	/* the turn */
	int durable;		/* mon_send: only if the commit succeeds */
	struct mon_out *out_head, **out_tailp;
	struct mon_after *after_head, **after_tailp;
	/* timers and signals */
	struct event *tick, *watchdog, *stop_timer;
	struct event *signals[5];
	int64_t ticked_at, swept_at, probed_at;
	char last_error[256];
	int64_t last_error_at;	/* wall ns */
	int detached_fd;	/* told when ready; -1 */
};

/* ok: the turn's commit succeeded. */
typedef void mon_after_fn(struct monitor *, uint64_t id, uint64_t aux,
    int ok);

/* 1: the monitor handles messages of this type. */
int mon_has_handler(uint32_t type);
/* Check and handle one message; kills the child for a violation. */
void mon_on_message(struct child *c, struct imsg *m);
/* The same for one that its channel has checked and decoded. */
void mon_on_body(struct child *c, struct imsg *m, union msg_any *v);
/* Log, kill, and the rest follows from its end.  what: a row's name. */
void mon_punish(struct child *c, const char *what, const char *why);

void mon_init_turn(struct monitor *mon);
void mon_begin_turn(struct monitor *mon);
void mon_end_turn(struct monitor *mon);
/*
 * Hold a message until the end of the turn.  Takes body (cleared) and fd.
 * A child that is down gets nothing; memory trouble kills it.
 */
void mon_send(struct child *c, uint32_t type, uint64_t id, struct buf *body,
    int fd);
/* The same with the struct that the row names; fd is taken. */
void mon_send_body(struct child *c, uint32_t type, uint64_t id,
    const void *v, int fd);
#define MON_SEND(c, name, id, v, fd)                                           \
	mon_send_body(c, MSG_##name, id, MSG_BODY(name, v), fd)
/* Run fn once the turn is committed, or is known to have failed. */
void mon_add_after(struct monitor *mon, mon_after_fn *fn, uint64_t id,
    uint64_t aux);
/* Free what a last, unfinished turn held. */
void mon_drop_turn(struct monitor *mon);

/* Called by child.c. */
void mon_on_ready(struct child *c);
void mon_on_down(struct child *c, int by_signal);

struct child *mon_find_child(struct monitor *mon, uint64_t generation);
struct child *mon_get_ctl(struct monitor *mon);
/* Remember for `status`, and log. */
void mon_set_error(struct monitor *mon, const char *text);
/* One page of state to the log (SIGUSR1). */
void mon_dump(struct monitor *mon);
/* Leave the event loop with this exit status. */
void mon_stop(struct monitor *mon, int exit_status);

#endif
