/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's handlers, one per catalogue row it receives (monitor.c has
 * the table).  CL_OK, or an error: the message broke a rule and its sender
 * ends.  A handler checks meaning from the monitor's own records.
 */
#ifndef PRIV_ANSWERS_H
#define PRIV_ANSWERS_H

#include "common/msg/msgcat.h"
#include "monitor.h"

/*
 * The handlers that get a decoded, checked body: row and function.  A
 * function may take what v owns and leave NULL.
 */
#define MON_HANDLERS(X)                                                        \
	X(NET_READY, answer_net_ready)                                         \
	X(NET_STOPPED, answer_net_stopped)                                     \
	X(AUTH, answer_auth)                                                   \
	X(HELLO, answer_hello)                                                 \
	X(SESSION_UP, answer_session_up)                                       \
	X(SESSION_DOWN, answer_session_down)                                   \
	X(SESSION_SEEN, answer_session_seen)                                   \
	X(SESSION_ECHO, answer_session_echo)                                   \
	X(CAPS, answer_caps)                                                   \
	X(ORIGIN_REFUSED, answer_origin_refused)                               \
	X(FOREIGN, answer_foreign)                                             \
	X(WHO, answer_who)                                                     \
	X(PENALTY, answer_penalty)                                             \
	X(START_ANS, answer_start_ans)                                         \
	X(SIGNAL_ANS, devask_answer)                                           \
	X(INVENTORY_ANS, devask_answer)                                        \
	X(REVOKE_ANS, revoke_answer)                                           \
	X(REFRESH_ANS, refresh_answer)                                         \
	X(HANDLE_STATUS, answer_handle_status)                                 \
	X(HANDLE_PROGRESS, answer_handle_progress)                             \
	X(HANDLE_FILES, answer_handle_files)                                   \
	X(HANDLE_LOST, answer_handle_lost)                                     \
	X(HANDLE_SEALED, answer_handle_sealed)                                 \
	X(RESULT_TAKE, answer_result_take)                                     \
	X(RESULT_END, answer_result_end)                                       \
	X(RESULT_FAILED, answer_result_failed)                                 \
	X(PROJECT, answer_project)                                             \
	X(KEY_READY, answer_key_ready)                                         \
	X(FENCE_READY, answer_fence_ready)                                     \
	X(FENCE_ADD_ANS, answer_fence_add)                                     \
	X(CTL_READY, answer_ctl_ready)                                         \
	X(CTL_CLIENT, answer_ctl_client)                                       \
	X(CTL_GONE, answer_ctl_gone)                                           \
	X(CTL_PACE_ANS, answer_ctl_pace)                                       \
	X(CTL_HELLO, answer_ctl_hello)

#define X(name, fn)                                                            \
	int fn(struct monitor *mon, struct child *c, struct imsg *m,           \
	    msg_of_##name *v);
MON_HANDLERS(X)
#undef X

/*
 * The requests of operators: row and function.  Whoever asks may; a body
 * that does not decode is the operator's fault, is said to it and comes no
 * further.  Each sends exactly one end of an answer to m->id, now or later.
 */
#define CTL_HANDLERS(X)                                                        \
	X(CTL_STATUS, answer_ctl_status)                                       \
	X(CTL_AGENTS, answer_ctl_agents)                                       \
	X(CTL_RUN, answer_ctl_run)                                             \
	X(CTL_PS, answer_ctl_ps)                                               \
	X(CTL_SHOW, answer_ctl_show)                                           \
	X(CTL_WAIT, answer_ctl_wait)                                           \
	X(CTL_LOGS, answer_ctl_logs)                                           \
	X(CTL_SIGNAL, answer_ctl_signal)                                       \
	X(CTL_INVENTORY, answer_ctl_inventory)                                 \
	X(CTL_AUDIT, answer_ctl_audit)                                         \
	X(CTL_VERIFY, answer_ctl_verify)                                       \
	X(CTL_RELOAD, answer_ctl_reload)                                       \
	X(CTL_MINT, answer_ctl_mint)                                           \
	X(CTL_ENROLLMENTS, answer_ctl_enrollments)                             \
	X(CTL_REVOKE, answer_ctl_revoke)                                       \
	X(CTL_QUIT, answer_ctl_quit)                                           \
	X(CTL_SECRET_PUT, answer_ctl_secret_put)                               \
	X(CTL_SECRETS, answer_ctl_secrets)                                     \
	X(CTL_SECRET_RM, answer_ctl_secret_rm)                                 \
	X(CTL_GRANT_ADD, answer_ctl_grant_add)                                 \
	X(CTL_GRANTS, answer_ctl_grants)                                       \
	X(CTL_GRANT_RM, answer_ctl_grant_rm)                                   \
	X(CTL_LEASES, answer_ctl_leases)                                       \
	X(CTL_LEASE_REVOKE, answer_ctl_lease_revoke)                           \
	X(CTL_LEASE_REFRESH, answer_ctl_lease_refresh)                         \
	X(CTL_CORDON, answer_ctl_cordon)                                       \
	X(CTL_ABANDON, answer_ctl_abandon)                                     \
	X(CTL_BAN, answer_ctl_ban)                                             \
	X(CTL_UNBAN, answer_ctl_unban)                                         \
	X(CTL_BANS, answer_ctl_bans)                                           \
	X(CTL_DELETE, answer_ctl_delete)                                       \
	X(CTL_RESULT, answer_ctl_result)                                       \
	X(CTL_COLLECTED, answer_ctl_collected)                                 \
	X(CTL_BRANCH, answer_ctl_branch)

#define X(name, fn)                                                            \
	void fn(struct monitor *mon, struct ctl_client *cl, struct imsg *m,    \
	    msg_of_##name *v);
CTL_HANDLERS(X)
#undef X

/* The session a worker speaks of: its own, else NULL. */
struct session *answer_find_session(struct monitor *mon,
    const struct child *c, uint64_t number);

/*
 * The handle a worker speaks of, in a session of its own.  CL_OK with *hp
 * NULL: it was forgotten meanwhile.  CL_FORMAT: it cannot have it.
 */
int answer_find_session_handle(struct monitor *mon, const struct child *c,
    uint64_t session, uint64_t number, struct handle **hp);

/*
 * The operator behind a request.  NULL: the request is a violation of
 * cloopd-ctl's (unknown client, role not checked).
 */
struct ctl_client *answer_ctl_begin(struct monitor *mon,
    const struct imsg *m);

#endif
