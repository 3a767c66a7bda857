/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sessions and dispatch in the monitor: identities, supersession across
 * workers, row before frame, ends in any order.
 */
#include "priv/monitor/hfiles.h"
#include "priv/monitor/life.h"
#include "priv/monitor/logseal.h"
#include "montest.h"

static int
hello_result(struct mt_device *d, const char *agent_id, int64_t version)
{
	struct imsg m;

	mt_hello(d, agent_id, version, NULL);
	mt_expect(d->net, MSG_HELLO_ANS, &m);
	ASSERT_U64_EQ(m.id, 88);
	return (int)mt_got.HELLO_ANS.result;
}

static void
test_identity(void)
{
	struct mt_device d, other;
	char token[128];

	mt_start();
	TEST_START("a redemption: empty id only");
	mt_mint("edge", NULL, token);
	memset(&d, 0, sizeof(d));
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, token), AUTH_OK);
	ASSERT_TRUE(d.credential[0] != '\0');
	ASSERT_INT_EQ(hello_result(&d, "AAAAAAAAAAAAAAAA", 26),
	    HELLO_UNAUTHORIZED);
	ASSERT_INT_EQ(hello_result(&d, "", 26), HELLO_OK);
	mt_up(&d);

	TEST_START("a replayed token is denied");
	ASSERT_INT_EQ(mt_auth(&other, MT_NET1, token), AUTH_DENIED);

	TEST_START("a credential: its own id only; versions are clamped");
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	ASSERT_INT_EQ(hello_result(&d, "", 26), HELLO_UNAUTHORIZED);
	ASSERT_INT_EQ(hello_result(&d, d.agent_id, 0), HELLO_VERSION);
	mt_hello(&d, d.agent_id, 30, NULL);
	(void)mt_welcome(MT_NET1);
	ASSERT_INT_EQ(mt_got.HELLO_ANS.negotiated, 26);

	TEST_START("a worker cannot speak for another worker's session");
	d.net = MT_NET2;
	mt_up(&d);
	ASSERT_INT_EQ(mt.children[MT_NET2].state, CHILD_DOWN);
	ASSERT_INT_EQ(mt.children[MT_NET1].state, MS_SERVING);
	mt_stop();
}

static void
test_supersede(void)
{
	struct mt_device a, b, c;
	struct agent *agent;
	struct imsg m;

	mt_start();
	mt_connect(&a, MT_NET1, "edge", NULL);
	agent = agents_find(&mt.agents, a.agent_id);
	b = a;
	mt_drain(MT_NET1);

	TEST_START("the older session ends before the newer is welcome");
	ASSERT_INT_EQ(mt_auth(&b, MT_NET2, a.credential), AUTH_OK);
	mt_hello(&b, a.agent_id, 26, NULL);
	ASSERT_INT_EQ(mt_hear(MT_NET2, &m), 0);
	mt_expect(MT_NET1, MSG_SESSION_DROP, &m);
	ASSERT_U64_EQ(mt_got.SESSION_DROP.session, a.session);
	ASSERT_INT_EQ(mt_got.SESSION_DROP.how, DROP_SUPERSEDED);
	mt_down(&a, AGENT_OFFLINE);
	(void)mt_welcome(MT_NET2);
	ASSERT_INT_EQ(agent->status, AGENT_ONLINE);

	TEST_START("a third one while the second waits: the second is gone");
	mt_up(&b);
	c = a;
	ASSERT_INT_EQ(mt_auth(&a, MT_NET1, a.credential), AUTH_OK);
	mt_hello(&a, a.agent_id, 26, NULL);
	ASSERT_INT_EQ(mt_auth(&c, MT_NET1, a.credential), AUTH_OK);
	mt_hello(&c, a.agent_id, 26, NULL);
	mt_expect(MT_NET1, MSG_HELLO_ANS, &m);
	ASSERT_INT_EQ(mt_got.HELLO_ANS.result, HELLO_GONE);
	mt_down(&b, AGENT_OFFLINE);
	(void)mt_welcome(MT_NET1);
	ASSERT_U64_EQ(agent->session, c.session);

	TEST_START("one that goes while it waits has its answer too");
	mt_up(&c);
	ASSERT_INT_EQ(mt_auth(&b, MT_NET2, a.credential), AUTH_OK);
	mt_hello(&b, a.agent_id, 26, NULL);
	mt_down(&b, AGENT_OFFLINE);
	mt_expect(MT_NET2, MSG_HELLO_ANS, &m);
	ASSERT_INT_EQ(mt_got.HELLO_ANS.result, HELLO_GONE);

	TEST_START("a worker that dies takes its sessions along");
	child_kill(&mt.children[MT_NET1], "test");
	mon_end_turn(&mt);
	ASSERT_U64_EQ(agent->session, 0);
	ASSERT_INT_EQ(agent->status, AGENT_UNREACHABLE);
	mt_stop();
}

