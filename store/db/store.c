/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Opening, locking and transactions of the hub store.  Runs in the monitor,
 * and in cloop-enroll while no monitor runs; as root, on a directory that
 * only root may enter.  It trusts the file as far as SQLite's defensive mode
 * and the checks of owner and mode go: whoever can write it is root anyway.
 * Values in it came from operators and devices and are bound, never pasted
 * into SQL.
 *
 * The lock is SQLite's own, held for the life of the process
 * (locking_mode=EXCLUSIVE): it is the same lock that protects the journal, so
 * no second lock file can disagree with it.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/limits.h"
#include "store_int.h"

#define STORE_DIR "hub"
#define STORE_FILE "cloop.db"
#define STORE_VALUE_MAX (4 * 1024 * 1024)	/* caps: 256 KiB, rows less */

const char *
store_error(const struct store *s)
{
	return s->error[0] != '\0' ? s->error : "no error";
}

/* What an operator can act on; SQLite's own words for the rest. */
static void
store_format_error(struct store *s, int rc)
{
	const char *text = NULL;
	int error = s->db != NULL ? sqlite3_system_errno(s->db) : 0;

	switch (rc & 0xff) {
	case SQLITE_FULL:
		text = "the disk is full";
		break;
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
		text = "the directory or file cannot be written";
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		text = "in use by another process";
		error = 0;
		break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		text = "the file is damaged or not a database";
		error = 0;
		break;
	case SQLITE_IOERR:
		text = error == ENOSPC ? "the disk is full" :
		    "reading or writing failed";
		break;
	default:
		break;
	}
	if (text == NULL)
		snprintf(s->error, sizeof(s->error), "database: %s",
		    s->db != NULL ? sqlite3_errmsg(s->db) :
		    sqlite3_errstr(rc));
	else if (error != 0 && error != ENOSPC)
		snprintf(s->error, sizeof(s->error), "%s: %s", text,
		    strerror(error));
	else
		strlcpy(s->error, text, sizeof(s->error));
}

int
store_fail(struct store *s, int rc)
{
	store_format_error(s, rc);
	if (s->dirty) {
		/* SQLite may have rolled back already; then this says so. */
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		s->dirty = s->marked = 0;
		s->lost = 1;
	}
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return CL_STATE;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return s->in_turn ? CL_DB : CL_FORMAT;
	default:
		return CL_DB;
	}
}

int
store_exec(struct store *s, const char *sql)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? CL_OK : store_fail(s, rc);
}

/* --------------------------------------------------------------- opening */

/*
 * The directory and the file are ours alone.  Both are opened first and the
 * descriptors checked; the file is made here, since SQLite would make it with
 * the umask's mode.  The file's descriptor is closed before SQLite opens it:
 * closing any descriptor later would drop the process's POSIX locks.
 */
static int
store_check_files(const char *dir, char *err, size_t errlen)
{
	struct stat sb;
	int dir_fd, fd = -1, r = CL_SYSTEM;

	if ((dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC)) == -1 || fstat(dir_fd, &sb) == -1) {
		snprintf(err, errlen, "%s: %s", dir, strerror(errno));
		goto out;
	}
	r = CL_DENIED;
	if ((sb.st_uid != 0 && sb.st_uid != geteuid()) ||
	    (sb.st_mode & 077) != 0) {
		snprintf(err, errlen, "%s: must belong to root and have mode "
		    "0700", dir);
		goto out;
	}
	r = CL_SYSTEM;
	if ((fd = openat(dir_fd, STORE_FILE, O_RDWR | O_CREAT | O_NOFOLLOW |
	    O_NONBLOCK | O_CLOEXEC, 0600)) == -1 || fstat(fd, &sb) == -1) {
		snprintf(err, errlen, "%s/%s: %s", dir, STORE_FILE,
		    strerror(errno));
		goto out;
	}
	r = CL_DENIED;
	if (!S_ISREG(sb.st_mode) || (sb.st_mode & 077) != 0 ||
	    (sb.st_uid != 0 && sb.st_uid != geteuid())) {
		snprintf(err, errlen, "%s/%s: must be a file of root with mode "
		    "0600", dir, STORE_FILE);
		goto out;
	}
	r = CL_OK;
 out:
	if (fd != -1)
		close(fd);
	if (dir_fd != -1)
		close(dir_fd);
	return r;
}

static void
store_set_limits(sqlite3 *db)
{
	static const struct {
		int id, value;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, STORE_VALUE_MAX },
		{ SQLITE_LIMIT_SQL_LENGTH, 65536 },
		{ SQLITE_LIMIT_ATTACHED, 0 },
		{ SQLITE_LIMIT_VARIABLE_NUMBER, 32 },
		{ SQLITE_LIMIT_TRIGGER_DEPTH, 4 },
		{ SQLITE_LIMIT_WORKER_THREADS, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite3_limit(db, limits[i].id, limits[i].value);
}

static int
store_open_db(struct store *s, const char *path, int wait_ms)
{
	size_t i;
	int r, rc;

	rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE |
	    SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX |
	    SQLITE_OPEN_PRIVATECACHE, NULL);
	if (rc != SQLITE_OK)
		return store_fail(s, rc);
	(void)sqlite3_extended_result_codes(s->db, 1);
	if ((rc = sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1,
	    NULL)) != SQLITE_OK ||
	    (rc = sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
	    NULL)) != SQLITE_OK ||
	    (rc = sqlite3_db_config(s->db,
	    SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL)) != SQLITE_OK ||
	    (rc = sqlite3_busy_timeout(s->db, wait_ms)) != SQLITE_OK)
		return store_fail(s, rc);
	store_set_limits(s->db);
	if (sqlite3_db_readonly(s->db, "main") != 0)
		return store_fail(s, SQLITE_READONLY);
	for (i = 0; store_pragmas[i] != NULL; i++)
		if ((r = store_exec(s, store_pragmas[i])) != 0)
			return r;
	return CL_OK;
}

