/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * States in the control protocol's rows, in words; see ctlmsg.h.
 */
#include "ctlmsg.h"

#include "common/msg/msgcat.h"

const char *
ctl_format_agent_status(int64_t status)
{
	static const char *const words[] = {
		[AGENT_ONLINE] = "online",
		[AGENT_OFFLINE] = "offline",
		[AGENT_UNREACHABLE] = "unreachable",
	};

	if (status < AGENT_ONLINE || status > AGENT_UNREACHABLE)
		return "unknown";
	return words[status];
}

const char *
ctl_format_handle_state(int64_t state)
{
	static const char *const words[] = {
		[HS_PENDING] = "pending", [HS_RUNNING] = "running",
		[HS_EXITED] = "exited", [HS_FAILED] = "failed",
		[HS_KILLED] = "killed", [HS_UNKNOWN] = "unknown",
	};

	if (state < HS_PENDING || state > HS_UNKNOWN)
		return "unknown";
	return words[state];
}

int
ctl_is_terminal(int64_t state)
{
	return state == HS_EXITED || state == HS_FAILED || state == HS_KILLED;
}
