/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rows of the control protocol: every table carries its struct there and
 * back, truncations and trailing bytes are refused, each state has its
 * word.
 */
#include "common/base/err.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/buf.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "regress/unit/unit.h"

static const struct field_table *const tables[] = {
	&ctl_status_table, &ctl_worker_table, &ctl_agent_table,
	&ctl_handle_table, &ctl_event_table, &ctl_file_table,
	&ctl_audit_table, &ctl_verify_table, &ctl_mint_table,
	&ctl_minted_table, &ctl_enrollment_table, &ctl_revoked_table,
};
#define NTABLES (sizeof(tables) / sizeof(tables[0]))

union any {
	struct ctl_status status;
	struct ctl_agent agent;
	struct ctl_handle handle;
	struct ctl_audit audit;
	struct ctl_minted minted;
	struct ctl_mint mint;
	struct ctl_enrollment enrollment;
};

/* Something in every member. */
static void
fill(const struct field_table *t, void *v)
{
	size_t n, i;
	const struct field *f = t->get_rows(&n);
	char *p;

	field_init(t, v);
	for (i = 0; i < n; i++, f++) {
		p = (char *)v + f->off;
		switch (f->kind) {
		case FIELD_STR:
			*(char **)(void *)p = strdup("text");
			break;
		case FIELD_SECRET:
			ASSERT_INT_EQ(secret_init((void *)p, "s", 1, 8), 0);
			break;
		case FIELD_INT:
			*(int64_t *)(void *)p = 1;
			break;
		case FIELD_UINT:
			*(uint64_t *)(void *)p = 7;
			break;
		case FIELD_BOOL:
			*(int *)(void *)p = 1;
			break;
		case FIELD_OPTINT:
			*(struct field_optint *)(void *)p =
			    (struct field_optint){ -1, 1 };
			break;
		case FIELD_TIME:
			*(int64_t *)(void *)p = 1234567890;
			break;
		case FIELD_MAP:
			*(struct field_pair **)(void *)p = calloc(1,
			    sizeof(struct field_pair));
			(*(struct field_pair **)(void *)p)->key = strdup("k");
			(*(struct field_pair **)(void *)p)->value =
			    strdup("v");
			*(size_t *)(void *)((char *)v + f->noff) = 1;
			break;
		case FIELD_STRS:
			*(char ***)(void *)p = calloc(1, sizeof(char *));
			(*(char ***)(void *)p)[0] = strdup("s");
			*(size_t *)(void *)((char *)v + f->noff) = 1;
			break;
		default:
			UNIT_FAIL("%s: kind %d is not tested", f->key,
			    (int)f->kind);
		}
	}
}

static void
test_round_trip(void)
{
	union any v, w;
	struct buf a, b, rd;
	size_t i, len;

	TEST_START("each row goes there and back, and fits one message");
	for (i = 0; i < NTABLES; i++) {
		unit_note("%s", tables[i]->name);
		ASSERT_TRUE(tables[i]->size <= sizeof(v));
		fill(tables[i], &v);
		buf_init(&a, MSG_BODY_MAX);
		field_put(tables[i], &v, &a);
		ASSERT_INT_EQ(buf_error(&a), CL_OK);
		buf_init_read(&rd, a.data, a.len);
		ASSERT_INT_EQ(field_get(tables[i], &rd, &w), CL_OK);
		ASSERT_INT_EQ(buf_end(&rd), CL_OK);
		buf_init(&b, MSG_BODY_MAX);
		field_put(tables[i], &w, &b);
		ASSERT_SIZE_T_EQ(a.len, b.len);
		ASSERT_TRUE(memcmp(a.data, b.data, a.len) == 0);
		field_clear(tables[i], &w);
		for (len = 0; len < a.len; len++) {
			buf_init_read(&rd, a.data, len);
			ASSERT_TRUE(field_get(tables[i], &rd, &w) != CL_OK);
		}
		field_clear(tables[i], &v);
		buf_clear(&a);
		buf_clear(&b);
	}
}

static void
test_bounds(void)
{
	union any v;
	struct buf b;

	TEST_START("a state that is none is refused");
	field_init(&ctl_handle_table, &v);
	v.handle.state = HS_UNKNOWN + 1;
	buf_init(&b, MSG_BODY_MAX);
	field_put(&ctl_handle_table, &v, &b);
	ASSERT_TRUE(buf_error(&b) != CL_OK);
	buf_clear(&b);

	TEST_START("labels that do not fit a message are an error, no cut");
	field_init(&ctl_mint_table, &v);
	v.mint.workdir_root = malloc(MSG_BODY_MAX + 1);
	memset(v.mint.workdir_root, 'x', MSG_BODY_MAX);
	v.mint.workdir_root[MSG_BODY_MAX] = '\0';
	buf_init(&b, MSG_BODY_MAX);
	field_put(&ctl_mint_table, &v, &b);
	ASSERT_INT_EQ(buf_error(&b), CL_TOOBIG);
	buf_clear(&b);
	field_clear(&ctl_mint_table, &v);
}

static void
test_words(void)
{
	TEST_START("words of states");
	ASSERT_STRING_EQ(ctl_format_agent_status(AGENT_ONLINE), "online");
	ASSERT_STRING_EQ(ctl_format_agent_status(AGENT_UNREACHABLE),
	    "unreachable");
	ASSERT_STRING_EQ(ctl_format_agent_status(99), "unknown");
	ASSERT_STRING_EQ(ctl_format_handle_state(HS_PENDING), "pending");
	ASSERT_STRING_EQ(ctl_format_handle_state(HS_KILLED), "killed");
	ASSERT_STRING_EQ(ctl_format_handle_state(0), "unknown");
	ASSERT_TRUE(ctl_is_terminal(HS_EXITED) && ctl_is_terminal(HS_FAILED)
	    && ctl_is_terminal(HS_KILLED));
	ASSERT_TRUE(!ctl_is_terminal(HS_UNKNOWN) &&
	    !ctl_is_terminal(HS_RUNNING) && !ctl_is_terminal(HS_PENDING));
}

UNIT_MAIN(test_round_trip, test_bounds, test_words)
