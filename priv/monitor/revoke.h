/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Taking leases back: the log says pending before the frame leaves, and what
 * a device did not confirm is owed to it until it does.
 */
#ifndef PRIV_REVOKE_H
#define PRIV_REVOKE_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

struct agent;
struct child;
struct imsg;
struct monitor;
struct msg_revoke_ans;
struct session;
struct store_lease;

#define REVOKE_LOG_MAX 512	/* rows; owed ones are never dropped */

struct revoke;
TAILQ_HEAD(revoke_list, revoke);
struct revoke_group;
TAILQ_HEAD(revoke_group_list, revoke_group);

struct revokes {
	struct revoke_list list;	/* in flight */
	struct revoke_group_list groups;
	uint64_t last_id, last_group;
	size_t n;
};

void revoke_init(struct monitor *mon);
void revoke_clear(struct monitor *mon);

/* Outcomes that one operator waits for.  0: nobody does. */
uint64_t revoke_new_group(struct monitor *mon, uint64_t ctl);
/* All were started: the answer ends when the last outcome is there and,
 * with a (may be NULL), when nothing runs on that agent any more. */
void revoke_end_group(struct monitor *mon, uint64_t group,
    const struct agent *a);

struct revoke_why {
	int action;		/* REVOKE_* */
	const char *reason;
	const char *actor;
	uint64_t group;
};
/*
 * Take a lease, or what one grant put into it, back: its authority ends
 * here and now, whatever the device answers.  A closed lease is asked for
 * all the same: the device may still hold it.
 */
void revoke_lease(struct monitor *mon, const struct store_lease *l,
    const char *grant_id, const struct revoke_why *why);
/* Every live lease an agent holds. */
void revoke_agent(struct monitor *mon, const struct agent *a,
    const struct revoke_why *why);
/* Every live lease under a grant (the grant's own row is the caller's). */
void revoke_grant(struct monitor *mon, const char *grant_id,
    const struct revoke_why *why);

/* The agent is back: what is owed goes out, oldest first, before anything
 * else. */
void revoke_replay(struct monitor *mon, struct session *s);
/* REVOKE_ANS.  CL_FORMAT: a violation. */
int revoke_answer(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_revoke_ans *v);
void revoke_end_session(struct monitor *mon, uint64_t session);
/* As devask_forget. */
void revoke_forget(struct monitor *mon, uint64_t ctl, uint64_t mask);
/* Each second: groups that wait for an agent to be empty. */
void revoke_on_tick(struct monitor *mon);

/* "pending", "revoked", "unreachable", "failed". */
const char *revoke_format_state(int state);

#endif
