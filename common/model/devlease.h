/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch and the device monitor say to each other about leases
 * (msgcat.h, dev-fetch): revocations, refreshes and the reports on them.
 * Each is one memfd of at most MAX_SPEC_LEN bytes.
 */
#ifndef CLOOP_DEVLEASE_H
#define CLOOP_DEVLEASE_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/field.h"
#include "spec.h"

struct dev_revoke {			/* DEV_REVOKE */
	char *lease_id;
	char *grant_id;			/* "": the whole lease */
	char *reason;			/* for the log */
	int kill;
};

struct dev_revoked {			/* DEV_REVOKE_ANS */
	int known;
	char **env_scrubbed;
	size_t nenv_scrubbed;
	int64_t files_removed;
	int egress_dropped;
	char **killed;			/* handle ids */
	size_t nkilled;
	char *error;
};

struct dev_refresh {			/* DEV_REFRESH */
	char *lease_id;
	struct spec_secret_file *files;
	size_t nfiles;
	char *reason;
};

struct dev_refreshed {			/* DEV_REFRESH_ANS */
	int known;
	int64_t files_rewritten;
	char **handles;
	size_t nhandles;
	char *error;
};

extern const struct field_table dev_revoke_table, dev_revoked_table,
    dev_refresh_table, dev_refreshed_table;

#endif
