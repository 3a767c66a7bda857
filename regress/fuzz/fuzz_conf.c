/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/conf: a file that is read gives a dump that reads to itself.
 * Includes conf.c: the text goes in without a file, and the depth is such
 * that Include opens nothing.
 */
#include "fuzz.h"

#include "common/base/conf.c"

struct sample {
	struct conf_seen seen;
	int flag;
	unsigned int count, age;
	uint64_t size;
	char *name, *path, *words;
	int level;
	struct conf_list list;
};

#define F(member) offsetof(struct sample, member)
static const char *const levels[] = { "low", "high", NULL };
static const struct conf_row rows[] = {
	{ "Flag", CONF_BOOL, F(flag), 0, 0, "yes", 0, NULL, NULL },
	{ "Count", CONF_UINT, F(count), 1, 16, "4", 0, NULL, NULL },
	{ "Size", CONF_SIZE, F(size), 0, UINT64_MAX, "64M", 0, NULL, NULL },
	{ "Age", CONF_TIME, F(age), 0, UINT32_MAX, "15m", 0, NULL, NULL },
	{ "Name", CONF_STRING, F(name), 0, 8, NULL, CONF_NONE_OK, NULL, NULL },
	{ "Path", CONF_PATH, F(path), 0, 64, "/var", 0, NULL, NULL },
	{ "Level", CONF_ENUM, F(level), 0, 0, "high", 0, levels, NULL },
	{ "List", CONF_LIST, F(list), 0, 3, NULL, CONF_NONE_OK, NULL, NULL },
	{ "Words", CONF_WORDS, F(words), 0, 0, "a b", 0, NULL, NULL },
	{ NULL, 0, 0, 0, 0, NULL, 0, NULL, NULL },
};

static int
parse(struct sample *c, const uint8_t *data, size_t len, char **dumpp)
{
	char err[256] = "", *text = malloc(len + 1);
	struct conf_ctx x = { .rows = rows, .base = (uint8_t *)c,
	    .seen = &c->seen.file, .err = err, .errlen = sizeof(err),
	    .depth = CONF_MAX_DEPTH };
	int r;

	memset(c, 0, sizeof(*c));
	if (len > 0)
		memcpy(text, data, len);
	text[len] = '\0';
	r = conf_parse_text(&x, "fuzz", text, len);
	free(text);
	FUZZ_CHECK(r == 0 || err[0] != '\0');
	if (r == 0) {
		FUZZ_CHECK(conf_set_defaults(rows, c, err, sizeof(err)) == 0);
		FUZZ_CHECK(conf_format(rows, c, dumpp) == 0);
	}
	conf_clear(rows, c, sizeof(*c));
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sample c;
	char *first, *second;

	if (parse(&c, data, len, &first) != 0)
		return 0;
	FUZZ_CHECK(parse(&c, (uint8_t *)first, strlen(first), &second) == 0);
	FUZZ_CHECK(strcmp(first, second) == 0);
	free(first);
	free(second);
	return 0;
}
