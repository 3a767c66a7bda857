/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The files of handles at the hub: retention by number and age, orphans of
 * both kinds, files that are gone or broken.
 */
#include "regress/unit/unit.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <fcntl.h>

#include "priv/monitor/hello.h"
#include "priv/monitor/hfiles.h"
#include "priv/monitor/hwork.h"
#include "priv/monitor/life.h"
#include "montest.h"

#define DAY_NS (86400LL * 1000000000)

/* A closed handle whose end lies so far back; its id. */
static void
add_closed(struct mt_device *d, int64_t ago, char id[IDGEN_HANDLE_LEN + 1])
{
	struct agent *a = agents_find(&mt.agents, d->agent_id);
	struct store_handle row = { .state = HS_EXITED };
	char none[] = "";

	idgen_handle(id);
	row.handle_id = id;
	row.agent_id = a->row.agent_id;
	row.name = row.created_by = row.project_path = row.task_id =
	    row.image = row.secrets = row.outcome = row.error = none;
	row.dispatched_at = row.started_at = row.finished_at =
	    row.closed_at = row.updated_at = util_wall_ns() - ago;
	ASSERT_INT_EQ(store_add_handle(mt.store, &row), CL_OK);
	ASSERT_INT_EQ(store_save_handle(mt.store, &row), CL_OK);
	ASSERT_INT_EQ(hfiles_make(mt.conf.state_dir, id), CL_OK);
	mon_end_turn(&mt);
}

/* 1: row and files are there; 0: neither is; -1: one of them. */
static int
is_kept(const char *id)
{
	struct store_handle row;
	int has_row, has_files, fd = -1;

	memset(&row, 0, sizeof(row));
	has_row = store_find_handle(mt.store, id, &row) == CL_OK;
	store_handle_clear(&row);
	has_files = hfiles_open(mt.conf.state_dir, id, HFILES_LOG, 0, &fd) ==
	    CL_OK;
	if (fd != -1)
		close(fd);
	return has_row != has_files ? -1 : has_row;
}

static void
set_retention(const char *value)
{
	free(mt.conf.retention);
	mt.conf.retention = strdup(value);
}

static void
test_retention(void)
{
	struct mt_device d;
	char ids[5][IDGEN_HANDLE_LEN + 1];
	int i;

	mt_start();
	mt_connect(&d, MT_NET1, "edge", NULL);
	for (i = 0; i < 5; i++)
		add_closed(&d, (5 - i) * DAY_NS, ids[i]);

	TEST_START("HandleRetention at its number: nothing goes");
	set_retention("5 per agent, 30d");
	life_sweep(&mt);
	mon_end_turn(&mt);
	for (i = 0; i < 5; i++)
		ASSERT_INT_EQ(is_kept(ids[i]), 1);

	TEST_START("one less: the oldest goes, row and files");
	set_retention("4 per agent, 30d");
	life_sweep(&mt);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(is_kept(ids[0]), 0);
	for (i = 1; i < 5; i++)
		ASSERT_INT_EQ(is_kept(ids[i]), 1);

	TEST_START("by age: what ended before goes, what ended after stays");
	set_retention("256 per agent, 49h");
	life_sweep(&mt);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(is_kept(ids[1]), 0);
	ASSERT_INT_EQ(is_kept(ids[2]), 0);
	ASSERT_INT_EQ(is_kept(ids[3]), 1);
	ASSERT_INT_EQ(is_kept(ids[4]), 1);

	TEST_START("one that runs is never old");
	mt_operator(1, ROLE_OPERATOR);
	mt_run(MT_ID(1, 1), "edge", 1);
	ASSERT_SIZE_T_EQ(mt.handles.nrunning, 1);
	set_retention("1 per agent, 1s");
	life_sweep(&mt);
	mon_end_turn(&mt);
	ASSERT_SIZE_T_EQ(mt.handles.nrunning, 1);
	ASSERT_INT_EQ(is_kept(handles_next(&mt.handles,
	    NULL)->row.handle_id), 1);
	mt_stop();
}

static int
is_known(const char *id, void *arg)
{
	return strcmp(id, arg) == 0;
}

static void
test_orphans(void)
{
	char known[] = "AAAAAAAAAAAAAAAA", lost[] = "BBBBBBBBBBBBBBBB";
	char path[MAX_PATH_LEN + 32];
	int fd;

	mt_start();
	TEST_START("a directory without a row goes, foreign names stay");
	ASSERT_INT_EQ(hfiles_make(mt.conf.state_dir, known), CL_OK);
	ASSERT_INT_EQ(hfiles_make(mt.conf.state_dir, lost), CL_OK);
	snprintf(path, sizeof(path), "%s/hub/handles/lost+found",
	    mt.conf.state_dir);
	ASSERT_INT_EQ(mkdir(path, 0700), 0);
	ASSERT_INT_EQ(hfiles_sweep(mt.conf.state_dir, is_known, known),
	    CL_OK);
	ASSERT_INT_EQ(access(path, F_OK), 0);
	ASSERT_INT_EQ(hfiles_open(mt.conf.state_dir, lost, HFILES_LOG, 0,
	    &fd), CL_SYSTEM);
	ASSERT_INT_EQ(hfiles_open(mt.conf.state_dir, known, HFILES_LOG, 0,
	    &fd), CL_OK);
	close(fd);
	mt_stop();
}

/* The from_offset of a "continue" for the one offered handle. */
static uint64_t
offer(struct mt_device *d, const char *id)
{
	const struct msg_verdict *v;

	ASSERT_INT_EQ(mt_auth(d, MT_NET1, d->credential), AUTH_OK);
	mt_hello(d, d->agent_id, 26, id);
	v = mt_welcome(MT_NET1);
	ASSERT_INT_EQ(v->what, VERDICT_CONTINUE);
	return v->from_offset;
}

