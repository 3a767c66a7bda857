/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Field tables of the nouns that have no functions of their own.  Data only.
 * Every bound keeps a row inside one message; a map that would not fit is
 * refused by field_put's buffer.
 */
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "ctlmsg.h"
#include "devjob.h"
#include "leasemsg.h"
#include "workmsg.h"

#define DEF_FILE "common/model/ctl.def"
#include "common/msg/def_table.h"
#define DEF_FILE "common/model/lease.def"
#include "common/msg/def_table.h"
#define DEF_FILE "common/model/work.def"
#include "common/msg/def_table.h"
#define DEF_FILE "common/model/job.def"
#include "common/msg/def_table.h"
