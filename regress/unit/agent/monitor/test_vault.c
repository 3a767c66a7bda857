/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a workload holds, by lease and grant, and what a revoke takes; the
 * record from which a later agent knows it again.
 */
#include "regress/unit/priv/monitor/leasetest.h"

static struct spec s;
static struct holding h;
static int dir_fd = -1;

static void
reset(void)
{
	if (dir_fd == -1) {
		ASSERT_PTR_NE(mkdtemp(lt_base), NULL);
		dir_fd = open(lt_base, O_RDONLY | O_DIRECTORY);
	}
	spec_clear(&s);
	holding_clear(&h);
	spec_init(&s);
	holding_init(&h);
}

static void
build(void)
{
	ASSERT_ERR(secretfiles_make_dirs(lt_base, &s, (uid_t)-1, (gid_t)-1,
	    &h.set), CL_OK);
	ASSERT_ERR(secretfiles_relocate(&h.set, &s), CL_OK);
	ASSERT_ERR(holding_bind(&h, &s), CL_OK);
	ASSERT_ERR(secretfiles_place(&h.set, &s), CL_OK);
}

static void
done(void)
{
	struct secretnote note = { "" };

	secretfiles_wipe(&h.set, &note);
	ASSERT_STRING_EQ(note.text, "");
}

/* Two grants of one lease in one directory, one of another lease. */
static void
build_usual(void)
{
	reset();
	lt_add_file(&s, LT_DIR, "cfg", "lease-1", "");
	lt_add_file(&s, LT_DIR, "two", "lease-1", "");
	lt_add_file(&s, LT_OTHER, "cfg", "lease-2", "g-9");
	lt_add_binding(&s, "lease-1", "g-1", LT_DIR "/cfg");
	lt_add_binding(&s, " lease-1", "g-2 ", LT_DIR "/two");
	build();
}

static void
test_bind(void)
{
	build_usual();
	TEST_START("bindings attribute files; the rest keeps its own ids");
	ASSERT_SIZE_T_EQ(h.ngrants, 3);
	ASSERT_STRING_EQ(h.grants[1].lease_id, "lease-1");
	ASSERT_STRING_EQ(h.grants[1].grant_id, "g-2");
	ASSERT_SIZE_T_EQ(h.grants[0].nfiles, 1);
	ASSERT_INT_EQ(h.grants[0].files[0], 0);
	ASSERT_STRING_EQ(h.grants[2].lease_id, "lease-2");
	ASSERT_INT_EQ(h.grants[2].files[0], 2);
	done();
	reset();
	TEST_START("a path outside the lease directory is refused");
	lt_add_file(&s, LT_DIR, "cfg", "lease-1", "g-1");
	lt_add_binding(&s, "lease-1", "g-1", "/etc/passwd");
	build();
	ASSERT_SIZE_T_EQ(h.ngrants, 1);
	ASSERT_SIZE_T_EQ(h.grants[0].nrefused, 1);
	ASSERT_SIZE_T_EQ(h.grants[0].nfiles, 1);
	done();
	reset();
	TEST_START("nothing lent, nothing to remember");
	build();
	ASSERT_INT_EQ(holding_is_empty(&h), 1);
	TEST_START("variables alone are held as well");
	lt_add_binding(&s, "lease-1", "g-1", NULL);
	build();
	ASSERT_INT_EQ(holding_is_empty(&h), 0);
	ASSERT_INT_EQ(holding_find(&h, "lease-1", "g-1") & VAULT_HAS_GRANT,
	    VAULT_HAS_GRANT);
}

static void
test_decide(void)
{
	static const struct {
		unsigned int has;
		const char *grant;
		int known, whole;
	} rows[] = {
		{ 0, "", 0, 0 },
		{ 0, "g", 0, 0 },
		{ VAULT_HAS_LEASE, "", 1, 1 },
		{ VAULT_HAS_LEASE, "  ", 1, 1 },
		{ VAULT_HAS_LEASE | VAULT_HAS_GRANT, "g", 1, 0 },
		{ VAULT_HAS_LEASE | VAULT_HAS_GRANT | VAULT_HAS_LOOSE, "g", 1,
		    0 },
		{ VAULT_HAS_LEASE | VAULT_HAS_LOOSE, "g", 1, 1 },
		{ VAULT_HAS_LEASE, "g", 0, 0 },
	};
	size_t i;
	int whole;

	TEST_START("what a revoke means");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("row %zu", i);
		ASSERT_INT_EQ(vault_decide(rows[i].has, rows[i].grant,
		    &whole), rows[i].known);
		ASSERT_INT_EQ(whole, rows[i].whole);
	}
}

