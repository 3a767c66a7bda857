/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Supervision, in the monitor.  The health check of a device is that its
 * session is there.  What an operator decided stands above what the probes
 * say: they go on counting, and uncordon lands where they got to.
 */
#include "supervise.h"

#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "agents.h"
#include "monitor.h"

void
supervise_probe(struct monitor *mon)
{
	const struct session *s;
	struct agent *a;

	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a)) {
		if (a->row.revoked_at != UTIL_TIME_ZERO)
			continue;
		s = agents_find_current(&mon->agents, a);
		if (s != NULL && s->state == SESSION_CURRENT && !s->dropped)
			a->nfailures = 0;
		else if (a->nfailures < SUPERVISE_FAILURES)
			a->nfailures++;
	}
}

const char *
supervise_format_state(const struct agent *a)
{
	if (a->admin == ADMIN_DRAINING)
		return "draining";
	if (a->admin == ADMIN_CORDONED)
		return "cordoned";
	if (a->nfailures == 0)
		return "ready";
	return a->nfailures < SUPERVISE_FAILURES ? "degraded" :
	    "unreachable";
}
