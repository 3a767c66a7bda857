/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Identities at the monitor: evicting, banning and deleting an agent are
 * three things (BC-42), one identity on two hosts is noticed (BC-38), an
 * enrollment that was not finished shows (BC-35).
 */
#include "montest.h"

static void
ask(uint32_t type, uint64_t id, const char *what, const char *reason)
{
	struct msg_ctl_end v = { what, reason };

	if (reason == NULL) {
		mt_ask(type, id, what);
		return;
	}
	mt_say_body(1, type, id, &v, -1);
	mon_end_turn(&mt);
}

static void
echo(size_t net, uint64_t session)
{
	struct msg_session body = { session };

	MT_SAY(net, SESSION_ECHO, 0, &body, -1);
	mon_end_turn(&mt);
}

/* SESSION_DROP with these first words; then the session ends. */
static void
expect_drop(struct mt_device *d, const char *word)
{
	const struct msg_session_drop *v = &mt_got.SESSION_DROP;
	struct imsg m;

	mt_expect(d->net, MSG_SESSION_DROP, &m);
	ASSERT_U64_EQ(v->session, d->session);
	ASSERT_INT_EQ(v->how, DROP_REVOKED);
	ASSERT_TRUE(strncmp(v->reason, word, strlen(word)) == 0);
	mt_down(d, AGENT_OFFLINE);
}

static int
on_handle(const struct store_handle *row, void *arg)
{
	(void)row;
	(*(unsigned int *)arg)++;
	return 0;
}

static int
on_audit(const struct store_audit *a, void *arg)
{
	char *text = arg;
	size_t n = strlen(text);

	snprintf(text + n, 16384 - n, "%s %s %s %s\n", a->action, a->decision,
	    a->subject, a->detail);
	return 0;
}

static int
has_audit(const char *action, const char *detail)
{
	static char log[16384];
	char *line, *rest = log;

	log[0] = '\0';
	ASSERT_ERR(store_list_audit(mt.store, 0, UTIL_TIME_ZERO, 1000,
	    on_audit, log), CL_OK);
	while ((line = strsep(&rest, "\n")) != NULL)
		if (strncmp(line, action, strlen(action)) == 0 &&
		    strstr(line, detail) != NULL)
			return 1;
	return 0;
}

static void
test_ban(void)
{
	char old[128], token[128];
	struct mt_device d, e;
	struct imsg m;

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_mint("edge", NULL, old);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_connect(&e, MT_NET2, "other", NULL);
	mt_drain(MT_NET1);

	TEST_START("ban by the agent's id: all of the name, live too (BC-42)");
	ask(MSG_CTL_BAN, MT_ID(1, 1), d.agent_id, "stolen");
	mt_expect(1, MSG_ROW_BAN, &m);
	ASSERT_STRING_EQ(mt_got.ROW_BAN.name, "edge");
	ASSERT_STRING_EQ(mt_got.ROW_BAN.reason, "stolen");
	ASSERT_U64_EQ(mt_got.ROW_BAN.nagents, 1);
	ASSERT_U64_EQ(mt_got.ROW_BAN.ndropped, 1);
	mt_expect(1, MSG_CTL_DONE, &m);
	expect_drop(&d, "banned");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_DENIED);

	TEST_START("tokens of the name: not taken, not made");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, old), AUTH_DENIED);
	ASSERT_TRUE(has_audit("executor.enroll deny", "\"banned\""));
	{
		struct token_mint tm = { .name = " edge ", .created_by = "t",
			.now = util_wall_ns() };
		struct store_enrollment en;
		struct secret secret = SECRET_INIT;
		const char *why;

		ASSERT_ERR(token_mint(mt.store, &mt.mac_key, &tm, &secret,
		    &en, &why), CL_DENIED);
		ASSERT_TRUE(strstr(why, "banned") != NULL);
	}

	TEST_START("a second ban keeps the words of the first, and says so");
	ask(MSG_CTL_BAN, MT_ID(1, 5), "edge", "again");
	mt_expect(1, MSG_ROW_BAN, &m);
	ASSERT_STRING_EQ(mt_got.ROW_BAN.reason, "stolen");
	ASSERT_U64_EQ(mt_got.ROW_BAN.nagents, 0);
	mt_expect(1, MSG_CTL_DONE, &m);

	TEST_START("nobody else notices");
	ASSERT_INT_EQ(mt_auth(&e, MT_NET2, e.credential), AUTH_OK);

	TEST_START("unban: the name may enroll, what was revoked stays so");
	ask(MSG_CTL_UNBAN, MT_ID(1, 2), "edge", NULL);
	mt_expect(1, MSG_ROW_BAN, &m);
	mt_expect(1, MSG_CTL_DONE, &m);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_DENIED);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, old), AUTH_OK);
	mt_mint("edge", NULL, token);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, token), AUTH_OK);

	TEST_START("unban of what is not banned is refused, and audited is "
	    "what was done");
	ask(MSG_CTL_UNBAN, MT_ID(1, 3), "edge", NULL);
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 3)), "agent_not_found");
	ask(MSG_CTL_BAN, MT_ID(1, 4), "a\nb", "");
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 4)), "usage");
	ASSERT_TRUE(has_audit("executor.ban allow", "\"stolen\""));
	ASSERT_TRUE(has_audit("executor.unban allow", "\"edge\""));
	mt_stop();
}

