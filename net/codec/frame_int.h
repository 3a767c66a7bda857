/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between frame.c (the catalogue) and frame_check.c: what a receiver applies
 * to a payload at decode; each sets x->why.
 */
#ifndef CLOOP_FRAME_INT_H
#define CLOOP_FRAME_INT_H

#include "frame.h"

int frame_check_hello(struct jx *, void *);
int frame_check_inventory(struct jx *, void *);
int frame_check_start(struct jx *, void *);
int frame_check_signal(struct jx *, void *);
int frame_check_result_chunk(struct jx *, void *);
int frame_check_result(struct jx *, void *);
int frame_check_project_result(struct jx *, void *);
int frame_check_branch_chunk(struct jx *, void *);
int frame_check_revoke(struct jx *, void *);
int frame_check_secret_refresh(struct jx *, void *);
int frame_check_upgrade(struct jx *, void *);
int frame_check_install_harness(struct jx *, void *);
int frame_check_isolation_probe(struct jx *, void *);
int frame_check_channel(struct jx *, void *);
int frame_check_device_open(struct jx *, void *);
#define frame_check_none NULL	/* decoding says it all */

/* Hand a rule's owned text (rule_fail) to x->why; frees it, returns r. */
int frame_take_why(struct jx *x, int r, char *why);
/* Cut surrounding white space off, in place. */
void frame_trim(char *s);
/* jx_unknown_fn: a start's git CA. */
int frame_on_start_member(struct jx *, const struct field_table *, void *,
    uint32_t, uint32_t);

#endif
