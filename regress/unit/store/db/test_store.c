/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The hub store: files and lock, turns, conditional updates, handles,
 * retention, migrations, full and read-only file systems.
 */
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "common/msg/msgcat.h"
#include "store_tmp.h"

static void
sql(const char *dir, const char *text)
{
	char path[512];
	sqlite3 *db;
	char *err = NULL;

	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_INT_EQ(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &err) != SQLITE_OK)
		UNIT_FAIL("%s: %s", text, err);
	sqlite3_close(db);
}

static void
test_files(void)
{
	const char *dir = tmp_new();
	char path[512], err[512];
	struct stat sb;
	struct store *s;

	TEST_START("directory 0700, file 0600 whatever the umask");
	umask(0);
	s = tmp_open(dir);
	store_close(s);
	snprintf(path, sizeof(path), "%s/hub", dir);
	ASSERT_INT_EQ(stat(path, &sb), 0);
	ASSERT_INT_EQ(sb.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_INT_EQ(stat(path, &sb), 0);
	ASSERT_INT_EQ(sb.st_mode & 07777, 0600);

	TEST_START("a file that others can read is refused");
	ASSERT_INT_EQ(chmod(path, 0640), 0);
	ASSERT_ERR(store_open(dir, 0, &s, err, sizeof(err)), CL_DENIED);
	ASSERT_TRUE(strstr(err, "cloop.db") != NULL);
	ASSERT_INT_EQ(chmod(path, 0600), 0);

	TEST_START("a directory that others can enter is refused");
	snprintf(path, sizeof(path), "%s/hub", dir);
	ASSERT_INT_EQ(chmod(path, 0750), 0);
	ASSERT_ERR(store_open(dir, 0, &s, err, sizeof(err)), CL_DENIED);
	ASSERT_INT_EQ(chmod(path, 0700), 0);

	TEST_START("a symbolic link in place of the file is refused");
	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_INT_EQ(unlink(path), 0);
	ASSERT_INT_EQ(symlink("/dev/null", path), 0);
	ASSERT_ERR(store_open(dir, 0, &s, err, sizeof(err)), CL_SYSTEM);
	ASSERT_INT_EQ(unlink(path), 0);
}

static void
test_lock(void)
{
	const char *dir = tmp_new();
	struct store *s = tmp_open(dir);
	int status;
	pid_t pid;

	TEST_START("a second process hears that the store is in use");
	fflush(stdout);
	if ((pid = fork()) == 0) {
		struct store *other;
		char err[512] = "";

		_exit(store_open(dir, 50, &other, err, sizeof(err)) ==
		    CL_STATE && strstr(err, "in use") != NULL ? 0 : 1);
	}
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_INT_EQ(status, 0);

	TEST_START("and the first one goes on writing");
	tmp_add_agent(s, "a");
	store_close(s);

	TEST_START("after the close it opens");
	store_close(tmp_open(dir));
}

static void
test_versions(void)
{
	static char name[] = "edge", who[] = "uid:0", why[] = "lost";
	const struct store_ban ban = { name, 5, who, why };
	const char *dir = tmp_new();
	char err[512], path[512];
	struct store_agent a;
	struct store_ban b;
	struct store *s;
	FILE *f;

	TEST_START("a store of a newer version is refused, untouched");
	store_close(tmp_open(dir));
	sql(dir, "PRAGMA user_version = 999");
	ASSERT_ERR(store_open(dir, 0, &s, err, sizeof(err)), CL_VERSION);
	ASSERT_TRUE(strstr(err, "newer") != NULL);
	sql(dir, "PRAGMA user_version = 4");

	TEST_START("a store of version 2: its agents are taken to have their "
	    "credential, names can be banned");
	s = tmp_open(dir);
	tmp_add_agent(s, "old");
	store_close(s);
	sql(dir, "DROP TABLE ban;"
	    "ALTER TABLE agent DROP COLUMN confirmed_at;"
	    "ALTER TABLE handle DROP COLUMN log_sha256;"
	    "ALTER TABLE handle DROP COLUMN log_modified_at;"
	    "ALTER TABLE handle DROP COLUMN index_bytes;"
	    "ALTER TABLE handle DROP COLUMN index_sha256;"
	    "ALTER TABLE handle DROP COLUMN index_modified_at;"
	    "PRAGMA user_version = 2");
	s = tmp_open(dir);
	ASSERT_ERR(store_find_agent(s, "old", &a), CL_OK);
	ASSERT_TRUE(a.confirmed_at == 1000);
	store_agent_clear(&a);
	ASSERT_ERR(store_find_ban(s, "edge", &b), CL_NOTFOUND);
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_ban(s, &ban), CL_OK);
	ASSERT_ERR(store_add_ban(s, &ban), CL_EXISTS);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	store_close(s);
	s = tmp_open(dir);
	ASSERT_ERR(store_find_ban(s, "edge", &b), CL_OK);
	ASSERT_STRING_EQ(b.reason, "lost");
	store_ban_clear(&b);
	store_close(s);

	TEST_START("a database that is not ours is refused");
	sql(dir, "PRAGMA application_id = 7");
	ASSERT_ERR(store_open(dir, 0, &s, err, sizeof(err)), CL_FORMAT);

	TEST_START("a file that is no database is refused");
	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_TRUE((f = fopen(path, "w")) != NULL);
	for (int i = 0; i < 4096; i++)
		fputs("not a database\n", f);
	fclose(f);
	ASSERT_ERR(store_open(dir, 0, &s, err, sizeof(err)), CL_FORMAT);

	TEST_START("an empty file is a new store");
	ASSERT_INT_EQ(truncate(path, 0), 0);
	s = tmp_open(dir);
	tmp_add_agent(s, "a");
	store_close(s);

	TEST_START("tables are STRICT and the page says so");
	sql(dir, "CREATE TEMP TABLE t AS SELECT count(*) AS n FROM "
	    "pragma_table_list WHERE schema = 'main' AND type = 'table' AND "
	    "name NOT LIKE 'sqlite_%' AND strict = 0;"
	    "CREATE TEMP TABLE must (x CHECK (x = 0));"
	    "INSERT INTO must SELECT n FROM t");
}

