/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/frame against what Go's encoding/json wrote and read (golden
 * files in CLOOP_GOLDEN): every frame decodes and encodes to the same bytes,
 * every message of the decode corpus gets the verdict the index expects of
 * us.  The indexes are read with our own decoder.
 */
#include "regress/unit/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/json/jsonw.h"
#include "common/msg/buf.h"
#include "net/codec/frame.h"
#include "net/codec/frame_int.h"

#define DEF_FILE "regress/unit/net/codec/golden.def"
#include "common/msg/def_struct.h"
#define DEF_FILE "regress/unit/net/codec/golden.def"
#include "common/msg/def_table.h"

static struct jx jx;
static struct jsonw w;
/* Any payload fits. */
static union {
	struct spec spec;
	struct frame_hello hello;
	char room[4096];
} payload;

static const char *
golden_dir(void)
{
	const char *dir = getenv("CLOOP_GOLDEN");

	return dir != NULL ? dir : "../shared/golden";
}

/* NULL when there is no such file. */
static char *
golden_load(const char *sub, const char *name, size_t *lenp)
{
	char path[512];
	uint8_t *data = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/%s%s", golden_dir(), sub, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return NULL;
	if (util_load_fd(fd, 64 << 20, &data, lenp) != 0)
		data = NULL;
	close(fd);
	return (char *)data;
}

/* Call fn for each entry of an index file. */
static void
golden_walk(const char *sub, void (*fn)(const struct golden *))
{
	struct jx index;
	struct golden g;
	uint32_t at, i;
	size_t len;
	char *text;

	if ((text = golden_load(sub, "index.json", &len)) == NULL)
		TEST_SKIP("no golden files (CLOOP_GOLDEN)");
	jx_init(&index);
	jx_init(&jx);
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	ASSERT_ERR(jx_scan(&index, text, len), CL_OK);
	for (i = 0, at = 1; i < index.tokens[0].n;
	    i++, at = index.tokens[at].next) {
		ASSERT_ERR(jx_decode(&index, at, &golden_table, &g), CL_OK);
		unit_note("%s", g.file != NULL ? g.file : g.in);
		fn(&g);
		field_clear(&golden_table, &g);
	}
	ASSERT_INT_GT(i, 80);
	jx_clear(&index);
	jx_clear(&jx);
	jsonw_clear(&w);
	free(text);
}

/* Replace the first `from` in text by the (not longer) `to`. */
static void
golden_replace(char *text, size_t *lenp, const char *from, const char *to)
{
	size_t nfrom = strlen(from), nto = strlen(to);
	char *p = memmem(text, *lenp, from, nfrom);

	if (p == NULL || nto > nfrom)
		return;
	memcpy(p, to, nto);
	memmove(p + nto, p + nfrom,
	    *lenp - (size_t)(p - text) - nfrom + 1);
	*lenp -= nfrom - nto;
}

/* What Go 1.22 writes, and what is the same instant in UTC: our hub and
 * device keep no offsets. */
static void
golden_normalise(char *text, size_t *lenp)
{
	static const char *const pairs[][2] = {
		{ "\\u0008", "\\b" }, { "\\u000c", "\\f" },
		{ "2031-05-04T14:45:30.123456789+05:45",
		    "2031-05-04T09:00:30.123456789Z" },
		{ "2031-05-04T02:00:00.12-07:00", "2031-05-04T09:00:00.12Z" },
	};
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		golden_replace(text, lenp, pairs[i][0], pairs[i][1]);
}

/* Decode the payload as its table says, without the receiver's rules. */
static int
golden_decode(const struct frame_env *env)
{
	const struct frame_row *row = frame_get_row(env->type);
	int r;

	ASSERT_TRUE(row->table->size <= sizeof(payload));
	frame_init_payload(env->type, &payload);
	if (env->payload == 0)
		return CL_OK;
	jx.unknown = frame_on_start_member;
	r = jx_decode(&jx, env->payload, row->table, &payload);
	jx.unknown = NULL;
	return r;
}

