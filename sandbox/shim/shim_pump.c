/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Workload output: pipe to spool, in cloop-shim.  Bytes are moved; what the
 * workload was lent is taken out on the way, so that no spool ever holds it
 * and all offsets count what is left.  Back-pressure is the rule of
 * common/output/spool.h: a connected consumer that is behind slows the
 * workload, a dead or absent one never stops it for long.
 */
#include "shim_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"

#define SHIM_STALL_POLL_MS 10	/* how soon a consumer's progress is seen */
#define SHIM_PUMP_ROUNDS 16	/* blocks per turn: messages get their turn */
/* A block and what was withheld before it, at 5/4 (redact.h). */
#define SHIM_CLEAN_LEN ((SPOOL_BLOCK_LEN + REDACT_KEY_MAX) / 4 * 5)

void
shim_pump_init(struct shim_pump *p)
{
	memset(p, 0, sizeof(*p));
	p->fd = p->wake_fd = -1;
	p->spool.fd = -1;
}

/* So much may be unsent before a connected consumer slows the workload: a
 * small SpoolLimit must not drop what the next second would send. */
static uint64_t
shim_pump_get_high(const struct shim_pump *p)
{
	uint64_t half = spool_load_u64(&p->spool.head->limit) / 2;

	return half < SPOOL_HIGH_LEN ? half : SPOOL_HIGH_LEN;
}

static int
shim_pump_is_behind(const struct shim_pump *p)
{
	struct spool_head *h = p->spool.head;
	uint64_t sent = spool_load_u64(&h->sent);
	uint64_t total = spool_load_u64(&h->total);

	return spool_load_u64(&h->link_up) != 0 && sent <= total &&
	    total - sent >= shim_pump_get_high(p);
}

int
shim_pump_may_read(struct shim_pump *p, int64_t now_ms, int *wait_msp)
{
	struct spool_head *h = p->spool.head;
	uint64_t sent = spool_load_u64(&h->sent);

	*wait_msp = -1;
	if (!shim_pump_is_behind(p)) {
		p->stall_at = 0;
		return 1;
	}
	if (p->stall_at == 0 || p->stall_sent != sent) {
		p->stall_at = now_ms;
		p->stall_sent = sent;
	}
	if (now_ms - p->stall_at >= SPOOL_STALL_MAX_MS)
		return 1;	/* no progress at all: it is not reading */
	*wait_msp = SHIM_STALL_POLL_MS;
	return 0;
}

static void
shim_pump_wake(struct shim_pump *p)
{
	const uint64_t one = 1;

	/* EAGAIN: the counter is full, so the reader has yet to wake up. */
	if (p->wake_fd != -1)
		(void)!write(p->wake_fd, &one, sizeof(one));
}

static void
shim_pump_save(struct shim_pump *p, const uint8_t *data, size_t len)
{
	if (len > 0 && spool_put(&p->spool, data, len) != CL_OK) {
		if (!p->is_lossy)
			log_warn("spool-full", "reason=%s",
			    log_q(cl_strerror(CL_SYSTEM)));
		p->is_lossy = 1;
	}
}

static int
shim_pump_on_piece(void *arg, const struct redact_piece *piece)
{
	struct shim_pump *p = arg;

	if (piece->len > SHIM_CLEAN_LEN - p->clean_len)
		return CL_INTERNAL;
	memcpy(p->clean + p->clean_len, piece->data, piece->len);
	p->clean_len += piece->len;
	return CL_OK;
}

static void
shim_pump_put(struct shim_pump *p, size_t len)
{
	if (p->redact == NULL) {
		shim_pump_save(p, p->block, len);
		return;
	}
	p->clean_len = 0;
	if (redact_put(p->stream, p->redact, p->block, len,
	    shim_pump_on_piece, p) != CL_OK)
		fatal("redact", "reason=\"output past its bound\"");
	shim_pump_save(p, p->clean, p->clean_len);
	explicit_bzero(p->block, len);
}

static int
shim_pump_open_redact(struct shim_pump *p)
{
	if (p->redact != NULL)
		return CL_OK;
	p->stream = calloc(1, sizeof(*p->stream));
	p->clean = calloc(1, SHIM_CLEAN_LEN);
	p->redact = redact_new();
	if (p->stream == NULL || p->clean == NULL || p->redact == NULL) {
		free(p->stream);
		free(p->clean);
		redact_free(p->redact);
		p->redact = NULL;
		return CL_NOMEM;
	}
	redact_stream_init(p->stream);
	return CL_OK;
}

int
shim_pump_add_value(struct shim_pump *p, const void *data, size_t len)
{
	int r;

	if ((r = shim_pump_open_redact(p)) != CL_OK)
		return r;
	return redact_add(p->redact, data, len);
}

int
shim_pump_add_env(struct shim_pump *p, char *const *env, size_t n)
{
	static const char key[] = "CLOOP_REDACT_ENV=";
	size_t i;
	int r;

	for (i = 0; i < n; i++)
		if (strncmp(env[i], key, sizeof(key) - 1) == 0)
			break;
	if (i == n)
		return CL_OK;
	if ((r = shim_pump_open_redact(p)) != CL_OK)
		return r;
	return redact_add_env(p->redact, env, n);
}

/* No more comes: what was withheld was no value. */
static void
shim_pump_flush(struct shim_pump *p)
{
	if (p->redact == NULL)
		return;
	p->clean_len = 0;
	(void)redact_end(p->stream, p->redact, shim_pump_on_piece, p);
	shim_pump_save(p, p->clean, p->clean_len);
}

static void
shim_pump_close(struct shim_pump *p)
{
	if (p->fd != -1)
		close(p->fd);
	p->fd = -1;
	shim_pump_flush(p);
}

/* 1 when there may be more. */
static int
shim_pump_step(struct shim_pump *p, int *movedp)
{
	ssize_t n;

	n = read(p->fd, p->block, SPOOL_BLOCK_LEN);
	if (n > 0) {
		shim_pump_put(p, (size_t)n);
		*movedp = 1;
		return 1;
	}
	if (n == -1 && errno == EINTR)
		return 1;
	if (n == -1 && errno == EAGAIN)
		return 0;
	shim_pump_close(p);
	return 0;
}

void
shim_pump_read(struct shim_pump *p)
{
	int i, moved = 0;

	for (i = 0; i < SHIM_PUMP_ROUNDS && p->fd != -1; i++)
		if (!shim_pump_step(p, &moved) || shim_pump_is_behind(p))
			break;
	if (moved)
		shim_pump_wake(p);
}

void
shim_pump_end(struct shim_pump *p)
{
	int i, moved = 0;

	/* Bounded: whoever could still write is dead, or holds an end that
	 * was passed out of the sandbox and must not keep us here. */
	for (i = 0; i < SHIM_PUMP_ROUNDS && p->fd != -1; i++)
		if (!shim_pump_step(p, &moved))
			break;
	shim_pump_close(p);
	if (!p->is_step)
		spool_save_u64(&p->spool.head->ended, 1);
	shim_pump_wake(p);
}