static void
test_turns(void)
{
	struct store_enrollment e = tmp_enrollment("one"), found;
	struct store *s = tmp_open(tmp_new());

	TEST_START("a write outside a turn is refused");
	ASSERT_ERR(store_add_enrollment(s, &e), CL_STATE);

	TEST_START("a turn without writes commits nothing");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_begin_turn(s), CL_STATE);
	ASSERT_FALSE(store_is_dirty(s));
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_STATE);

	TEST_START("an aborted turn never happened");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	ASSERT_TRUE(store_is_dirty(s));
	ASSERT_ERR(store_find_enrollment(s, "one", &found), CL_OK);
	store_enrollment_clear(&found);
	store_abort_turn(s);
	ASSERT_ERR(store_find_enrollment(s, "one", &found), CL_NOTFOUND);

	TEST_START("a refused row leaves the others of the turn alone");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	ASSERT_ERR(store_add_enrollment(s, &e), CL_EXISTS);
	e.id = (char *)(uintptr_t)"two";
	e.secret_hash = (char *)(uintptr_t)"short";
	ASSERT_ERR(store_add_enrollment(s, &e), CL_FORMAT);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_enrollment(s, "one", &found), CL_OK);
	store_enrollment_clear(&found);

	TEST_START("an undone request leaves those before and after it");
	e.secret_hash = tmp_enrollment("x").secret_hash;
	e.id = (char *)(uintptr_t)"before";
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	store_begin_request(s);
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	store_end_request(s);
	store_begin_request(s);
	e.id = (char *)(uintptr_t)"undone";
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	store_undo_request(s);
	e.id = (char *)(uintptr_t)"instead";
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	store_end_request(s);
	store_begin_request(s);
	store_undo_request(s);	/* nothing was written */
	store_end_request(s);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_enrollment(s, "before", &found), CL_OK);
	store_enrollment_clear(&found);
	ASSERT_ERR(store_find_enrollment(s, "instead", &found), CL_OK);
	store_enrollment_clear(&found);
	ASSERT_ERR(store_find_enrollment(s, "undone", &found), CL_NOTFOUND);
	store_close(s);
}