/* Bytes that were not UTF-8 are gone from these: see test_raw. */
static int
golden_is_lossy(const char *file)
{
	return rule_is_one_of(file, "start-6.json start-7.json "
	    "log_chunk-6.json log_chunk-7.json log_chunk-8.json "
	    "log_chunk-9.json log_chunk-10.json");
}

static void
golden_check_frame(const struct golden *g)
{
	const struct frame_row *row;
	struct frame_env env;
	size_t len;
	char *text = golden_load("", g->file, &len);

	ASSERT_TRUE(text != NULL);
	if (strcmp(g->file, "start-7.json") == 0) {
		/* A label given twice. */
		ASSERT_ERR(frame_decode_envelope(&jx, text, len, &env),
		    CL_FORMAT);
		free(text);
		return;
	}
	ASSERT_ERR(frame_decode_envelope(&jx, text, len, &env), CL_OK);
	ASSERT_STRING_EQ(frame_name(env.type), g->type);
	row = frame_get_row(env.type);
	ASSERT_INT_EQ(row->since, g->since);
	ASSERT_STRING_EQ(row->dir == FRAME_BOTH ? "both" :
	    row->dir == FRAME_A2H ? "A>H" : "H>A", g->dir);
	ASSERT_ERR(golden_decode(&env), CL_OK);
	ASSERT_ERR(frame_encode(&w, env.type, env.v, env.id, env.handle,
	    env.payload == 0 ? NULL : &payload), CL_OK);
	golden_normalise(text, &len);
	if (!golden_is_lossy(g->file))
		ASSERT_STRING_EQ(w.data, text);
	frame_clear_payload(env.type, &payload);
	free(text);
}

static void
test_frames(void)
{
	TEST_START("all 39 types encode to Go's bytes");
	golden_walk("", golden_check_frame);
}

/* Where we differ on purpose, beyond the index's "product". */
static int
golden_is_ours(const char *in)
{
	/* A handle with a NUL is refused, longer text is tolerated, a bad
	 * USB entry is dropped at once. */
	return rule_is_one_of(in, "escape-nul.in text-too-long.in "
	    "text-grown.in usb-node-mismatch.in");
}

/* The verdict: "envelope", "payload" or "" (accepted). */
static const char *
golden_verdict(const char *text, size_t len, struct frame_env *env)
{
	if (frame_decode_envelope(&jx, text, len, env) != CL_OK)
		return "envelope";
	if (env->type == FRAME_UNKNOWN)
		return "";
	if (frame_decode_payload(&jx, env, &payload) != CL_OK) {
		if (jx.why[0] == '\0')
			UNIT_FAIL("refused without a reason");
		return "payload";
	}
	return "";
}

static void
golden_check_again(const struct golden *g, const struct frame_env *env)
{
	size_t len;
	char *want = golden_load("decode/", g->out, &len);

	ASSERT_TRUE(want != NULL);
	ASSERT_ERR(frame_encode(&w, env->type, env->v, env->id, env->handle,
	    &payload), CL_OK);
	golden_normalise(want, &len);
	/* Times keep neither offset nor a year beyond int64 nanoseconds; an
	 * engine on the host is emptied at once. */
	if (env->payload != 0 && strstr(g->in, "-offset") == NULL &&
	    !rule_is_one_of(g->in, "sandbox-host-engine.in "
	    "time-year-9999.in"))
		ASSERT_STRING_EQ(w.data, want);
	free(want);
}

