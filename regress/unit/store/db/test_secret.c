/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * store/db/store_secret: sealing, versions, tombstones, rotation.
 */
#include "regress/unit/unit.h"

#include <sqlite3.h>

#include "store/db/seal.h"
#include "store/db/store_secret.h"
#include "store_tmp.h"

static struct store *s;
static struct store_keks keks;

static void
make_key(struct secret *key)
{
	ASSERT_INT_EQ(seal_new_key(key), CL_OK);
}

static const char *
set_up(void)
{
	const char *dir = tmp_new();

	store_keks_clear(&keks);
	make_key(&keks.key[0]);
	keks.n = 1;
	s = tmp_open(dir);
	ASSERT_INT_EQ(store_begin_turn(s), CL_OK);
	return dir;
}

static int
save(const char *name, const char *owner, const char *text,
    struct store_secret *row)
{
	struct secret value = SECRET_INIT;
	int r;

	memset(row, 0, sizeof(*row));
	row->name = (char *)(uintptr_t)name;
	row->owner = (char *)(uintptr_t)owner;
	row->kind = (char *)(uintptr_t)"env";
	row->names = (char *)(uintptr_t)"A";
	row->created_by = (char *)(uintptr_t)"test";
	row->updated_at = 1000;
	ASSERT_INT_EQ(secret_init(&value, text, strlen(text), 4096), CL_OK);
	r = store_save_secret(s, row, &keks, &value);
	secret_clear(&value);
	return r;
}

static void
expect_value(const char *id, int64_t version, const char *want)
{
	struct secret value = SECRET_INIT;

	ASSERT_INT_EQ(store_load_secret(s, &keks, id, version, &value),
	    CL_OK);
	ASSERT_BYTES_EQ(value.data, value.len, want, strlen(want));
	secret_clear(&value);
}

