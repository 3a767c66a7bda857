/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a workload was asked to return and what came of it, in memory and as
 * the handle row's meta: one flat JSON object of strings.
 */
#include "hwork.h"

#include <bsd/stdlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/json/flatjson.h"
#include "common/model/spec.h"
#include "common/model/workmsg.h"
#include "common/msg/msgcat.h"

#define S(m) offsetof(struct work, m)

/* Strings of the record. */
static const struct {
	const char *key;
	size_t off;
} work_texts[] = {
	{ "writeback_branch", S(branch) }, { "writeback_base", S(base) },
	{ "workspace_kind", S(kind) }, { "workspace_repo", S(repo) },
	{ "workspace_ref", S(ref) }, { "workspace_grant", S(grant) },
	{ "result_mode", S(mode) }, { "result_commit", S(commit) },
	{ "result_sha256", S(sha256) }, { "result_text", S(text) },
	{ "project_error", S(project_error) },
};
/* Numbers, by size. */
static const struct {
	const char *key;
	size_t off;
	int is_int;
} work_numbers[] = {
	{ "project_seeded", S(seeded), 1 }, { "writeback_cap", S(cap), 0 },
	{ "workspace_depth", S(depth), 0 }, { "result_state", S(state), 1 },
	{ "result_skipped", S(skipped), 1 }, { "result_pushed", S(pushed), 1 },
	{ "result_bytes", S(bytes), 0 }, { "result_commits", S(commits), 0 },
	{ "result_files", S(files_changed), 0 },
};
#define NTEXTS (sizeof(work_texts) / sizeof(work_texts[0]))
#define NNUMBERS (sizeof(work_numbers) / sizeof(work_numbers[0]))

_Static_assert(sizeof(enum work_state) == sizeof(int) &&
    sizeof(uint64_t) == sizeof(int64_t), "read as numbers");

static const char *const work_modes[] = { "", "push", "bundle" };

static char **
work_get_text(const struct work *w, size_t i)
{
	return (char **)(uintptr_t)((const char *)w + work_texts[i].off);
}

static int64_t
work_get_number(const struct work *w, size_t i)
{
	const char *p = (const char *)w + work_numbers[i].off;
	int64_t wide;
	int narrow;

	if (work_numbers[i].is_int) {
		memcpy(&narrow, p, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, p, sizeof(wide));
	return wide;
}

static void
work_set_number(struct work *w, size_t i, int64_t v)
{
	char *p = (char *)w + work_numbers[i].off;
	int narrow = (int)v;

	if (work_numbers[i].is_int)
		memcpy(p, &narrow, sizeof(narrow));
	else
		memcpy(p, &v, sizeof(v));
}

void
work_free(struct work *w)
{
	size_t i;

	if (w == NULL)
		return;
	for (i = 0; i < NTEXTS; i++)
		free(*work_get_text(w, i));
	free(w);
}

static char *
work_dup(const char *s)
{
	return strdup(s != NULL ? s : "");
}

struct work *
work_new(const struct spec *spec)
{
	const struct spec_workspace *ws = &spec->workspace;
	const struct spec_write_back *wb = &spec->write_back;
	struct work *w;
	size_t i;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	for (i = 1; i < 3; i++)
		if (wb->mode != NULL && strcmp(wb->mode, work_modes[i]) == 0)
			w->asked = (int)i;
	w->seeded = spec->project_seed_len > 0;
	w->cap = wb->max_bundle_bytes > 0 ? (uint64_t)wb->max_bundle_bytes :
	    WORK_CAP_DEFAULT;
	w->branch = work_dup(wb->branch);
	w->base = work_dup(w->asked == WORK_NONE ? "" :
	    ws->branch_bundle != NULL ? ws->branch_bundle->head : ws->ref);
	w->kind = work_dup(ws->kind);
	w->repo = work_dup(ws->repo);
	w->ref = work_dup(ws->ref);
	w->grant = work_dup(ws->credential_grant);
	w->depth = ws->depth;
	if (w->branch != NULL && w->base != NULL && w->kind != NULL &&
	    w->repo != NULL && w->ref != NULL && w->grant != NULL)
		return w;
	work_free(w);
	return NULL;
}

int
work_format_meta(const struct work *w, char **textp)
{
	struct flatjson doc;
	char number[24];
	size_t i, len;
	int r;

	*textp = NULL;
	flatjson_init(&doc);
	r = flatjson_put_string(&doc, "writeback_mode",
	    w->asked <= WORK_BUNDLE ? work_modes[w->asked] : "unknown");
	for (i = 0; r == CL_OK && i < NTEXTS; i++) {
		char *text = *work_get_text(w, i);

		if (text != NULL && text[0] != '\0')
			r = flatjson_put_string(&doc, work_texts[i].key,
			    text);
	}
	for (i = 0; r == CL_OK && i < NNUMBERS; i++) {
		if (work_get_number(w, i) == 0)
			continue;
		snprintf(number, sizeof(number), "%lld",
		    (long long)work_get_number(w, i));
		r = flatjson_put_string(&doc, work_numbers[i].key, number);
	}
	if (r == CL_OK)
		r = flatjson_format(&doc, 0, textp, &len);
	flatjson_clear(&doc);
	return r;
}

/* Of our own writing, but a store may be edited. */
static int
work_load_meta(const struct flatjson *doc, struct work *w)
{
	const char *s, *why;
	long long v;
	size_t i;

	for (i = 0; i < NTEXTS; i++) {
		if (flatjson_find_string(doc, work_texts[i].key, &s) != CL_OK)
			s = "";
		if ((*work_get_text(w, i) = strdup(s)) == NULL)
			return CL_NOMEM;
	}
	for (i = 0; i < NNUMBERS; i++) {
		if (flatjson_find_string(doc, work_numbers[i].key, &s) !=
		    CL_OK)
			continue;
		v = strtonum(s, INT64_MIN, INT64_MAX, &why);
		if (why == NULL)
			work_set_number(w, i, v);
	}
	if ((int)w->state < WORK_WAITING || (int)w->state > WORK_FAILED)
		w->state = WORK_FAILED;
	return CL_OK;
}

int
work_parse_meta(const char *meta, struct work **wp)
{
	struct flatjson doc;
	const char *mode = NULL;
	struct work *w;
	size_t i;
	int r;

	*wp = NULL;
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return CL_NOMEM;
	if (meta == NULL || flatjson_parse(meta, strlen(meta), &doc) != CL_OK)
		flatjson_init(&doc);
	r = work_load_meta(&doc, w);
	/* Without a record the hard ceiling alone holds. */
	w->asked = WORK_UNKNOWN;
	if (flatjson_find_string(&doc, "writeback_mode", &mode) == CL_OK)
		for (i = 0; i < 3; i++)
			if (strcmp(mode, work_modes[i]) == 0)
				w->asked = (int)i;
	if (w->asked == WORK_UNKNOWN || w->cap == 0 || w->cap > MAX_BUNDLE_LEN)
		w->cap = MAX_BUNDLE_LEN;
	flatjson_clear(&doc);
	if (r != CL_OK) {
		work_free(w);
		return r;
	}
	*wp = w;
	return CL_OK;
}
