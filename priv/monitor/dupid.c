/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The window of duplicate identities.  Memory of an agent only: after a
 * restart of the hub the first three count again.
 */
#include "dupid.h"

#include <string.h>

enum dupid_news
dupid_add(struct dupid *d, int64_t now)
{
	int suspect = dupid_is_suspect(d, now);
	int64_t oldest;

	memmove(d->seen + 1, d->seen,
	    sizeof(d->seen) - sizeof(d->seen[0]));
	d->seen[0] = now;
	oldest = d->seen[DUPID_EVIDENCE - 1];
	if (!suspect && (oldest == 0 || now - oldest >= DUPID_WINDOW_MS))
		return DUPID_NOTHING;
	d->quiet_until = now + DUPID_QUIET_MS;
	d->suspect_until = now + DUPID_KEEP_MS;
	return suspect ? DUPID_AGAIN : DUPID_ALARM;
}

int
dupid_is_quiet(const struct dupid *d, int64_t now)
{
	return now < d->quiet_until;
}

int
dupid_is_suspect(const struct dupid *d, int64_t now)
{
	return now < d->suspect_until;
}