static void
test_scrub(void)
{
	struct secretnote note = { "" };

	build_usual();
	TEST_START("a grant takes exactly its files");
	ASSERT_INT_EQ(holding_scrub(&h, "lease-1", "g-2", 0, &note), 1);
	ASSERT_INT_EQ(access(lt_path(&h.set, 0, "two"), F_OK), -1);
	ASSERT_INT_EQ(access(lt_path(&h.set, 0, "cfg"), F_OK), 0);
	TEST_START("the last one takes the directory, additions included");
	lt_write(lt_path(&h.set, 0, "copy"), LT_MARK);
	ASSERT_INT_EQ(holding_scrub(&h, "lease-1", "", 1, &note), 1);
	ASSERT_INT_EQ(access(h.set.dirs[0].path, F_OK), -1);
	ASSERT_INT_EQ(access(h.set.dirs[1].path, F_OK), 0);
	TEST_START("again: known, and nothing to do");
	ASSERT_INT_EQ(holding_find(&h, "lease-1", ""), VAULT_HAS_LEASE);
	ASSERT_INT_EQ(holding_scrub(&h, "lease-1", "", 1, &note), 0);
	ASSERT_STRING_EQ(note.text, "");
	TEST_START("another lease is not touched");
	ASSERT_INT_EQ(holding_find(&h, "lease-2", ""), VAULT_HAS_LEASE |
	    VAULT_HAS_LIVE);
	done();
}

static void
test_find_file(void)
{
	struct secretnote note = { "" };
	size_t file;

	reset();
	lt_add_file(&s, LT_DIR, "cfg", "lease-1", "g");
	lt_add_file(&s, LT_OTHER, "cfg", "lease-1", "g");
	lt_add_file(&s, LT_DIR, "one", "lease-1", "g");
	build();
	TEST_START("by base name, the declared directory decides");
	ASSERT_ERR(holding_find_file(&h, "lease-1", "/elsewhere", "one",
	    &file), CL_OK);
	ASSERT_SIZE_T_EQ(file, 2);
	ASSERT_ERR(holding_find_file(&h, "lease-1", LT_OTHER, "cfg", &file),
	    CL_OK);
	ASSERT_SIZE_T_EQ(file, 1);
	ASSERT_ERR(holding_find_file(&h, "lease-1", LT_DIR, "cfg", &file),
	    CL_OK);
	ASSERT_SIZE_T_EQ(file, 0);
	ASSERT_ERR(holding_find_file(&h, "lease-1", "/elsewhere", "cfg",
	    &file), CL_LIMIT);
	ASSERT_ERR(holding_find_file(&h, "lease-1", LT_DIR, "new", &file),
	    CL_NOTFOUND);
	ASSERT_ERR(holding_find_file(&h, "lease-2", LT_DIR, "cfg", &file),
	    CL_NOTFOUND);
	TEST_START("one file in two grants is one match");
	ASSERT_SIZE_T_EQ(h.ngrants, 1);
	h.grants = reallocarray(h.grants, 2, sizeof(*h.grants));
	ASSERT_PTR_NE(h.grants, NULL);
	memset(&h.grants[1], 0, sizeof(h.grants[1]));
	h.grants[1].lease_id = lt_dup("lease-1");
	h.grants[1].files = calloc(1, sizeof(int64_t));
	h.grants[h.ngrants++].nfiles = 1;
	ASSERT_ERR(holding_find_file(&h, "lease-1", LT_DIR, "cfg", &file),
	    CL_OK);
	ASSERT_SIZE_T_EQ(file, 0);
	TEST_START("what was scrubbed is not found");
	(void)holding_scrub(&h, "lease-1", "", 1, &note);
	ASSERT_ERR(holding_find_file(&h, "lease-1", LT_DIR, "one", &file),
	    CL_NOTFOUND);
	done();
}

