/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rows of the control protocol, as cloopctl and cloop-enroll read them: the
 * first byte chooses the table, the rest is the body.  What is read is
 * written to the same bytes again.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/json/jsonw.h"
#include "common/model/caps.h"
#include "common/model/leasemsg.h"
#include "common/msg/buf.h"

static const struct field_table *const tables[] = {
	&ctl_status_table, &ctl_worker_table, &ctl_agent_table,
	&ctl_handle_table, &ctl_event_table, &ctl_file_table,
	&ctl_audit_table, &ctl_verify_table, &ctl_mint_table,
	&ctl_minted_table, &ctl_enrollment_table, &ctl_revoked_table,
	&ctl_secret_table, &ctl_grant_add_table, &ctl_grant_table,
	&ctl_lease_table, &ctl_outcome_table, &ctl_refreshed_table,
	&caps_table,
};

#define FUZZ_BODY_MAX 65536

static void
check_again(const struct field_table *t, const void *row)
{
	struct buf a, b, in;
	struct jsonw w;
	void *again = malloc(t->size);

	if (again == NULL)
		abort();
	buf_init(&a, 2 * FUZZ_BODY_MAX);
	buf_init(&b, 2 * FUZZ_BODY_MAX);
	field_put(t, row, &a);
	FUZZ_CHECK(buf_error(&a) == CL_OK);
	buf_init_read(&in, a.data, a.len);
	FUZZ_CHECK(field_get(t, &in, again) == CL_OK);
	FUZZ_CHECK(buf_end(&in) == CL_OK);
	field_put(t, again, &b);
	FUZZ_CHECK(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
	jsonw_init(&w, 64 * FUZZ_BODY_MAX, 0);
	field_format_json(t, again, &w);
	FUZZ_CHECK(jsonw_error(&w) == CL_OK);
	jsonw_clear(&w);
	field_clear(t, again);
	free(again);
	buf_clear(&a);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct field_table *t;
	struct buf b;
	void *row;
	int r;

	if (len == 0 || len > FUZZ_BODY_MAX)
		return 0;
	t = tables[data[0] % (sizeof(tables) / sizeof(tables[0]))];
	if ((row = malloc(t->size)) == NULL)
		abort();
	buf_init_read(&b, data + 1, len - 1);
	if ((r = field_get(t, &b, row)) == CL_OK) {
		if (buf_end(&b) == CL_OK)
			check_again(t, row);
		field_clear(t, row);
	}
	free(row);
	return 0;
}