static void
test_enrollment(void)
{
	struct store_enrollment e = tmp_enrollment("tok"), f;
	const char *dir = tmp_new();
	struct store *s = tmp_open(dir);

	TEST_START("a record survives with all its members");
	e.workdir_root = (char *)(uintptr_t)"/srv";
	e.created_by = (char *)(uintptr_t)"root";
	ASSERT_ERR(store_labels_add(&e.labels, "z", "1"), CL_OK);
	ASSERT_ERR(store_labels_add(&e.labels, "a", "\"q\"\n"), CL_OK);
	ASSERT_ERR(store_labels_add(&e.labels, "z", "2"), CL_OK);
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	store_labels_clear(&e.labels);
	store_close(s);
	s = tmp_open(dir);
	ASSERT_ERR(store_find_enrollment(s, "tok", &f), CL_OK);
	ASSERT_STRING_EQ(f.name, "edge");
	ASSERT_STRING_EQ(f.workdir_root, "/srv");
	ASSERT_STRING_EQ(f.created_by, "root");
	ASSERT_INT_EQ(f.created_at, 1000);
	ASSERT_INT_EQ(f.expires_at, 2000);
	ASSERT_INT_EQ(f.redeemed_at, UTIL_TIME_ZERO);
	ASSERT_INT_EQ(f.revoked_at, UTIL_TIME_ZERO);
	ASSERT_SIZE_T_EQ(f.labels.n, 2);
	ASSERT_STRING_EQ(f.labels.v[0].key, "a");
	ASSERT_STRING_EQ(f.labels.v[0].value, "\"q\"\n");
	ASSERT_STRING_EQ(f.labels.v[1].value, "2");
	store_enrollment_clear(&f);

	TEST_START("the claim succeeds once, ever");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_redeem_enrollment(s, "tok", "A", "::1", 5), CL_OK);
	ASSERT_ERR(store_redeem_enrollment(s, "tok", "B", "::2", 6),
	    CL_EXISTS);
	ASSERT_ERR(store_redeem_enrollment(s, "nix", "B", "::2", 6),
	    CL_EXISTS);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_enrollment(s, "tok", &f), CL_OK);
	ASSERT_STRING_EQ(f.redeemed_agent_id, "A");
	ASSERT_STRING_EQ(f.redeemed_peer, "::1");
	ASSERT_INT_EQ(f.redeemed_at, 5);
	store_enrollment_clear(&f);

	TEST_START("revoking works on redeemed ones and keeps the first time");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_revoke_enrollment(s, "tok", 7), CL_OK);
	ASSERT_ERR(store_revoke_enrollment(s, "tok", 8), CL_OK);
	ASSERT_ERR(store_revoke_enrollment(s, "nix", 8), CL_NOTFOUND);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_enrollment(s, "tok", &f), CL_OK);
	ASSERT_INT_EQ(f.revoked_at, 7);
	store_enrollment_clear(&f);
	store_close(s);
}

struct ids {
	char text[256];
};

static int
on_enrollment(const struct store_enrollment *e, void *arg)
{
	struct ids *ids = arg;

	strncat(ids->text, e->id, sizeof(ids->text) - strlen(ids->text) - 1);
	return 0;
}

static void
test_lists(void)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct store *s = tmp_open(tmp_new());
	struct store_enrollment e;
	struct ids ids = { "" };
	size_t i;

	TEST_START("enrollments come newest first");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	for (i = 0; i < 4; i++) {
		e = tmp_enrollment(names[i]);
		e.created_at = 1000 + (int64_t)i;
		ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	}
	ASSERT_ERR(store_redeem_enrollment(s, "a", "A", "", 5), CL_OK);
	ASSERT_ERR(store_revoke_enrollment(s, "c", 5), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_list_enrollments(s, 0, on_enrollment, &ids), CL_OK);
	ASSERT_STRING_EQ(ids.text, "dcba");

	TEST_START("outstanding: unredeemed, unrevoked, unexpired");
	ids.text[0] = '\0';
	ASSERT_ERR(store_list_enrollments(s, 2000, on_enrollment, &ids),
	    CL_OK);
	ASSERT_STRING_EQ(ids.text, "db");
	ids.text[0] = '\0';
	ASSERT_ERR(store_list_enrollments(s, 2001, on_enrollment, &ids),
	    CL_OK);
	ASSERT_STRING_EQ(ids.text, "");
	store_close(s);
}

