/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Revokes and refreshes in the device monitor, with a table of workloads and
 * without shims: this file plays their part.
 */
#include <bsd/string.h>
#include <event2/event.h>

#include "agent/monitor/agentd.h"
#include "agent/monitor/leasing.h"
#include "agent/monitor/workload_int.h"
#include "common/model/leasemsg.h"
#include "regress/unit/priv/monitor/leasetest.h"

static struct agentd a;
static struct workloads ws;
static struct workload one, two;
static struct workload_ask ask = { 7, 1 };

/* What the modules call. */
static int nterms, nanswers, nvalues, values_fail;
static uint64_t value_ids[8];
static struct dev_revoked rep;
static struct dev_refreshed fresh;

void
workload_shim_terminate(struct workload *w)
{
	(void)w;
	nterms++;
}

/* A workspace under way (agent/monitor/work.h); none here. */
void work_cancel(struct work *k);
void
work_cancel(struct work *k)
{
	(void)k;
	nterms++;
}

int
workload_lease_send_values(struct workload *w, uint64_t id,
    const struct spec_secret_file *files, size_t n)
{
	(void)w;
	(void)files;
	(void)n;
	value_ids[nvalues++] = id;
	return values_fail ? CL_STATE : CL_OK;
}

/* A deep copy by way of the message form. */
void
workload_lease_answer(struct workloads *w, uint32_t type,
    const struct workload_ask *to, const struct field_table *t,
    const void *v)
{
	struct buf b, in;

	(void)w;
	ASSERT_U64_EQ(to->id, ask.id);
	buf_init(&b, 1 << 20);
	field_put(t, v, &b);
	buf_init_read(&in, b.data, b.len);
	if (type == MSG_DEV_REVOKE_ANS) {
		field_clear(&dev_revoked_table, &rep);
		ASSERT_ERR(field_get(t, &in, &rep), CL_OK);
	} else {
		field_clear(&dev_refreshed_table, &fresh);
		ASSERT_ERR(field_get(t, &in, &fresh), CL_OK);
	}
	buf_clear(&b);
	nanswers++;
}

static void
set_workload(struct workload *w, const char *handle, uint64_t slot,
    const char *lease)
{
	struct holding *h = calloc(1, sizeof(*h));
	struct spec s;

	spec_init(&s);
	holding_init(h);
	lt_add_file(&s, LT_DIR, "cfg", lease, "g-1");
	lt_add_binding(&s, lease, "g-1", LT_DIR "/cfg");
	ASSERT_ERR(secretfiles_make_dirs(lt_base, &s, (uid_t)-1, (gid_t)-1,
	    &h->set), CL_OK);
	ASSERT_ERR(secretfiles_relocate(&h->set, &s), CL_OK);
	ASSERT_ERR(holding_bind(h, &s), CL_OK);
	ASSERT_ERR(secretfiles_place(&h->set, &s), CL_OK);
	spec_clear(&s);
	memset(w, 0, sizeof(*w));
	w->ws = &ws;
	w->slot = slot;
	w->state = WL_RUNNING;
	w->holding = h;
	w->dir.fd = open(lt_base, O_RDONLY | O_DIRECTORY);
	strlcpy(w->handle_id, handle, sizeof(w->handle_id));
	TAILQ_INSERT_TAIL(&ws.list, w, entry);
	ws.n++;
}

static void
end_workload(struct workload *w)
{
	struct secretnote note = { "" };

	if (w->holding != NULL) {
		secretfiles_wipe(&w->holding->set, &note);
		holding_clear(w->holding);
		free(w->holding);
	}
	w->holding = NULL;
	leasing_on_end(&ws, w->slot);
}

static void
reset(void)
{
	struct workload *w;

	if (a.base == NULL) {
		ASSERT_PTR_NE(mkdtemp(lt_base), NULL);
		a.base = event_base_new();
		field_init(&dev_revoked_table, &rep);
		field_init(&dev_refreshed_table, &fresh);
	}
	while ((w = TAILQ_FIRST(&ws.list)) != NULL) {
		TAILQ_REMOVE(&ws.list, w, entry);
		end_workload(w);
		close(w->dir.fd);
	}
	TAILQ_INIT(&ws.list);
	TAILQ_INIT(&ws.orders);
	ws.a = &a;
	ws.n = 0;
	set_workload(&one, "one", 11, "lease-1");
	set_workload(&two, "two", 22, "lease-1");
	nterms = nanswers = nvalues = values_fail = 0;
}

static void
do_revoke(const char *lease, const char *grant, int kill)
{
	struct lease_revoke req;

	field_init(&lease_revoke_table, &req);
	req.lease_id = lt_dup(lease);
	req.grant_id = lt_dup(grant);
	req.action = strdup(kill ? "kill" : "scrub");
	leasing_revoke(&ws, &ask, &req);
	ASSERT_PTR_EQ(req.lease_id, NULL);
}

