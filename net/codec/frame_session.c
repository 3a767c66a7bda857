/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Payloads that concern the session: hello, welcome, heartbeats, bye, error,
 * inventory.  Pure tables; runs where frame.c runs.
 */
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/model/caps.h"
#include "frame_int.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_VERDICTS 1024
#define MAX_BEAT_HANDLES 4096	/* tracked by an agent, of any make */

static const struct field *
frame_empty_get_rows(size_t *np)
{
	*np = 0;
	return NULL;
}
const struct field_table frame_empty_table = { "frame_empty",
	sizeof(struct frame_empty), frame_empty_get_rows };

static const struct field frame_hello_table_rows[] = {
	F_INT64(struct frame_hello, protocol_version, "protocol_version", 0),
	F_STR(struct frame_hello, agent_id, "agent_id", 0, MAX_ID_LEN),
	F_STR(struct frame_hello, name, "name", PROSE, MAX_NAME_LEN),
	F_STR(struct frame_hello, agent_version, "agent_version", PROSE,
	    FRAME_WORD_MAX),
	F_OBJ(struct frame_hello, capabilities, "capabilities", 0,
	    &caps_table),
	F_LIST(struct frame_hello, resume, "resume", O, MAX_RESUME_OFFERS,
	    &caps_offer_table),
};
F_TABLE(frame_hello_table, struct frame_hello);

static const struct field frame_verdict_table_rows[] = {
	F_STR(struct frame_verdict, handle_id, "handle_id", 0, MAX_ID_LEN),
	F_INT64(struct frame_verdict, from_offset, "from_offset", 0),
	F_STR(struct frame_verdict, action, "action", O, FRAME_WORD_MAX),
	F_STR(struct frame_verdict, reason, "reason", PROSE, FRAME_TEXT_MAX),
};
F_TABLE(frame_verdict_table, struct frame_verdict);

static const struct field frame_welcome_table_rows[] = {
	F_INT64(struct frame_welcome, protocol_version, "protocol_version",
	    0),
	F_STR(struct frame_welcome, executor_id, "executor_id", 0,
	    MAX_ID_LEN),
	F_SECRET(struct frame_welcome, credential, "credential", O,
	    MAX_TOKEN_LEN),
	F_INT64(struct frame_welcome, heartbeat_seconds, "heartbeat_seconds",
	    0),
	F_LIST(struct frame_welcome, resume_accepted, "resume_accepted", O,
	    MAX_VERDICTS, &frame_verdict_table),
};
F_TABLE(frame_welcome_table, struct frame_welcome);

static const struct field frame_heartbeat_table_rows[] = {
	F_UINT(struct frame_heartbeat, seq, "seq", 0, UINT64_MAX),
	F_STRS(struct frame_heartbeat, active_handles, "active_handles", O,
	    MAX_BEAT_HANDLES, MAX_ID_LEN),
	F_INT64(struct frame_heartbeat, load_percent, "load_percent", O),
};
F_TABLE(frame_heartbeat_table, struct frame_heartbeat);

static const struct field frame_heartbeat_ack_table_rows[] = {
	F_UINT(struct frame_heartbeat_ack, seq, "seq", 0, UINT64_MAX),
	F_TIME(struct frame_heartbeat_ack, server_time, "server_time", 0),
};
F_TABLE(frame_heartbeat_ack_table, struct frame_heartbeat_ack);

static const struct field frame_bye_table_rows[] = {
	F_STR(struct frame_bye, reason, "reason", PROSE, FRAME_TEXT_MAX),
	F_BOOL(struct frame_bye, reconnect, "reconnect", 0),
};
F_TABLE(frame_bye_table, struct frame_bye);

static const struct field frame_error_table_rows[] = {
	F_STR(struct frame_error, code, "code", FIELD_PROSE, FRAME_WORD_MAX),
	F_STR(struct frame_error, message, "message", FIELD_PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_error_table, struct frame_error);

static const struct field frame_inventory_table_rows[] = {
	F_OBJ(struct frame_inventory, capabilities, "capabilities", 0,
	    &caps_table),
};
F_TABLE(frame_inventory_table, struct frame_inventory);

int
frame_check_hello(struct jx *x, void *payload)
{
	struct frame_hello *hello = payload;

	(void)x;
	frame_trim(hello->agent_version);
	caps_clean(&hello->capabilities);
	return CL_OK;
}

int
frame_check_inventory(struct jx *x, void *payload)
{
	struct frame_inventory *inventory = payload;

	(void)x;
	caps_clean(&inventory->capabilities);
	return CL_OK;
}
