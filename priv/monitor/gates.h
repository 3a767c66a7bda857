/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The dispatch gates, in their order: pure judgement of a spec against what
 * is known of one agent.  Nothing is leased, minted or stored before all of
 * them said yes.
 */
#ifndef PRIV_GATES_H
#define PRIV_GATES_H

#include <stddef.h>

struct caps;
struct refusal;
struct spec;

struct gate_input {
	const struct spec *spec;
	const char *agent;		/* its name, for the texts */
	unsigned int protocol;		/* of its session; 0: none */
	unsigned int hub_protocol;	/* PROTO_MAX */
	const struct caps *caps;	/* what it said at hello */
	/* Secrets that are to be lent, before they are in the spec. */
	size_t nsecrets, nfiles;
};

/* 0: go.  Otherwise r is filled in. */
int gates_check(const struct gate_input *in, struct refusal *r);

/* The names that a Kata runtime goes by. */
int gates_is_kata(const char *runtime);

/* For tests: the names of the gates in their order. */
const char *const *gates_get_names(size_t *np);

#endif
