/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The tables of the payloads (frame.def), and what a receiver checks, trims
 * or cleans when it decodes one: frame_check_PAYLOAD.  Runs where frame.c
 * runs.
 */
#include <bsd/stdlib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "frame_int.h"

#define DEF_FILE "net/codec/frame.def"
#include "common/msg/def_table.h"

#define MAX_GIT_CA_URLS 8

int
frame_check_hello(struct jx *x, void *payload)
{
	struct frame_hello *hello = payload;

	(void)x;
	frame_trim(hello->agent_version);
	caps_clean(&hello->capabilities);
	return CL_OK;
}

int
frame_check_inventory(struct jx *x, void *payload)
{
	struct frame_inventory *inventory = payload;

	(void)x;
	caps_clean(&inventory->capabilities);
	return CL_OK;
}

int
frame_check_signal(struct jx *x, void *payload)
{
	const struct frame_signal *p = payload;

	if (frame_parse_signal(p->signal) == 0)
		return jx_fail(x, CL_FORMAT, "signal: \"%.32s\" is unknown",
		    p->signal == NULL ? "" : p->signal);
	return CL_OK;
}

int
frame_check_start(struct jx *x, void *payload)
{
	struct spec *s = payload;
	char *why;
	int r;

	if ((r = spec_check_siblings(s, &why)) != 0)
		return frame_take_why(x, r, why);
	spec_trim_sandbox(&s->sandbox);
	return CL_OK;
}

/* A chunk of len bytes that must lie in [0, total). */
static int
frame_check_chunk(struct jx *x, int64_t offset, size_t len, int64_t total)
{
	if (len == 0)
		return jx_fail(x, CL_FORMAT, "data: empty");
	if (offset > total || (int64_t)len > total - offset)
		return jx_fail(x, CL_FORMAT, "data: ends behind %lld",
		    (long long)total);
	return CL_OK;
}

int
frame_check_result_chunk(struct jx *x, void *payload)
{
	const struct frame_result_chunk *p = payload;

	return frame_check_chunk(x, p->offset, p->data_len, MAX_BUNDLE_LEN);
}

int
frame_check_branch_chunk(struct jx *x, void *payload)
{
	const struct frame_branch_chunk *p = payload;

	if (p->total < 1)
		return jx_fail(x, CL_FORMAT, "total: 0");
	return frame_check_chunk(x, p->offset, p->data_len, p->total);
}

int
frame_check_result(struct jx *x, void *payload)
{
	const struct frame_result *p = payload;

	if (!rule_is_empty(p->result.mode) &&
	    !rule_is_one_of(p->result.mode, "push bundle"))
		return jx_fail(x, CL_FORMAT,
		    "result.mode: \"%.32s\" is unknown", p->result.mode);
	return CL_OK;
}

int
frame_check_project_result(struct jx *x, void *payload)
{
	const struct frame_project_result *p = payload;

	if ((p->data_len == 0) == rule_is_empty(p->error))
		return jx_fail(x, CL_FORMAT,
		    "needs either data or an error");
	return CL_OK;
}

int
frame_check_revoke(struct jx *x, void *payload)
{
	const struct lease_revoke *p = payload;

	/* There is no wildcard: a blank lease never means all. */
	if (rule_is_blank(p->lease_id))
		return jx_fail(x, CL_FORMAT, "lease_id: blank");
	return CL_OK;
}

int
frame_check_secret_refresh(struct jx *x, void *payload)
{
	const struct lease_refresh *p = payload;
	char *why = NULL;
	size_t i;
	int r;

	if (rule_is_blank(p->lease_id))
		return jx_fail(x, CL_FORMAT, "lease_id: blank");
	if (p->nfiles == 0)
		return jx_fail(x, CL_FORMAT, "files: empty");
	for (i = 0; i < p->nfiles; i++) {
		if (!rule_is_empty(p->files[i].lease_id) &&
		    !rule_is_equal(p->files[i].lease_id, p->lease_id))
			return jx_fail(x, CL_FORMAT,
			    "files[%zu].lease_id: another lease", i);
	}
	r = spec_check_secret_files(p->files, p->nfiles, &why);
	return frame_take_why(x, r, why);
}

int
frame_check_upgrade(struct jx *x, void *payload)
{
	struct frame_upgrade *p = payload;

	frame_trim(p->target_version);
	if (rule_is_empty(p->target_version))
		return jx_fail(x, CL_FORMAT, "target_version: blank");
	if (p->settle_seconds < 0)
		return jx_fail(x, CL_FORMAT, "settle_seconds: negative");
	return CL_OK;
}

int
frame_check_install_harness(struct jx *x, void *payload)
{
	struct frame_install_harness *p = payload;

	frame_trim(p->harness);
	if (p->harness == NULL || !rule_is_charset(p->harness,
	    strlen(p->harness), "_-", FRAME_WORD_MAX))
		return jx_fail(x, CL_FORMAT, "harness: not a name");
	return CL_OK;
}

int
frame_check_isolation_probe(struct jx *x, void *payload)
{
	struct frame_isolation_probe *p = payload;
	char *why = NULL;
	int r;

	if ((r = spec_check_sandbox(&p->sandbox, &why)) != 0)
		return frame_take_why(x, r, why);
	spec_trim_sandbox(&p->sandbox);
	return CL_OK;
}

