/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * AuditSyslog (cloopd.conf(5)): copies of audit rows for syslog, sent when
 * the rows are on disk.  The chain in the store is the record; a copy that
 * syslog does not take is counted, never waited for.
 */
#ifndef PRIV_AUDITLOG_H
#define PRIV_AUDITLOG_H

#include <stdint.h>

struct monitor;

struct auditlog {
	int fd;			/* connected to /dev/log; -1 */
	int is_on;
	uint64_t last_seq;	/* copied so far */
	uint64_t nlost;
};

void auditlog_init(struct monitor *mon);
/*
 * The configuration was read, at the start or again.  Rows that come after
 * this are copied when it says so; what was before is in the chain.
 */
void auditlog_start(struct monitor *mon);
void auditlog_clear(struct monitor *mon);
/* A turn was committed. */
void auditlog_send(struct monitor *mon);

#endif
