/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * make catalogue: the messages between our processes as the compiler sees
 * them.  A line a row, then a line a member, of lists one tab further in:
 *
 *	NAME number direction states bytes fd once rate open
 *		member type bound
 *
 * With -m: the same as the section of cloop-internals(7), in mdoc, channel by
 * channel (make man-catalogue).
 */
#include <inttypes.h>
#include <stdarg.h>
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

/* --- mdoc --- */

#define MDOC_WIDTH 78
#define MDOC_DEPTH 4		/* lists in lists */

/* A channel is the directions that share it. */
static const struct channel {
	const char *name;
	const char *ends;
	enum msg_dir dirs[2];
} channels[] = {
	{ "hub-net", "cloopd-net (N) and the hub's monitor (M)",
	    { MSG_N2M, MSG_M2N } },
	{ "hub-key", "the hub's monitor (M) and cloopd-key (K)",
	    { MSG_M2K, MSG_K2M } },
	{ "hub-key", "cloopd-net (N) and cloopd-key (K)",
	    { MSG_N2K, MSG_K2N } },
	{ "hub-fence", "cloopd-fence (W) and the hub's monitor (M)",
	    { MSG_W2M, MSG_M2W } },
	{ "hub-ctl", "operators, through cloopd-ctl (C), and the hub's "
	    "monitor (M)", { MSG_C2M, MSG_M2C } },
	{ "dev-fetch", "agentd-fetch (F) and the device's monitor (M)",
	    { MSG_F2M, MSG_M2F } },
	{ "dev-shim", "cloop-shim (S) and the device's monitor (M)",
	    { MSG_S2M, MSG_M2S } },
	{ "dev-job", "cloop-git or cloop-seed (J) and the device's "
	    "monitor (M)", { MSG_J2M, MSG_M2J } },
	{ "dev-shimd", "cloop-shimd (D) and the device's monitor (M)",
	    { MSG_D2M, MSG_M2D } },
};
#define NCHANNELS (sizeof(channels) / sizeof(channels[0]))

static size_t mdoc_column;

/* One word of filled text; none begins with a control character of roff. */
static void
mdoc_put_word(const char *fmt, ...)
    __attribute__((__format__(__printf__, 1, 2)));
static void
mdoc_put_word(const char *fmt, ...)
{
	char word[256];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	vsnprintf(word, sizeof(word), fmt, ap);
	va_end(ap);
	len = strlen(word);
	if (mdoc_column > 0 && mdoc_column + 1 + len > MDOC_WIDTH) {
		putchar('\n');
		mdoc_column = 0;
	}
	mdoc_column += (size_t)printf("%s%s", mdoc_column > 0 ? " " : "",
	    word);
}

static void
mdoc_end_line(void)
{
	if (mdoc_column > 0)
		putchar('\n');
	mdoc_column = 0;
}

/* "u16", "0..30", "1..", "i64" */
static void
mdoc_format_range(const struct field *f, char *dst, size_t len)
{
	int is_signed = f->kind != FIELD_UINT;
	uint64_t max = f->max;

	if (!is_signed && (max == UINT8_MAX || max == UINT16_MAX ||
	    max == UINT32_MAX || max == UINT64_MAX))
		snprintf(dst, len, max == UINT8_MAX ? "u8" :
		    max == UINT16_MAX ? "u16" :
		    max == UINT32_MAX ? "u32" : "u64");
	else if (!is_signed)
		snprintf(dst, len, "0..%" PRIu64, max);
	else if (f->min == INT64_MIN && max == INT64_MAX)
		snprintf(dst, len, "i64");
	else if (max == INT64_MAX)
		snprintf(dst, len, "%" PRId64 "..", f->min);
	else
		snprintf(dst, len, "%" PRId64 "..%" PRId64, f->min,
		    (int64_t)max);
}

