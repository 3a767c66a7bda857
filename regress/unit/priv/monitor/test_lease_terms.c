/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * On what terms is lent: denial rows, personal secrets, constraints, kinds;
 * and what devices of older protocols get of it.
 */
#include "lendtest.h"

#define DENIALS_MAX 8

static uint64_t seen_seq;
static struct denials {
	char reason[DENIALS_MAX][128];
	char grant[DENIALS_MAX][64];
	size_t n;
} denied;

/* "key":"value" of a detail; "" when it is not there. */
static void
get_detail(const char *detail, const char *key, char *dst, size_t len)
{
	char want[64];
	const char *p;

	dst[0] = '\0';
	snprintf(want, sizeof(want), "\"%s\":\"", key);
	if ((p = strstr(detail, want)) != NULL) {
		p += strlen(want);
		snprintf(dst, len, "%.*s", (int)strcspn(p, "\""), p);
	}
}

static int
on_row(const struct store_audit *a, void *arg)
{
	(void)arg;
	seen_seq = a->seq;
	if (strcmp(a->action, "secret.access_check") != 0)
		return 0;
	ASSERT_STRING_EQ(a->decision, "deny");
	ASSERT_TRUE(denied.n < DENIALS_MAX);
	ASSERT_PTR_EQ(strstr(a->detail, VALUE), NULL);
	get_detail(a->detail, "reason", denied.reason[denied.n],
	    sizeof(denied.reason[0]));
	get_detail(a->detail, "grant_id", denied.grant[denied.n++],
	    sizeof(denied.grant[0]));
	return 0;
}

/* The denial rows since the last look. */
static void
look(void)
{
	memset(&denied, 0, sizeof(denied));
	ASSERT_INT_EQ(store_list_audit(mt.store, seen_seq, INT64_MIN, 1000,
	    on_row, NULL), CL_OK);
}

static int
has_denial(const char *grant, const char *reason)
{
	size_t i;

	for (i = 0; i < denied.n; i++)
		if (strcmp(denied.grant[i], grant) == 0 &&
		    strcmp(denied.reason[i], reason) == 0)
			return 1;
	return 0;
}

/* A grant as the store may hold it, whatever the control protocol allows. */
static void
store_grant(const char *id, const char *secret, const char *owner,
    const char *subject, const char *constraints, int64_t expires_at)
{
	struct store_secret s;
	struct store_grant g;

	ASSERT_INT_EQ(store_find_secret(mt.store, secret, owner, &s), CL_OK);
	memset(&g, 0, sizeof(g));
	g.id = (char *)(uintptr_t)id;
	g.secret_id = s.id;
	g.secret_name = s.name;
	g.subject = (char *)(uintptr_t)subject;
	g.constraints = (char *)(uintptr_t)constraints;
	g.created_at = 1;
	g.created_by = (char *)(uintptr_t)"uid:0";
	g.expires_at = expires_at;
	g.revoked_at = UTIL_TIME_ZERO;
	ASSERT_INT_EQ(store_add_grant(mt.store, &g), CL_OK);
	store_secret_clear(&s);
}

static void
expect_denied(const char *code)
{
	mon_end_turn(&mt);
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 12)), code);
	mt_drain(1);
}

