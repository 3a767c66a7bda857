/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Returned work in the monitor: budget, files, release.  Bytes of a device
 * are never read here; they are in files of the handle's directory that the
 * worker writes and cloopctl reads, through descriptors opened here.
 */
#include "hwork.h"

#include <sys/stat.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/workmsg.h"
#include "common/msg/msgcat.h"
#include "agents.h"
#include "ctlout.h"
#include "handles.h"
#include "hfiles.h"
#include "monitor.h"

#define WORK_RELEASE_MS 900000	/* 15 minutes after the end */
#define WORK_TICK_MS 5000

/* --- budget --- */

/* Counters of agent and hub; never below zero. */
static void
work_give_back(struct monitor *mon, struct handle *h, uint64_t *heldp)
{
	struct agent *a = h->agent;

	a->pinned -= *heldp < a->pinned ? *heldp : a->pinned;
	mon->handles.pinned -= *heldp < mon->handles.pinned ? *heldp :
	    mon->handles.pinned;
	*heldp = 0;
}

static void
work_hold(struct monitor *mon, struct handle *h, uint64_t *heldp, uint64_t n)
{
	h->agent->pinned += n;
	mon->handles.pinned += n;
	*heldp += n;
}

static uint64_t
work_get_room(uint64_t limit, uint64_t used)
{
	return used < limit ? limit - used : 0;
}

/* The agent first, then the hub. */
static int
work_find_room(struct monitor *mon, const struct handle *h, uint64_t min,
    uint64_t *roomp)
{
	uint64_t mine = work_get_room(mon->conf.write_back_budget,
	    h->agent->pinned);
	uint64_t all = work_get_room(mon->conf.write_back_total,
	    mon->handles.pinned);

	*roomp = mine < all ? mine : all;
	if (mine < min)
		return TAKE_AGENT;
	return all < min ? TAKE_TOTAL : TAKE_OK;
}

int
work_reserve(struct monitor *mon, struct handle *h, int restart,
    uint32_t min, uint32_t max, uint32_t *grantedp)
{
	struct work *w = h->work;
	uint64_t room;
	int verdict;

	*grantedp = 0;
	if (restart)
		work_give_back(mon, h, &w->held);
	if ((verdict = work_find_room(mon, h, min, &room)) != TAKE_OK)
		return verdict;
	*grantedp = room < max ? (uint32_t)room : max;
	work_hold(mon, h, &w->held, *grantedp);
	return TAKE_OK;
}

/* --- the record --- */

static void
work_save(struct monitor *mon, struct handle *h)
{
	char *meta;

	if (work_format_meta(h->work, &meta) != CL_OK)
		return;
	free(h->row.meta);
	h->row.meta = meta;
	if (store_save_handle_meta(mon->store, h->row.number, meta) == CL_DB)
		mon_set_error(mon, store_error(mon->store));
}

int
work_get_result(const struct work *w, const char *handle_id, int closed,
    struct work_result *res)
{
	memset(res, 0, sizeof(*res));
	if (w == NULL || (w->state == WORK_WAITING && !w->seeded &&
	    w->asked != WORK_PUSH && w->asked != WORK_BUNDLE))
		return 0;
	res->handle_id = (char *)(uintptr_t)handle_id;
	res->mode = w->mode != NULL && w->mode[0] != '\0' ? w->mode :
	    (char *)(uintptr_t)(w->asked == WORK_PUSH ? "push" :
	    w->asked == WORK_BUNDLE ? "bundle" : "");
	res->done = w->state != WORK_WAITING || closed;
	res->branch = w->branch;
	res->commit = w->commit;
	res->base = w->base;
	res->bytes = w->bytes;
	res->sha256 = w->sha256;
	res->commits = w->commits;
	res->files_changed = w->files_changed;
	res->skipped = w->skipped;
	res->pushed = w->pushed;
	if (w->skipped)
		res->skip_reason = w->text;
	else
		res->error = w->text;
	res->held = w->bundle && w->state == WORK_DONE;
	res->project_held = w->project;
	res->project_error = w->project_error;
	return 1;
}

void
work_send(struct monitor *mon, const struct session *s,
    const struct handle *h)
{
	const struct work *w = h->work;
	struct msg_handle_work body = { .handle = h->row.number };

	if (w == NULL || (w->asked == WORK_NONE && !w->seeded))
		return;
	body.asked = w->asked;
	body.cap = w->cap;
	body.seeded = w->seeded;
	body.over = w->state == WORK_DONE;
	body.branch = w->branch;
	if (w->state == WORK_FAILED)
		body.failure = "it failed before";
	MON_SEND(mon_find_child(mon, s->generation), HANDLE_WORK, 0, &body,
	    -1);
}

