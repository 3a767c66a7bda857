/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Lengths, times and seals of output files, in the monitor (root), which
 * never reads them.  A worker that was taken over keeps the descriptors of
 * logs it has written: it may fill the disk, and change what a workload said
 * once that has ended.  The first is found while it happens, and ends the
 * worker; the second shows, since no worker can set a file's time back.
 */
#include "logseal.h"

#include <sys/stat.h>

#include <bsd/string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "hfiles.h"
#include "monitor.h"

#define LOGSEAL_LOOKS 32	/* handles looked at in one tick */
#define LOGSEAL_MS 120000	/* to read two files in */
#define LOGSEAL_SLACK 67108864	/* disk blocks are given ahead of need */
/* A larger pair of files costs more to read than it is worth. */
#define LOGSEAL_READ_MAX (1ULL << 30)

uint64_t
logseal_get_file_max(const struct hub_conf *conf)
{
	uint64_t max = conf->log_limit * LOG_FILE_FACTOR;

	return max > LOG_FILE_MIN ? max : LOG_FILE_MIN;
}

/* Bytes on disk of both files. */
static uint64_t
logseal_get_used(struct monitor *mon, const struct handle *h)
{
	static const enum hfiles_which which[] = { HFILES_LOG, HFILES_INDEX };
	struct stat st;
	uint64_t used = 0;
	size_t i;

	for (i = 0; i < 2; i++)
		if (hfiles_stat(mon->conf.state_dir, h->row.handle_id,
		    which[i], &st) == CL_OK)
			used += (uint64_t)st.st_blocks * 512;
	return used;
}

void
logseal_open(struct monitor *mon, struct handle *h)
{
	h->used_max = logseal_get_used(mon, h) + 4 * mon->conf.log_limit +
	    LOGSEAL_SLACK;
}

/* 1: what it said takes more of the disk than it can. */
static int
logseal_is_over(struct monitor *mon, const struct handle *h)
{
	uint64_t used;

	if (h->used_max == 0 || (used = logseal_get_used(mon, h)) <=
	    h->used_max)
		return 0;
	log_error("handle-files", "handle=%s reason=\"larger than they may "
	    "be\" bytes=%llu max=%llu", log_q(h->row.handle_id),
	    (unsigned long long)used, (unsigned long long)h->used_max);
	return 1;
}

/* ------------------------------------------------------------------- ends */

static int64_t
logseal_get_time(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 +
	    st->st_mtim.tv_nsec;
}

static int
logseal_stat(struct monitor *mon, const struct handle *h, struct stat *log,
    struct stat *index)
{
	int r = hfiles_stat(mon->conf.state_dir, h->row.handle_id,
	    HFILES_LOG, log);

	return r == CL_OK ? hfiles_stat(mon->conf.state_dir,
	    h->row.handle_id, HFILES_INDEX, index) : r;
}

/* What they are now is what they are to stay. */
static void
logseal_stamp(struct monitor *mon, struct handle *h)
{
	struct stat log, index;

	if (h->row.log_modified_at != UTIL_TIME_ZERO ||
	    logseal_stat(mon, h, &log, &index) != CL_OK)
		return;
	(void)logseal_is_over(mon, h);
	h->row.log_bytes = (uint64_t)log.st_size;
	h->row.log_modified_at = logseal_get_time(&log);
	h->row.index_bytes = (uint64_t)index.st_size;
	h->row.index_modified_at = logseal_get_time(&index);
}

static void
logseal_save(struct monitor *mon, const struct handle *h)
{
	if (store_save_seal(mon->store, &h->row) == CL_DB)
		mon_set_error(mon, store_error(mon->store));
}

/* The worker that has its files, behind whose last words it is asked; any
 * other when none has. */
static struct child *
logseal_find_child(struct monitor *mon, const struct handle *h)
{
	struct session *s = agents_find_session(&mon->agents, h->session);
	size_t i;

	if (s != NULL)
		return mon_find_child(mon, s->generation);
	for (i = 0; i < mon->nchildren; i++)
		if (mon->children[i].kind == CHILD_NET &&
		    mon->children[i].state == MS_SERVING)
			return &mon->children[i];
	return NULL;
}

static int
logseal_ask(struct monitor *mon, struct handle *h, struct child *c)
{
	static const enum hfiles_which which[] = { HFILES_INDEX, HFILES_LOG };
	struct msg_handle_seal body = { .handle = h->row.number,
	    .max = LOGSEAL_READ_MAX };
	int i, r, fds[2] = { -1, -1 };

	for (i = 0; i < 2; i++)
		if ((r = hfiles_open(mon->conf.state_dir, h->row.handle_id,
		    which[i], 0, &fds[i])) != CL_OK) {
			if (fds[0] != -1)
				close(fds[0]);
			return r;
		}
	for (i = 0; i < 2; i++) {
		body.log = which[i] == HFILES_LOG;
		MON_SEND(c, HANDLE_SEAL, 0, &body, fds[i]);
	}
	h->sealer = c->generation;
	h->seal_until = util_now_ms() + LOGSEAL_MS;
	mon->handles.nsealing++;
	return CL_OK;
}

