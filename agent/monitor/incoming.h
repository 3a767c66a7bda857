/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Branches shipped by the hub, in the device monitor: files without a name,
 * one a handle, filled by the fetcher through a descriptor and claimed by the
 * start of that handle.  Prefix incoming_.
 */
#ifndef CLOOP_INCOMING_H
#define CLOOP_INCOMING_H

#include <stdint.h>

struct agentd;

#define MAX_INCOMING 8

struct incoming {
	char *handle_id;	/* NULL: free */
	int fd;
	int is_ended;		/* the fetcher said how it went */
	char failure[256];
};

/* Open or start over; a descriptor for the fetcher.  CL_LIMIT, CL_SYSTEM. */
int incoming_open(struct agentd *a, const char *handle_id, int *fdp);
/* How it went, "" for well; before the start.  Unknown ones are ignored. */
void incoming_end(struct agentd *a, const char *handle_id,
    const char *failure);
void incoming_drop(struct agentd *a, const char *handle_id);
/* The fetcher is gone: nobody can finish what it began. */
void incoming_drop_all(struct agentd *a);
/*
 * Take the file of `bytes` bytes; its digest is checked where it is read.
 * NULL and *fdp, or why not.  The transfer is over in any case.
 */
const char *incoming_claim(struct agentd *a, const char *handle_id,
    int64_t bytes, int *fdp, char why[256]);

#endif
