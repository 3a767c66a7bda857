/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The audit chain: append-only, gapless, and every kind of tampering named
 * by its first broken row.
 */
#include <sqlite3.h>

#include <openssl/evp.h>

#include "store_tmp.h"

#define ZERO "0000000000000000000000000000000000000000000000000000000000000000"

static struct store_audit rows[8];
static size_t nrows;

static int
on_row(const struct store_audit *a, void *arg)
{
	(void)arg;
	if (nrows < 8) {
		rows[nrows] = *a;
		rows[nrows].action = strdup(a->action);
		rows[nrows].actor = strdup(a->actor);
		rows[nrows].decision = strdup(a->decision);
		rows[nrows].entity = strdup(a->entity);
		rows[nrows].subject = strdup(a->subject);
		rows[nrows].detail = strdup(a->detail);
		nrows++;
	}
	return 0;
}

static void
forget_rows(void)
{
	while (nrows > 0)
		store_audit_clear(&rows[--nrows]);
}

static void
add(struct store *s, int64_t at, const char *subject)
{
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_event(s, at, "root", "executor.enroll", "allow",
	    "enrollment", subject, "name", "edge \"1\"", "empty", "", "none",
	    NULL, (char *)NULL), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
}

/* Behind the store's back, as root could. */
static void
tamper(const char *dir, const char *text)
{
	char path[512], *err = NULL;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_INT_EQ(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &err) != SQLITE_OK)
		UNIT_FAIL("%s: %s", text, err);
	sqlite3_close(db);
}

static int
is_refused(const char *dir, const char *text)
{
	char path[512];
	sqlite3 *db;
	int rc;

	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_INT_EQ(sqlite3_open(path, &db), SQLITE_OK);
	(void)sqlite3_exec(db, "PRAGMA recursive_triggers = ON", NULL, NULL,
	    NULL);
	rc = sqlite3_exec(db, text, NULL, NULL, NULL);
	sqlite3_close(db);
	return rc == SQLITE_CONSTRAINT;
}

/* The first broken row, or 0. */
static uint64_t
broken(const char *dir, unsigned int step)
{
	struct store *s = tmp_open(dir);
	struct store_walk w;
	int r = CL_OK;

	memset(&w, 0, sizeof(w));
	while (r == CL_OK && !w.done)
		r = store_check_audit(s, &w, step);
	store_close(s);
	ASSERT_TRUE(w.done);
	ASSERT_ERR(r, w.broken_seq == 0 ? CL_OK : CL_FORMAT);
	ASSERT_TRUE(w.broken_seq == 0 || w.reason != NULL);
	return w.broken_seq;
}

static const char *
new_chain(int n)
{
	const char *dir = tmp_new();
	struct store *s = tmp_open(dir);
	int i;

	for (i = 1; i <= n; i++)
		add(s, 1000000000LL * i, "subject");
	store_close(s);
	return dir;
}

static void
test_rows(void)
{
	struct store *s = tmp_open(tmp_new());
	unsigned char md[32];
	char text[1024], hex[65];
	uint64_t seq;

	TEST_START("prev of a row is the hash of the one before");
	add(s, 0, "a");
	add(s, 1500000000, "b\xff\x01");
	ASSERT_ERR(store_list_audit(s, 0, UTIL_TIME_ZERO, 100, on_row, NULL),
	    CL_OK);
	ASSERT_SIZE_T_EQ(nrows, 2);
	ASSERT_STRING_EQ(rows[0].prev, ZERO);
	ASSERT_STRING_EQ(rows[1].prev, rows[0].hash);
	ASSERT_U64_EQ(rows[0].seq, 1);
	ASSERT_ERR(store_find_audit_last(s, &seq), CL_OK);
	ASSERT_U64_EQ(seq, 2);

	TEST_START("unknown keys are omitted, bytes made UTF-8");
	ASSERT_STRING_EQ(rows[0].detail, "{\"name\":\"edge \\\"1\\\"\"}");
	ASSERT_STRING_EQ(rows[1].subject, "b\xef\xbf\xbd\x01");

	TEST_START("the hash is of prev and the documented row");
	snprintf(text, sizeof(text), "%.32s{\"seq\":1,"
	    "\"at\":\"1970-01-01T00:00:00Z\",\"action\":\"executor.enroll\","
	    "\"actor\":\"root\",\"decision\":\"allow\","
	    "\"entity\":\"enrollment\",\"subject\":\"a\","
	    "\"detail\":{\"name\":\"edge \\\"1\\\"\"}}",
	    "................................");
	memset(text, 0, 32);
	ASSERT_INT_EQ(EVP_Digest(text, 32 + strlen(text + 32), md, NULL,
	    EVP_sha256(), NULL), 1);
	util_format_hex(md, sizeof(md), hex);
	ASSERT_STRING_EQ(rows[0].hash, hex);
	forget_rows();

	TEST_START("pages: after a sequence number, since a time, at most n");
	add(s, 3000000000, "c");
	ASSERT_ERR(store_list_audit(s, 1, UTIL_TIME_ZERO, 1, on_row, NULL),
	    CL_OK);
	ASSERT_SIZE_T_EQ(nrows, 1);
	ASSERT_U64_EQ(rows[0].seq, 2);
	forget_rows();
	ASSERT_ERR(store_list_audit(s, 0, 3000000000, 9, on_row, NULL),
	    CL_OK);
	ASSERT_SIZE_T_EQ(nrows, 1);
	ASSERT_U64_EQ(rows[0].seq, 3);
	forget_rows();
	store_close(s);
}

