/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * store/enroll: every column of every kind of row names a member.
 */
#include "common/client/rows.h"
#include "store/enroll/enroll.h"
#include "regress/unit/unit.h"

static void
test_columns(void)
{
	const struct row_kind *const kinds[] = { &enroll_agent_kind,
		&enroll_token_kind, &enroll_ban_kind, &enroll_revoked_kind };
	const char *key;
	size_t i;

	TEST_START("the columns name members of their rows");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unit_note("%s", kinds[i]->fields->name);
		ASSERT_INT_EQ(rows_check(kinds[i], &key), 1);
	}
}

/* enroll_list.c asks the program's main for these. */
int
enroll_usage(struct enroll *e, const char *fmt, ...)
{
	(void)e;
	(void)fmt;
	return EXIT_USAGE;
}

int
enroll_parse_options(struct enroll *e, int argc, char **argv,
    const struct enroll_option *options, void *arg, const char **operands,
    int max, int *noperandsp)
{
	(void)e;
	(void)argc;
	(void)argv;
	(void)options;
	(void)arg;
	(void)operands;
	(void)max;
	(void)noperandsp;
	return EXIT_USAGE;
}

UNIT_MAIN(test_columns)
