/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between revoke.c and revoke_group.c.
 */
#ifndef PRIV_REVOKE_INT_H
#define PRIV_REVOKE_INT_H

#include <stdint.h>

struct monitor;
struct store_revocation;

/* One more outcome is to come. */
void revoke_join_group(struct monitor *mon, uint64_t group);
/* Send an outcome; was_joined: one that was to come.  Group 0 or one that
 * is gone: nobody hears it. */
void revoke_tell_group(struct monitor *mon, uint64_t group,
    const struct store_revocation *row, int was_joined);
void revoke_clear_groups(struct monitor *mon);

#endif