#define SHA256_A                                                               \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* That its log has as many bytes. */
static void
say_sealed(uint64_t number, uint64_t log_bytes)
{
	struct msg_handle_sealed body = { number, log_bytes, SHA256_A, 0,
		SHA256_A };

	mt_say_body(MT_NET1, MSG_HANDLE_SEALED, 0, MSG_BODY(HANDLE_SEALED,
	    &body), -1);
	mon_end_turn(&mt);
}

/* Hear a dispatch on a worker: HANDLE_OPEN, START. */
static uint64_t
hear_start(size_t net)
{
	struct imsg m;
	uint64_t handle;
	uint32_t type;

	/* The confirmations of ends before it do not matter. */
	while ((type = mt_hear(net, &m)) == MSG_HANDLE_SHUT ||
	    type == MSG_HANDLE_SEAL)
		imsg_free(&m);
	ASSERT_INT_EQ(type, MSG_HANDLE_OPEN);
	handle = mt_got.HANDLE_OPEN.handle;
	imsg_free(&m);
	ASSERT_INT_EQ(mt_hear(net, &m), MSG_START);
	ASSERT_U64_EQ(mt_got.START.handle, handle);
	imsg_free(&m);
	return handle;
}

static void
expect_handle(uint64_t id, int state, int64_t code)
{
	const struct ctl_handle *row = &mt_got.ROW_HANDLE;
	struct imsg m;

	mt_expect(1, MSG_ROW_HANDLE, &m);
	ASSERT_U64_EQ(m.id, id);
	ASSERT_INT_EQ(row->state, state);
	ASSERT_TRUE(row->exit_code.set == ctl_is_terminal(state));
	ASSERT_INT_EQ(row->exit_code.v, code);
	mt_expect(1, MSG_CTL_DONE, &m);
	ASSERT_U64_EQ(m.id, id);
}

