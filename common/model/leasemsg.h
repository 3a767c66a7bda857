/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What cloopd-net and the monitor say to each other about leases
 * (msgcat.h, hub-net): the device's reports on revocations and refreshes as
 * the hub keeps them, and a refresh on its way out.  Names in a report come
 * from a device: bounded and clean, but not believed.
 */
#ifndef CLOOP_LEASEMSG_H
#define CLOOP_LEASEMSG_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/field.h"
#include "spec.h"

#define LEASE_NAMES_MAX 48	/* names of a report we keep */
#define LEASE_ERROR_MAX 2048

/* REVOKE_ANS */
struct lease_revoked {
	int known;
	char **env_scrubbed;
	size_t nenv_scrubbed;
	int64_t files_removed;
	int egress_dropped;
	char **killed;
	size_t nkilled;
	char *error;
};

/* REFRESH */
struct lease_refresh {
	char *lease_id;
	struct spec_secret_file *files;
	size_t nfiles;
	char *reason;
};

/* REFRESH_ANS */
struct lease_refreshed {
	int known;
	int64_t files_rewritten;
	char **handles;
	size_t nhandles;
	int eventual;
	int unsupported;
	char *error;
};

extern const struct field_table lease_revoked_table, lease_refresh_table,
    lease_refreshed_table;

#endif