static void
test_agent(void)
{
	struct store *s = tmp_open(tmp_new());
	struct store_agent a;
	struct store_executor x, y;
	uint8_t caps[3] = { 0, 1, 2 };

	TEST_START("last_seen never moves back");
	tmp_add_agent(s, "A");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_save_seen(s, "A", 50), CL_OK);
	ASSERT_ERR(store_save_seen(s, "A", 40), CL_OK);
	ASSERT_ERR(store_save_seen(s, "B", 40), CL_NOTFOUND);
	ASSERT_ERR(store_revoke_agent(s, "A", 60), CL_OK);
	ASSERT_ERR(store_revoke_agent(s, "A", 70), CL_OK);
	ASSERT_ERR(store_revoke_agent(s, "B", 70), CL_NOTFOUND);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_agent(s, "A", &a), CL_OK);
	ASSERT_INT_EQ(a.last_seen, 50);
	ASSERT_INT_EQ(a.revoked_at, 60);
	store_agent_clear(&a);

	TEST_START("an executor is replaced on every connect");
	memset(&x, 0, sizeof(x));
	x.agent_id = (char *)(uintptr_t)"A";
	x.status = AGENT_ONLINE;
	x.status_at = 9;
	x.agent_version = (char *)(uintptr_t)"1.2";
	x.caps = caps;
	x.caps_len = sizeof(caps);
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_save_status(s, "A", AGENT_ONLINE, 1, ""),
	    CL_NOTFOUND);
	ASSERT_ERR(store_save_executor(s, &x), CL_OK);
	ASSERT_ERR(store_save_executor(s, &x), CL_OK);
	x.agent_id = (char *)(uintptr_t)"B";
	ASSERT_ERR(store_save_executor(s, &x), CL_NOTFOUND);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_executor(s, "A", &y), CL_OK);
	ASSERT_BYTES_EQ(y.caps, y.caps_len, caps, sizeof(caps));
	ASSERT_STRING_EQ(y.agent_version, "1.2");
	store_executor_clear(&y);

	TEST_START("at boot nobody is online");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_reset_executors(s, 11, "hub started"), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_executor(s, "A", &y), CL_OK);
	ASSERT_INT_EQ(y.status, AGENT_OFFLINE);
	ASSERT_INT_EQ(y.status_at, 11);
	ASSERT_STRING_EQ(y.reason, "hub started");
	store_executor_clear(&y);
	store_close(s);
}

static struct store_handle
new_handle(const char *id)
{
	struct store_handle h;

	memset(&h, 0, sizeof(h));
	h.handle_id = (char *)(uintptr_t)id;
	h.agent_id = (char *)(uintptr_t)"A";
	h.dispatched_at = 100;
	h.state = HS_PENDING;
	h.started_at = h.finished_at = h.closed_at = UTIL_TIME_ZERO;
	return h;
}