static void
test_delete(void)
{
	struct store_agent row;
	struct mt_device d;
	struct agent *a;
	struct imsg m;
	char id[64];
	unsigned int n = 0;

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_run(MT_ID(1, 1), "edge", 1);
	mt_drain(MT_NET1);
	mt_drain(1);
	snprintf(id, sizeof(id), "%s", d.agent_id);

	TEST_START("delete: its session is closed, its rows are gone (BC-42)");
	ask(MSG_CTL_DELETE, MT_ID(1, 2), id, "scrapped");
	mt_expect(1, MSG_ROW_REVOKED, &m);
	mt_expect(1, MSG_CTL_DONE, &m);
	expect_drop(&d, "deleted");
	ASSERT_ERR(store_find_agent(mt.store, id, &row), CL_NOTFOUND);
	ASSERT_ERR(store_list_handles(mt.store, id, 0, on_handle, &n), CL_OK);
	ASSERT_INT_EQ(n, 0);

	TEST_START("for operators and for the device it never was");
	mt_drain(1);	/* the run was told, too */
	ask(MSG_CTL_AGENTS, MT_ID(1, 3), id, NULL);
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 3)), "agent_not_found");
	ask(MSG_CTL_DELETE, MT_ID(1, 4), id, "");
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 4)), "agent_not_found");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_DENIED);

	TEST_START("what its worker still says of it harms nobody");
	a = agents_find(&mt.agents, id);
	ASSERT_TRUE(a != NULL && a->deleted);
	echo(MT_NET1, 1);
	ASSERT_INT_EQ(mt.children[MT_NET1].state, MS_SERVING);

	TEST_START("the audit keeps it");
	ASSERT_TRUE(has_audit("executor.delete allow", "\"scrapped\""));

	TEST_START("the name may come back");
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_stop();
}

/* The device connects again with its credential, from a copy of itself. */
static void
reconnect(struct mt_device *d, int result)
{
	struct mt_device old = *d;
	struct imsg m;

	mt_drain(d->net);
	ASSERT_INT_EQ(mt_auth(d, d->net, d->credential), AUTH_OK);
	mt_hello(d, d->agent_id, 26, NULL);
	if (result == HELLO_OK) {
		mt_expect(d->net, MSG_SESSION_DROP, &m);
		mt_down(&old, AGENT_OFFLINE);
	}
	mt_expect(d->net, MSG_HELLO_ANS, &m);
	ASSERT_INT_EQ(mt_got.HELLO_ANS.result, result);
	if (result == HELLO_OK)
		mt_up(d);
}

static void
test_duplicate(void)
{
	struct mt_device d, kept;
	uint64_t old;
	int i;

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&d, MT_NET1, "edge", NULL);

	TEST_START("replaced peers that are silent: a link that comes and "
	    "goes, never an alarm");
	for (i = 0; i < 10; i++)
		reconnect(&d, HELLO_OK);

	TEST_START("replaced peers that answer: the third is an alarm "
	    "(BC-38)");
	for (i = 0; i < DUPID_EVIDENCE; i++) {
		ASSERT_FALSE(has_audit("executor.duplicate_identity", "edge"));
		old = d.session;
		reconnect(&d, HELLO_OK);
		echo(MT_NET1, old);
		echo(MT_NET1, old);	/* counts once */
	}
	ASSERT_TRUE(has_audit("executor.duplicate_identity deny", "edge"));

	TEST_START("then the one that is connected stays");
	kept = d;
	reconnect(&d, HELLO_DUPLICATE);
	mt_down(&d, AGENT_OFFLINE);

	TEST_START("and when it has gone the other may come");
	mt_down(&kept, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, NULL);
	(void)mt_welcome(MT_NET1);
	mt_up(&d);

	TEST_START("a worker that never had the session breaks the rules");
	mt_down(&d, AGENT_OFFLINE);
	mt_connect(&d, MT_NET1, "other", NULL);
	old = d.session;
	reconnect(&d, HELLO_OK);
	echo(MT_NET2, old);
	ASSERT_INT_EQ(mt.children[MT_NET2].state, CHILD_DOWN);

	TEST_START("a number that was never given is a violation");
	echo(MT_NET1, 1 << 30);
	ASSERT_INT_EQ(mt.children[MT_NET1].state, CHILD_DOWN);
	mt_stop();
}

static void
say_seen(struct mt_device *d)
{
	struct msg_seen seen = { .session = d->session };
	struct msg_session_seen body = { &seen, 1 };

	MT_SAY(d->net, SESSION_SEEN, 0, &body, -1);
	mon_end_turn(&mt);
}

static void
test_unconfirmed(void)
{
	struct store_agent row;
	struct mt_device d, e;

	TEST_START("a device that goes before it says a word: the audit says "
	    "so (BC-35)");
	mt_start();
	mt_connect(&d, MT_NET1, "half", NULL);
	mt_down(&d, AGENT_UNREACHABLE);
	ASSERT_TRUE(has_audit("executor.enroll  ", "\"unconfirmed\""));
	ASSERT_ERR(store_find_agent(mt.store, d.agent_id, &row), CL_OK);
	ASSERT_TRUE(row.confirmed_at == UTIL_TIME_ZERO);
	store_agent_clear(&row);

	TEST_START("its credential shows that it was saved after all");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, NULL);
	mt_up(&d);
	ASSERT_TRUE(has_audit("executor.enroll allow", "\"confirm\""));
	ASSERT_ERR(store_find_agent(mt.store, d.agent_id, &row), CL_OK);
	ASSERT_TRUE(row.confirmed_at != UTIL_TIME_ZERO);
	store_agent_clear(&row);

	TEST_START("and so does a frame: saving comes first");
	mt_connect(&e, MT_NET2, "whole", NULL);
	say_seen(&e);
	ASSERT_ERR(store_find_agent(mt.store, e.agent_id, &row), CL_OK);
	ASSERT_TRUE(row.confirmed_at != UTIL_TIME_ZERO);
	store_agent_clear(&row);
	mt_stop();
}

UNIT_MAIN(test_ban, test_delete, test_duplicate, test_unconfirmed)
