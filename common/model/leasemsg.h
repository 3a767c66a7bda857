/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Leases in messages (lease.def): what hub and device, and the processes of
 * each, say about revocations and refreshes, and what operators are told
 * about secrets, grants and leases.  Names in a report come from a device:
 * bounded and clean, but not believed.
 */
#ifndef CLOOP_LEASEMSG_H
#define CLOOP_LEASEMSG_H

#include "ctlmsg.h"
#include "spec.h"

#define LEASE_NAMES_MAX 48	/* names of a report we keep */
#define LEASE_ERROR_MAX 2048
#define LEASE_LIST_MAX 4096	/* names of a report on the wire */
#define LEASE_TEXT_MAX 4096
#define LEASE_WORD_MAX 256
#define LEASE_FILES_MAX 1024

#define DEF_FILE "common/model/lease.def"
#include "common/msg/def_struct.h"

#endif