static void
test_run(void)
{
	struct mt_device d;
	struct imsg m;
	uint64_t h;
	char id[64];

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_drain(MT_NET1);

	TEST_START("attached: dispatched, files, started, the end");
	mt_run(MT_ID(1, 1), "edge", 0);
	h = hear_start(MT_NET1);
	ASSERT_INT_EQ(mt_hear(1, &m), MSG_ROW_EVENT);
	ASSERT_INT_EQ(mt_hear(1, &m), MSG_ROW_LOG);
	imsg_free(&m);
	ASSERT_INT_EQ(mt_hear(1, &m), MSG_ROW_INDEX);
	imsg_free(&m);
	ASSERT_INT_EQ(mt_hear(1, &m), 0);
	mt_started(MT_NET1, h, RES_OK, "");
	ASSERT_INT_EQ(mt_hear(1, &m), MSG_ROW_EVENT);
	ASSERT_INT_EQ(mt_hear(1, &m), 0);
	mt_status(&d, h, HS_EXITED, 42);
	expect_handle(MT_ID(1, 1), HS_EXITED, 42);

	TEST_START("a stale status changes nothing, a terminal one replaces");
	mt_status(&d, h, HS_RUNNING, 0);
	ASSERT_INT_EQ(handles_find(&mt.handles, h)->row.state, HS_EXITED);
	mt_status(&d, h, HS_KILLED, 137);
	ASSERT_INT_EQ(handles_find(&mt.handles, h)->row.exit_code, 137);

	TEST_START("detached: done once started");
	mt_run(MT_ID(1, 2), d.agent_id, 1);
	h = hear_start(MT_NET1);
	mt_started(MT_NET1, h, RES_OK, "");
	expect_handle(MT_ID(1, 2), HS_RUNNING, 0);

	TEST_START("the end may come before started");
	mt_run(MT_ID(1, 3), "edge", 1);
	h = hear_start(MT_NET1);
	mt_status(&d, h, HS_EXITED, 4);
	mt_started(MT_NET1, h, RES_OK, "");
	expect_handle(MT_ID(1, 3), HS_EXITED, 4);

	TEST_START("not started: the text verbatim, nothing is kept");
	mt_run(MT_ID(1, 4), "edge", 1);
	h = hear_start(MT_NET1);
	mt_started(MT_NET1, h, RES_NOT_STARTED, "no <room>");
	mt_expect(1, MSG_CTL_ERR, &m);
	ASSERT_STRING_EQ(mt_got.CTL_ERR.message, "no <room>");
	ASSERT_TRUE(handles_find(&mt.handles, h) == NULL);
	mt_expect(MT_NET1, MSG_HANDLE_FORGET, &m);
	mt_status(&d, h, HS_EXITED, 0);	/* too late: ignored */
	ASSERT_INT_EQ(mt.children[MT_NET1].state, MS_SERVING);

	TEST_START("the session goes before started: dropped");
	mt_run(MT_ID(1, 5), "edge", 0);
	h = hear_start(MT_NET1);
	snprintf(id, sizeof(id), "%s",
	    handles_find(&mt.handles, h)->row.handle_id);
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_TRUE(strcmp(mt_refusal(MT_ID(1, 5)), "session_closed") == 0);
	ASSERT_TRUE(handles_find(&mt.handles, h) == NULL);

	TEST_START("did it start all the same, its offer is refused");
	mt_drain(MT_NET1);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, id);
	ASSERT_INT_EQ(mt_welcome(MT_NET1)->what, VERDICT_UNKNOWN);
	ASSERT_TRUE(handles_find_id(&mt.handles, id) == NULL);
	mt_down(&d, AGENT_OFFLINE);

	TEST_START("no session: unreachable at once, nothing is recorded");
	mt_run(MT_ID(1, 6), "edge", 0);
	ASSERT_TRUE(strcmp(mt_refusal(MT_ID(1, 6)), "agent_unreachable") ==
	    0);

	TEST_START("what started is kept, what did not is not");
	ASSERT_SIZE_T_EQ(mt.handles.nrunning, 1);
	ASSERT_SIZE_T_EQ(mt.handles.nclosed, 2);
	mt_stop();
}

static void
test_foreign_status(void)
{
	struct mt_device d, thief;
	uint64_t h;

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_connect(&thief, MT_NET2, "thief", NULL);
	mt_drain(MT_NET1);
	mt_run(MT_ID(1, 1), "edge", 1);
	h = hear_start(MT_NET1);
	mt_started(MT_NET1, h, RES_OK, "");

	TEST_START("a worker that ends another's handle is ended");
	mt_status(&thief, h, HS_EXITED, 0);
	ASSERT_INT_EQ(mt.children[MT_NET2].state, CHILD_DOWN);
	ASSERT_INT_EQ(handles_find(&mt.handles, h)->row.state, HS_RUNNING);
	mt_refill(MT_NET2);

	TEST_START("so is one that names a handle nobody ever had");
	thief.net = MT_NET2;
	ASSERT_INT_EQ(mt_auth(&thief, MT_NET2, thief.credential), AUTH_OK);
	mt_status(&thief, h + 1000, HS_EXITED, 0);
	ASSERT_INT_EQ(mt.children[MT_NET2].state, CHILD_DOWN);
	mt_stop();
}