/* --- bundle --- */

void
work_drop_bundle(struct monitor *mon, struct handle *h)
{
	struct work *w = h->work;

	if (w == NULL)
		return;
	if (w->bundle || w->session != 0) {
		hfiles_unlink(mon->conf.state_dir, h->row.handle_id,
		    HFILES_PART);
		hfiles_unlink(mon->conf.state_dir, h->row.handle_id,
		    HFILES_BUNDLE);
	}
	w->bundle = 0;
	w->session = 0;
	work_give_back(mon, h, &w->held);
}

void
work_fail_bundle(struct monitor *mon, struct handle *h, const char *text)
{
	struct work *w = h->work;

	work_drop_bundle(mon, h);
	w->state = WORK_FAILED;
	w->skipped = 0;
	handle_set_text(&w->text, text);
	work_save(mon, h);
	log_warn("write-back-failed", "handle=%s agent=%s reason=%s",
	    log_q(h->row.handle_id), log_q(h->row.agent_id), log_q(text));
}

static void
work_set_names(struct work *w, const struct work_end *end)
{
	handle_set_text(&w->mode, end->mode);
	handle_set_text(&w->commit, end->commit);
	handle_set_text(&w->sha256, end->sha256);
	handle_set_text(&w->text, end->text);
	if (w->branch == NULL || w->branch[0] == '\0')
		handle_set_text(&w->branch, end->branch);
	if (w->base == NULL || w->base[0] == '\0')
		handle_set_text(&w->base, end->base);
	w->skipped = end->skipped;
	w->pushed = end->pushed;
	w->bytes = end->bytes;
	w->commits = end->commits;
	w->files_changed = end->files_changed;
}

int
work_end_bundle(struct monitor *mon, struct handle *h,
    const struct work_end *end)
{
	struct work *w = h->work;

	if (end->failed) {
		work_fail_bundle(mon, h, end->text);
		return CL_OK;
	}
	if (end->bytes == 0)
		work_drop_bundle(mon, h);
	else if (!w->bundle)
		return CL_FORMAT;
	else if (hfiles_rename(mon->conf.state_dir, h->row.handle_id,
	    HFILES_PART, HFILES_BUNDLE) != CL_OK) {
		work_fail_bundle(mon, h, "the hub could not keep the bundle");
		return CL_OK;
	}
	w->session = 0;
	w->state = WORK_DONE;
	work_set_names(w, end);
	/* Reserved ahead and not used. */
	if (end->cost < w->held) {
		uint64_t excess = w->held - end->cost, kept = end->cost;

		work_give_back(mon, h, &excess);
		w->held = kept;
	}
	work_save(mon, h);
	return CL_OK;
}

/* --- project --- */

void
work_drop_project(struct monitor *mon, struct handle *h)
{
	struct work *w = h->work;

	if (w == NULL || !w->project)
		return;
	hfiles_unlink(mon->conf.state_dir, h->row.handle_id, HFILES_PROJECT);
	w->project = 0;
	work_give_back(mon, h, &w->project_held);
}

static int
work_write_project(struct monitor *mon, struct handle *h, const void *data,
    size_t len)
{
	int fd, r;

	if ((r = hfiles_create(mon->conf.state_dir, h->row.handle_id,
	    HFILES_PROJECT, &fd)) != CL_OK)
		return r;
	r = util_write_all(fd, data, len);
	close(fd);
	if (r != CL_OK)
		hfiles_unlink(mon->conf.state_dir, h->row.handle_id,
		    HFILES_PROJECT);
	return r;
}

int
work_save_project(struct monitor *mon, struct handle *h, const void *data,
    size_t len, const char *error)
{
	struct work *w = h->work;
	uint64_t room;
	int verdict;

	/* A later one replaces an earlier one, budget and all. */
	work_drop_project(mon, h);
	handle_set_text(&w->project_error, error);
	if (data != NULL) {
		verdict = work_find_room(mon, h, len + WORK_CHUNK_COST,
		    &room);
		/* It is told what becomes of it: this one comes again. */
		if (verdict == TAKE_OK && work_write_project(mon, h, data,
		    len) != CL_OK)
			return TAKE_LATER;
		if (verdict != TAKE_OK) {
			handle_set_text(&w->project_error,
			    "the hub had no room for it");
			work_save(mon, h);
			return verdict;
		}
		w->project = 1;
		work_hold(mon, h, &w->project_held, len + WORK_CHUNK_COST);
	}
	work_save(mon, h);
	return TAKE_OK;
}