static void
test_denials(void)
{
	int64_t later = util_wall_ns() + INT64_C(3600000000000);
	struct mt_device d;
	struct spec spec;

	set_up(&d);
	put_secret("tok", "env", "TOKEN=" VALUE "\n");
	look();
	TEST_START("no grant aimed: one row that says so");
	store_grant("grant_else", "tok", "", "executor:agent_other", "{}",
	    later);
	run_with("tok");
	expect_denied("secret_denied");
	look();
	ASSERT_SIZE_T_EQ(denied.n, 1);
	ASSERT_TRUE(has_denial("", "no grant is aimed at this run"));

	TEST_START("a row for every aimed grant that cannot be honoured");
	store_grant("grant_old", "tok", "", "any", "{}", 2);
	store_grant("grant_other", "tok", "", "any",
	    "{\"actor\":\"uid:4711\"}", later);
	store_grant("grant_odd", "tok", "", "any", "{\"moon\":\"full\"}",
	    later);
	store_grant("grant_gone", "tok", "", "any", "{}", later);
	ASSERT_INT_EQ(store_revoke_grant(mt.store, "grant_gone", 3, "test"),
	    CL_OK);
	run_with("tok");
	expect_denied("secret_denied");
	look();
	ASSERT_SIZE_T_EQ(denied.n, 4);
	ASSERT_TRUE(has_denial("grant_old", "it has expired"));
	ASSERT_TRUE(has_denial("grant_other", "it is for another operator"));
	ASSERT_TRUE(has_denial("grant_odd",
	    "it has a constraint this hub does not know"));
	ASSERT_TRUE(has_denial("grant_gone", "it is revoked"));

	TEST_START("also when another one is honoured");
	add_grant("tok", "any", 0);
	run_with("tok");
	expect_start(&d, &spec);
	ASSERT_STRING_EQ(spec.secrets[0].grant_id, grant_id);
	spec_clear(&spec);
	look();
	ASSERT_SIZE_T_EQ(denied.n, 4);
	mt_stop();
	seen_seq = 0;
}

/* As put_secret and add_grant, for any operator; 0 or the refusal's code. */
static const char *
put_personal(uint32_t client, const char *name, const char *text)
{
	uint64_t id = MT_ID(client, 10);
	struct imsg m;

	say_secret(id, name, "env", 1, text);
	if (answer(id, MSG_ROW_SECRET, &m) == MSG_CTL_ERR)
		return "refused";
	imsg_free(&m);
	mt_drain(1);
	return NULL;
}

static const char *
lend_to(uint32_t client, const char *name, const char *subject)
{
	uint64_t id = MT_ID(client, 11);
	static char code[64];
	struct ctl_grant_add req;
	struct imsg m;
	uint32_t got;

	memset(&req, 0, sizeof(req));
	req.secret = (char *)(uintptr_t)name;
	req.subject = (char *)(uintptr_t)subject;
	MT_SAY(1, CTL_GRANT_ADD, id, &req, -1);
	got = answer(id, MSG_ROW_GRANT, &m);
	code[0] = '\0';
	if (got == MSG_CTL_ERR)
		snprintf(code, sizeof(code), "%s", mt_got.CTL_ERR.code);
	imsg_free(&m);
	mt_drain(1);
	return code;
}

static void
test_personal(void)
{
	struct msg_ctl_client other = { 2, 1001, 2, ROLE_OPERATOR };
	struct mt_device d;
	struct spec spec;
	char to[128];
	size_t i;
	int has = 0;

	set_up(&d);
	MT_SAY(1, CTL_CLIENT, 0, &other, -1);
	snprintf(to, sizeof(to), "executor:%s", d.agent_id);

	TEST_START("a personal secret is not lent to everybody");
	ASSERT_PTR_EQ(put_personal(1, "mine", "TOKEN=" VALUE "\n"), NULL);
	ASSERT_STRING_EQ(lend_to(1, "mine", "any"), "usage");
	ASSERT_STRING_EQ(lend_to(1, "mine", "*"), "usage");

	TEST_START("nor by anybody but its owner");
	ASSERT_STRING_EQ(lend_to(2, "mine", to), "secret_not_found");

	TEST_START("its owner lends it");
	ASSERT_STRING_EQ(lend_to(1, "mine", to), "");
	run_with("mine");
	expect_start(&d, &spec);
	spec_clear(&spec);
	mt_started(d.net, handle, RES_OK, "");
	mt_drain(1);

	TEST_START("it hides a shared one of the same name, for him");
	put_secret("both", "env", "TOKEN=shared-0123456789\n");
	ASSERT_PTR_EQ(put_personal(1, "both", "TOKEN=" VALUE "\n"), NULL);
	ASSERT_STRING_EQ(lend_to(2, "both", "any"), "");	/* shared */
	run_with("both");
	expect_denied("secret_denied");	/* his own is lent to nobody */
	ASSERT_STRING_EQ(lend_to(1, "both", to), "");
	run_with("both");
	expect_start(&d, &spec);
	for (i = 0; i < spec.nenv; i++)
		has |= strcmp(spec.env[i], "TOKEN=" VALUE) == 0;
	ASSERT_TRUE(has);
	spec_clear(&spec);
	mt_stop();
}