static void
test_label(void)
{
	struct mt_device a, b, c;
	uint64_t h;

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&a, MT_NET1, "a", "lab");
	mt_connect(&b, MT_NET2, "b", "lab");
	mt_connect(&c, MT_NET1, "c", "attic");
	mt_drain(MT_NET1);
	mt_drain(MT_NET2);

	TEST_START("label:k=v takes the least loaded that may run it");
	mt_run(MT_ID(1, 1), "label:room=lab", 1);
	mt_run(MT_ID(1, 2), "label:room=lab", 1);
	h = hear_start(MT_NET1);
	mt_started(MT_NET1, h, RES_OK, "");
	h = hear_start(MT_NET2);
	mt_started(MT_NET2, h, RES_OK, "");

	TEST_START("an offline one is passed over; none left: unreachable");
	mt_down(&b, AGENT_OFFLINE);
	mt_run(MT_ID(1, 3), "label:room=lab", 1);
	(void)hear_start(MT_NET1);
	mt_down(&a, AGENT_OFFLINE);
	mt_drain(1);
	mt_run(MT_ID(1, 4), "label:room=lab", 1);
	ASSERT_TRUE(strcmp(mt_refusal(MT_ID(1, 4)), "agent_unreachable") ==
	    0);

	TEST_START("a label nobody has, a label that is none");
	mt_run(MT_ID(1, 5), "label:room=x", 1);
	ASSERT_TRUE(strcmp(mt_refusal(MT_ID(1, 5)), "agent_not_found") == 0);
	mt_run(MT_ID(1, 6), "label:room", 1);
	ASSERT_TRUE(strcmp(mt_refusal(MT_ID(1, 6)), "usage") == 0);
	mt_stop();
}

static void
test_rehydrate(void)
{
	struct mt_device d;
	struct msg_session_handle lost;
	const struct msg_verdict *v;
	struct handle *h;
	struct imsg m;
	uint64_t number;
	char id[64];

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_drain(MT_NET1);
	mt_run(MT_ID(1, 1), "edge", 1);
	number = hear_start(MT_NET1);
	mt_started(MT_NET1, number, RES_OK, "");
	h = handles_find(&mt.handles, number);
	snprintf(id, sizeof(id), "%s", h->row.handle_id);
	h->row.received = 7;
	mt_down(&d, AGENT_OFFLINE);

	TEST_START("after a restart: running, gapped, offset of its last "
	    "session");
	handles_clear(&mt.handles);
	agents_clear(&mt.agents);
	ASSERT_INT_EQ(agents_load(&mt.agents, mt.store), CL_OK);
	ASSERT_INT_EQ(handles_load(&mt.handles, &mt.agents, mt.store),
	    CL_OK);
	h = handles_find_id(&mt.handles, id);
	ASSERT_TRUE(h != NULL && h->row.state == HS_RUNNING &&
	    h->row.gapped);
	mt_drain(MT_NET1);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, id);
	mt_expect(MT_NET1, MSG_HANDLE_OPEN, &m);
	imsg_free(&m);
	v = mt_welcome(MT_NET1);
	ASSERT_INT_EQ(v->what, VERDICT_CONTINUE);
	ASSERT_U64_EQ(v->from_offset, 7);

	TEST_START("what the device does not list is failed");
	mt_up(&d);
	lost.session = d.session;
	lost.handle = number;
	MT_SAY(MT_NET1, HANDLE_LOST, 0, &lost, -1);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(h->row.state, HS_FAILED);
	mt_expect(MT_NET1, MSG_HANDLE_SHUT, &m);

	TEST_START("who has its files is asked what they are, behind its "
	    "last words");
	ASSERT_INT_EQ(h->row.log_modified_at, UTIL_TIME_ZERO);
	mt_expect(MT_NET1, MSG_HANDLE_SEAL, &m);
	ASSERT_INT_NE(m.fd, -1);
	imsg_free(&m);
	mt_expect(MT_NET1, MSG_HANDLE_SEAL, &m);
	imsg_free(&m);
	say_sealed(number, 1);
	ASSERT_STRING_EQ(h->row.log_sha256, "");
	ASSERT_INT_NE(h->row.log_modified_at, UTIL_TIME_ZERO);
	ASSERT_FALSE(h->is_sealing);

	TEST_START("a seal is taken once, and of what is there");
	say_sealed(number, 0);
	ASSERT_STRING_EQ(h->row.log_sha256, "");
	logseal_end(&mt, h, 1);
	mon_end_turn(&mt);
	mt_drain(MT_NET1);
	say_sealed(number, 0);
	ASSERT_STRING_EQ(h->row.log_sha256, SHA256_A);

	TEST_START("an end whose save failed is confirmed once it is saved");
	h->unsaved = 1;
	life_confirm_end(&mt, h);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(mt_hear(MT_NET1, &m), 0);
	life_retry_saves(&mt);
	mon_end_turn(&mt);
	ASSERT_FALSE(h->unsaved);
	mt_expect(MT_NET1, MSG_HANDLE_SHUT, &m);

	TEST_START("an unknown offer: terminate; below 5 it is left out");
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, "nobody");
	ASSERT_INT_EQ(mt_welcome(MT_NET1)->what, VERDICT_UNKNOWN);
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 4, "nobody");
	ASSERT_INT_EQ(mt_welcome(MT_NET1)->what, VERDICT_NONE);
	ASSERT_INT_EQ(mt_got.HELLO_ANS.negotiated, 4);
	mt_stop();
}

