/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The table of handles and of those who wait for them.  Memory only; the
 * store and the log files are brought along by whoever calls (dispatch,
 * answer_handle).
 */
#include "handles.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "agents.h"
#include "hwork.h"

static int
handle_number_cmp(struct handle *a, struct handle *b)
{
	return a->row.number < b->row.number ? -1 :
	    a->row.number > b->row.number;
}

static int
handle_id_cmp(struct handle *a, struct handle *b)
{
	return strcmp(a->row.handle_id, b->row.handle_id);
}

RB_GENERATE_INTERNAL(handle_number_tree, handle, by_number, handle_number_cmp,
    __attribute__((__unused__)) static)
RB_GENERATE_INTERNAL(handle_id_tree, handle, by_id, handle_id_cmp,
    __attribute__((__unused__)) static)

void
handles_init(struct handles *t)
{
	memset(t, 0, sizeof(*t));
	RB_INIT(&t->numbers);
	RB_INIT(&t->ids);
	TAILQ_INIT(&t->seals);
}

void
handles_clear(struct handles *t)
{
	struct handle *h;
	struct waiter *w;

	while ((h = RB_MIN(handle_number_tree, &t->numbers)) != NULL) {
		while ((w = TAILQ_FIRST(&h->waiters)) != NULL)
			handle_del_waiter(h, w);
		handles_del(t, h);
	}
	handles_init(t);
}

int
handle_is_closed(const struct handle *h)
{
	return h->row.closed_at != UTIL_TIME_ZERO;
}

struct handle *
handles_add(struct handles *t, struct agent *a, struct store_handle *row)
{
	struct handle *h;

	if ((h = calloc(1, sizeof(*h))) == NULL) {
		store_handle_clear(row);
		return NULL;
	}
	h->row = *row;
	memset(row, 0, sizeof(*row));
	h->row.log_modified_at = h->row.index_modified_at = UTIL_TIME_ZERO;
	h->agent = a;
	TAILQ_INIT(&h->waiters);
	if (RB_INSERT(handle_number_tree, &t->numbers, h) != NULL) {
		store_handle_clear(&h->row);
		free(h);
		return NULL;
	}
	RB_INSERT(handle_id_tree, &t->ids, h);
	TAILQ_INSERT_TAIL(&a->handles, h, of_agent);
	if (h->row.number > t->last_number)
		t->last_number = h->row.number;
	t->nhandles++;
	t->nrunning++;
	a->nrunning++;
	return h;
}

void
handles_end_seal(struct handles *t, struct handle *h)
{
	if (!h->is_sealing)
		return;
	TAILQ_REMOVE(&t->seals, h, of_seals);
	if (h->sealer != 0)
		t->nsealing--;
	h->sealer = 0;
	h->is_sealing = 0;
}

/* Its share of the budget goes with it; its files are the caller's. */
static void
handles_del_work(struct handles *t, struct handle *h)
{
	uint64_t n;

	if (h->work == NULL)
		return;
	n = h->work->held + h->work->project_held;
	t->pinned -= n < t->pinned ? n : t->pinned;
	h->agent->pinned -= n < h->agent->pinned ? n : h->agent->pinned;
	work_free(h->work);
	h->work = NULL;
}

/* Bytes that may still be collected keep their handle in the table. */
static int
handles_is_holding(const struct handle *h)
{
	return h->work != NULL && (h->work->bundle || h->work->project);
}

void
handles_del(struct handles *t, struct handle *h)
{
	handles_del_work(t, h);
	handles_end_seal(t, h);
	RB_REMOVE(handle_number_tree, &t->numbers, h);
	RB_REMOVE(handle_id_tree, &t->ids, h);
	TAILQ_REMOVE(&h->agent->handles, h, of_agent);
	t->nhandles--;
	if (handle_is_closed(h)) {
		h->agent->nclosed--;
		t->nclosed--;
	} else {
		h->agent->nrunning--;
		t->nrunning--;
	}
	store_handle_clear(&h->row);
	free(h->abandoned);
	free(h);
}

struct handle *
handles_find(struct handles *t, uint64_t number)
{
	struct handle key;

	memset(&key, 0, sizeof(key));
	key.row.number = number;
	return RB_FIND(handle_number_tree, &t->numbers, &key);
}

struct handle *
handles_find_from(struct handles *t, uint64_t number)
{
	struct handle key;

	memset(&key, 0, sizeof(key));
	key.row.number = number;
	return RB_NFIND(handle_number_tree, &t->numbers, &key);
}

