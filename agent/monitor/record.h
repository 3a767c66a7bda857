/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The records of record.def; who writes and reads them: vault.h, work.h.
 */
#ifndef CLOOP_RECORD_H
#define CLOOP_RECORD_H

#include "common/model/devjob.h"

#define MAX_SECRET_DIRS 32	/* MAX_SHIM_PATHS: each becomes a mount */
#define MAX_VAULT_FILES 16384	/* a frame holds fewer */
#define MAX_VAULT_GRANTS 4096

#define DEF_FILE "agent/monitor/record.def"
#include "common/msg/def_struct.h"

#endif