static void
test_revoke(void)
{
	struct mt_device d;
	struct imsg m;
	const char *code;
	char agent_id[64];
	struct msg_ctl_end end = { .reason = "lost" };
	uint64_t h;

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_operator(2, ROLE_VIEWER);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_drain(MT_NET1);
	mt_run(MT_ID(1, 1), "edge", 1);
	h = hear_start(MT_NET1);
	mt_started(MT_NET1, h, RES_OK, "");

	TEST_START("a viewer's request that cloopd-ctl let through ends it");
	end.name = d.agent_id;
	MT_SAY(1, CTL_REVOKE, MT_ID(2, 1), &end, -1);
	ASSERT_INT_EQ(mt.children[1].state, CHILD_DOWN);
	mt_refill(1);
	mt_operator(1, ROLE_OPERATOR);

	TEST_START("revoke: workloads failed, session dropped, credential "
	    "dead");
	MT_SAY(1, CTL_REVOKE, MT_ID(1, 2), &end, -1);
	mon_end_turn(&mt);
	mt_expect(1, MSG_ROW_REVOKED, &m);
	mt_expect(1, MSG_CTL_DONE, &m);
	ASSERT_INT_EQ(handles_find(&mt.handles, h)->row.state, HS_FAILED);
	mt_expect(MT_NET1, MSG_SESSION_DROP, &m);
	ASSERT_INT_EQ(mt_got.SESSION_DROP.how, DROP_REVOKED);
	mt_down(&d, AGENT_OFFLINE);
	snprintf(agent_id, sizeof(agent_id), "%s", d.agent_id);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_DENIED);
	mt_run(MT_ID(1, 3), agent_id, 1);
	code = mt_refusal(MT_ID(1, 3));
	ASSERT_STRING_EQ(code, "revoked");
	mt_stop();
}

/* Places of sessions, when a worker is not to be trusted. */
static void
test_places(void)
{
	struct mt_device d, one;
	struct agent *a;
	struct imsg m;
	unsigned int i;

	mt_start();
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_connect(&one, MT_NET2, "other", NULL);
	a = agents_find(&mt.agents, d.agent_id);

	TEST_START("one credential takes a few places and no more");
	for (i = 1; i < AGENT_SESSIONS_MAX; i++)
		ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_drain(MT_NET1);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_UNAVAILABLE);

	TEST_START("the oldest that was not welcomed makes room");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET2, d.credential), AUTH_UNAVAILABLE);
	mt_expect(MT_NET1, MSG_SESSION_DROP, &m);
	d.session = mt_got.SESSION_DROP.session;
	d.net = MT_NET1;
	ASSERT_TRUE(d.session != a->session);
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET2, d.credential), AUTH_OK);

	TEST_START("one worker never has them all");
	free(mt.conf.net_workers);
	mt.conf.net_workers = strdup("2");
	mt.conf.max_agents = 12;
	for (i = 0; i < 2; i++)
		ASSERT_INT_EQ(mt_auth(&one, MT_NET1, one.credential),
		    AUTH_OK);
	ASSERT_INT_EQ(mt_auth(&one, MT_NET1, one.credential),
	    AUTH_UNAVAILABLE);
	ASSERT_INT_EQ(mt_auth(&one, MT_NET2, one.credential), AUTH_OK);
	mt_stop();
}

UNIT_MAIN(test_identity, test_supersede, test_run, test_foreign_status,
    test_label, test_rehydrate, test_revoke, test_places)
