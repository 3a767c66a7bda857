/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/cloopctl: every column of every kind of row names a member.
 */
#include "priv/cloopctl/cmd_admin.c"
#include "priv/cloopctl/cmd_lend.c"
#include "priv/cloopctl/cmd_result.c"
#include "priv/cloopctl/cmd_view.c"
#include "priv/cloopctl/follow.c"
int cloopctl_main(int argc, char **argv);
#define main cloopctl_main
#include "priv/cloopctl/cloopctl.c"
#undef main
#include "regress/unit/unit.h"

static void
test_columns(void)
{
	const struct row_kind *const kinds[] = { &worker_kind, &status_kind,
		&agent_kind, &handle_kind, &event_kind, &secret_kind,
		&grant_kind, &lease_kind, &outcome_kind, &refreshed_kind,
		&audit_kind, &verify_kind, &result_kind };
	const char *key;
	size_t i;

	TEST_START("the columns name members of their rows");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unit_note("%s", kinds[i]->fields->name);
		if (!rows_check(kinds[i], &key))
			UNIT_FAIL("%s", key);
	}
}

UNIT_MAIN(test_columns)
