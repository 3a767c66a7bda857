/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The payload structs of the frames; member order is wire order.  A start's
 * payload is struct spec.  See common/msg/field.h for what the member types
 * mean and who owns them.
 */
#ifndef CLOOP_FRAME_TYPES_H
#define CLOOP_FRAME_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "common/model/caps.h"
#include "common/model/spec.h"
#include "common/msg/field.h"

struct frame_empty {
	int unused;
};

struct frame_hello {
	int64_t protocol_version;
	char *agent_id;
	char *name;
	char *agent_version;
	struct caps capabilities;
	struct caps_offer *resume;
	size_t nresume;
};

struct frame_verdict {
	char *handle_id;
	int64_t from_offset;
	char *action;			/* "", continue, terminate */
	char *reason;
};

struct frame_welcome {
	int64_t protocol_version;
	char *executor_id;
	struct secret credential;
	int64_t heartbeat_seconds;
	struct frame_verdict *resume_accepted;
	size_t nresume_accepted;
};

struct frame_heartbeat {
	uint64_t seq;
	char **active_handles;
	size_t nactive_handles;
	int64_t load_percent;
};

struct frame_heartbeat_ack {
	uint64_t seq;
	int64_t server_time;
};

struct frame_bye {
	char *reason;
	int reconnect;
};

struct frame_error {
	char *code;
	char *message;
};

struct frame_inventory {
	struct caps capabilities;
};

/* --- a running workload --- */

struct frame_disk_limit {
	int64_t used_bytes;
	int64_t limit_mb;
	char *source;
	char *path;
	int64_t measured_at;
};

struct frame_started {
	char *handle_id;
	int64_t pid;
	int64_t started_at;
	char *error;			/* not "": not started */
	struct frame_disk_limit *disk_limit;
};

struct frame_signal {
	char *signal;
};

struct frame_write_back {
	char *mode;
	char *branch;
	char *commit_sha;
	char *base_sha;
	int pushed;
	int64_t bundle_bytes;
	char *bundle_sha256;
	int64_t commits;
	int64_t files_changed;
	int skipped;
	char *skip_reason;
	char *error;
};

struct frame_status {			/* payload.status, flattened */
	char *handle_id;
	char *executor_id;
	char *state;			/* frame_parse_state() */
	int64_t pid;
	int64_t exit_code;
	int64_t started_at;
	int64_t finished_at;
	char *error;
	struct frame_write_back *write_back;
	char *outcome;
	struct frame_disk_limit *disk_limit;
	int64_t final_offset;		/* payload.final_offset */
};

struct frame_log_chunk {
	char *stream;
	int64_t offset;
	struct field_text text;		/* its length: frame_log_len() */
	int64_t time;
};

struct frame_log_ack {
	int64_t offset;
};

/* --- returned and shipped work --- */

struct frame_result_chunk {
	int64_t offset;
	uint8_t *data;
	size_t data_len;
};

struct frame_result {
	struct frame_write_back result;
};

struct frame_project_result {
	uint8_t *data;
	size_t data_len;
	char *error;
};

struct frame_branch_chunk {
	int64_t offset;
	uint8_t *data;
	size_t data_len;
	int64_t total;
};

/* --- leases --- */

struct frame_revoke {
	char *lease_id;
	char *grant_id;
	char *reason;
	char *action;			/* anything but kill means scrub */
};

struct frame_revoked {
	char *lease_id;
	char *grant_id;
	char *action;
	int known;
	char **env_scrubbed;
	size_t nenv_scrubbed;
	int64_t files_removed;
	int egress_dropped;
	char **killed;
	size_t nkilled;
	char *error;
};

struct frame_secret_refresh {
	char *lease_id;
	struct spec_secret_file *files;
	size_t nfiles;
	char *reason;
};

struct frame_secret_refreshed {
	char *lease_id;
	int known;
	int64_t files_rewritten;
	char **handles;
	size_t nhandles;
	int eventual;
	int unsupported;
	char *error;
};

/* --- fleet --- */

struct frame_upgrade {
	char *target_version;
	int force;
	int64_t settle_seconds;
	char *reason;
};

struct frame_upgrading {
	int accepted;
	char *reason;
	int already_current;
	char *from_version;
	char *target_version;
};

struct frame_install_harness {
	char *harness;
	char *reason;
};

struct frame_harness_installed {
	int installed;
	int already_present;
	char *harness;
	char *path;
	char *version;
	char *reason;
};

struct frame_isolation_probe {
	struct spec_sandbox sandbox;
};

struct frame_isolation_evidence {
	char *evidence;			/* opaque JSON, or NULL */
	char *host;
	char *engine_kernel;
	char *engine;
	char *image;
	char *error;
};

struct frame_denial {			/* our dialect */
	char *dest;
	int64_t port;
	char *proto;
	char *rule;
	int64_t count;
	int64_t first;
	int64_t last;
};

struct frame_denials {
	struct frame_denial *denials;
	size_t ndenials;
	int64_t dropped;
};

/* --- channels --- */

struct frame_attach_open {
	char *session_id;
	char **command;
	size_t ncommand;
	int tty;
	int use_stdin;			/* "stdin" */
	uint64_t rows;
	uint64_t cols;
	char **env;
	size_t nenv;
};

struct frame_attach_opened {
	char *session_id;
	int tty;
};

struct frame_attach_data {
	char *session_id;
	uint8_t *data;
	size_t data_len;
};

struct frame_attach_resize {
	char *session_id;
	uint64_t rows;
	uint64_t cols;
};

struct frame_attach_close {
	char *session_id;
	char *reason;
	int64_t exit_code;		/* -1: not observed */
};

struct frame_device_open {
	char *channel_id;
	char *kind;			/* usb, l2 */
	char *name;
	char *label;
	char *forwarder_id;
	char *binding_id;
	char *bus_id;
	struct spec_interface *interface;
};

struct frame_device_opened {
	char *channel_id;
	int64_t vhci_port;
	char *local_bus_id;
	char *node;
	char *tap;
};

struct frame_device_data {
	char *channel_id;
	uint8_t *data;
	size_t data_len;
};

struct frame_device_close {
	char *channel_id;
	char *reason;
};

#endif
