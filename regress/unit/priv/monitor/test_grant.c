/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/monitor/grant, priv/monitor/secretkind: whom a grant is for, under
 * what conditions, and what a value must look like.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/msg/field.h"
#include "priv/monitor/grant.h"
#include "priv/monitor/secretkind.h"
#include "store/db/store.h"
#include "store/db/store_lease.h"

static struct field_pair labels[] = { { "room", "vault" }, { "tier", "1" } };
static struct store_agent agent = { .agent_id = "A1", .labels = { labels,
	2 } };
static struct grant_requester who = { &agent, "", "uid:7", 1000 };

static int
is_aimed(const char *subject)
{
	char clean[GRANT_SUBJECT_MAX];
	struct store_grant g;

	memset(&g, 0, sizeof(g));
	if (grant_parse_subject(subject, clean) != NULL)
		return -1;
	g.subject = clean;
	return grant_is_aimed(&g, &who);
}

static void
test_subjects(void)
{
	char clean[GRANT_SUBJECT_MAX];

	TEST_START("exact matches only");
	ASSERT_INT_EQ(is_aimed("any"), 1);
	ASSERT_INT_EQ(is_aimed("*"), 1);
	ASSERT_INT_EQ(is_aimed("executor:A1"), 1);
	ASSERT_INT_EQ(is_aimed("executor:A"), 0);
	ASSERT_INT_EQ(is_aimed("executor:A11"), 0);

	TEST_START("labels: all of them, whole");
	ASSERT_INT_EQ(is_aimed("label:room=vault"), 1);
	ASSERT_INT_EQ(is_aimed("label:tier=1,room=vault"), 1);
	ASSERT_INT_EQ(is_aimed("label:room=vaul"), 0);
	ASSERT_INT_EQ(is_aimed("label:room=vault,tier=2"), 0);
	ASSERT_INT_EQ(is_aimed("label:roo=vault"), 0);

	TEST_START("projects: cleaned paths, and no project matches none");
	ASSERT_INT_EQ(is_aimed("project:/srv/p"), 0);
	who.project = "/srv//p/./";
	ASSERT_INT_EQ(is_aimed("project:/srv/p/"), 1);
	ASSERT_INT_EQ(is_aimed("project:/srv/p2"), 0);
	ASSERT_INT_EQ(is_aimed("project:/srv"), 0);
	who.project = "";

	TEST_START("one spelling is kept");
	ASSERT_PTR_EQ(grant_parse_subject("label:tier=1,room=vault", clean),
	    NULL);
	ASSERT_STRING_EQ(clean, "label:room=vault,tier=1");

	TEST_START("what is none is refused");
	ASSERT_INT_EQ(is_aimed(""), -1);
	ASSERT_INT_EQ(is_aimed("everybody"), -1);
	ASSERT_INT_EQ(is_aimed("executor:"), -1);
	ASSERT_INT_EQ(is_aimed("label:"), -1);
	ASSERT_INT_EQ(is_aimed("label:room"), -1);
	ASSERT_INT_EQ(is_aimed("label:a=1,a=2"), -1);
	ASSERT_INT_EQ(is_aimed("project:../p"), -1);
	ASSERT_INT_EQ(is_aimed("project:a\nb"), -1);
}

static const char *
check(const char *constraints, int64_t expires, int64_t revoked,
    const char *by, struct grant_terms *terms)
{
	struct store_grant g;

	memset(&g, 0, sizeof(g));
	g.constraints = (char *)(uintptr_t)constraints;
	g.expires_at = expires;
	g.revoked_at = revoked;
	g.superseded_by = (char *)(uintptr_t)by;
	return grant_check(&g, &who, terms);
}