static void
test_handle(void)
{
	struct store *s = tmp_open(tmp_new());
	struct store_handle h = new_handle("h1"), f;
	uint64_t first;

	TEST_START("a handle needs its agent and a new id");
	tmp_add_agent(s, "A");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_handle(s, &h), CL_OK);
	first = h.number;
	ASSERT_TRUE(first > 0);
	ASSERT_ERR(store_add_handle(s, &h), CL_EXISTS);
	h = new_handle("h2");
	h.agent_id = (char *)(uintptr_t)"B";
	ASSERT_ERR(store_add_handle(s, &h), CL_NOTFOUND);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_handle(s, "h1", &f), CL_OK);
	ASSERT_STRING_EQ(f.secrets, "");	/* unrecorded */
	ASSERT_STRING_EQ(f.meta, "{}");
	ASSERT_FALSE(f.has_exit_code);
	ASSERT_INT_EQ(f.closed_at, UTIL_TIME_ZERO);
	ASSERT_STRING_EQ(f.log_sha256, "");
	ASSERT_INT_EQ(f.log_modified_at, UTIL_TIME_ZERO);
	store_handle_clear(&f);

	TEST_START("it closes once");
	h = new_handle("h1");
	h.number = first;
	h.state = HS_EXITED;
	h.has_exit_code = 1;
	h.exit_code = 0;
	h.closed_at = 300;
	h.received = 10;
	h.log_bytes = 9;
	h.error = (char *)(uintptr_t)"why";
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_save_handle(s, &h), CL_OK);
	h.state = HS_FAILED;
	ASSERT_ERR(store_save_handle(s, &h), CL_STATE);
	h.number = 999;
	ASSERT_ERR(store_save_handle(s, &h), CL_NOTFOUND);

	TEST_START("output counts go on after the end, and only forward");
	ASSERT_ERR(store_save_progress(s, first, 20, 19, 1), CL_OK);
	ASSERT_ERR(store_save_progress(s, first, 15, 15, 0), CL_OK);
	ASSERT_ERR(store_save_progress(s, 999, 15, 15, 0), CL_NOTFOUND);
	ASSERT_ERR(store_save_handle_secrets(s, first, "[]"), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_handle(s, "h1", &f), CL_OK);
	ASSERT_INT_EQ(f.state, HS_EXITED);
	ASSERT_TRUE(f.has_exit_code);
	ASSERT_INT_EQ(f.exit_code, 0);
	ASSERT_U64_EQ(f.received, 20);
	ASSERT_U64_EQ(f.log_bytes, 19);
	ASSERT_INT_EQ(f.gapped, 1);
	ASSERT_STRING_EQ(f.secrets, "[]");
	ASSERT_STRING_EQ(f.error, "why");
	store_handle_clear(&f);

	TEST_START("a handle that has ended is sealed");
	h.number = first;
	h.log_bytes = 18;
	h.log_modified_at = 500;
	h.index_bytes = 40;
	h.index_modified_at = UTIL_TIME_ZERO;
	memset(h.log_sha256, 'a', 64);
	memset(h.index_sha256, 'b', 64);
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_save_seal(s, &h), CL_OK);
	h.number = 999;
	ASSERT_ERR(store_save_seal(s, &h), CL_NOTFOUND);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_ERR(store_find_handle(s, "h1", &f), CL_OK);
	ASSERT_U64_EQ(f.log_bytes, 18);
	ASSERT_STRING_EQ(f.log_sha256, h.log_sha256);
	ASSERT_STRING_EQ(f.index_sha256, h.index_sha256);
	ASSERT_INT_EQ(f.log_modified_at, 500);
	ASSERT_INT_EQ(f.index_modified_at, UTIL_TIME_ZERO);
	ASSERT_U64_EQ(f.index_bytes, 40);
	store_handle_clear(&f);

	TEST_START("a number is never used again");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_del_handle(s, first), CL_OK);
	ASSERT_ERR(store_del_handle(s, first), CL_OK);
	h = new_handle("h1");
	ASSERT_ERR(store_add_handle(s, &h), CL_OK);
	ASSERT_TRUE(h.number > first);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	store_close(s);
}

static int
on_handle(const struct store_handle *h, void *arg)
{
	struct ids *ids = arg;

	strncat(ids->text, h->handle_id,
	    sizeof(ids->text) - strlen(ids->text) - 1);
	return 0;
}

static void
test_retention(void)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct store *s = tmp_open(tmp_new());
	struct store_handle h;
	struct ids ids = { "" };
	size_t i;

	TEST_START("the newest finished ones stay, running ones always");
	tmp_add_agent(s, "A");
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	for (i = 0; i < 6; i++) {
		h = new_handle(names[i]);
		ASSERT_ERR(store_add_handle(s, &h), CL_OK);
		h.closed_at = 200 + (int64_t)i;
		h.state = HS_EXITED;
		if (i != 1)	/* b runs on */
			ASSERT_ERR(store_save_handle(s, &h), CL_OK);
	}
	ASSERT_ERR(store_del_old_handles(s, "A", 3, UTIL_TIME_ZERO,
	    on_handle, &ids), CL_OK);
	ASSERT_STRING_EQ(ids.text, "ac");
	ids.text[0] = '\0';
	ASSERT_ERR(store_list_handles(s, "A", 0, on_handle, &ids), CL_OK);
	ASSERT_STRING_EQ(ids.text, "bdef");

	TEST_START("and of those only the young");
	ASSERT_ERR(store_del_old_handles(s, "A", 3, 205, NULL, NULL), CL_OK);
	ids.text[0] = '\0';
	ASSERT_ERR(store_list_handles(s, NULL, 0, on_handle, &ids), CL_OK);
	ASSERT_STRING_EQ(ids.text, "bf");
	ids.text[0] = '\0';
	ASSERT_ERR(store_list_handles(s, "A", 1, on_handle, &ids), CL_OK);
	ASSERT_STRING_EQ(ids.text, "b");
	ids.text[0] = '\0';
	ASSERT_ERR(store_list_handles(s, NULL, 1, on_handle, &ids), CL_OK);
	ASSERT_STRING_EQ(ids.text, "b");
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	store_close(s);
}

