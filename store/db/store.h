/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The hub store: enrollments, agents, executors, handles and the audit chain.
 * One process has it open at a time.  Strings in rows are owned by the row
 * and never NULL when they come from the store (NULL is written as ""); times
 * are wall-clock nanoseconds, UTIL_TIME_ZERO for "never".  Nothing in it is
 * usable as a credential.
 *
 * Errors: CL_DB with a text in store_error(); a conditional update that
 * found its condition false says CL_NOTFOUND, CL_EXISTS or CL_STATE.
 */
#ifndef CLOOP_STORE_H
#define CLOOP_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/field.h"

struct store;

/*
 * Open (or create) STATE_DIR/hub/cloop.db, migrate it and take its lock,
 * waiting at most wait_ms for another process.  On failure err has a full
 * sentence: CL_STATE in use, CL_VERSION written by a newer cloop, CL_DENIED
 * wrong owner or mode, CL_FORMAT not our database or damaged, CL_DB (full
 * disk, read-only), CL_SYSTEM.
 */
int store_open(const char *state_dir, int wait_ms, struct store **sp,
    char *err, size_t errlen);
void store_close(struct store *s);		/* an open turn is lost */
const char *store_error(const struct store *s);

/*
 * All writes of one turn of the event loop are one transaction: begin,
 * write, commit, and only then answer.  Begin costs nothing until the first
 * write.  Writes outside a turn are CL_STATE.  A write that fails with CL_DB
 * (disk full, read-only, I/O) loses the turn as a whole: everything written
 * in it is undone, later writes and the commit say CL_DB too.  All other
 * failures leave the turn as it was.
 */
int store_begin_turn(struct store *s);
int store_commit_turn(struct store *s);
void store_abort_turn(struct store *s);
/*
 * One request of a turn: what it wrote can be taken back without the rest.
 * begin and end around its handler; undo in between, as often as it likes.
 */
void store_begin_request(struct store *s);
void store_undo_request(struct store *s);
void store_end_request(struct store *s);
int store_is_dirty(const struct store *s);	/* commit would write */

struct store_labels {
	struct field_pair *v;	/* sorted by key */
	size_t n;
};

/* Copies; a key given before gets the new value.  CL_LIMIT, CL_NOMEM. */
int store_labels_add(struct store_labels *l, const char *key,
    const char *value);
void store_labels_clear(struct store_labels *l);

struct store_enrollment {
	char *id;
	char *name;
	char *secret_hash;
	char *workdir_root;
	struct store_labels labels;
	int64_t created_at;
	int64_t expires_at;
	char *created_by;
	int64_t redeemed_at;
	char *redeemed_agent_id;
	char *redeemed_peer;	/* address of the first user */
	int64_t revoked_at;
};

struct store_agent {
	char *agent_id;
	char *name;
	char *secret_hash;
	char *workdir_root;
	struct store_labels labels;	/* the ones that authorise */
	int64_t created_at;
	int64_t last_seen;
	int64_t revoked_at;
	char *enrollment_id;
	int64_t confirmed_at;	/* it showed that it keeps its credential */
};

struct store_ban {
	char *name;
	int64_t at;
	char *actor;
	char *reason;
};

/* One per agent; refreshed on every connect. */
struct store_executor {
	char *agent_id;
	int status;		/* AGENT_* of msgcat.h */
	int64_t status_at;
	char *reason;		/* of the last transition */
	char *agent_version;
	unsigned int agent_protocol;	/* the newest it speaks */
	unsigned int protocol;		/* the last negotiated */
	char *os;
	char *arch;
	uint8_t *caps;		/* struct caps as the monitor encodes it */
	size_t caps_len;
};

/* `number` is assigned by the store and never used again (AUTOINCREMENT). */
struct store_handle {
	uint64_t number;
	char *handle_id;
	char *agent_id;
	char *name;
	char *created_by;
	char *project_path;
	char *task_id;
	char *image;
	char *meta;		/* canonical JSON object */
	char *secrets;		/* "" unrecorded, "[]" none, or a list */
	int64_t dispatched_at;	/* hub clock */
	int state;		/* HS_* of msgcat.h */
	int64_t pid;
	int has_exit_code;
	int64_t exit_code;
	char *outcome;
	char *error;
	int64_t started_at;	/* device clock */
	int64_t finished_at;	/* device clock, or ours when we ended it */
	int64_t closed_at;	/* hub clock; set once */
	uint64_t received;	/* wire offset */
	uint64_t log_bytes;
	/* Its files when it had ended; "" and UTIL_TIME_ZERO: not known. */
	char log_sha256[65];
	int64_t log_modified_at;
	uint64_t index_bytes;
	char index_sha256[65];
	int64_t index_modified_at;
	int gapped;
	int64_t updated_at;
};

struct store_audit {
	uint64_t seq;
	int64_t at;
	char *action;
	char *actor;
	char *decision;		/* allow, deny, or "" */
	char *entity;		/* executor, enrollment, handle, ... */
	char *subject;		/* its id */
	char *detail;		/* canonical JSON object */
	char prev[65];
	char hash[65];
};

void store_enrollment_clear(struct store_enrollment *e);
void store_agent_clear(struct store_agent *a);
void store_ban_clear(struct store_ban *b);
void store_executor_clear(struct store_executor *x);
void store_handle_clear(struct store_handle *h);
void store_audit_clear(struct store_audit *a);

#include "store_ops.h"

#endif