static void
do_refresh(const char *lease, const char *name)
{
	struct lease_refresh req;
	struct spec s;

	spec_init(&s);
	lt_add_file(&s, LT_DIR, name, "", "");
	field_init(&lease_refresh_table, &req);
	secret_clear(&s.secret_files[0].content);
	ASSERT_ERR(secret_init(&s.secret_files[0].content, "renewed", 7, 99),
	    CL_OK);
	req.lease_id = lt_dup(lease);
	req.files = s.secret_files;
	req.nfiles = 1;
	s.secret_files = NULL;
	s.nsecret_files = 0;
	leasing_refresh(&ws, &ask, &req);
	spec_clear(&s);
}

static void
test_scrub(void)
{
	reset();
	TEST_START("a scrub takes the files of all holders at once");
	do_revoke(" lease-1", "", 0);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_INT_EQ(rep.known, 1);
	ASSERT_INT_EQ(rep.files_removed, 2);
	ASSERT_SIZE_T_EQ(rep.nenv_scrubbed, 0);
	ASSERT_SIZE_T_EQ(rep.nkilled, 0);
	ASSERT_STRING_EQ(rep.error == NULL ? "" : rep.error, "");
	ASSERT_INT_EQ(nterms, 0);
	ASSERT_INT_EQ(access(one.holding->set.dirs[0].path, F_OK), -1);
	TEST_START("again it is known and there was nothing");
	do_revoke("lease-1", "g-1", 0);
	ASSERT_INT_EQ(rep.known, 1);
	ASSERT_INT_EQ(rep.files_removed, 0);
	TEST_START("what is not held is a success");
	do_revoke("lease-9", "", 1);
	ASSERT_INT_EQ(rep.known, 0);
	do_revoke("lease-1", "g-9", 0);
	ASSERT_INT_EQ(rep.known, 0);
	ASSERT_INT_EQ(nterms, 0);
}

static void
test_kill(void)
{
	reset();
	TEST_START("a kill is reported when all are gone");
	two.state = WL_ENDED;	/* its end is owed: nothing to signal */
	do_revoke("lease-1", "", 1);
	ASSERT_INT_EQ(nterms, 1);
	ASSERT_INT_EQ(nanswers, 0);
	ASSERT_INT_EQ(one.is_killed, 1);
	end_workload(&one);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_SIZE_T_EQ(rep.nkilled, 1);
	ASSERT_STRING_EQ(rep.killed[0], "one");
	ASSERT_INT_EQ(rep.files_removed, 2);
	reset();
	TEST_START("two revokes of it wait for the same end, one signal");
	do_revoke("lease-1", "g-1", 1);
	do_revoke("lease-1", "", 1);
	ASSERT_INT_EQ(nterms, 2);	/* one for each workload */
	end_workload(&one);
	ASSERT_INT_EQ(nanswers, 0);
	end_workload(&two);
	ASSERT_INT_EQ(nanswers, 2);
	ASSERT_SIZE_T_EQ(rep.nkilled, 2);
	TEST_START("afterwards it is unknown");
	do_revoke("lease-1", "", 1);
	ASSERT_INT_EQ(rep.known, 0);
}

static void
test_forced(void)
{
	reset();
	TEST_START("an end that nobody saw is not called clean");
	two.state = WL_ENDED;
	do_revoke("lease-1", "", 1);
	leasing_on_forced(&ws, one.slot);
	end_workload(&one);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_SIZE_T_EQ(rep.nkilled, 1);
	ASSERT_TRUE(rep.error != NULL && *rep.error != '\0');
}

static void
test_launch(void)
{
	reset();
	TEST_START("a start is cancelled, and not called killed");
	one.state = WL_LAUNCHING;
	do_revoke("lease-1", "", 0);
	ASSERT_INT_EQ(one.is_cancelled, 1);
	ASSERT_INT_EQ(two.is_cancelled, 0);
	ASSERT_INT_EQ(nanswers, 1);
	reset();
	one.state = WL_LAUNCHING;
	two.state = WL_ENDED;
	do_revoke("lease-1", "", 1);
	ASSERT_INT_EQ(nterms, 0);
	ASSERT_INT_EQ(nanswers, 0);	/* it may be running by now */
	end_workload(&one);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_SIZE_T_EQ(rep.nkilled, 0);
	reset();
	TEST_START("a fetch is cut off and waited for");
	one.state = WL_PREPARING;
	two.state = WL_ENDED;
	do_revoke("lease-1", "", 1);
	ASSERT_INT_EQ(one.is_cancelled, 1);
	ASSERT_INT_EQ(nterms, 1);
	ASSERT_INT_EQ(nanswers, 0);
	end_workload(&one);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_SIZE_T_EQ(rep.nkilled, 0);
}

