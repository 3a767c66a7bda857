/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The agents of the load generator: what each says and when.
 */
#ifndef CLOOP_BENCH_AGENT_H
#define CLOOP_BENCH_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "link.h"
#include "wheel.h"

#define AGENT_HANDLE_MAX 64
#define FLEET_BINS 2400			/* of 100 ms: four minutes */

struct fleet;

struct agent {
	struct link link;		/* first: callbacks get it */
	struct wheel_timer timer;	/* the next beat or attempt */
	struct fleet *fleet;
	char *id, *credential;		/* NULL at a plain peer */
	char *handle;			/* of its workload, or NULL */
	uint64_t seq;
	uint64_t offset, acked, end;	/* of the workload's output */
	unsigned int nfailures;		/* in a row */
	uint8_t up;
	uint8_t trying;			/* on its way up */
	uint8_t beating;		/* a beat is not answered yet */
};

struct fleet {
	struct link_env env;
	struct agent *agents;
	struct wheel wheel;
	/* options */
	const char *credentials, *path, *subprotocol;
	char host[64];
	size_t n, width, per_source;
	int64_t beat_ms;		/* 0: none */
	int ping;			/* beats are pings */
	uint32_t source_base;
	/* state */
	int fast;			/* a beat follows its answer at once */
	int first;			/* connecting for the first time */
	size_t nstarted, ntrying, nup, nsending;
	uint64_t chunk_bytes;		/* asked of each by ingest */
	double lost_at;			/* the first end since all were up */
	/* counts */
	uint64_t nbeats, nacks, ndowns, ntries, nrefused;
	uint64_t bins[FLEET_BINS];	/* attempts since lost_at */
	const char *last_why;
};

void fleet_init(struct fleet *f);
void fleet_connect(struct fleet *f);
/* One round of events; waits at most ms. */
void fleet_turn(struct fleet *f, int ms);
void fleet_set_rate(struct fleet *f, int fast);
/* Agents that now send len bytes of output each. */
size_t fleet_ingest(struct fleet *f, uint64_t len);
size_t fleet_end_work(struct fleet *f);
void fleet_write_files(struct fleet *f, const char *dir, uint64_t len);
/* Attempts per 100 ms after the loss: most, and mean from first to last. */
uint64_t fleet_get_peak(const struct fleet *f);
double fleet_get_mean(const struct fleet *f);
void fleet_close(struct fleet *f);

/* --- agent_log.c --- */

#define CHUNK_LEN 32768			/* MAX_LOG_TEXT_LEN of ours */

void chunk_init(void);
const char *chunk_get_text(void);	/* CHUNK_LEN bytes, unescaped */
/* Send while the socket takes it and less than the window is unacked. */
void agent_send_chunks(struct agent *a);

#endif