static int
store_prepare_all(struct store *s)
{
	int i, rc;

	for (i = 0; i < ST_NSTMT; i++) {
		rc = sqlite3_prepare_v3(s->db, store_find_sql(i), -1,
		    SQLITE_PREPARE_PERSISTENT, &s->stmt[i], NULL);
		if (rc != SQLITE_OK)
			return store_fail(s, rc);
	}
	return CL_OK;
}

/*
 * One real write at every open: it takes the exclusive lock for good and
 * finds a read-only or full file system now, not at the first enrollment.
 */
static int
store_save_opened(struct store *s)
{
	char text[UTIL_TIME_MAX];
	int r;

	util_format_time(util_wall_ns(), text);
	if ((r = store_begin_turn(s)) != 0)
		return r;
	if ((r = store_run(s, ST_META_SAVE, NULL, "tt", "opened_at",
	    text)) != 0) {
		store_abort_turn(s);
		return r;
	}
	return store_commit_turn(s);
}

int
store_open(const char *state_dir, int wait_ms, struct store **sp, char *err,
    size_t errlen)
{
	char dir[MAX_PATH_LEN], path[MAX_PATH_LEN + 16];
	struct store *s = NULL;
	char *real = NULL;
	int n, r;

	*sp = NULL;
	n = snprintf(dir, sizeof(dir), "%s/" STORE_DIR, state_dir);
	if (n < 0 || (size_t)n >= sizeof(dir)) {
		snprintf(err, errlen, "%s: path too long", state_dir);
		return CL_TOOBIG;
	}
	if (util_make_dirs(dir, 0700, (uid_t)-1, (gid_t)-1) != 0 ||
	    (real = realpath(dir, NULL)) == NULL) {
		snprintf(err, errlen, "%s: %s", dir, strerror(errno));
		return CL_SYSTEM;
	}
	if ((r = store_check_files(real, err, errlen)) != 0)
		goto out;
	if ((s = calloc(1, sizeof(*s))) == NULL) {
		snprintf(err, errlen, "out of memory");
		r = CL_NOMEM;
		goto out;
	}
	snprintf(path, sizeof(path), "%s/" STORE_FILE, real);
	if ((r = store_open_db(s, path, wait_ms)) != 0 ||
	    (r = store_check_schema(s)) != 0 ||
	    (r = store_prepare_all(s)) != 0 ||
	    (r = store_save_opened(s)) != 0) {
		snprintf(err, errlen, "%s: %s", path, store_error(s));
		goto out;
	}
	*sp = s;
	s = NULL;
 out:
	store_close(s);
	free(real);
	return r;
}

void
store_close(struct store *s)
{
	int i;

	if (s == NULL)
		return;
	if (s->in_turn)
		store_abort_turn(s);
	for (i = 0; i < ST_NSTMT; i++)
		sqlite3_finalize(s->stmt[i]);
	(void)sqlite3_close_v2(s->db);
	free(s);
}

/* ----------------------------------------------------------------- turns */

int
store_begin_turn(struct store *s)
{
	if (s->in_turn)
		return CL_STATE;
	s->in_turn = 1;
	s->dirty = 0;
	s->lost = 0;
	return CL_OK;
}

int
store_is_dirty(const struct store *s)
{
	return s->in_turn && (s->dirty || s->lost);
}

static int
store_step_plain(struct store *s, enum store_stmt id)
{
	int rc = sqlite3_step(s->stmt[id]);

	(void)sqlite3_reset(s->stmt[id]);
	return rc == SQLITE_DONE ? CL_OK : store_fail(s, rc);
}

int
store_commit_turn(struct store *s)
{
	int r = CL_OK;

	if (!s->in_turn)
		return CL_STATE;
	if (s->lost)
		r = CL_DB;
	else if (s->dirty && (r = store_step_plain(s, ST_COMMIT)) != 0)
		r = CL_DB;	/* store_fail has rolled back */
	s->in_turn = s->dirty = s->marked = s->lost = 0;
	return r;
}

void
store_abort_turn(struct store *s)
{
	if (s->dirty)
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	s->in_turn = s->dirty = s->marked = s->lost = 0;
}

void
store_begin_request(struct store *s)
{
	s->in_request = 1;
	s->marked = 0;
}

void
store_undo_request(struct store *s)
{
	if (s->marked)
		(void)store_exec(s, "ROLLBACK TO request");
}

void
store_end_request(struct store *s)
{
	if (s->marked)
		(void)store_exec(s, "RELEASE request");
	s->in_request = s->marked = 0;
}

/* At the first write of a request. */
static int
store_mark(struct store *s)
{
	int r;

	if (!s->in_request || s->marked)
		return CL_OK;
	if ((r = store_exec(s, "SAVEPOINT request")) == CL_OK)
		s->marked = 1;
	return r;
}

/* A write is coming: BEGIN IMMEDIATE at the first one of the turn. */
int
store_want_write(struct store *s)
{
	int r;

	if (!s->in_turn) {
		strlcpy(s->error, "a write outside a turn", sizeof(s->error));
		return CL_STATE;
	}
	if (s->lost)
		return CL_DB;
	if (s->dirty)
		return store_mark(s);
	if ((r = store_step_plain(s, ST_BEGIN)) != 0) {
		s->lost = 1;
		return r;
	}
	s->dirty = 1;
	return store_mark(s);
}