static void
test_refresh(void)
{
	reset();
	TEST_START("no file before its shim knows the value");
	do_refresh("lease-1", "cfg");
	ASSERT_INT_EQ(nvalues, 2);
	ASSERT_INT_EQ(nanswers, 0);
	leasing_on_redacted(&ws, one.slot, value_ids[0], 1);
	ASSERT_INT_EQ(nanswers, 0);
	ASSERT_STRING_EQ(lt_text(lt_path(&one.holding->set, 0, "cfg")),
	    LT_MARK);
	leasing_on_redacted(&ws, two.slot, value_ids[1] + 9, 1); /* not it */
	ASSERT_INT_EQ(nanswers, 0);
	leasing_on_redacted(&ws, two.slot, value_ids[1], 0);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_INT_EQ(fresh.known, 1);
	ASSERT_INT_EQ(fresh.files_rewritten, 1);
	ASSERT_SIZE_T_EQ(fresh.nhandles, 1);
	ASSERT_STRING_EQ(fresh.handles[0], "one");
	TEST_START("whose shim cannot learn it keeps the old file");
	ASSERT_TRUE(fresh.error != NULL && *fresh.error != '\0');
	ASSERT_STRING_EQ(lt_text(lt_path(&one.holding->set, 0, "cfg")),
	    "renewed");
	ASSERT_STRING_EQ(lt_text(lt_path(&two.holding->set, 0, "cfg")),
	    LT_MARK);
	reset();
	TEST_START("revoked in between: nothing is written");
	do_refresh("lease-1", "cfg");
	do_revoke("lease-1", "", 0);
	leasing_on_redacted(&ws, one.slot, value_ids[0], 1);
	leasing_on_redacted(&ws, two.slot, value_ids[1], 1);
	ASSERT_INT_EQ(nanswers, 2);
	ASSERT_INT_EQ(fresh.files_rewritten, 0);
	ASSERT_TRUE(fresh.error != NULL && *fresh.error != '\0');
	ASSERT_SIZE_T_EQ(lt_count(lt_base), 1);	/* the record */
	TEST_START("and one after it is refused");
	do_refresh("lease-1", "cfg");
	ASSERT_INT_EQ(fresh.known, 1);
	ASSERT_TRUE(fresh.error != NULL && *fresh.error != '\0');
	TEST_START("ended in between: nothing to replace, no failure");
	reset();
	do_refresh("lease-1", "cfg");
	end_workload(&one);
	end_workload(&two);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_INT_EQ(fresh.files_rewritten, 0);
	TEST_START("an unknown lease is no failure, a new name is");
	reset();
	do_refresh("lease-9", "cfg");
	ASSERT_INT_EQ(fresh.known, 0);
	ASSERT_STRING_EQ(fresh.error == NULL ? "" : fresh.error, "");
	do_refresh("lease-1", "new");
	leasing_on_redacted(&ws, one.slot, value_ids[0], 1);
	leasing_on_redacted(&ws, two.slot, value_ids[1], 1);
	ASSERT_TRUE(fresh.error != NULL && *fresh.error != '\0');
	ASSERT_SIZE_T_EQ(lt_count(one.holding->set.dirs[0].path), 1);
	TEST_START("no channel to a shim: said, and not waited for");
	reset();
	values_fail = 1;
	do_refresh("lease-1", "cfg");
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_INT_EQ(fresh.files_rewritten, 0);
	ASSERT_TRUE(fresh.error != NULL && *fresh.error != '\0');
}

static void
test_many(void)
{
	int i;

	TEST_START("64 orders wait, the one after them is answered at once");
	reset();
	for (i = 0; i <= 64; i++) {
		ASSERT_INT_EQ(nanswers, 0);
		do_revoke("lease-1", "", 1);
	}
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_STRING_EQ(rep.error, "the device is busy with other leases");
	leasing_clear(&ws);
}

static void
test_end(void)
{
	char path[128];

	TEST_START("what is under way is freed with the table");
	reset();
	do_revoke("lease-1", "", 1);
	do_refresh("lease-1", "cfg");
	leasing_clear(&ws);
	reset();
	end_workload(&one);
	end_workload(&two);
	close(one.dir.fd);
	close(two.dir.fd);
	event_base_free(a.base);
	field_clear(&dev_revoked_table, &rep);
	field_clear(&dev_refreshed_table, &fresh);
	snprintf(path, sizeof(path), "%s/" VAULT_RECORD, lt_base);
	(void)unlink(path);
	ASSERT_INT_EQ(rmdir(lt_base), 0);
}

UNIT_MAIN(test_scrub, test_kill, test_forced, test_launch, test_refresh,
    test_many, test_end)
