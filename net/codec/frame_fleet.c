/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Payloads about the device itself: upgrade, harness install, isolation,
 * denials.  Runs where frame.c runs.
 */
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "frame_int.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_EVIDENCE_LEN 16384
#define MAX_EVIDENCE_STR_LEN 512
#define MAX_EVIDENCE_ERROR_LEN 4096
#define MAX_DENIALS 1024

static const struct field frame_upgrade_table_rows[] = {
	F_STR(struct frame_upgrade, target_version, "target_version", 0,
	    FRAME_WORD_MAX),
	F_BOOL(struct frame_upgrade, force, "force", O),
	F_INT64(struct frame_upgrade, settle_seconds, "settle_seconds", O),
	F_STR(struct frame_upgrade, reason, "reason", PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_upgrade_table, struct frame_upgrade);

static const struct field frame_upgrading_table_rows[] = {
	F_BOOL(struct frame_upgrading, accepted, "accepted", 0),
	F_STR(struct frame_upgrading, reason, "reason", PROSE,
	    MAX_ERROR_TEXT_LEN),
	F_BOOL(struct frame_upgrading, already_current, "already_current", O),
	F_STR(struct frame_upgrading, from_version, "from_version", PROSE,
	    FRAME_WORD_MAX),
	F_STR(struct frame_upgrading, target_version, "target_version", PROSE,
	    FRAME_WORD_MAX),
};
F_TABLE(frame_upgrading_table, struct frame_upgrading);

static const struct field frame_install_harness_table_rows[] = {
	F_STR(struct frame_install_harness, harness, "harness", 0,
	    FRAME_WORD_MAX),
	F_STR(struct frame_install_harness, reason, "reason", PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_install_harness_table, struct frame_install_harness);

static const struct field frame_harness_installed_table_rows[] = {
	F_BOOL(struct frame_harness_installed, installed, "installed", 0),
	F_BOOL(struct frame_harness_installed, already_present,
	    "already_present", O),
	F_STR(struct frame_harness_installed, harness, "harness", PROSE,
	    FRAME_WORD_MAX),
	F_STR(struct frame_harness_installed, path, "path", PROSE,
	    FRAME_TEXT_MAX),
	F_STR(struct frame_harness_installed, version, "version", PROSE,
	    FRAME_WORD_MAX),
	F_STR(struct frame_harness_installed, reason, "reason", PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_harness_installed_table, struct frame_harness_installed);

static const struct field frame_isolation_probe_table_rows[] = {
	F_OBJ(struct frame_isolation_probe, sandbox, "sandbox", 0,
	    &spec_sandbox_table),
};
F_TABLE(frame_isolation_probe_table, struct frame_isolation_probe);

static const struct field frame_isolation_evidence_table_rows[] = {
	F_RAW(struct frame_isolation_evidence, evidence, "evidence", O,
	    MAX_EVIDENCE_LEN),
	F_RAW(struct frame_isolation_evidence, host, "host", O,
	    MAX_EVIDENCE_LEN),
	F_STR(struct frame_isolation_evidence, engine_kernel, "engine_kernel",
	    PROSE, MAX_EVIDENCE_STR_LEN),
	F_STR(struct frame_isolation_evidence, engine, "engine", PROSE,
	    MAX_EVIDENCE_STR_LEN),
	F_STR(struct frame_isolation_evidence, image, "image", PROSE,
	    MAX_EVIDENCE_STR_LEN),
	F_STR(struct frame_isolation_evidence, error, "error", PROSE,
	    MAX_EVIDENCE_ERROR_LEN),
};
F_TABLE(frame_isolation_evidence_table, struct frame_isolation_evidence);

static const struct field frame_denial_table_rows[] = {
	F_STR(struct frame_denial, dest, "dest", 0, FRAME_WORD_MAX),
	F_INT(struct frame_denial, port, "port", O, 0, 65535),
	F_STR(struct frame_denial, proto, "proto", 0, FRAME_WORD_MAX),
	F_STR(struct frame_denial, rule, "rule", FIELD_PROSE, FRAME_WORD_MAX),
	F_INT(struct frame_denial, count, "count", 0, 0, INT64_MAX),
	F_TIME(struct frame_denial, first, "first", 0),
	F_TIME(struct frame_denial, last, "last", 0),
};
F_TABLE(frame_denial_table, struct frame_denial);

static const struct field frame_denials_table_rows[] = {
	F_LIST(struct frame_denials, denials, "denials", 0, MAX_DENIALS,
	    &frame_denial_table),
	F_INT(struct frame_denials, dropped, "dropped", O, 0, INT64_MAX),
};
F_TABLE(frame_denials_table, struct frame_denials);

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
