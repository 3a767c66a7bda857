/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Leases in the monitor: what is lent, what ends it, and what happens when
 * things happen at once.
 */
#include "lendtest.h"

static void
test_lend(void)
{
	struct mt_device d;
	struct spec spec;
	struct imsg m;
	size_t i;
	int has = 0;

	set_up(&d);
	TEST_START("a start carries the variable, the binding, no more");
	put_secret("tok", "env", "TOKEN=" VALUE "\n");
	add_grant("tok", "any", 60);
	run_with("tok");
	expect_start(&d, &spec);
	for (i = 0; i < spec.nenv; i++)
		has |= strcmp(spec.env[i], "TOKEN=" VALUE) == 0;
	ASSERT_TRUE(has);
	ASSERT_SIZE_T_EQ(spec.nsecret_files, 0);
	ASSERT_STRING_EQ(spec.secrets[0].env_keys[0], "TOKEN");

	TEST_START("the deadline is the grant's when that is earlier");
	ASSERT_TRUE(spec.secrets[0].expires_at < util_wall_ns() +
	    INT64_C(61000000000));
	spec_clear(&spec);

	TEST_START("the end of the workload releases the lease");
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_LIVE);
	mt_started(d.net, handle, RES_NOT_STARTED, "");
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_RELEASED);
	ASSERT_PTR_EQ(handles_find(&mt.handles, handle), NULL);

	TEST_START("a start that was lost leaves the lease owed");
	run_with("tok");
	expect_start(&d, &spec);
	spec_clear(&spec);
	mt_started(d.net, handle, RES_SESSION_CLOSED, "");
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_REVOKED);

	TEST_START("no grant, no lease; the denial is on record");
	mt_drain(1);
	put_secret("other", "env", "A=1\n");
	run_with("other");
	ASSERT_INT_EQ(answer(MT_ID(1, 12), MSG_ROW_EVENT, &m), MSG_CTL_ERR);
	imsg_free(&m);
	mt_stop();
}

/* A git workspace that names a credential. */
static void
run_git(const char *repo, const char *grant)
{
	struct msg_ctl_run v = { .where = "edge", .detach = 1 };
	struct spec s;

	spec_init(&s);
	s.workspace.kind = (char *)(uintptr_t)"git";
	s.workspace.repo = (char *)(uintptr_t)repo;
	s.workspace.credential_grant = (char *)(uintptr_t)grant;
	mt_run_spec(MT_ID(1, 12), &v, &s);
}

static void
test_workspace(void)
{
	struct agent *a;
	struct mt_device d;
	struct spec spec;
	struct caps caps;
	struct buf b;
	struct imsg m;

	set_up(&d);
	/* What it said at hello does not matter here: it has git. */
	a = agents_find(&mt.agents, d.agent_id);
	caps_init(&caps);
	caps.workspace_provisioning = 1;
	buf_init(&b, 65536);
	caps_put(&caps, &b);
	agents_set_caps(a, b.data, b.len);

	TEST_START("a tree's credential travels beside the spec");
	put_secret("gh", "github_pat", " " VALUE "\n");
	add_grant("gh", "any", 0);
	run_git("https://git.example/o/n.git", "gh");
	expect_start(&d, &spec);
	ASSERT_TRUE(spec.workspace_credential != NULL);
	ASSERT_STRING_EQ(spec.workspace_credential->host, "git.example");
	ASSERT_STRING_EQ((char *)spec.workspace_credential->password.data,
	    VALUE);
	ASSERT_SIZE_T_EQ(spec.secrets[0].nenv_keys, 0);
	spec_clear(&spec);

	TEST_START("a grant's id names it as well");
	run_git("https://git.example/o/n", grant_id);
	expect_start(&d, &spec);
	spec_clear(&spec);

	TEST_START("what no allowlist could name is denied");
	mt_drain(1);
	run_git("https://git.example/o/n/more", "gh");
	ASSERT_INT_EQ(answer(MT_ID(1, 12), MSG_ROW_EVENT, &m), MSG_CTL_ERR);
	imsg_free(&m);
	run_git("https://git.example/o/n", "nobody");
	ASSERT_INT_EQ(answer(MT_ID(1, 12), MSG_ROW_EVENT, &m), MSG_CTL_ERR);
	imsg_free(&m);
	mt_stop();
}

