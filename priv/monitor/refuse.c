/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Texts for operators.  Pure: no messages, no state.  What a device said
 * is passed on verbatim; whoever prints it escapes it.
 */
#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bsd/string.h>

#include "common/msg/msgcat.h"

/* A code without a row has no advice: never a platitude. */
static const struct refuse_row {
	const char *code;
	const char *remedy;
} refuse_rows[] = {
	{ "agent_unreachable", "start the agent; check that it can reach the "
	    "hub outbound; no inbound port is needed" },
	{ "agent_not_found", "list the fleet with: cloopctl agents; a device "
	    "appears after its first connection" },
	{ "agent_busy", "wait for a workload to end, or raise MaxConcurrent "
	    "on the device" },
	{ "version_unsupported", "upgrade the agent, or the hub if the device "
	    "is newer" },
	{ "session_closed", "look at the state with: cloopctl ps; run it "
	    "again once the agent is back" },
	{ "credential_invalid", "mint a token and enroll the device again "
	    "(remove its old credential file)" },
	{ "revoked", "mint a token and enroll the device again (remove its "
	    "old credential file)" },
	{ "revocation_unsupported", "upgrade the agent" },
	{ "workspace_unsupported", "upgrade the agent, or install git on the "
	    "device" },
	{ "write_back_unsupported", "upgrade the agent, or install git on the "
	    "device" },
	{ "secret_files_unsupported", "upgrade the agent" },
	{ "project_seed_unsupported", "upgrade the agent" },
	{ "egress_proxy_unsupported", "upgrade the agent" },
	{ "git_ca_unsupported", "upgrade the agent" },
	{ "node_ca_unsupported", "upgrade the agent" },
	{ "node_ca_bundle_unsupported", "upgrade the agent" },
	{ "sandbox_mode_unsupported", "upgrade the agent, or run with "
	    "--sandbox host" },
	{ "disk_limit_unsupported", "run with --sandbox container on an agent "
	    "of protocol 20 or newer, or without --disk" },
	{ "virtualization_unavailable", "choose a device with /dev/kvm, or "
	    "another runtime" },
	{ "harness_unavailable", "install the tool on the device, or choose "
	    "another device" },
	{ "path_outside_root", "name a directory below the device's work "
	    "root" },
	{ "handle_not_found", "list the handles with: cloopctl ps -a" },
	{ NULL, NULL }
};

void
refuse_set(struct refusal *r, const char *code, const char *fmt, ...)
{
	const struct refuse_row *row;
	va_list ap;

	r->code = code;
	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	r->remedy[0] = '\0';
	for (row = refuse_rows; row->code != NULL; row++)
		if (strcmp(row->code, code) == 0)
			strlcpy(r->remedy, row->remedy, sizeof(r->remedy));
}

void
refuse_set_remedy(struct refusal *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->remedy, sizeof(r->remedy), fmt, ap);
	va_end(ap);
}

/* What operators are told for an error code of the wire. */
static const char *
refuse_find_code(const char *code)
{
	static const struct {
		const char *wire, *code;
	} rows[] = {
		{ "unauthorized", "credential_invalid" },
		{ "version_unsupported", "version_unsupported" },
		{ "unknown_handle", "protocol" },
		{ "forbidden_path", "path_outside_root" },
		{ "busy", "agent_busy" },
		{ "protocol", "protocol" },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].wire, code) == 0)
			return rows[i].code;
	return "start_failed";
}

void
refuse_set_result(struct refusal *r, int result, const char *code,
    const char *text, const char *agent)
{
	switch (result) {
	case RES_ERROR_FRAME:
		refuse_set(r, refuse_find_code(code), "%s: %s", agent, text);
		break;
	case RES_NOT_STARTED:
		refuse_set(r, "start_failed", "%s", text);
		break;
	case RES_SESSION_CLOSED:
		refuse_set(r, "session_closed", "the connection to %s went "
		    "away before it answered", agent);
		break;
	case RES_TOO_BIG:
		refuse_set(r, "usage", "the request is too big for one frame "
		    "of %d bytes%s%s", MAX_FRAME_LEN, text[0] ? ": " : "",
		    text);
		break;
	case RES_TIMEOUT:
		refuse_set(r, "timeout", "%s did not answer in time", agent);
		break;
	default:
		refuse_set(r, "protocol", "%s answered something else than "
		    "was asked%s%s", agent, text[0] ? ": " : "", text);
	}
}