/* --- ends --- */

void
work_close(struct monitor *mon, struct handle *h)
{
	struct work *w = h->work;

	if (w == NULL)
		return;
	if (h->abandoned != NULL) {
		work_drop_bundle(mon, h);
		work_drop_project(mon, h);
	}
	if (w->state != WORK_WAITING || (w->asked != WORK_PUSH &&
	    w->asked != WORK_BUNDLE && !w->bundle))
		return;
	work_fail_bundle(mon, h, w->bundle ? "bytes came, but the workload "
	    "ended without a result for them" :
	    "the workload ended without a result");
}

static int
work_is_due(const struct handle *h, int64_t now)
{
	struct work *w = h->work;
	int64_t ago;

	if (w == NULL || (!w->bundle && !w->project) || !handle_is_closed(h))
		return 0;
	if (h->agent->row.revoked_at != UTIL_TIME_ZERO)
		return 1;
	/* The wall clock is asked once, for what an earlier process closed:
	 * whoever sets it later takes no work away. */
	if (w->due_at == 0) {
		ago = (util_wall_ns() - h->row.closed_at) / 1000000;
		if (ago < 0 || ago > WORK_RELEASE_MS)
			ago = ago < 0 ? 0 : WORK_RELEASE_MS;
		w->due_at = now + WORK_RELEASE_MS - ago;
	}
	return now >= w->due_at;
}

void
work_on_tick(struct monitor *mon)
{
	int64_t now = util_now_ms();
	struct handle *h;

	if (now - mon->handles.released_at < WORK_TICK_MS)
		return;
	mon->handles.released_at = now;
	for (h = handles_next(&mon->handles, NULL); h != NULL;
	    h = handles_next(&mon->handles, h)) {
		if (!work_is_due(h, now))
			continue;
		log_info("work-released", "handle=%s bytes=%llu",
		    log_q(h->row.handle_id),
		    (unsigned long long)h->work->bytes);
		work_drop_bundle(mon, h);
		work_drop_project(mon, h);
	}
}

/* --- start-up --- */

static int
work_find_file(struct monitor *mon, const char *handle_id,
    enum hfiles_which which, uint64_t *lenp)
{
	struct stat st;
	int fd, ok;

	*lenp = 0;
	if (hfiles_open(mon->conf.state_dir, handle_id, which, 0, &fd) !=
	    CL_OK)
		return 0;
	ok = fstat(fd, &st) == 0;
	if (ok)
		*lenp = (uint64_t)st.st_size;
	close(fd);
	return ok;
}

/* The files decide; what they hold counts again. */
static void
work_load_files(struct monitor *mon, struct handle *h)
{
	struct work *w = h->work;
	uint64_t len;

	hfiles_unlink(mon->conf.state_dir, h->row.handle_id, HFILES_PART);
	if (w->state == WORK_DONE && work_find_file(mon, h->row.handle_id,
	    HFILES_BUNDLE, &len)) {
		w->bundle = 1;
		work_hold(mon, h, &w->held, len + WORK_CHUNK_COST);
	}
	if (work_find_file(mon, h->row.handle_id, HFILES_PROJECT, &len)) {
		w->project = 1;
		work_hold(mon, h, &w->project_held, len + WORK_CHUNK_COST);
	}
}

void
work_load_open(struct monitor *mon, struct handle *h)
{
	if (work_parse_meta(h->row.meta, &h->work) == CL_OK)
		work_load_files(mon, h);
}

void
work_load_closed(struct monitor *mon, const char *handle_id)
{
	struct store_handle row;
	struct handle *h;
	struct agent *a;
	uint64_t len;

	if (handles_find_id(&mon->handles, handle_id) != NULL)
		return;
	hfiles_unlink(mon->conf.state_dir, handle_id, HFILES_PART);
	if (!work_find_file(mon, handle_id, HFILES_BUNDLE, &len) &&
	    !work_find_file(mon, handle_id, HFILES_PROJECT, &len))
		return;
	if (store_find_handle(mon->store, handle_id, &row) != CL_OK)
		return;
	a = agents_find(&mon->agents, row.agent_id);
	if (a == NULL || row.closed_at == UTIL_TIME_ZERO) {
		store_handle_clear(&row);
		return;
	}
	if ((h = handles_add(&mon->handles, a, &row)) == NULL)
		return;
	work_load_open(mon, h);
	handles_close(&mon->handles, h);
}