static void
test_revoke(void)
{
	struct store_revocation v;
	struct mt_device d;
	uint64_t id, again;
	int action;

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");

	TEST_START("pending is on record before the frame leaves");
	ask_revoke(20, 0);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_REVOKED);
	ASSERT_INT_EQ(store_find_revocation(mt.store, lease_id, "",
	    d.agent_id, REVOKE_SCRUB, &v), CL_OK);
	ASSERT_INT_EQ(v.state, STORE_REV_PENDING);
	store_revocation_clear(&v);
	ASSERT_U64_EQ((id = hear_revoke(&d, &action)) != 0, 1);
	ASSERT_INT_EQ(action, REVOKE_SCRUB);

	TEST_START("twice at once: one frame, two answers");
	ask_revoke(21, 0);
	ASSERT_U64_EQ(hear_revoke(&d, &action), 0);
	say_revoked(&d, id, "");
	expect_outcome(20, "revoked");

	TEST_START("revoked is final: no frame, the same answer");
	ask_revoke(22, 0);
	ASSERT_U64_EQ(hear_revoke(&d, &action), 0);
	expect_outcome(22, "revoked");

	TEST_START("a kill after a scrub is asked for");
	ask_revoke(23, 1);
	ASSERT_U64_EQ((again = hear_revoke(&d, &action)) != 0, 1);
	ASSERT_INT_EQ(action, REVOKE_KILL);
	say_revoked(&d, again, "cannot wipe");
	expect_outcome(23, "failed");

	TEST_START("an answer nobody asked for ends the worker");
	say_revoked(&d, 999, "");
	ASSERT_INT_EQ(mt.children[MT_NET1].state, CHILD_DOWN);
	mt_stop();
}

static void
test_races(void)
{
	struct msg_name_reason rm = { grant_id, "" };
	struct mt_device d;
	struct spec spec;
	struct imsg m;
	uint32_t got;
	int action, nstart = 0, nrevoke = 0;

	set_up(&d);
	put_secret("tok", "kubeconfig", "password: " VALUE "\n");
	add_grant("tok", "any", 0);

	TEST_START("revoked while it is being provisioned: start, then revoke");
	run_with("tok");
	{
		struct store_lease l;
		struct lease_list list = { NULL, 0, 0 };

		ASSERT_INT_EQ(store_list_leases(mt.store, NULL, 1,
		    lease_list_add, &list), CL_OK);
		ASSERT_SIZE_T_EQ(list.n, 1);
		snprintf(lease_id, sizeof(lease_id), "%s", list.v[0].id);
		lease_list_clear(&list);
		ASSERT_INT_EQ(store_find_lease(mt.store, lease_id, &l),
		    CL_OK);
		store_lease_clear(&l);
	}
	ask_revoke(30, 0);
	while ((got = mt_hear(d.net, &m)) != 0) {
		if (got == MSG_START) {
			ASSERT_INT_EQ(nrevoke, 0);
			nstart++;
		} else if (got == MSG_REVOKE) {
			ASSERT_INT_EQ(nstart, 1);
			nrevoke++;
		}
		imsg_free(&m);
	}
	ASSERT_INT_EQ(nrevoke, 1);
	mt_stop();

	set_up(&d);
	put_secret("tok", "kubeconfig", "password: " VALUE "\n");
	add_grant("tok", "any", 0);
	TEST_START("a grant that ends before the start lends nothing");
	mt_say_body(1, MSG_CTL_GRANT_RM, MT_ID(1, 31), &rm, -1);
	run_with("tok");
	ASSERT_INT_EQ(answer(MT_ID(1, 12), MSG_ROW_EVENT, &m), MSG_CTL_ERR);
	imsg_free(&m);
	while ((got = mt_hear(d.net, &m)) != 0) {
		ASSERT_INT_NE(got, MSG_START);
		imsg_free(&m);
	}

	TEST_START("a grant that ends with the start takes the lease along");
	add_grant("tok", "any", 0);
	run_with("tok");
	expect_start(&d, &spec);
	spec_clear(&spec);
	mt_ask_reason(MSG_CTL_GRANT_RM, MT_ID(1, 32), grant_id, "");
	ASSERT_U64_EQ(hear_revoke(&d, &action) != 0, 1);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_REVOKED);

	TEST_START("what is taken back is not refreshed (21)");
	mt_started(d.net, handle, RES_OK, "");
	mt_drain(1);
	mt_ask(MSG_CTL_LEASE_REFRESH, MT_ID(1, 33), lease_id);
	ASSERT_INT_EQ(answer(MT_ID(1, 33), MSG_ROW_REFRESHED, &m),
	    MSG_CTL_ERR);
	imsg_free(&m);
	mt_stop();
}