/* The worker wants the files; a FILES_*, and whether they came. */
static int
ask_files(struct mt_device *d, uint64_t number, int renew)
{
	struct msg_handle_files body = { d->session, number, renew };
	int nfiles = 0, result = -1;
	uint32_t type;
	struct imsg m;

	mt_drain(d->net);
	MT_SAY(d->net, HANDLE_FILES, 99, &body, -1);
	mon_end_turn(&mt);
	while (result == -1) {
		type = mt_hear(d->net, &m);
		if (type == MSG_HANDLE_FILES_ANS) {
			ASSERT_U64_EQ(m.id, 99);
			ASSERT_U64_EQ(mt_got.HANDLE_FILES_ANS.handle, number);
			result = (int)mt_got.HANDLE_FILES_ANS.result;
		} else {
			ASSERT_U64_EQ(mt_got.HANDLE_LOG.handle, number);
			ASSERT_INT_EQ(type, nfiles == 0 ? MSG_HANDLE_LOG :
			    MSG_HANDLE_INDEX);
			nfiles++;
		}
		imsg_free(&m);
	}
	ASSERT_INT_EQ(nfiles, result == FILES_OK ? 2 : 0);
	return result;
}

/* A workload that runs on d; its id. */
static struct handle *
run_one(struct mt_device *d, char id[64])
{
	struct handle *h;

	mt_connect(d, MT_NET1, "edge", NULL);
	mt_operator(1, ROLE_OPERATOR);
	mt_run(MT_ID(1, 1), "edge", 1);
	h = handles_next(&mt.handles, NULL);
	h->row.state = HS_RUNNING;
	snprintf(id, 64, "%s", h->row.handle_id);
	return h;
}

static void
test_renew(void)
{
	struct mt_device d;
	struct handle *h;
	struct stat st;
	char id[64], path[512], hex[64];

	mt_start();
	h = run_one(&d, id);
	mt_down(&d, AGENT_OFFLINE);

	TEST_START("a row without its files keeps its workload");
	h->row.received = 10;
	ASSERT_INT_EQ(hfiles_del(mt.conf.state_dir, id), CL_OK);
	ASSERT_U64_EQ(offer(&d, id), 10);
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_OK);
	ASSERT_INT_EQ(is_kept(id), 1);
	ASSERT_U64_EQ(h->row.received, 0);
	ASSERT_INT_EQ(h->row.gapped, 1);

	TEST_START("a broken index is put aside, not believed");
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 1), FILES_OK);
	ASSERT_INT_EQ(util_format_id_path(id, hex, sizeof(hex)), CL_OK);
	snprintf(path, sizeof(path), "%s/hub/handles/%s/log.idx.bad",
	    mt.conf.state_dir, hex);
	ASSERT_INT_EQ(stat(path, &st), 0);

	TEST_START("an end is final: its files are not given any more");
	h->row.closed_at = 1;
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_GONE);
	h->row.closed_at = UTIL_TIME_ZERO;
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_OK);
	mt_stop();
}

/* A chunk of a bundle came; a TAKE_*. */
static int
take_room(struct mt_device *d, uint64_t number)
{
	struct msg_result_take body = { d->session, number, 1, 100, 100 };
	struct imsg m;

	MT_SAY(d->net, RESULT_TAKE, 98, &body, -1);
	mon_end_turn(&mt);
	mt_expect(d->net, MSG_RESULT_TAKE_ANS, &m);
	imsg_free(&m);
	return (int)mt_got.RESULT_TAKE_ANS.result;
}

/* What cannot be told now ends nothing. */
static void
test_later(void)
{
	char id[64], hex[64], log[512], away[600];
	struct rlimit old, none;
	struct mt_device d;
	struct handle *h;

	mt_start();
	h = run_one(&d, id);
	ASSERT_INT_EQ(util_format_id_path(id, hex, sizeof(hex)), CL_OK);
	snprintf(log, sizeof(log), "%s/hub/handles/%s/log",
	    mt.conf.state_dir, hex);
	snprintf(away, sizeof(away), "%s.away", log);
	mt_down(&d, AGENT_OFFLINE);

	TEST_START("a log that cannot be opened: the workload goes on");
	ASSERT_INT_EQ(rename(log, away), 0);
	ASSERT_INT_EQ(mkdir(log, 0700), 0);
	h->row.received = 10;
	ASSERT_U64_EQ(offer(&d, id), 10);
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_LATER);
	ASSERT_U64_EQ(h->row.received, 10);
	ASSERT_INT_EQ(h->row.state, HS_RUNNING);

	TEST_START("and has its files as soon as it can be");
	ASSERT_INT_EQ(rmdir(log), 0);
	ASSERT_INT_EQ(rename(away, log), 0);
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_OK);
	ASSERT_FALSE(h->row.gapped);

	TEST_START("no descriptors left: later, and nothing is renewed");
	mt_drain(MT_NET1);
	ASSERT_INT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 3;
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_LATER);
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	ASSERT_INT_EQ(ask_files(&d, h->row.number, 0), FILES_OK);
	ASSERT_U64_EQ(h->row.received, 10);
	ASSERT_INT_EQ(mt.children[MT_NET1].state, MS_SERVING);

	TEST_START("nor does it fail a bundle that comes back");
	h->work->asked = WORK_BUNDLE;
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_INT_EQ(take_room(&d, h->row.number), TAKE_LATER);
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	ASSERT_INT_EQ(take_room(&d, h->row.number), TAKE_OK);
	mt_stop();
}

UNIT_MAIN(test_retention, test_orphans, test_renew, test_later)