/* The next ones, as far as they may be under way. */
static void
logseal_run(struct monitor *mon)
{
	struct handle *h, *next;
	struct child *c;

	for (h = TAILQ_FIRST(&mon->handles.seals); h != NULL &&
	    mon->handles.nsealing < HANDLES_SEALING; h = next) {
		next = TAILQ_NEXT(h, of_seals);
		if (h->sealer != 0 ||
		    (c = logseal_find_child(mon, h)) == NULL ||
		    c->state != MS_SERVING)
			continue;
		/* What cannot be opened has its length and time. */
		if (logseal_ask(mon, h, c) != CL_OK)
			handles_end_seal(&mon->handles, h);
	}
}

/* Who does not answer does not keep the others waiting. */
static void
logseal_drop_late(struct monitor *mon)
{
	struct handle *h, *next;
	int64_t now = util_now_ms();

	for (h = TAILQ_FIRST(&mon->handles.seals); h != NULL; h = next) {
		next = TAILQ_NEXT(h, of_seals);
		if (h->sealer == 0 || now < h->seal_until)
			continue;
		log_warn("handle-seal", "handle=%s reason=\"no answer\"",
		    log_q(h->row.handle_id));
		handles_end_seal(&mon->handles, h);
	}
}

void
logseal_end(struct monitor *mon, struct handle *h, int is_written)
{
	if (is_written || h->session == 0)
		logseal_stamp(mon, h);
	if (!h->is_sealing)
		TAILQ_INSERT_TAIL(&mon->handles.seals, h, of_seals);
	h->is_sealing = 1;
	logseal_run(mon);
}

void
logseal_release(struct monitor *mon, struct handle *h)
{
	logseal_stamp(mon, h);
	logseal_save(mon, h);
}

void
logseal_end_worker(struct monitor *mon, uint64_t generation)
{
	struct handle *h;

	TAILQ_FOREACH(h, &mon->handles.seals, of_seals)
		if (h->sealer == generation) {
			h->sealer = 0;
			mon->handles.nsealing--;
		}
	logseal_run(mon);
}

/* Are they still what they were when it ended, and what was read? */
static int
logseal_is_same(struct monitor *mon, struct handle *h, uint64_t log_bytes,
    uint64_t index_bytes)
{
	struct stat log, index;

	logseal_stamp(mon, h);
	return logseal_stat(mon, h, &log, &index) == CL_OK &&
	    (uint64_t)log.st_size == log_bytes &&
	    (uint64_t)index.st_size == index_bytes &&
	    h->row.log_bytes == log_bytes &&
	    h->row.index_bytes == index_bytes &&
	    h->row.log_modified_at == logseal_get_time(&log) &&
	    h->row.index_modified_at == logseal_get_time(&index);
}

int
answer_handle_sealed(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_HANDLE_SEALED *v)
{
	struct handle *h;

	(void)m;
	if (v->handle == 0 || v->handle > mon->handles.last_number ||
	    (v->log_sha256[0] != '\0' && !rule_is_hex(v->log_sha256, 64)) ||
	    (v->index_sha256[0] != '\0' && !rule_is_hex(v->index_sha256, 64)))
		return CL_FORMAT;
	if ((h = handles_find(&mon->handles, v->handle)) == NULL)
		return CL_OK;	/* forgotten meanwhile */
	if (h->sealer != c->generation)
		return CL_OK;	/* it took too long, or ended */
	handles_end_seal(&mon->handles, h);
	if (!logseal_is_same(mon, h, v->log_bytes, v->index_bytes))
		log_warn("handle-seal", "handle=%s reason=\"changed after its "
		    "end\"", log_q(h->row.handle_id));
	else if (v->log_sha256[0] != '\0' && v->index_sha256[0] != '\0') {
		strlcpy(h->row.log_sha256, v->log_sha256,
		    sizeof(h->row.log_sha256));
		strlcpy(h->row.index_sha256, v->index_sha256,
		    sizeof(h->row.index_sha256));
	}
	logseal_save(mon, h);
	logseal_run(mon);
	return CL_OK;
}

void
logseal_on_tick(struct monitor *mon)
{
	struct handle *h;
	struct session *s;
	struct child *c;
	int i;

	logseal_drop_late(mon);
	logseal_run(mon);
	for (i = 0; i < LOGSEAL_LOOKS; i++) {
		h = handles_find_from(&mon->handles, mon->handles.looked + 1);
		mon->handles.looked = h != NULL ? h->row.number : 0;
		if (h == NULL)
			return;
		if (handle_is_closed(h) || !logseal_is_over(mon, h) ||
		    (s = agents_find_session(&mon->agents, h->session)) ==
		    NULL || (c = mon_find_child(mon, s->generation)) == NULL)
			continue;
		/* Its table of sessions changes with it: next tick goes on. */
		child_kill(c, "the output files of a handle are larger than "
		    "they may be");
		return;
	}
}
