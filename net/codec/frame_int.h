/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between frame.c (the catalogue) and the payload families frame_*.c: each
 * payload P has a table frame_P_table and a check frame_check_P, which
 * applies what a receiver applies at decode; it sets x->why.
 */
#ifndef CLOOP_FRAME_INT_H
#define CLOOP_FRAME_INT_H

#include "common/msg/field.h"
#include "frame.h"

#define FRAME_WORD_MAX 256	/* names, enumerations, ids of others */
#define FRAME_TEXT_MAX 4096	/* paths and other free values */

extern const struct field_table frame_empty_table, frame_hello_table,
    frame_welcome_table, frame_heartbeat_table, frame_heartbeat_ack_table,
    frame_bye_table, frame_error_table, frame_inventory_table,
    frame_started_table, frame_signal_table, frame_status_table,
    frame_log_chunk_table, frame_log_ack_table, frame_result_chunk_table,
    frame_result_table, frame_project_result_table, frame_branch_chunk_table,
    frame_revoke_table, frame_revoked_table, frame_secret_refresh_table,
    frame_secret_refreshed_table, frame_upgrade_table, frame_upgrading_table,
    frame_install_harness_table, frame_harness_installed_table,
    frame_isolation_probe_table, frame_isolation_evidence_table,
    frame_denials_table, frame_attach_open_table, frame_attach_opened_table,
    frame_attach_data_table, frame_attach_resize_table,
    frame_attach_close_table, frame_device_open_table,
    frame_device_opened_table, frame_device_data_table,
    frame_device_close_table;
#define frame_start_table spec_start_table

/* Shared by several families. */
extern const struct field_table frame_disk_limit_table;
/* status.write_back: metadata, so a long name must not cost the status. */
extern const struct field_table frame_write_back_info_table;

int frame_check_hello(struct jx *, void *);
int frame_check_inventory(struct jx *, void *);
int frame_check_start(struct jx *, void *);
int frame_check_signal(struct jx *, void *);
int frame_check_result_chunk(struct jx *, void *);
int frame_check_result(struct jx *, void *);
int frame_check_project_result(struct jx *, void *);
int frame_check_branch_chunk(struct jx *, void *);
int frame_check_revoke(struct jx *, void *);
int frame_check_secret_refresh(struct jx *, void *);
int frame_check_upgrade(struct jx *, void *);
int frame_check_install_harness(struct jx *, void *);
int frame_check_isolation_probe(struct jx *, void *);
int frame_check_channel(struct jx *, void *);
int frame_check_device_open(struct jx *, void *);
#define frame_check_attach_open frame_check_channel
#define frame_check_attach_opened frame_check_channel
#define frame_check_attach_data frame_check_channel
#define frame_check_attach_resize frame_check_channel
#define frame_check_attach_close frame_check_channel
#define frame_check_device_opened frame_check_channel
#define frame_check_device_data frame_check_channel
#define frame_check_device_close frame_check_channel
/* Decoding says it all. */
#define frame_check_empty NULL
#define frame_check_welcome NULL
#define frame_check_heartbeat NULL
#define frame_check_heartbeat_ack NULL
#define frame_check_bye NULL
#define frame_check_error NULL
#define frame_check_started NULL
#define frame_check_status NULL
#define frame_check_log_chunk NULL
#define frame_check_log_ack NULL
#define frame_check_revoked NULL
#define frame_check_secret_refreshed NULL
#define frame_check_upgrading NULL
#define frame_check_harness_installed NULL
#define frame_check_isolation_evidence NULL
#define frame_check_denials NULL

/* Hand a rule's owned text (rule_fail) to x->why; frees it, returns r. */
int frame_take_why(struct jx *x, int r, char *why);
/* Cut surrounding white space off, in place. */
void frame_trim(char *s);
/* jx_unknown_fn: a start's git CA. */
int frame_on_start_member(struct jx *, const struct field_table *, void *,
    uint32_t, uint32_t);

#endif
