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
	X(RESULT_TAKE, answer_result_take)                                     \
	X(RESULT_END, answer_result_end)                                       \
	X(RESULT_FAILED, answer_result_failed)                                 \
	X(PROJECT, answer_project)                                             \
	X(KEY_READY, answer_key_ready)                                         \
	X(FENCE_READY, answer_fence_ready)                                     \
	X(FENCE_ADD_ANS, answer_fence_add)

#define X(name, fn)                                                            \
	int fn(struct monitor *mon, struct child *c, struct imsg *m,           \
	    msg_of_##name *v);
MON_HANDLERS(X)
#undef X

/* answer_ctl.c, answer_ctl_list.c, answer_ctl_run.c, answer_ctl_admin.c */
mon_handler_fn answer_ctl_ready, answer_ctl_client, answer_ctl_gone,
    answer_ctl_pace, answer_ctl_hello, answer_ctl_status,
    answer_ctl_agents, answer_ctl_run, answer_ctl_ps, answer_ctl_show,
    answer_ctl_wait, answer_ctl_logs, answer_ctl_signal,
    answer_ctl_inventory, answer_ctl_audit, answer_ctl_verify,
    answer_ctl_reload, answer_ctl_mint, answer_ctl_enrollments,
    answer_ctl_revoke, answer_ctl_quit;
/* answer_ctl_ban.c */
mon_handler_fn answer_ctl_ban, answer_ctl_unban, answer_ctl_bans,
    answer_ctl_delete;
/* answer_secret.c, answer_lease.c */
mon_handler_fn answer_ctl_secret_put, answer_ctl_secrets,
    answer_ctl_secret_rm, answer_ctl_grant_add, answer_ctl_grants,
    answer_ctl_grant_rm, answer_ctl_leases, answer_ctl_lease_revoke,
    answer_ctl_lease_refresh, answer_ctl_cordon;
/* answer_work.c */
mon_handler_fn answer_ctl_result, answer_ctl_collected, answer_ctl_branch;
/* abandon.c */
mon_handler_fn answer_ctl_abandon;

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
/* A body that does not decode is the operator's fault: say so. */
int answer_ctl_malformed(struct monitor *mon, const struct imsg *m);
/* "uid:1000" for records; dst[32]. */
#define ACTOR_MAX 32
void answer_ctl_format_actor(const struct ctl_client *c,
    char dst[ACTOR_MAX]);

#endif
