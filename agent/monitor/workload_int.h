/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Inside of the workload table: for workloads.c, workload_*.c and leasing.c
 * only.
 */
#ifndef CLOOP_WORKLOAD_INT_H
#define CLOOP_WORKLOAD_INT_H

#include <sys/queue.h>
#include <sys/types.h>

#include <stdint.h>

#include "common/msg/chan.h"
#include "common/output/spool.h"
#include "sandbox/box/shim.h"
#include "handledir.h"
#include "vault.h"
#include "work.h"
#include "workloads.h"

struct event;
struct field_table;
struct spec_secret_file;

/*
 *	PREPARING	its tree is built	-> LAUNCHING, DEAD
 *	LAUNCHING	shim has the job	-> RUNNING, DEAD
 *	ADOPTING	a dead agent's		-> RUNNING, ENDED
 *	RUNNING		the command runs	-> RETURNING, ENDED,
 *						   DEAD (refused)
 *	RETURNING	its work is collected	-> ENDED, DEAD (refused)
 *	ENDED		the end is owed		-> DEAD (delivered)
 *	DEAD		freed at the end of the turn
 */
enum workload_state {
	WL_PREPARING, WL_LAUNCHING, WL_ADOPTING, WL_RUNNING, WL_RETURNING,
	WL_ENDED, WL_DEAD
};

/* A shim makes its adoption socket once it notices that we are gone. */
#define WORKLOAD_RETRY_MS 50

/* What cannot be told or done now is tried again after this; the state of
 * something that is over anyway not for ever. */
#define WORKLOAD_AGAIN_MS 1000
#define WORKLOAD_PATIENCE_MS 300000

/* Ends that were told and not confirmed: as many as a fetcher keeps. */
#define WORKLOADS_MAX_TOLD 16

/* Repeated starts of one handle that wait for the same answer. */
#define WORKLOAD_MAX_ASKS 8

struct workload {
	TAILQ_ENTRY(workload) entry;
	struct workloads *ws;
	enum workload_state state;
	uint64_t slot;			/* random, never reused */
	char handle_id[MAX_ID_LEN + 1];
	struct handledir dir;
	struct spool spool;		/* mapped: sent, acked, link_up */
	int has_spool;
	int wake_fd;			/* eventfd; the shim and the fetcher
					 * hold copies */
	struct chan chan;		/* to the shim */
	pid_t shim_pid;
	uint64_t shim_ticks;
	struct event *timer;		/* what it means: the state */
	int64_t adopt_until;		/* monotonic ms */
	int64_t pid;			/* of the command */
	uint64_t pid_ticks;
	int64_t started_at;		/* wall ns */
	struct shim_exit end;
	int is_told;			/* the hub was told the end: it takes no
					 * place any more */
	int is_refused;			/* forget silently once it ended */
	int is_killed;			/* by a revoke */
	int is_cancelled;		/* a lease went before it ran */
	int is_gone;			/* its shim; how it ended cannot be
					 * told yet */
	int64_t unsure_until;		/* 0, or when that is given up */
	const char *lost;		/* what is said of it then */
	int owes_announce;		/* the fetcher does not know it yet, */
	int owes_exit;			/* or what it gives back */
	struct holding *holding;	/* NULL: no lease, or given back */
	struct work *work;		/* NULL: nothing goes in or back */
	int nkills;			/* escalation steps taken */
	int pending_sig;		/* came before the start was decided */
	struct workload_ask asks[WORKLOAD_MAX_ASKS];
	size_t nasks;
};

TAILQ_HEAD(workload_list, workload);
TAILQ_HEAD(leasing_list, leasing);

struct workloads {
	struct agentd *a;
	const struct workloads_ops *ops;
	struct workload_list list;
	unsigned int n;
	int base_fd;			/* StateDirectory/handles */
	char *socket_dir;		/* RuntimeDirectory/shim */
	struct event *reap;		/* frees DEAD ones */
	void (*adopted)(struct agentd *);
	int is_unsure;			/* not all could be adopted yet, */
	int64_t unsure_until;		/* and when that is given up */
	struct event *again;
	int is_link_up;
	struct leasing_list orders;	/* about leases, under way */
	uint64_t next_redact;		/* request ids of SHIM_REDACT */
	struct tombstones tombstones;
	struct event *sweep;
};