/* A small file system of our own, unseen by others. */
static const char *
small_mount(void)
{
	const char *dir = tmp_new();

	if (geteuid() != 0 || unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("small", dir, "tmpfs", 0, "size=512k") == -1)
		return NULL;
	return dir;
}

static void
fill(const char *dir)
{
	char path[512], block[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/filler", dir);
	if ((f = fopen(path, "w")) == NULL)
		return;
	setvbuf(f, NULL, _IONBF, 0);
	while (fwrite(block, 1, sizeof(block), f) == sizeof(block))
		;
	fclose(f);
}

static void
test_full(void)
{
	char id[32], err[512], path[512];
	struct store_enrollment e;
	const char *dir;
	struct store *s;
	int i, r = CL_OK;

	TEST_START("a full disk is an error, and nothing committed is lost");
	if ((dir = small_mount()) == NULL)
		TEST_SKIP("no right to mount a small tmpfs");
	s = tmp_open(dir);
	tmp_add_agent(s, "kept");
	fill(dir);
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	for (i = 0; i < 20000 && r == CL_OK; i++) {
		snprintf(id, sizeof(id), "filler-%d", i);
		e = tmp_enrollment(id);
		r = store_add_enrollment(s, &e);
	}
	ASSERT_TRUE(r == CL_OK || r == CL_DB);
	ASSERT_ERR(store_commit_turn(s), CL_DB);
	ASSERT_TRUE(strstr(store_error(s), "full") != NULL);
	ASSERT_ERR(store_find_enrollment(s, "filler-0", &e), CL_NOTFOUND);
	ASSERT_ERR(store_find_enrollment(s, "kept", &e), CL_OK);
	store_enrollment_clear(&e);

	TEST_START("when there is room again it goes on without a restart");
	snprintf(path, sizeof(path), "%s/filler", dir);
	ASSERT_INT_EQ(unlink(path), 0);
	tmp_add_agent(s, "after");
	store_close(s);

	TEST_START("a read-only file system is found at the open");
	ASSERT_INT_EQ(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL),
	    0);
	ASSERT_TRUE(store_open(dir, 0, &s, err, sizeof(err)) != CL_OK);
	ASSERT_TRUE(strstr(err, dir) != NULL);
	ASSERT_INT_EQ(mount(NULL, dir, NULL, MS_REMOUNT, NULL), 0);
	s = tmp_open(dir);
	ASSERT_ERR(store_find_enrollment(s, "after", &e), CL_OK);
	store_enrollment_clear(&e);
	store_close(s);
	ASSERT_INT_EQ(umount(dir), 0);
}

/* A process killed in a turn: the next open sees the turn before. */
static void
test_crash(void)
{
	const char *dir = tmp_new();
	struct store_enrollment e;
	struct store *s;
	int status;
	pid_t pid;

	TEST_START("a kill before the commit leaves the turn before");
	fflush(stdout);
	if ((pid = fork()) == 0) {
		s = tmp_open(dir);
		tmp_add_agent(s, "kept");
		e = tmp_enrollment("lost");
		(void)store_begin_turn(s);
		(void)store_add_enrollment(s, &e);
		(void)kill(getpid(), SIGKILL);
	}
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSIGNALED(status));
	s = tmp_open(dir);
	ASSERT_ERR(store_find_enrollment(s, "kept", &e), CL_OK);
	store_enrollment_clear(&e);
	ASSERT_ERR(store_find_enrollment(s, "lost", &e), CL_NOTFOUND);
	store_close(s);
}

UNIT_MAIN(test_files, test_lock, test_versions, test_turns, test_enrollment,
    test_lists, test_agent, test_handle, test_retention, test_crash,
    test_full)
