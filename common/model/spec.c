/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A start payload, see spec.h; the rules are in spec_check.c and spec_work.c.
 * Runs in every process a start passes.
 */
#include "spec.h"

#include <bsd/stdlib.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/msg/buf.h"

#define DEF_FILE "common/model/spec.def"
#include "common/msg/def_table.h"

void
spec_init(struct spec *s)
{
	field_init(&spec_start_table, s);
}

void
spec_clear(struct spec *s)
{
	field_clear(&spec_start_table, s);
}

void
spec_put(const struct spec *s, struct buf *b)
{
	field_put(&spec_start_table, s, b);
}

int
spec_get(struct buf *b, struct spec *s)
{
	return field_get(&spec_start_table, b, s);
}

void
spec_format_json(const struct spec *s, struct jsonw *w)
{
	field_format_json(&spec_start_table, s, w);
}

static void
spec_free_str(char **sp)
{
	free(*sp);
	*sp = NULL;
}

void
spec_trim_sandbox(struct spec_sandbox *sb)
{
	char **members[] = { &sb->mode, &sb->engine, &sb->runtime, &sb->image,
		&sb->network };
	const char *p;
	size_t i, len;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (*members[i] == NULL)
			continue;
		p = rule_trim(*members[i], &len);
		if (len == 0) {
			spec_free_str(members[i]);
			continue;
		}
		memmove(*members[i], p, len);
		(*members[i])[len] = '\0';
	}
	if (rule_is_equal(sb->mode, "container"))
		return;
	for (i = 1; i < sizeof(members) / sizeof(members[0]); i++)
		spec_free_str(members[i]);
}

int
spec_is_revocable(const struct spec_secret *b)
{
	return !rule_is_blank(b->lease_id) &&
	    (b->nenv_keys > 0 || b->nfiles > 0 || b->egress);
}