static void
test_terms(void)
{
	struct field_pair c[] = { { "ttl", "5m" }, { "env", "A,BC" } };
	struct field_pair bad[] = { { "color", "red" } };
	struct grant_terms t;
	const char *why;
	char *text;

	TEST_START("time: honoured before its end, not at it");
	ASSERT_PTR_EQ(check("{}", 1001, UTIL_TIME_ZERO, "", &t), NULL);
	ASSERT_TRUE(check("{}", 1000, UTIL_TIME_ZERO, "", &t) != NULL);
	ASSERT_TRUE(check("{}", 999, UTIL_TIME_ZERO, "", &t) != NULL);

	TEST_START("revoked and superseded ones are not honoured");
	ASSERT_TRUE(check("{}", 9999, 1, "", &t) != NULL);
	ASSERT_TRUE(check("{}", 9999, UTIL_TIME_ZERO, "grant_x", &t) != NULL);

	TEST_START("constraints, and those of another build");
	ASSERT_INT_EQ(grant_format_constraints(c, 2, &text, &why), CL_OK);
	ASSERT_PTR_EQ(check(text, 9999, UTIL_TIME_ZERO, "", &t), NULL);
	free(text);
	ASSERT_INT_EQ(t.ttl_s, 300);
	ASSERT_TRUE(grant_has_env(&t, "A", 1));
	ASSERT_TRUE(grant_has_env(&t, "BC", 2));
	ASSERT_FALSE(grant_has_env(&t, "B", 1));
	ASSERT_TRUE(check("{\"color\":\"red\"}", 9999, UTIL_TIME_ZERO, "",
	    &t) != NULL);
	ASSERT_TRUE(check("{\"actor\":\"uid:8\"}", 9999, UTIL_TIME_ZERO, "",
	    &t) != NULL);
	ASSERT_PTR_EQ(check("{\"actor\":\"uid:7\"}", 9999, UTIL_TIME_ZERO,
	    "", &t), NULL);
	ASSERT_TRUE(check("nonsense", 9999, UTIL_TIME_ZERO, "", &t) != NULL);
	ASSERT_ERR(grant_format_constraints(bad, 1, &text, &why), CL_FORMAT);
	ASSERT_TRUE(why != NULL);
}

static int
accepts(const char *kind, const char *text)
{
	struct secret value = SECRET_INIT;
	const struct secret_kind *k;
	const char *why;
	char *names;
	int ok;

	ASSERT_TRUE((k = kind_find(kind, &why)) != NULL);
	ASSERT_INT_EQ(secret_init(&value, text, strlen(text), 4096), CL_OK);
	ok = kind_check(k, &value, &names) == NULL;
	free(names);
	secret_clear(&value);
	return ok;
}

static void
test_kinds(void)
{
	const char *why;

	TEST_START("env is KEY=VALUE lines");
	ASSERT_TRUE(accepts("env", "A=1\n# note\n\nB_2=x=y\r\n"));
	ASSERT_TRUE(accepts("env", "A="));
	ASSERT_FALSE(accepts("env", "A"));
	ASSERT_FALSE(accepts("env", "1A=1"));
	ASSERT_FALSE(accepts("env", "A B=1"));
	ASSERT_FALSE(accepts("env", "=1"));
	ASSERT_FALSE(accepts("env", "A=1\nA=2"));
	ASSERT_FALSE(accepts("env", "# only a note\n"));
	ASSERT_FALSE(accepts("env", "A=\xff"));

	TEST_START("a token is one word");
	ASSERT_TRUE(accepts("github_pat", "ghp_0123456789\n"));
	ASSERT_FALSE(accepts("github_pat", "two words"));
	ASSERT_FALSE(accepts("github_pat", "short"));

	TEST_START("files");
	ASSERT_TRUE(accepts("kubeconfig", "apiVersion: v1\n"));
	ASSERT_FALSE(accepts("kubeconfig", ""));
	ASSERT_TRUE(accepts("registry", "{\"auths\":{}}\n"));
	ASSERT_FALSE(accepts("registry", "hello"));

	TEST_START("kinds that are known and not served are told apart");
	ASSERT_PTR_EQ(kind_find("github_app", &why), NULL);
	ASSERT_TRUE(strstr(why, "not supported") != NULL);
	ASSERT_PTR_EQ(kind_find("password", &why), NULL);
	ASSERT_TRUE(strstr(why, "not a kind") != NULL);
}

UNIT_MAIN(test_subjects, test_terms, test_kinds)