static void
test_refresh(void)
{
	struct msg_refresh_ans ans = { .ans = { .result = RES_OK } };
	struct mt_device d;
	struct imsg m;
	uint64_t id;
	uint32_t got;
	int action, nredact = 0, nrefresh = 0, nrevoke = 0;

	set_up(&d);
	lend(&d, "kubeconfig", "password: " VALUE "\n");
	TEST_START("the hub learns the new value before the frame (21)");
	put_secret("tok", "kubeconfig", "password: new-" VALUE "\n");
	mt_ask(MSG_CTL_LEASE_REFRESH, MT_ID(1, 40), lease_id);

	TEST_START("a revocation behind it comes behind it");
	ask_revoke(41, 0);
	id = 0;
	while ((got = mt_hear(d.net, &m)) != 0) {
		if (got == MSG_HANDLE_REDACT)
			nredact++;
		else if (got == MSG_REFRESH) {
			ASSERT_INT_EQ(nredact, 1);
			id = m.id;
			nrefresh++;
		} else if (got == MSG_REVOKE) {
			ASSERT_INT_EQ(nrefresh, 1);
			nrevoke++;
		}
		imsg_free(&m);
	}
	ASSERT_INT_EQ(nrevoke, 1);
	ans.report.known = 1;
	ans.report.files_rewritten = 1;
	MT_SAY(d.net, REFRESH_ANS, id, &ans, -1);
	ASSERT_INT_EQ(answer(MT_ID(1, 40), MSG_ROW_REFRESHED, &m),
	    MSG_ROW_REFRESHED);
	imsg_free(&m);
	(void)action;
	mt_stop();
}

static int
count_renewals(const struct store_audit *row, void *arg)
{
	*(int *)arg += strcmp(row->action, "secret.renew") == 0;
	return 0;
}

/* Rows about refreshes in the audit. */
static int
get_renewals(void)
{
	int n = 0;

	ASSERT_INT_EQ(store_list_audit(mt.store, 0, INT64_MIN, 1000,
	    count_renewals, &n), CL_OK);
	return n;
}

static void
test_hangup(void)
{
	struct msg_name lease = { lease_id };
	struct msg_ctl_gone gone = { 1 };
	struct msg_refresh_ans ans = { .ans = { .result = RES_TIMEOUT } };
	struct mt_device d;
	struct imsg m;
	uint64_t id;

	set_up(&d);
	lend(&d, "kubeconfig", "password: " VALUE "\n");
	TEST_START("a refresh is on record before it leaves");
	put_secret("tok", "kubeconfig", "password: new-" VALUE "\n");
	mt_say_body(1, MSG_CTL_LEASE_REFRESH, MT_ID(1, 40), &lease, -1);
	ASSERT_INT_EQ(get_renewals(), 1);
	mon_end_turn(&mt);
	mt_expect(d.net, MSG_REFRESH, &m);
	id = m.id;
	imsg_free(&m);

	TEST_START("its operator hangs up: its end is on record too");
	MT_SAY(1, CTL_GONE, 0, &gone, -1);
	mt_drain(1);
	MT_SAY(d.net, REFRESH_ANS, id, &ans, -1);
	ASSERT_INT_EQ(get_renewals(), 2);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(mt_hear(1, &m), 0);
	mt_stop();
}

static void
test_time(void)
{
	struct mt_device d;
	int action;

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("keepalive extends a lease that has not lapsed");
	ASSERT_INT_EQ(store_extend_lease(mt.store, lease_id,
	    mt.leases.holder, 0, util_wall_ns() + 1000000000), CL_OK);
	mt.leases.keepalive_at = mt.leases.janitor_at = -10000000;
	lease_on_tick(&mt);
	mon_end_turn(&mt);
	{
		struct store_lease l;

		ASSERT_INT_EQ(store_find_lease(mt.store, lease_id, &l),
		    CL_OK);
		ASSERT_TRUE(l.expires_at > util_wall_ns() +
		    INT64_C(60000000000));
		store_lease_clear(&l);
	}
	ASSERT_U64_EQ(hear_revoke(&d, &action), 0);

	TEST_START("a lapsed one is not extended: the janitor scrubs");
	lapse();
	mt.leases.keepalive_at = mt.leases.janitor_at = -10000000;
	lease_on_tick(&mt);
	mon_end_turn(&mt);
	ASSERT_U64_EQ(hear_revoke(&d, &action) != 0, 1);
	ASSERT_INT_EQ(action, REVOKE_SCRUB);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_EXPIRED);

	TEST_START("another holder's lease is not ours to extend");
	ASSERT_ERR(store_extend_lease(mt.store, lease_id, "hub_other", 0,
	    util_wall_ns()), CL_STATE);
	mt_stop();
}