static void
mdoc_format_type(const struct field *f, char *dst, size_t len)
{
	char range[64];
	uint64_t max = f->max;

	mdoc_format_range(f, range, sizeof(range));
	switch (f->kind) {
	case FIELD_INT:
	case FIELD_UINT:
		snprintf(dst, len, "%s", range);
		break;
	case FIELD_OPTINT:
		snprintf(dst, len, "%s or none", range);
		break;
	case FIELD_INTS:
		snprintf(dst, len, "%zu of %s", f->nmax, range);
		break;
	case FIELD_STRS:
		snprintf(dst, len, "%zu of str %" PRIu64, f->nmax, max);
		break;
	case FIELD_MAP:
		snprintf(dst, len, "%zu pairs of str %" PRIu64, f->nmax, max);
		break;
	case FIELD_LIST:
		snprintf(dst, len, "%zu of", f->nmax);
		break;
	case FIELD_PTR:
		snprintf(dst, len, "none or");
		break;
	case FIELD_BOOL:
		snprintf(dst, len, "bool");
		break;
	case FIELD_TIME:
		snprintf(dst, len, "time");
		break;
	case FIELD_BYTES:
		snprintf(dst, len, "bytes %" PRIu64, max);
		break;
	case FIELD_SECRET:
	case FIELD_SBYTES:
		snprintf(dst, len, "secret %" PRIu64, max);
		break;
	default:
		snprintf(dst, len, "str %" PRIu64, max);
		break;
	}
}

/* Each followed by `after` in the end and by a comma before; objects within
 * are written as their members. */
static void
mdoc_put_members(const struct field_table *t, const char *after, int depth)
{
	size_t n, i;
	const struct field *f = t->get_rows(&n);
	char type[128], *word, *rest, end[16];

	for (i = 0; i < n; i++, f++) {
		snprintf(end, sizeof(end), "%s", i + 1 < n ? "," : after);
		if (f->kind == FIELD_OBJ) {
			mdoc_put_members(f->sub, end, depth);
			continue;
		}
		mdoc_format_type(f, type, sizeof(type));
		mdoc_put_word("%s:", f->key);
		for (rest = type; (word = strsep(&rest, " ")) != NULL; )
			mdoc_put_word("%s%s", word, rest == NULL &&
			    f->sub == NULL ? end : "");
		if (f->sub == NULL)
			continue;
		snprintf(type, sizeof(type), "}%s", end);
		mdoc_put_word("{");
		if (depth < MDOC_DEPTH)
			mdoc_put_members(f->sub, "", depth + 1);
		mdoc_put_word("%s", type);
	}
}

static const char *
mdoc_find_states(unsigned int states)
{
	switch (states) {
	case MS_STARTING:
		return "starting";
	case MS_SERVING:
		return "serving";
	case MS_STARTING | MS_SERVING:
		return "starting or serving";
	case MS_STOPPING:
		return "stopping";
	case MS_LIVE:
		return "live";
	case MS_ANY:
		return "always";
	default:
		return "?";
	}
}

static void
mdoc_put_row(const struct msg_row *r)
{
	size_t min, max, n = 0;

	msgcat_find_bounds(r, &min, &max);
	printf(".It Sy %s No 0x%04x %.1s>%.1s , %s", r->name, r->type,
	    dirs[r->dir], dirs[r->dir] + 2, mdoc_find_states(r->states));
	if (r->once)
		printf(" , once");
	if (r->fd)
		printf(" , fd");
	if (r->rate > 0)
		printf(" , %u/s", r->rate);
	if (r->open > 0)
		printf(" , %u open", r->open);
	putchar('\n');
	(void)r->body->get_rows(&n);
	if (n > 0)
		mdoc_put_members(r->body, ";", 0);
	if (max == 0)
		mdoc_put_word("Empty.");
	else if (min == max)
		mdoc_put_word("%zu byte%s.", max, max == 1 ? "" : "s");
	else
		mdoc_put_word("%zu to %zu bytes.", min, max);
	mdoc_end_line();
}

static void
mdoc_put_channel(const struct channel *ch)
{
	size_t n, i;
	const struct msg_row *r = msgcat_get_rows(&n);

	printf(".Pp\n.Em %s :\n%s\n.Bl -tag -width 4n -compact\n", ch->name,
	    ch->ends);
	for (i = 0; i < n; i++, r++)
		if (r->dir == ch->dirs[0] || r->dir == ch->dirs[1])
			mdoc_put_row(r);
	printf(".El\n");
}

static void
print_rows(void)
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
		print_members(r->body, 1);
	}
}

int
main(int argc, char **argv)
{
	size_t i;

	if (argc == 1)
		print_rows();
	else if (argc == 2 && strcmp(argv[1], "-m") == 0)
		for (i = 0; i < NCHANNELS; i++)
			mdoc_put_channel(&channels[i]);
	else {
		fprintf(stderr, "usage: catalogue [-m]\n");
		return 2;
	}
	return 0;
}