static void
golden_check_verdict(const struct golden *g)
{
	struct frame_env env;
	const char *want, *got;
	size_t len;
	char *text = golden_load("decode/", g->in, &len);

	ASSERT_TRUE(text != NULL);
	got = golden_verdict(text, len, &env);
	if (g->product != NULL && strcmp(g->product, "refuse") == 0) {
		ASSERT_TRUE(*got != '\0');
	} else if (g->product == NULL && !golden_is_ours(g->in)) {
		want = !g->accepted ? g->step : g->rule == NULL ? "" :
		    strncmp(g->rule, "envelope", 8) == 0 ? "envelope" :
		    "payload";
		if (strcmp(got, want) != 0)
			UNIT_FAIL("verdict \"%s\" (%s), expected \"%s\"", got,
			    jx.why, want);
		if (*want == '\0' && env.type != FRAME_UNKNOWN)
			golden_check_again(g, &env);
	}
	if (*got == '\0')
		frame_clear_payload(env.type, &payload);
	free(text);
}

static void
test_corpus(void)
{
	TEST_START("the decode corpus gets the verdicts of a product");
	golden_walk("decode/", golden_check_verdict);
}

static void
golden_check_log(const char *file, int64_t offset, const char *text,
    size_t len)
{
	struct frame_log_chunk c = { "combined", offset,
		{ (char *)(uintptr_t)text, len, 0 },
		INT64_C(1935651600500000000) };
	struct frame_log_chunk back;
	struct frame_env env;
	size_t want_len;
	char *want = golden_load("", file, &want_len);

	unit_note("%s", file);
	if (want == NULL)
		TEST_SKIP("no golden files (CLOOP_GOLDEN)");
	ASSERT_ERR(frame_encode(&w, FRAME_LOG_CHUNK, 26, NULL, "h-7f3a21",
	    &c), CL_OK);
	ASSERT_STRING_EQ(w.data, want);
	/* The receiver counts what the sender counted. */
	ASSERT_ERR(frame_decode_envelope(&jx, want, want_len, &env), CL_OK);
	ASSERT_ERR(frame_decode_payload(&jx, &env, &back), CL_OK);
	ASSERT_SIZE_T_EQ(frame_log_len(&back.text), len);
	frame_clear_payload(FRAME_LOG_CHUNK, &back);
	free(want);
}

static void
test_raw(void)
{
	static char bad[32768];

	TEST_START("bytes that are not UTF-8 become \\ufffd and count one");
	jx_init(&jx);
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	memset(bad, 0xff, sizeof(bad));
	golden_check_log("log_chunk-6.json", 0, "\xef\xbf\xbd\xff", 4);
	golden_check_log("log_chunk-7.json", 0, "price 5 \xe2\x82", 10);
	golden_check_log("log_chunk-8.json", 10, "\xac\n", 2);
	golden_check_log("log_chunk-9.json", 0,
	    "\xed\xa0\x80\xc0\xaf\xf0\x9f\x98", 8);
	golden_check_log("log_chunk-10.json", 0, bad, sizeof(bad));
	jx_clear(&jx);
	jsonw_clear(&w);
}

/* start-6: text that is not UTF-8 in argv, env and a label. */
static void
test_raw_start(void)
{
	char *argv[] = { "x\xffy", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82" };
	char *env[] = { "K=\xf0\x9f\x98" };
	struct field_pair label = { "k\xff", "v\xfe" };
	struct spec s;
	size_t len;
	char *want = golden_load("", "start-6.json", &len);

	TEST_START("a start with text that is not UTF-8");
	if (want == NULL)
		TEST_SKIP("no golden files (CLOOP_GOLDEN)");
	spec_init(&s);
	s.work_dir = "a<b>&c";
	s.argv = argv;
	s.nargv = 4;
	s.env = env;
	s.nenv = 1;
	s.labels = &label;
	s.nlabels = 1;
	s.handle_id = "h-7f3a21";
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	ASSERT_ERR(frame_encode(&w, FRAME_START, 26, "q1", "h-7f3a21", &s),
	    CL_OK);
	ASSERT_STRING_EQ(w.data, want);
	jsonw_clear(&w);
	free(want);
}

UNIT_MAIN(test_frames, test_corpus, test_raw, test_raw_start)
