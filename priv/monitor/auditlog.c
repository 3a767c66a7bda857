/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Audit rows to syslog, in the monitor.  A row is one datagram of the
 * traditional form; what came from outside is quoted as in our own log.
 */
#include "auditlog.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "monitor.h"

#define AUDITLOG_PATH "/dev/log"
#define AUDITLOG_PRIORITY 86	/* authpriv.info */
#define AUDITLOG_LINE 2048	/* every syslogd takes that */
#define AUDITLOG_ROWS 4096	/* of one turn */

static int
auditlog_open(struct auditlog *a)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	if (a->fd != -1)
		close(a->fd);
	strlcpy(sun.sun_path, AUDITLOG_PATH, sizeof(sun.sun_path));
	a->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (a->fd != -1 && connect(a->fd, (struct sockaddr *)&sun,
	    sizeof(sun)) == 0)
		return CL_OK;
	if (a->fd != -1)
		close(a->fd);
	a->fd = -1;
	return CL_SYSTEM;
}

void
auditlog_init(struct monitor *mon)
{
	memset(&mon->auditlog, 0, sizeof(mon->auditlog));
	mon->auditlog.fd = -1;
}

void
auditlog_start(struct monitor *mon)
{
	struct auditlog *a = &mon->auditlog;
	int was_on = a->is_on;

	a->is_on = mon->conf.audit_syslog;
	if (!a->is_on || was_on)
		return;
	if (store_find_audit_last(mon->store, &a->last_seq) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	if (auditlog_open(a) != CL_OK)
		log_warn("audit-syslog", "reason=%s", log_q(strerror(errno)));
}

void
auditlog_clear(struct monitor *mon)
{
	if (mon->auditlog.fd != -1)
		close(mon->auditlog.fd);
	mon->auditlog.fd = -1;
}

static int
auditlog_put(const struct auditlog *a, const char *line, size_t len)
{
	return a->fd != -1 && send(a->fd, line, len, MSG_DONTWAIT |
	    MSG_NOSIGNAL) != -1 ? CL_OK : CL_SYSTEM;
}

static int
auditlog_on_row(const struct store_audit *row, void *arg)
{
	struct auditlog *a = arg;
	char line[AUDITLOG_LINE];
	int n;

	n = snprintf(line, sizeof(line), "<%d>cloopd[%ld]: audit seq=%llu "
	    "action=%s actor=%s decision=%s subject=%s hash=%.16s detail=%s",
	    AUDITLOG_PRIORITY, (long)getpid(), (unsigned long long)row->seq,
	    row->action, log_q(row->actor), row->decision[0] != '\0' ?
	    row->decision : "-", log_q(row->subject), row->hash,
	    row->detail);
	if (n >= (int)sizeof(line))
		n = (int)sizeof(line) - 1;
	a->last_seq = row->seq;
	if (auditlog_put(a, line, (size_t)n) == CL_OK)
		return CL_OK;
	/* syslogd may have been started anew meanwhile; one that is there
	 * and takes nothing is not asked twice. */
	if (a->fd != -1 && errno == EAGAIN)
		a->nlost++;
	else if (auditlog_open(a) != CL_OK ||
	    auditlog_put(a, line, (size_t)n) != CL_OK)
		a->nlost++;
	return CL_OK;
}

void
auditlog_send(struct monitor *mon)
{
	struct auditlog *a = &mon->auditlog;
	static struct log_ratelimit rl;
	uint64_t lost = a->nlost;

	if (!a->is_on)
		return;
	if (store_list_audit(mon->store, a->last_seq, INT64_MIN,
	    AUDITLOG_ROWS, auditlog_on_row, a) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	if (a->nlost != lost && log_ratelimit(&rl, 1, 60, NULL))
		log_warn("audit-syslog", "lost=%llu",
		    (unsigned long long)a->nlost);
}