/* workloads.c */
struct workload *workload_new(struct workloads *ws, const char *handle_id,
    uint64_t slot, enum workload_state state);
void workload_enter_state(struct workload *w, enum workload_state state,
    const char *why);
/* Take it out: files, channel, memory (later). */
void workload_forget(struct workload *w, const char *why);
/* Ended ones go, the oldest first, until there is a place below max and there
 * are descriptors; those the hub was told of, or any.  CL_LIMIT. */
int workloads_drop_ended(struct workloads *ws, unsigned int max, int any);
/* The command is over, or lost: tell the fetcher, or forget if refused. */
void workload_end(struct workload *w, const struct shim_exit *end);
void workload_set_timer(struct workload *w, int64_t ms);
/* The path of its adoption socket; CL_TOOBIG for sockaddr_un. */
int workload_format_socket(const struct workload *w, char *dst,
    size_t dstlen);
/* Go on without it: its files stay as they are. */
void workload_leave(struct workload *w);
/* 1 while its end may still be found out; then it counts as lost. */
int workload_is_patient(struct workload *w);
/* Make the eventfd. */
int workload_make_wake(struct workload *w);
/* What it was to give back is there, or will not be. */
void workload_on_returned(void *arg);

/* workload_tell.c */
/* Once more, in WORKLOAD_AGAIN_MS, of what could not be told or done. */
void workloads_set_again(struct workloads *ws);
/* It runs: the fetcher first, then all who asked for this start. */
void workload_tell_started(struct workload *w);
void workload_announce(struct workload *w);
/* The start came to nothing: for a session that learned of it by its offer,
 * in which nobody waits for an answer. */
void workload_send_failed(struct workload *w, const char *text);
/* DEV_START_ANS to one who asked for one that runs. */
void workload_send_started(struct workload *w,
    const struct workload_ask *ask);
/* How it ended, with what it gives back. */
void workload_send_exit(struct workload *w);

/* workload_shim.c */
int workload_shim_open(struct workload *w, int fd);
int workload_shim_launch(struct workload *w,
    const struct workload_start *st);
int workload_shim_signal(struct workload *w, int sig);
/* Its work is to be done now: say where, and whom to tell. */
void workload_place_work(struct workload *w);
/* A deadline of the launch or of an escalation has passed. */
void workload_shim_on_timer(struct workload *w);
/* TERM now, KILL when its leader ended or after the grace time, then the shim
 * itself. */
void workload_shim_terminate(struct workload *w);
/* Without a shim: by its record, else as lost.  It is killed if it is not
 * gone. */
void workload_shim_gone(struct workload *w);
/* The end of one whose end nobody saw. */
void workload_set_lost(const struct workload *w, struct shim_exit *end,
    const char *why);

/* workload_lease.c */
/* Before the shim exists: the record, then the files. */
int workload_lease_place(struct workload *w, const struct spec *spec);
/* The locks of its directories and the values to hide, to its shim. */
int workload_lease_send(struct workload *w, const struct spec *spec);
/* SHIM_REDACT with the contents of n files; answered when id is not 0. */
int workload_lease_send_values(struct workload *w, uint64_t id,
    const struct spec_secret_file *files, size_t n);
/* What an earlier agent noted; wiped at once when the start never ran.  An
 * error: it cannot be told now. */
int workload_lease_load(struct workload *w);
int workload_lease_wipe_record(int dir_fd, const char *name);
/* The workload is over, on any path: wipe and forget. */
void workload_lease_release(struct workload *w);
/* The answer to the fetcher, a table in a memfd. */
void workload_lease_answer(struct workloads *ws, uint32_t type,
    const struct workload_ask *ask, const struct field_table *t,
    const void *v);

/* workload_adopt.c */
void workload_adopt_on_timer(struct workload *w);
/* Once more the directories that could not be read. */
void workload_adopt_scan(struct workloads *ws);
/* One of the adopted ones is decided: tell `adopted` after the last. */
void workload_adopt_check(struct workloads *ws);

#endif