/* The id is the first member of every payload here but device_open's. */
_Static_assert(offsetof(struct frame_attach_open, session_id) == 0 &&
    offsetof(struct frame_attach_opened, session_id) == 0 &&
    offsetof(struct frame_attach_data, session_id) == 0 &&
    offsetof(struct frame_attach_resize, session_id) == 0 &&
    offsetof(struct frame_attach_close, session_id) == 0 &&
    offsetof(struct frame_device_opened, channel_id) == 0 &&
    offsetof(struct frame_device_data, channel_id) == 0 &&
    offsetof(struct frame_device_close, channel_id) == 0, "id is first");

int
frame_check_channel(struct jx *x, void *payload)
{
	const char *id = *(char **)payload;

	if (rule_is_blank(id))
		return jx_fail(x, CL_FORMAT, "session_id or channel_id: blank");
	return CL_OK;
}

/* The shape decides; the word is ours from here on. */
static int
frame_set_device_kind(struct jx *x, struct frame_device_open *p)
{
	const char *kind = p->interface != NULL ? "l2" : "usb";
	char *copy;

	if (rule_is_equal(p->kind, kind))
		return CL_OK;
	if ((copy = strdup(kind)) == NULL)
		return jx_fail(x, CL_NOMEM, "kind: out of memory");
	free(p->kind);
	p->kind = copy;
	return CL_OK;
}

int
frame_check_device_open(struct jx *x, void *payload)
{
	struct frame_device_open *p = payload;
	char *why = NULL;
	int r;

	if (p->channel_id == NULL || !rule_is_charset(p->channel_id,
	    strlen(p->channel_id), "._:-", MAX_ID_LEN))
		return jx_fail(x, CL_FORMAT, "channel_id: not an id");
	if (!rule_is_device_name(p->name))
		return jx_fail(x, CL_FORMAT, "name: not a device name");
	if ((p->interface != NULL) == !rule_is_empty(p->bus_id))
		return jx_fail(x, CL_FORMAT,
		    "needs either bus_id or interface");
	if (p->interface == NULL && !rule_is_usb_port(p->bus_id))
		return jx_fail(x, CL_FORMAT, "bus_id: not a USB port");
	if (p->interface != NULL && (r = spec_check_interface("interface",
	    p->interface, 1, &why)) != 0)
		return frame_take_why(x, r, why);
	return frame_set_device_kind(x, p);
}

/* ------------------------------------------ the git CA of any make of hub */

/* 1 when s holds the word, in any case. */
static int
frame_has_word(const char *s, const char *word)
{
	return strcasestr(s, word) != NULL;
}

static int
frame_add_url(struct spec_git_ca *ca, const char *s)
{
	char **urls;

	if (ca->nurls == MAX_GIT_CA_URLS)
		return CL_LIMIT;
	urls = recallocarray(ca->urls, ca->nurls, ca->nurls + 1,
	    sizeof(*urls));
	if (urls == NULL)
		return CL_NOMEM;
	ca->urls = urls;
	if ((urls[ca->nurls] = strdup(s)) == NULL)
		return CL_NOMEM;
	ca->nurls++;
	return CL_OK;
}

/* jx_string_fn: what a string is shows in itself and its key. */
static int
frame_on_git_ca_string(const char *key, const char *s, size_t len, void *arg)
{
	struct spec_git_ca *ca = arg;
	char **pemp;

	if (strlen(s) != len)
		return CL_FORMAT;
	if (strncmp(s, "https://", 8) == 0)
		return frame_add_url(ca, s);
	if (strstr(s, "-----BEGIN CERTIFICATE-----") == NULL)
		return CL_OK;
	pemp = frame_has_word(key, "node") ? &ca->node : &ca->pem;
	if (*pemp != NULL)
		return CL_FORMAT;
	*pemp = strdup(s);
	return *pemp == NULL ? CL_NOMEM : CL_OK;
}

static int
frame_decode_git_ca(struct jx *x, struct spec *s, uint32_t value)
{
	int r;

	if (s->git_ca != NULL)
		return CL_FORMAT;
	if (x->tokens[value].type != JX_OBJECT)
		return CL_FORMAT;
	if ((s->git_ca = calloc(1, sizeof(*s->git_ca))) == NULL)
		return CL_NOMEM;
	r = jx_walk_strings(x, value, frame_on_git_ca_string, s->git_ca);
	if (r == CL_OK && (s->git_ca->pem == NULL || s->git_ca->nurls == 0))
		r = CL_FORMAT;
	return r;
}

int
frame_on_start_member(struct jx *x, const struct field_table *t, void *v,
    uint32_t key, uint32_t value)
{
	struct spec *s = v;
	char *name = NULL;
	size_t len;
	int r, is_ca;

	if (t != &spec_table || x->tokens[value].type == JX_NULL)
		return CL_OK;
	r = jx_get_string(x, key, FRAME_WORD_MAX, &name, &len, NULL);
	if (r == CL_TOOBIG)
		return CL_OK;
	if (r != CL_OK)
		return jx_fail(x, r, "spec: out of memory");
	is_ca = frame_has_word(name, "git") && frame_has_word(name, "ca");
	free(name);
	if (!is_ca)
		return CL_OK;
	if ((r = frame_decode_git_ca(x, s, value)) == CL_NOMEM)
		return jx_fail(x, r, "spec: out of memory");
	/* Never run without the CA, understood or not. */
	if (s->refusal == NULL)
		s->refusal = strdup(r == CL_OK ?
		    "the hub's git certificate authority cannot be used here" :
		    "the spec's git certificate authority is not understood");
	return s->refusal != NULL ? CL_OK :
	    jx_fail(x, CL_NOMEM, "spec: out of memory");
}
