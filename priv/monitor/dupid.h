/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Two hosts with one identity (BC-38): a copied disk image or state
 * directory.  The newest session of an agent replaces the one before, which
 * is usually half-open; when the replaced peer still answers, there are two
 * of them, and each would throw the other out once a second.  Pure: no clock
 * of its own.
 */
#ifndef PRIV_DUPID_H
#define PRIV_DUPID_H

#include <stdint.h>

/*
 * So many replaced peers that answered, within so long, are an alarm.  A
 * device can answer late once, when a frozen link thaws; three times in a
 * minute it cannot: it gives a silent link 18 s and more (LINK_DEAD_MS).
 */
#define DUPID_EVIDENCE 3
#define DUPID_WINDOW_MS 60000
/* From then on a newcomer is refused while another is connected: the two
 * change places at most this often. */
#define DUPID_QUIET_MS 60000
/* Suspicion ends after so long without evidence; until then one more
 * answer is enough. */
#define DUPID_KEEP_MS 600000

struct dupid {
	int64_t seen[DUPID_EVIDENCE];	/* newest first; 0: none */
	int64_t quiet_until;
	int64_t suspect_until;
};

enum dupid_news {
	DUPID_NOTHING,
	DUPID_AGAIN,		/* suspected before, quiet begins anew */
	DUPID_ALARM		/* first time: tell people */
};

/* A replaced peer answered, at now (monotonic ms, above 0). */
enum dupid_news dupid_add(struct dupid *d, int64_t now);
/* May a newcomer not replace a live session now? */
int dupid_is_quiet(const struct dupid *d, int64_t now);
int dupid_is_suspect(const struct dupid *d, int64_t now);

#endif
