/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A state directory for tests of the store, gone at exit.  In memory where
 * there is such a place: thousands of commits, each synced.
 */
#ifndef CLOOP_STORE_TMP_H
#define CLOOP_STORE_TMP_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "regress/unit/unit.h"
#include "store/db/store.h"

static char tmp_dir[256];
static pid_t tmp_owner;

static int
tmp_on_file(const char *path, const struct stat *sb, int flag,
    struct FTW *ftw)
{
	(void)sb;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void
tmp_remove(void)
{
	if (tmp_dir[0] != '\0' && getpid() == tmp_owner)
		(void)nftw(tmp_dir, tmp_on_file, 16, FTW_DEPTH | FTW_PHYS);
	tmp_dir[0] = '\0';
}

/* A fresh directory; the one before goes. */
UNIT_STATIC const char *
tmp_new(void)
{
	const char *base = getenv("CLOOP_TEST_DIR");
	static int registered;

	tmp_remove();
	tmp_owner = getpid();
	snprintf(tmp_dir, sizeof(tmp_dir), "%s/cloop-unit.XXXXXX",
	    base != NULL ? base :
	    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ASSERT_TRUE(mkdtemp(tmp_dir) != NULL);
	if (!registered++)
		(void)atexit(tmp_remove);
	return tmp_dir;
}

UNIT_STATIC struct store *
tmp_open(const char *dir)
{
	struct store *s;
	char err[512] = "";
	int r;

	if ((r = store_open(dir, 0, &s, err, sizeof(err))) != 0)
		UNIT_FAIL("store_open: %s (%s)", cl_errname(r), err);
	return s;
}

UNIT_STATIC struct store_enrollment
tmp_enrollment(const char *id)
{
	static char hash[] = "00000000000000000000000000000000"
	    "00000000000000000000000000000000";
	struct store_enrollment e;

	memset(&e, 0, sizeof(e));
	e.id = (char *)(uintptr_t)id;
	e.name = (char *)(uintptr_t)"edge";
	e.secret_hash = hash;
	e.created_at = 1000;
	e.expires_at = 2000;
	e.redeemed_at = e.revoked_at = UTIL_TIME_ZERO;
	return e;
}

/* An enrollment and the agent it made. */
UNIT_STATIC void
tmp_add_agent(struct store *s, const char *id)
{
	struct store_enrollment e = tmp_enrollment(id);
	struct store_agent a;

	memset(&a, 0, sizeof(a));
	a.agent_id = (char *)(uintptr_t)id;
	a.name = e.name;
	a.secret_hash = e.secret_hash;
	a.created_at = 1000;
	a.last_seen = a.revoked_at = UTIL_TIME_ZERO;
	a.enrollment_id = e.id;
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(store_add_enrollment(s, &e), CL_OK);
	ASSERT_ERR(store_add_agent(s, &a), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
}

#endif
