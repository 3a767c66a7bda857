/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Handles in memory: every open one, and of the closed ones the newest of
 * each agent; older ones are in the store only.  And the operators who wait
 * for something to happen to a handle.
 */
#ifndef PRIV_HANDLES_H
#define PRIV_HANDLES_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stddef.h>
#include <stdint.h>

#include "store/db/store.h"

struct agent;
struct agents;
struct work;

enum waiter_kind {
	WAIT_STARTED = 1,	/* run --detach: until started */
	WAIT_RUN,		/* run, attached: started, then the end */
	WAIT_END		/* wait, logs -f: the end */
};

struct waiter {
	TAILQ_ENTRY(waiter) entry;
	uint64_t id;		/* client << 32 | request */
	enum waiter_kind kind;
};

/* Closed handles kept in memory per agent; all of them together. */
#define HANDLES_CLOSED_PER_AGENT 64
#define HANDLES_CLOSED_TOTAL 16384
/* Seals under way: two descriptors each. */
#define HANDLES_SEALING 4

struct handle {
	RB_ENTRY(handle) by_number;
	RB_ENTRY(handle) by_id;
	TAILQ_ENTRY(handle) of_agent;
	TAILQ_ENTRY(handle) of_seals;
	struct store_handle row;	/* closed_at set: closed */
	struct agent *agent;
	uint64_t session;	/* the one that has its files open; 0 */
	int adopted;		/* came from the store at start-up */
	int unsaved;		/* the store does not have the newest state */
	char *abandoned;	/* why it was given up; NULL: it was not */
	int has_end_row;	/* provision_end was audited */
	int is_sealing;		/* in the list of seals (logseal.c) */
	uint64_t sealer;	/* generation of who was asked; 0: nobody */
	int64_t seal_until;	/* monotonic ms: no answer counts later */
	uint64_t used_max;	/* bytes its files may take; 0: not known */
	int64_t begun_at;	/* monotonic ms of the dispatch */
	struct work *work;	/* what goes and comes; owned; NULL: nothing */
	TAILQ_HEAD(, waiter) waiters;
};
TAILQ_HEAD(handle_list, handle);
RB_HEAD(handle_number_tree, handle);
RB_HEAD(handle_id_tree, handle);

struct handles {
	struct handle_number_tree numbers;
	struct handle_id_tree ids;
	uint64_t last_number;	/* highest ever seen: later ones are lies */
	size_t nhandles, nclosed, nrunning;
	uint64_t pinned;	/* bytes of returned work held */
	struct handle_list seals;	/* ended, not sealed */
	size_t nsealing;	/* of them under way */
	uint64_t looked;	/* last number whose files were looked at */
	int64_t released_at;	/* monotonic ms: last look at what is held */
};

void handles_init(struct handles *t);
void handles_clear(struct handles *t);
/* Load all open handles; call once, after agents_load().  CL_DB. */
int handles_load(struct handles *t, struct agents *a, struct store *s);

/* Takes the row's strings.  NULL without memory (row is cleared). */
struct handle *handles_add(struct handles *t, struct agent *a,
    struct store_handle *row);
/* Remove and free; waiters must be gone. */
void handles_del(struct handles *t, struct handle *h);
struct handle *handles_find(struct handles *t, uint64_t number);
struct handle *handles_find_id(struct handles *t, const char *id);
/* The lowest number from this one on. */
struct handle *handles_find_from(struct handles *t, uint64_t number);
/* Out of the list of seals. */
void handles_end_seal(struct handles *t, struct handle *h);
struct handle *handles_next(struct handles *t, const struct handle *h);

/* Count it as closed; forgets the agent's oldest closed ones above the
 * bounds, but never h itself nor one with waiters. */
void handles_close(struct handles *t, struct handle *h);
int handle_is_closed(const struct handle *h);

/* CL_NOMEM */
int handle_add_waiter(struct handle *h, uint64_t id, enum waiter_kind kind);
struct waiter *handle_find_waiter(struct handle *h, uint64_t id);
void handle_del_waiter(struct handle *h, struct waiter *w);
/* Replace an owned string of a row; keeps the old one without memory. */
void handle_set_text(char **dst, const char *text);

#endif