static void
sql(const char *dir, const char *text)
{
	char path[512];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_INT_EQ(sqlite3_open(path, &db), SQLITE_OK);
	ASSERT_INT_EQ(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static int
file_has(const char *dir, const char *needle)
{
	char path[512], data[65536];
	size_t n;
	FILE *f;
	int found = 0;

	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_TRUE((f = fopen(path, "r")) != NULL);
	while ((n = fread(data, 1, sizeof(data), f)) > 0)
		if (memmem(data, n, needle, strlen(needle)) != NULL)
			found = 1;
	fclose(f);
	return found;
}

static void
test_versions(void)
{
	struct store_secret a, b, mine;
	const char *dir = set_up();

	TEST_START("a value comes back, its bytes are nowhere in the file");
	ASSERT_INT_EQ(save("t", "", "A=marker-one", &a), CL_OK);
	ASSERT_INT_EQ(a.version, 1);
	expect_value(a.id, 1, "A=marker-one");
	ASSERT_INT_EQ(store_commit_turn(s), CL_OK);
	ASSERT_FALSE(file_has(dir, "marker-one"));
	ASSERT_INT_EQ(store_begin_turn(s), CL_OK);

	TEST_START("the same name is a new version; both open");
	ASSERT_INT_EQ(save("t", "", "A=marker-two", &b), CL_OK);
	ASSERT_STRING_EQ(a.id, b.id);
	ASSERT_INT_EQ(b.version, 2);
	expect_value(a.id, 1, "A=marker-one");
	expect_value(a.id, 2, "A=marker-two");

	TEST_START("a personal one of the same name is another secret");
	ASSERT_INT_EQ(save("t", "uid:7", "A=mine", &mine), CL_OK);
	ASSERT_TRUE(strcmp(mine.id, a.id) != 0);

	TEST_START("versions that no open lease was given go");
	ASSERT_INT_EQ(store_del_old_versions(s), CL_OK);
	{
		struct secret v = SECRET_INIT;

		ASSERT_ERR(store_load_secret(s, &keks, a.id, 1, &v),
		    CL_NOTFOUND);
	}
	expect_value(a.id, 2, "A=marker-two");

	TEST_START("without a key nothing is sealed");
	keks.n = 0;
	free(b.id);
	ASSERT_ERR(save("u", "", "A=1", &b), CL_NOTFOUND);
	keks.n = 1;
	free(a.id);
	free(mine.id);
	store_close(s);
}

static void
test_tamper(void)
{
	struct secret v = SECRET_INIT;
	struct store_secret a, b;
	const char *dir = set_up();

	TEST_START("sealed data moved to another record does not open");
	ASSERT_INT_EQ(save("a", "", "A=1", &a), CL_OK);
	ASSERT_INT_EQ(save("b", "", "B=2", &b), CL_OK);
	ASSERT_INT_EQ(store_commit_turn(s), CL_OK);
	store_close(s);
	sql(dir, "UPDATE secret_version SET "
	    "wrapped = (SELECT wrapped FROM secret_version AS o WHERE "
	    "o.secret_id <> secret_version.secret_id), "
	    "sealed = (SELECT sealed FROM secret_version AS o WHERE "
	    "o.secret_id <> secret_version.secret_id)");
	s = tmp_open(dir);
	ASSERT_ERR(store_load_secret(s, &keks, a.id, 1, &v), CL_DENIED);

	TEST_START("nor does it under another key");
	ASSERT_INT_EQ(store_begin_turn(s), CL_OK);
	{
		struct store_secret c;

		ASSERT_INT_EQ(save("c", "", "C=3", &c), CL_OK);
		secret_clear(&keks.key[0]);
		make_key(&keks.key[0]);
		ASSERT_ERR(store_load_secret(s, &keks, c.id, 1, &v),
		    CL_DENIED);
		free(c.id);
	}
	free(a.id);
	free(b.id);
	store_close(s);
}

static void
test_delete(void)
{
	struct secret v = SECRET_INIT;
	struct store_secret a, row;

	(void)set_up();
	TEST_START("a deleted secret leaves a tombstone and no sealed data");
	ASSERT_INT_EQ(save("t", "", "A=1", &a), CL_OK);
	ASSERT_INT_EQ(store_del_secret(s, &a, 2000, "test", "deleted", ""),
	    CL_OK);
	ASSERT_ERR(store_find_secret(s, "t", "", &row), CL_NOTFOUND);
	ASSERT_ERR(store_load_secret(s, &keks, a.id, 1, &v), CL_NOTFOUND);
	ASSERT_ERR(store_del_secret(s, &a, 2000, "test", "deleted", ""),
	    CL_EXISTS);

	TEST_START("its name is free for another one");
	free(a.id);
	ASSERT_INT_EQ(save("t", "", "A=2", &a), CL_OK);
	ASSERT_INT_EQ(a.version, 1);
	free(a.id);
	store_close(s);
}

static void
test_rotation(void)
{
	struct store_secret a, b;
	struct secret next = SECRET_INIT, other = SECRET_INIT;
	unsigned int n;

	(void)set_up();
	make_key(&next);
	make_key(&other);
	ASSERT_INT_EQ(save("a", "", "A=1", &a), CL_OK);

	TEST_START("a rotation rewraps, and again finds nothing to do");
	ASSERT_INT_EQ(store_rewrap_secrets(s, &keks.key[0], &next, &n),
	    CL_OK);
	ASSERT_INT_EQ(n, 1);
	ASSERT_INT_EQ(save("b", "", "B=2", &b), CL_OK);
	ASSERT_INT_EQ(store_rewrap_secrets(s, &keks.key[0], &next, &n),
	    CL_OK);
	ASSERT_INT_EQ(n, 1);
	ASSERT_INT_EQ(store_rewrap_secrets(s, &keks.key[0], &next, &n),
	    CL_OK);
	ASSERT_INT_EQ(n, 0);

	TEST_START("a key that opens nothing is refused");
	ASSERT_ERR(store_rewrap_secrets(s, &keks.key[0], &other, &n),
	    CL_DENIED);

	TEST_START("in the middle both keys open everything");
	keks.key[1] = next;
	keks.n = 2;
	expect_value(a.id, 1, "A=1");
	expect_value(b.id, 1, "B=2");
	secret_clear(&other);
	free(a.id);
	free(b.id);
	store_close(s);
	store_keks_clear(&keks);
}

UNIT_MAIN(test_versions, test_tamper, test_delete, test_rotation)
