/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work that goes to a device and comes back, as the monitor knows it: what
 * one workload was asked to return, what has come, how much of the budget it
 * holds, and when its bytes go.
 */
#ifndef PRIV_HWORK_H
#define PRIV_HWORK_H

#include <stddef.h>
#include <stdint.h>

struct dispatch;
struct handle;
struct monitor;
struct refusal;
struct session;
struct spec;
struct work_end;
struct work_result;

enum work_state { WORK_WAITING, WORK_DONE, WORK_FAILED };

struct work {
	/* asked, at the dispatch */
	int asked;		/* WORK_* of msgcat.h */
	int seeded;
	uint64_t cap;
	char *branch;
	char *base;		/* what a returned branch must descend from */
	/* where the tree comes from, for the record */
	char *kind, *repo, *ref, *grant;
	int64_t depth;
	/* came */
	enum work_state state;
	int skipped, pushed;
	char *mode, *commit, *sha256;
	char *text;		/* reason of a skip, or what failed */
	uint64_t bytes;
	int64_t commits, files_changed;
	char *project_error;
	/* held */
	int bundle, project;	/* the file is there */
	int64_t due_at;		/* monotonic ms: let go; 0: not known yet */
	uint64_t session;	/* has the unfinished bundle open; 0 */
	uint64_t held, project_held;	/* of the budget */
};

/* What a spec asks for.  NULL without memory. */
struct work *work_new(const struct spec *spec);
void work_free(struct work *w);
/* The handle row's meta.  CL_NOMEM, CL_TOOBIG. */
int work_format_meta(const struct work *w, char **textp);
/* A row without a record gives WORK_UNKNOWN. */
int work_parse_meta(const char *meta, struct work **wp);

/* 1 when there is anything to be told; strings are borrowed. */
int work_get_result(const struct work *w, const char *handle_id, int closed,
    struct work_result *res);

/* Tell the worker that has the handle what may come (HANDLE_WORK). */
void work_send(struct monitor *mon, const struct session *s,
    const struct handle *h);
/* Gate "branch": the file is what the spec says.  0: it is. */
int work_check_branch(const struct dispatch *d, struct refusal *r);
/* The file, before its START.  CL_SYSTEM. */
int work_send_branch(struct monitor *mon, const struct session *s,
    const struct handle *h, const struct dispatch *d);

/*
 * Room for min to max bytes; restart: what was held is given back first.
 * TAKE_*; *grantedp.
 */
int work_reserve(struct monitor *mon, struct handle *h, int restart,
    uint32_t min, uint32_t max, uint32_t *grantedp);
/* A result was judged by the worker.  CL_FORMAT: it cannot be. */
int work_end_bundle(struct monitor *mon, struct handle *h,
    const struct work_end *end);
/* It failed: no bytes are kept. */
void work_fail_bundle(struct monitor *mon, struct handle *h,
    const char *text);
/* Keep a project's document; data NULL: the device's error. TAKE_*. */
int work_save_project(struct monitor *mon, struct handle *h,
    const void *data, size_t len, const char *error);
/* Collected or given up: the bytes go. */
void work_drop_bundle(struct monitor *mon, struct handle *h);
void work_drop_project(struct monitor *mon, struct handle *h);

/* The workload is over: what has not come by now never will. */
void work_close(struct monitor *mon, struct handle *h);
/* Seconds: release what nobody collected. */
void work_on_tick(struct monitor *mon);
/*
 * At the start, for each directory whose handle is over: results that may
 * still be collected come back into the table, other bytes go.
 */
void work_load_closed(struct monitor *mon, const char *handle_id);
/* The same for one that is still open: only a whole bundle was kept. */
void work_load_open(struct monitor *mon, struct handle *h);

#endif