static void
test_constraints(void)
{
	int64_t now, later = util_wall_ns() + INT64_C(3600000000000);
	struct mt_device d;
	struct spec spec;
	size_t i;
	int has = 0;

	set_up(&d);
	put_secret("tok", "env", "TOKEN=" VALUE "\nOTHER=other-0123456789\n");
	store_grant("grant_c", "tok", "", "any",
	    "{\"actor\":\"uid:1000\",\"env\":\"TOKEN\",\"ttl\":\"60\"}",
	    later);
	run_with("tok");
	expect_start(&d, &spec);
	now = util_wall_ns();
	TEST_START("ttl: no lease lasts longer");
	ASSERT_TRUE(spec.secrets[0].expires_at > now);
	ASSERT_TRUE(spec.secrets[0].expires_at <= now +
	    INT64_C(60000000000));

	TEST_START("env: these variables and no others");
	for (i = 0; i < spec.nenv; i++) {
		has |= strcmp(spec.env[i], "TOKEN=" VALUE) == 0;
		ASSERT_PTR_EQ(strstr(spec.env[i], "OTHER"), NULL);
	}
	ASSERT_TRUE(has);
	ASSERT_SIZE_T_EQ(spec.secrets[0].nenv_keys, 1);
	spec_clear(&spec);
	mt_stop();
}

static void
test_kinds(void)
{
	static const char *const kinds[] = { "github_app", "egress_proxy",
		"local_repo", "host_device", "host_interface", "moon" };
	struct mt_device d;
	struct imsg m;
	size_t i;

	set_up(&d);
	TEST_START("kinds that are not served are refused by name");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unit_note("%s", kinds[i]);
		say_secret(MT_ID(1, 10), "x", kinds[i], 0, "A=1\n");
		ASSERT_INT_EQ(answer(MT_ID(1, 10), MSG_ROW_SECRET, &m),
		    MSG_CTL_ERR);
		imsg_free(&m);
		ASSERT_STRING_EQ(mt_got.CTL_ERR.code, "usage");
		ASSERT_PTR_NE(strstr(mt_got.CTL_ERR.message, kinds[i]), NULL);
		ASSERT_PTR_NE(strstr(mt_got.CTL_ERR.message, "env, "
		    "github_pat, registry, kubeconfig"), NULL);
	}
	mt_stop();
}

/* ---------------------------------------------------------- older devices */

/* The device comes back with another version. */
static void
come_back(struct mt_device *d, int64_t version)
{
	mt_down(d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(d, MT_NET1, d->credential), AUTH_OK);
	mt_hello(d, d->agent_id, version, NULL);
	mt_up(d);
	mt_drain(d->net);
}

static void
ask_revoke_grant(uint32_t req)
{
	struct msg_ctl_lease_revoke v = { lease_id, grant_id, 0, "" };

	MT_SAY(1, CTL_LEASE_REVOKE, MT_ID(1, req), &v, -1);
	mon_end_turn(&mt);
}

static void
get_outcome(uint32_t req, struct ctl_outcome *o)
{
	struct imsg m;

	ASSERT_INT_EQ(answer(MT_ID(1, req), MSG_ROW_OUTCOME, &m),
	    MSG_ROW_OUTCOME);
	*o = mt_got.ROW_OUTCOME;
	memset(&mt_got, 0, sizeof(mt_got));	/* what it owns is theirs */
	imsg_free(&m);
}

/* The REVOKE on its way: its id and the grant it names. */
static uint64_t
hear_grant(struct mt_device *d, char grant[64])
{
	struct imsg m;

	mt_expect(d->net, MSG_REVOKE, &m);
	snprintf(grant, 64, "%s", mt_got.REVOKE.grant);
	imsg_free(&m);
	ASSERT_STRING_EQ(mt_got.REVOKE.lease, lease_id);
	return m.id;
}