struct handle *
handles_find_id(struct handles *t, const char *id)
{
	struct handle key;

	memset(&key, 0, sizeof(key));
	key.row.handle_id = (char *)(uintptr_t)id;
	return RB_FIND(handle_id_tree, &t->ids, &key);
}

struct handle *
handles_next(struct handles *t, const struct handle *h)
{
	if (h == NULL)
		return RB_MIN(handle_number_tree, &t->numbers);
	return RB_NEXT(handle_number_tree, &t->numbers,
	    (struct handle *)(uintptr_t)h);
}

void
handles_close(struct handles *t, struct handle *h)
{
	struct agent *a = h->agent;
	struct handle *old, *next;

	a->nrunning--;
	a->nclosed++;
	t->nrunning--;
	t->nclosed++;
	for (old = TAILQ_FIRST(&a->handles); old != NULL &&
	    (a->nclosed > HANDLES_CLOSED_PER_AGENT ||
	    t->nclosed > HANDLES_CLOSED_TOTAL); old = next) {
		next = TAILQ_NEXT(old, of_agent);
		if (old != h && handle_is_closed(old) && !old->unsaved &&
		    TAILQ_EMPTY(&old->waiters) && !handles_is_holding(old))
			handles_del(t, old);
	}
}

int
handle_add_waiter(struct handle *h, uint64_t id, enum waiter_kind kind)
{
	struct waiter *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return CL_NOMEM;
	w->id = id;
	w->kind = kind;
	TAILQ_INSERT_TAIL(&h->waiters, w, entry);
	return CL_OK;
}

struct waiter *
handle_find_waiter(struct handle *h, uint64_t id)
{
	struct waiter *w;

	TAILQ_FOREACH(w, &h->waiters, entry)
		if (w->id == id)
			return w;
	return NULL;
}

void
handle_del_waiter(struct handle *h, struct waiter *w)
{
	TAILQ_REMOVE(&h->waiters, w, entry);
	free(w);
}

void
handle_set_text(char **dst, const char *text)
{
	char *copy = strdup(text != NULL ? text : "");

	if (copy == NULL)
		return;
	free(*dst);
	*dst = copy;
}

struct handles_loading {
	struct handles *t;
	struct agents *agents;
};

/* Copy of a row the store lent us. */
static int
handles_copy_row(struct store_handle *dst, const struct store_handle *src)
{
	static const size_t texts[] = {
		offsetof(struct store_handle, handle_id),
		offsetof(struct store_handle, agent_id),
		offsetof(struct store_handle, name),
		offsetof(struct store_handle, created_by),
		offsetof(struct store_handle, project_path),
		offsetof(struct store_handle, task_id),
		offsetof(struct store_handle, image),
		offsetof(struct store_handle, meta),
		offsetof(struct store_handle, secrets),
		offsetof(struct store_handle, outcome),
		offsetof(struct store_handle, error),
	};
	size_t i;
	char **d, *const *s;

	*dst = *src;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*(char **)(void *)((char *)dst + texts[i]) = NULL;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		d = (char **)(void *)((char *)dst + texts[i]);
		s = (char *const *)(const void *)
		    ((const char *)src + texts[i]);
		if ((*d = strdup(*s != NULL ? *s : "")) == NULL) {
			store_handle_clear(dst);
			return CL_NOMEM;
		}
	}
	return CL_OK;
}

/*
 * Each row becomes a handle in state running, gapped, whose output is what
 * its files say.  The device's next offer or beat tells the rest.
 */
static int
handles_on_row(const struct store_handle *row, void *arg)
{
	struct handles_loading *l = arg;
	struct agent *a = agents_find(l->agents, row->agent_id);
	struct store_handle copy;
	struct handle *h;

	if (a == NULL)
		return 0;
	if (handles_copy_row(&copy, row) != CL_OK)
		return CL_NOMEM;
	copy.state = HS_RUNNING;
	copy.gapped = 1;
	if (copy.started_at == UTIL_TIME_ZERO)
		copy.started_at = copy.dispatched_at;
	if ((h = handles_add(l->t, a, &copy)) == NULL)
		return CL_NOMEM;
	h->adopted = 1;
	return 0;
}

int
handles_load(struct handles *t, struct agents *a, struct store *s)
{
	struct handles_loading l = { t, a };

	return store_list_handles(s, NULL, 1, handles_on_row, &l);
}