static void
test_refused(void)
{
	struct store *s = tmp_open(tmp_new());
	struct store_audit a;
	char big[5000];

	TEST_START("a detail that is not canonical is refused");
	memset(&a, 0, sizeof(a));
	a.action = a.actor = a.decision = a.entity = a.subject =
	    (char *)(uintptr_t)"x";
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	a.detail = (char *)(uintptr_t)"{ }";
	ASSERT_ERR(store_add_audit(s, &a), CL_FORMAT);
	a.detail = (char *)(uintptr_t)"[]";
	ASSERT_ERR(store_add_audit(s, &a), CL_FORMAT);
	a.detail = NULL;
	ASSERT_ERR(store_add_audit(s, &a), CL_OK);

	TEST_START("a huge value is cut, the row stands");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	ASSERT_ERR(store_add_event(s, 0, "", "a", "", "e", big, "k", big,
	    (char *)NULL), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);

	TEST_START("an aborted turn leaves no hole in the chain");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_audit(s, &a), CL_OK);
	store_abort_turn(s);
	add(s, 5, "z");
	store_close(s);
	ASSERT_U64_EQ(broken(tmp_dir, 100), 0);
}

static void
test_triggers(void)
{
	static const char *const refused[] = {
		"UPDATE audit SET actor = 'x' WHERE seq = 1",
		"DELETE FROM audit WHERE seq = 3",
		"DELETE FROM audit_head",
		"UPDATE audit_head SET seq = 2",
		"INSERT INTO audit SELECT 9, at, action, actor, decision, "
		    "entity, subject, detail, prev, hash FROM audit "
		    "WHERE seq = 3",
		"INSERT INTO audit SELECT 4, at, action, actor, decision, "
		    "entity, subject, detail, prev, hash FROM audit "
		    "WHERE seq = 3",
		"INSERT OR REPLACE INTO audit SELECT 3, at, action, 'x', "
		    "decision, entity, subject, detail, prev, hash FROM "
		    "audit WHERE seq = 3",
	};
	const char *dir = new_chain(3);
	size_t i;

	TEST_START("triggers refuse every way to change a row");
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		unit_note("%s", refused[i]);
		ASSERT_TRUE(is_refused(dir, refused[i]));
	}
	ASSERT_U64_EQ(broken(dir, 100), 0);
}

#define NO_TRIGGERS                                                            \
	"DROP TRIGGER audit_update; DROP TRIGGER audit_delete;"                \
	"DROP TRIGGER audit_insert; DROP TRIGGER audit_inserted;"              \
	"DROP TRIGGER audit_head_update; DROP TRIGGER audit_head_delete;"

#define APPEND(prev, hash)                                                     \
	"INSERT INTO audit SELECT 6, at, action, actor, decision, entity,"     \
	" subject, detail, " prev ", " hash " FROM audit WHERE seq = 5;"
#define MOVE_HEAD                                                              \
	"UPDATE audit_head SET seq = 6, hash ="                                \
	" (SELECT hash FROM audit WHERE seq = 6);"

static void
test_tamper(void)
{
	static const struct {
		const char *text;
		uint64_t broken;
	} cases[] = {
		{ "UPDATE audit SET actor = 'x' WHERE seq = 2", 2 },
		{ "UPDATE audit SET at = at + 1 WHERE seq = 1", 1 },
		{ "UPDATE audit SET detail = '{ }' WHERE seq = 4", 4 },
		{ "UPDATE audit SET detail = '{}' WHERE seq = 4", 4 },
		{ "UPDATE audit SET subject = 'y' WHERE seq = 5", 5 },
		{ "UPDATE audit SET prev = zeroblob(32) WHERE seq = 3", 3 },
		{ "UPDATE audit SET hash = zeroblob(32) WHERE seq = 3", 3 },
		{ "UPDATE audit SET hash = zeroblob(32) WHERE seq = 5", 5 },
		{ "DELETE FROM audit WHERE seq = 1", 1 },
		{ "DELETE FROM audit WHERE seq = 3", 3 },
		{ "DELETE FROM audit WHERE seq = 5", 5 },
		{ "DELETE FROM audit", 1 },
		{ "UPDATE audit SET seq = seq + 10 WHERE seq = 5", 5 },
		{ "UPDATE audit_head SET hash = zeroblob(32)", 5 },
		{ "UPDATE audit_head SET seq = 4", 5 },
		{ "UPDATE audit SET seq = 100 WHERE seq = 2;"
		  "UPDATE audit SET seq = 2 WHERE seq = 3;"
		  "UPDATE audit SET seq = 3 WHERE seq = 100", 2 },
		/* Appended without the store, to the chain or beside it. */
		{ APPEND("hash", "zeroblob(32)"), 6 },
		{ APPEND("hash", "hash") MOVE_HEAD, 6 },
		{ APPEND("zeroblob(32)", "randomblob(32)") MOVE_HEAD, 6 },
	};
	char text[1024];
	const char *dir;
	size_t i;

	TEST_START("the walk names the first broken row");
	ASSERT_U64_EQ(broken(new_chain(5), 100), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unit_note("%s", cases[i].text);
		dir = new_chain(5);
		snprintf(text, sizeof(text), NO_TRIGGERS "%s",
		    cases[i].text);
		tamper(dir, text);
		ASSERT_U64_EQ(broken(dir, 100), cases[i].broken);
		ASSERT_U64_EQ(broken(dir, 1), cases[i].broken);
	}

	TEST_START("the walk in steps comes to the same end");
	dir = new_chain(5);
	for (i = 1; i < 8; i++)
		ASSERT_U64_EQ(broken(dir, (unsigned int)i), 0);

	TEST_START("an empty chain is intact");
	ASSERT_U64_EQ(broken(new_chain(0), 10), 0);
}

UNIT_MAIN(test_rows, test_refused, test_triggers, test_tamper)