static void
test_old_revoke(void)
{
	struct ctl_outcome o;
	struct mt_device d;
	char grant[64];
	uint64_t id;
	int action;

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("v1: failed, nothing is sent, the remedy is named");
	come_back(&d, 1);
	ask_revoke(60, 1);
	ASSERT_U64_EQ(hear_revoke(&d, &action), 0);
	get_outcome(60, &o);
	ASSERT_STRING_EQ(o.state, "failed");
	ASSERT_PTR_NE(strstr(o.error, "upgrade"), NULL);
	field_clear(&ctl_outcome_table, &o);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_REVOKED);

	TEST_START("it stays owed: the upgraded device is told first");
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 2, NULL);
	mt_up(&d);
	ASSERT_U64_EQ(hear_revoke(&d, &action) != 0, 1);
	ASSERT_INT_EQ(action, REVOKE_KILL);
	mt_stop();

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("v18: one grant becomes the whole lease, and says so");
	come_back(&d, 18);
	ask_revoke_grant(61);
	id = hear_grant(&d, grant);
	ASSERT_STRING_EQ(grant, "");
	say_revoked(&d, id, "");
	get_outcome(61, &o);
	ASSERT_STRING_EQ(o.state, "revoked");
	ASSERT_STRING_EQ(o.grant_id, grant_id);
	ASSERT_PTR_NE(strstr(o.widened, "18"), NULL);
	field_clear(&ctl_outcome_table, &o);
	ASSERT_INT_EQ(lease_state(), STORE_LEASE_REVOKED);
	mt_stop();

	set_up(&d);
	lend(&d, "env", "TOKEN=" VALUE "\n");
	TEST_START("v19: exactly that grant");
	come_back(&d, 19);
	ask_revoke_grant(62);
	id = hear_grant(&d, grant);
	ASSERT_STRING_EQ(grant, grant_id);
	say_revoked(&d, id, "");
	get_outcome(62, &o);
	ASSERT_TRUE(o.widened == NULL);
	field_clear(&ctl_outcome_table, &o);
	mt_stop();
}

static void
test_old_refresh(void)
{
	struct mt_device d;
	struct imsg m;
	uint32_t got;

	set_up(&d);
	lend(&d, "kubeconfig", "password: " VALUE "\n");
	TEST_START("v16: no refresh, the shortfall is explained (21)");
	come_back(&d, 16);
	mt_ask(MSG_CTL_LEASE_REFRESH, MT_ID(1, 63), lease_id);
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 63)),
	    "secret_refresh_unsupported");
	while ((got = mt_hear(d.net, &m)) != 0) {
		ASSERT_INT_NE(got, MSG_REFRESH);
		imsg_free(&m);
	}

	TEST_START("v17: it is sent");
	come_back(&d, 17);
	mt_ask(MSG_CTL_LEASE_REFRESH, MT_ID(1, 64), lease_id);
	mt_expect(d.net, MSG_REFRESH, &m);
	imsg_free(&m);
	mt_stop();
}

/* Refused starts lease nothing. */
static void
test_old_start(void)
{
	static const struct {
		int64_t version;
		const char *kind, *value, *code;
	} rows[] = {
		{ 1, "env", "TOKEN=" VALUE "\n", "revocation_unsupported" },
		{ 1, "kubeconfig", "a: " VALUE, "revocation_unsupported" },
		{ 5, "kubeconfig", "a: " VALUE, "secret_files_unsupported" },
		{ 5, "env", "TOKEN=" VALUE "\n", NULL },
	};
	struct lease_list list = { NULL, 0, 0 };
	struct mt_device d;
	struct spec spec;
	size_t i;

	TEST_START("what an old device cannot keep is not lent to it (9)");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("row %zu", i);
		set_up(&d);
		put_secret("tok", rows[i].kind, rows[i].value);
		add_grant("tok", "any", 0);
		come_back(&d, rows[i].version);
		run_with("tok");
		if (rows[i].code == NULL) {
			expect_start(&d, &spec);
			spec_clear(&spec);
		} else {
			expect_denied(rows[i].code);
			ASSERT_INT_EQ(store_list_leases(mt.store, NULL, 0,
			    lease_list_add, &list), CL_OK);
			ASSERT_SIZE_T_EQ(list.n, 0);
		}
		mt_stop();
	}
}

UNIT_MAIN(test_denials, test_personal, test_constraints, test_kinds,
    test_old_revoke, test_old_refresh, test_old_start)