/* Seconds that a live lease has left. */
static int64_t
time_left(void)
{
	struct store_lease l;
	int64_t left;

	ASSERT_INT_EQ(store_find_lease(mt.store, lease_id, &l), CL_OK);
	left = (l.expires_at - util_wall_ns()) / INT64_C(1000000000);
	store_lease_clear(&l);
	return left;
}

/* As if the wall clock had just been set by so many seconds, and with it
 * the dates on record had come that much nearer. */
static void
set_clock(int64_t by)
{
	ASSERT_INT_EQ(store_shift_leases(mt.store,
	    -by * INT64_C(1000000000)), CL_OK);
	mt.leases.clock -= by * INT64_C(1000000000);
}

static void
test_clock(void)
{
	static const int64_t jumps[] = { 6 * 3600, -12 * 3600, 365 * 86400, 3,
		-3 };
	struct mt_device d;
	int64_t before, clock;
	size_t i;
	int action;

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("a clock that is set ends no lease and prolongs none "
	    "(minutes, not a date)");
	before = time_left();
	ASSERT_INT_GT(before, 60);
	for (i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		set_clock(jumps[i]);
		mt.leases.keepalive_at = util_now_ms();
		mt.leases.janitor_at = -10000000;
		ASSERT_ERR(lease_check_clock(&mt), CL_OK);
		ASSERT_INT_LE(time_left(), before);
		ASSERT_INT_GE(time_left(), before - 5);
		lease_on_tick(&mt);
		mon_end_turn(&mt);
		ASSERT_INT_EQ(lease_state(), STORE_LEASE_LIVE);
		ASSERT_U64_EQ(hear_revoke(&d, &action), 0);
		before = time_left();
		ASSERT_INT_GT(before, 60);
	}

	TEST_START("what is no jump moves nothing");
	clock = mt.leases.clock;
	ASSERT_ERR(lease_check_clock(&mt), CL_OK);
	ASSERT_INT_EQ(mt.leases.clock, clock);
	mt.leases.clock -= INT64_C(1900000000);
	before = time_left();
	ASSERT_ERR(lease_check_clock(&mt), CL_OK);
	ASSERT_INT_LE(time_left(), before);

	TEST_START("a lapsed one is still taken back afterwards");
	set_clock(-7200);
	ASSERT_ERR(lease_check_clock(&mt), CL_OK);
	lapse();
	mt.leases.keepalive_at = mt.leases.janitor_at = -10000000;
	lease_on_tick(&mt);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_EXPIRED);
	mt_stop();
}

static void
test_owed(void)
{
	struct mt_device d;
	struct imsg m;
	uint64_t id;
	int action;

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("away: unreachable, and owed");
	mt_down(&d, AGENT_OFFLINE);
	ask_revoke(50, 0);
	expect_outcome(50, "unreachable");

	TEST_START("back: replayed before any start");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, NULL);
	mt_up(&d);
	ASSERT_U64_EQ((id = hear_revoke(&d, &action)) != 0, 1);

	TEST_START("lost under way: owed again, sent again, once");
	mt_down(&d, AGENT_UNREACHABLE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, NULL);
	mt_up(&d);
	ASSERT_U64_EQ((id = hear_revoke(&d, &action)) != 0, 1);
	ASSERT_U64_EQ(hear_revoke(&d, &action), 0);
	say_revoked(&d, id, "");
	mon_end_turn(&mt);

	TEST_START("confirmed: nothing is owed");
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, NULL);
	mt_up(&d);
	ASSERT_U64_EQ(hear_revoke(&d, &action), 0);
	(void)m;
	mt_stop();
}

static void
test_restart(void)
{
	struct mt_device d;
	char err[256] = "", old[STORE_ID_MAX];

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("another hub process takes live leases over");
	snprintf(old, sizeof(old), "%s", mt.leases.holder);
	ASSERT_INT_EQ(lease_load(&mt, err, sizeof(err)), CL_OK);
	ASSERT_TRUE(strcmp(old, mt.leases.holder) != 0);
	ASSERT_ERR(store_take_lease(mt.store, lease_id, old, "x"), CL_STATE);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_LIVE);

	TEST_START("one whose grants are gone is taken back instead");
	ASSERT_INT_EQ(store_revoke_grant(mt.store, grant_id, 1, "test"),
	    CL_OK);
	ASSERT_INT_EQ(lease_load(&mt, err, sizeof(err)), CL_OK);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_REVOKED);
	mon_end_turn(&mt);
	mt_stop();
}

UNIT_MAIN(test_lend, test_workspace, test_revoke, test_races, test_refresh,
    test_hangup, test_time, test_clock, test_owed, test_restart)
