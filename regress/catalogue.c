/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * make catalogue: the messages between our processes as the compiler sees
 * them.  A line a row, then a line a member, of lists one tab further in:
 *
 *	NAME number direction states bytes fd once rate open
 *		member type bound
 */
#include <stdio.h>
#include <string.h>

#include "common/msg/msgcat.h"

static const char *const dirs[] = { "?", "N2M", "M2N", "M2K", "K2M", "N2K",
	"K2N", "C2M", "M2C", "W2M", "M2W", "F2M", "M2F", "S2M", "M2S", "J2M",
	"M2J", "D2M", "M2D" };

static const char *const kinds[] = {
	[FIELD_STR] = "str", [FIELD_CSTR] = "str", [FIELD_RAW] = "str",
	[FIELD_SECRET] = "data", [FIELD_TEXT] = "text", [FIELD_BYTES] = "data",
	[FIELD_SBYTES] = "data", [FIELD_INT] = "i64", [FIELD_UINT] = "u64",
	[FIELD_BOOL] = "bool", [FIELD_OPTINT] = "optint",
	[FIELD_TIME] = "i64", [FIELD_STRS] = "strs", [FIELD_INTS] = "ints",
	[FIELD_MAP] = "pairs", [FIELD_OBJ] = "obj", [FIELD_PTR] = "ptr",
	[FIELD_LIST] = "array"
};

static void
print_bound(const struct field *f)
{
	switch (f->kind) {
	case FIELD_INT:
	case FIELD_OPTINT:
		printf("%lld..%lld", (long long)f->min, (long long)f->max);
		break;
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_MAP:
		printf("%zux%llu", f->nmax, (unsigned long long)f->max);
		break;
	case FIELD_LIST:
		printf("%zu", f->nmax);
		break;
	case FIELD_TIME:
	case FIELD_OBJ:
	case FIELD_PTR:
		putchar('-');
		break;
	default:
		printf("%llu", (unsigned long long)f->max);
		break;
	}
}

static void
print_members(const struct field_table *t, int depth)
{
	size_t n, i;
	const struct field *f = t->get_rows(&n);

	for (i = 0; i < n; i++, f++) {
		if (f->kind == FIELD_OBJ) {
			print_members(f->sub, depth);
			continue;
		}
		printf("%.*s%s %s ", depth, "\t\t\t\t\t\t", f->key,
		    kinds[f->kind]);
		print_bound(f);
		putchar('\n');
		if (f->sub != NULL && depth < 6)
			print_members(f->sub, depth + 1);
	}
}

static void
print_states(unsigned int states)
{
	printf(" %s%s%s", (states & MS_STARTING) != 0 ? "starting," : "",
	    (states & MS_SERVING) != 0 ? "serving," : "",
	    (states & MS_STOPPING) != 0 ? "stopping," : "");
}

int
main(void)
{
	const struct msg_row *r;
	size_t n, i, min, max;

	r = msgcat_get_rows(&n);
	for (i = 0; i < n; i++, r++) {
		msgcat_find_bounds(r, &min, &max);
		printf("%s 0x%04x %s", r->name, r->type, dirs[r->dir]);
		print_states(r->states);
		printf(" %zu..%zu fd=%d once=%d rate=%u open=%u\n", min, max,
		    r->fd, r->once, r->rate, r->open);
		if (r->body != NULL)
			print_members(r->body, 1);
	}
	return 0;
}