static void
test_record(void)
{
	struct holding back;
	char path[128], text[4096];
	size_t file;
	int fd;
	ssize_t n;

	build_usual();
	TEST_START("the record tells the next agent everything but values");
	ASSERT_ERR(holding_load(&back, dir_fd), CL_NOTFOUND);
	ASSERT_ERR(holding_save(&h, dir_fd), CL_OK);
	snprintf(path, sizeof(path), "%s/" VAULT_RECORD, lt_base);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof(text));
	close(fd);
	ASSERT_TRUE(n > 0 && memmem(text, (size_t)n, LT_MARK, 8) == NULL);
	ASSERT_ERR(holding_load(&back, dir_fd), CL_OK);
	ASSERT_SIZE_T_EQ(back.ngrants, 3);
	ASSERT_INT_EQ(back.set.dirs[0].lock_fd, -1);
	ASSERT_U64_EQ(back.set.files[1].ino, h.set.files[1].ino);
	ASSERT_STRING_EQ(back.set.dirs[1].path, h.set.dirs[1].path);
	holding_clear(&back);
	TEST_START("material of no grant is that after a crash as well");
	h.grants[0].grant_id[0] = '\0';
	ASSERT_ERR(holding_save(&h, dir_fd), CL_OK);
	ASSERT_ERR(holding_load(&back, dir_fd), CL_OK);
	ASSERT_INT_EQ(holding_find(&back, "lease-1", "g-7"),
	    VAULT_HAS_LEASE | VAULT_HAS_LOOSE | VAULT_HAS_LIVE);
	ASSERT_ERR(holding_find_file(&back, "lease-1", LT_DIR, "cfg",
	    &file), CL_OK);
	holding_clear(&back);
	TEST_START("a record that makes no sense is refused");
	h.grants[0].lease_id[0] = ' ';
	h.grants[0].lease_id[1] = '\0';
	ASSERT_ERR(holding_save(&h, dir_fd), CL_OK);
	ASSERT_ERR(holding_load(&back, dir_fd), CL_FORMAT);
	memcpy(h.grants[0].lease_id, "l", 2);
	h.grants[0].files[0] = 77;
	ASSERT_ERR(holding_save(&h, dir_fd), CL_OK);
	ASSERT_ERR(holding_load(&back, dir_fd), CL_FORMAT);
	h.grants[0].files[0] = 0;
	ASSERT_ERR(holding_save(&h, dir_fd), CL_OK);
	ASSERT_INT_EQ(truncate(path, 40), 0);
	ASSERT_TRUE(holding_load(&back, dir_fd) != CL_OK);
	ASSERT_INT_EQ(truncate(path, 0), 0);
	ASSERT_TRUE(holding_load(&back, dir_fd) != CL_OK);
	ASSERT_INT_EQ(unlink(path), 0);
	done();
}

static void
test_tombstones(void)
{
	static struct tombstones t;
	char id[32];
	int i;

	TEST_START("the last 64 leases are remembered");
	for (i = 0; i < VAULT_TOMBSTONES + 1; i++) {
		snprintf(id, sizeof(id), "lease-%d", i);
		tombstones_add(&t, id);
		tombstones_add(&t, id);
	}
	ASSERT_INT_EQ(tombstones_has(&t, "lease-0"), 0);
	ASSERT_INT_EQ(tombstones_has(&t, " lease-1"), 1);
	tombstones_del(&t, "lease-1");
	ASSERT_INT_EQ(tombstones_has(&t, "lease-1"), 0);
	tombstones_clear(&t);
	ASSERT_INT_EQ(tombstones_has(&t, "lease-2"), 0);
	spec_clear(&s);
	holding_clear(&h);
	close(dir_fd);
	ASSERT_SIZE_T_EQ(lt_count(lt_base), 0);
	ASSERT_INT_EQ(rmdir(lt_base), 0);
}

UNIT_MAIN(test_bind, test_decide, test_scrub, test_find_file, test_record,
    test_tombstones)
