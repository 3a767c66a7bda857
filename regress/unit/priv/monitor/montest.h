/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A monitor in a test: real store, real tables, real channels; the children
 * are processes that only wait to be killed, and the test holds their ends
 * of the channels.
 */
#ifndef CLOOP_MONTEST_H
#define CLOOP_MONTEST_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "common/base/idgen.h"
#include "common/base/log.h"
#include "common/model/caps.h"
#include "common/model/ctlmsg.h"
#include "common/model/spec.h"
#include "priv/monitor/boot.h"
#include "priv/monitor/monitor.h"
#include "priv/monitor/setup.h"
#include "regress/unit/msgtest.h"
#include "regress/unit/store/db/store_tmp.h"
#include "store/db/token.h"

#define MT_NET1 2
#define MT_NET2 3
#define MT_FENCE 4	/* mt_add_fence */
#define MT_NSLOTS 5

static struct monitor mt;
static struct chan mt_peer[MT_NSLOTS];
/* The body of what was heard last, where its row has a struct. */
static union msg_any mt_got;
static uint32_t mt_got_type;

/* The slot gets a process that waits, and a channel we hold the end of. */
UNIT_STATIC void
mt_fill(size_t i)
{
	static const enum msg_dir in[] = { MSG_M2K, MSG_M2C, MSG_M2N,
	    MSG_M2N, MSG_M2W }, out[] = { MSG_K2M, MSG_C2M, MSG_N2M,
	    MSG_N2M, MSG_W2M };
	struct child *c = &mt.children[i];
	int fd;

	chan_close(&mt_peer[i]);
	fd = msgtest_pair(&mt_peer[i], in[i], out[i]);
	if ((c->pid = fork()) == 0) {
		/* A failed test leaves without killing it. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	ASSERT_INT_EQ(chan_init(&c->chan, fd, out[i], in[i], CHAN_QUEUE_MAX,
	    NULL, NULL, c), CL_OK);
	c->chan.state = MS_SERVING;
	if (c->timer == NULL)
		c->timer = event_new(mt.base, -1, 0, NULL, NULL);
	c->generation = ++mt.last_generation;
	c->state = MS_SERVING;
	c->has_start = 1;
}

/* Reap what was killed and fill the slot again. */
UNIT_STATIC void
mt_refill(size_t i)
{
	struct child *c = &mt.children[i];

	if (c->pid != 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
	mt_fill(i);
}

UNIT_STATIC void
mt_start(void)
{
	static const enum child_kind kinds[] = { CHILD_KEY, CHILD_CTL,
		CHILD_NET, CHILD_NET };
	const char *dir = tmp_new();
	const char *options[8];
	struct config_args args = { "/dev/null", options, 0 };
	static char state[300], run_dir[300], err[512];
	size_t i;

	memset(&mt, 0, sizeof(mt));
	log_init("test", LOGL_FATAL, LOGF_TEXT);
	snprintf(state, sizeof(state), "StateDirectory=%s", dir);
	snprintf(run_dir, sizeof(run_dir), "RuntimeDirectory=%s", dir);
	options[args.noptions++] = state;
	options[args.noptions++] = run_dir;
	options[args.noptions++] = "ExternalURL=https://hub.example:7443";
	snprintf(err, sizeof(err), "%s/conf", dir);
	ASSERT_INT_EQ(util_save_file(err, 0600, "", 0), CL_OK);
	args.file = err;
	{
		char why[512] = "";
		if (config_load(&args, &mt.conf, why, sizeof(why)) != CL_OK)
			UNIT_FAIL("%s", why);
	}
	mt.phase = MON_SERVING;
	mt.ctl_fd = mt.detached_fd = -1;
	mt.started_at = util_now_ms();
	ASSERT_TRUE((mt.base = event_base_new()) != NULL);
	mon_init_turn(&mt);
	agents_init(&mt.agents);
	handles_init(&mt.handles);
	devask_init(&mt);
	auditlog_init(&mt);
	revoke_init(&mt);
	refresh_init(&mt);
	LIST_INIT(&mt.clients);
	TAILQ_INIT(&mt.jobs);
	ASSERT_INT_EQ(setup_make_dirs(&mt, err, sizeof(err)), CL_OK);
	mt.store = tmp_open(dir);
	ASSERT_INT_EQ(secret_init(&mt.mac_key, "test key", 8, 64), CL_OK);
	mt.nchildren = 4;
	mt.children = calloc(MT_NSLOTS, sizeof(*mt.children));
	for (i = 0; i < 4; i++) {
		child_init(&mt.children[i], &mt, kinds[i],
		    i == MT_NET2 ? 2 : 1);
		mt_fill(i);
	}
	mon_begin_turn(&mt);
}

/* PerSourcePenalty "enforce nft". */
UNIT_STATIC void
mt_add_fence(void)
{
	free(mt.conf.penalty);
	mt.conf.penalty = strdup("auth:10s max:1m enforce nft");
	mt.nchildren = MT_NSLOTS;
	enforce_init(&mt, &mt.children[MT_FENCE]);
	mt_fill(MT_FENCE);
}

UNIT_STATIC void
mt_stop(void)
{
	size_t i;

	/* It would be given the time to clean up. */
	if (mt.children[MT_FENCE].pid != 0)
		kill(mt.children[MT_FENCE].pid, SIGKILL);
	boot_clear(&mt);
	for (i = 0; i < MT_NSLOTS; i++)
		chan_close(&mt_peer[i]);
	msg_clear(mt_got_type, &mt_got);
	mt_got_type = 0;
}

/* A message from child i, handled at once.  Takes fd; clears b. */
UNIT_STATIC void
mt_say(size_t i, uint32_t type, uint64_t id, struct buf *b, int fd)
{
	static const uint8_t none[1];
	struct imsg m = { .type = type, .id = id, .fd = fd };

	buf_init_read(&m.body, b != NULL && b->len > 0 ? b->data : none,
	    b != NULL ? b->len : 0);
	mon_on_message(&mt.children[i], &m);
	imsg_free(&m);
	if (b != NULL)
		buf_clear(b);
}

/* The same with the struct that the row names. */
UNIT_STATIC void
mt_say_body(size_t i, uint32_t type, uint64_t id, const void *v, int fd)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	ASSERT_ERR(msg_put(type, v, &b), CL_OK);
	mt_say(i, type, id, &b, fd);
}
#define MT_SAY(i, name, id, v, fd)                                             \
	mt_say_body(i, MSG_##name, id, MSG_BODY(name, v), fd)

/*
 * The next message for child i, its body in mt_got until the one after it; 0
 * when there is none.  *m to be freed.
 */
UNIT_STATIC uint32_t
mt_hear(size_t i, struct imsg *m)
{
	msg_clear(mt_got_type, &mt_got);
	return mt_got_type = msgtest_hear(&mt_peer[i], m, &mt_got);
}

/* Hear and forget messages for child i up to one of this type. */
UNIT_STATIC void
mt_expect(size_t i, uint32_t type, struct imsg *m)
{
	uint32_t got;

	while ((got = mt_hear(i, m)) != type) {
		if (got == 0)
			UNIT_FAIL("%s did not come", msgcat_name(type));
		imsg_free(m);
	}
}

/* Forget everything that waits for child i. */
UNIT_STATIC void
mt_drain(size_t i)
{
	struct imsg m;

	while (mt_hear(i, &m) != 0)
		imsg_free(&m);
}

UNIT_STATIC int
mt_memfd(const struct field_table *t, const void *v, uint32_t *lenp)
{
	struct buf b;
	int fd = -1;

	buf_init(&b, MAX_SPEC_LEN);
	field_put(t, v, &b);
	ASSERT_INT_EQ(buf_error(&b), CL_OK);
	ASSERT_INT_EQ(util_make_memfd(b.data, b.len, &fd), CL_OK);
	*lenp = (uint32_t)b.len;
	buf_clear(&b);
	return fd;
}

/* --- a device on worker i --- */

struct mt_device {
	char credential[128], agent_id[64];
	uint64_t session;
	size_t net;
};

UNIT_STATIC int
mt_auth(struct mt_device *d, size_t net, const char *bearer)
{
	struct msg_auth body = { .bearer = { (unsigned char *)(uintptr_t)bearer,
	    strlen(bearer) }, .peer = "192.0.2.1:1" };
	const struct msg_auth_ans *a = &mt_got.AUTH_ANS;
	struct imsg m;

	MT_SAY(net, AUTH, 77, &body, -1);
	mon_end_turn(&mt);
	mt_expect(net, MSG_AUTH_ANS, &m);
	ASSERT_U64_EQ(m.id, 77);
	d->session = a->session;
	snprintf(d->agent_id, sizeof(d->agent_id), "%s", a->agent_id);
	if (a->credential.data != NULL && a->credential.len > 0)
		snprintf(d->credential, sizeof(d->credential), "%s",
		    (const char *)a->credential.data);
	d->net = net;
	return (int)a->result;
}

UNIT_STATIC void
mt_hello(struct mt_device *d, const char *agent_id, int64_t version,
    const char *offer)
{
	struct caps_offer o = { (char *)(uintptr_t)offer, 0, 0 };
	struct msg_session_memfd body = { .session = d->session };
	struct hello_blob h;
	uint32_t len;
	int fd;

	hello_blob_init(&h);
	h.protocol_version = version;
	h.agent_id = (char *)(uintptr_t)agent_id;
	h.caps.os = (char *)(uintptr_t)"linux";
	h.caps.max_concurrent = 4;
	if (offer != NULL) {
		h.offers = &o;
		h.noffers = 1;
	}
	fd = mt_memfd(&hello_blob_table, &h, &len);
	body.len = len;
	MT_SAY(d->net, HELLO, 88, &body, fd);
	mon_end_turn(&mt);
}

UNIT_STATIC void
mt_up(struct mt_device *d)
{
	struct msg_session body = { d->session };

	MT_SAY(d->net, SESSION_UP, 0, &body, -1);
	mon_end_turn(&mt);
}

UNIT_STATIC void
mt_down(struct mt_device *d, int status)
{
	struct msg_session_down body = { d->session, status, "test" };

	MT_SAY(d->net, SESSION_DOWN, 0, &body, -1);
	mon_end_turn(&mt);
}

/* What its answer to a start was: RES_*. */
UNIT_STATIC void
mt_started(size_t net, uint64_t handle, int result, const char *text)
{
	struct msg_start_ans body = { .ans = { .result = result,
	    .text = text }, .pid = 4711, .started_at = UTIL_TIME_ZERO };

	MT_SAY(net, START_ANS, handle, &body, -1);
	mon_end_turn(&mt);
}

UNIT_STATIC void
mt_status(struct mt_device *d, uint64_t handle, int state, int64_t exit_code)
{
	struct msg_handle_status body = { .session = d->session,
	    .handle = handle, .state = state, .exit_code = exit_code,
	    .started_at = UTIL_TIME_ZERO, .finished_at = UTIL_TIME_ZERO };

	MT_SAY(d->net, HANDLE_STATUS, 0, &body, -1);
	mon_end_turn(&mt);
}

/* The welcome that a hello gets: the verdict on its first offer (NULL: on
 * none). */
UNIT_STATIC const struct msg_verdict *
mt_welcome(size_t net)
{
	struct imsg m;

	mt_expect(net, MSG_HELLO_ANS, &m);
	ASSERT_INT_EQ(mt_got.HELLO_ANS.result, HELLO_OK);
	return mt_got.HELLO_ANS.nverdicts > 0 ? mt_got.HELLO_ANS.verdicts :
	    NULL;
}

/* A token, as an operator mints it. */
UNIT_STATIC void
mt_mint(const char *name, const char *label, char dst[128])
{
	struct store_labels labels = { NULL, 0 };
	struct token_mint tm = { .name = name, .created_by = "test" };
	struct store_enrollment e;
	struct secret token = SECRET_INIT;
	const char *why;

	memset(&e, 0, sizeof(e));
	if (label != NULL)
		(void)store_labels_add(&labels, "room", label);
	tm.labels = &labels;
	tm.now = util_wall_ns();
	ASSERT_INT_EQ(token_mint(mt.store, &mt.mac_key, &tm, &token, &e,
	    &why), CL_OK);
	snprintf(dst, 128, "%s", (const char *)token.data);
	secret_clear(&token);
	store_enrollment_clear(&e);
	store_labels_clear(&labels);
	mon_end_turn(&mt);
}

/* Enrolled and connected. */
UNIT_STATIC void
mt_connect(struct mt_device *d, size_t net, const char *name,
    const char *label)
{
	char token[128];

	memset(d, 0, sizeof(*d));
	mt_mint(name, label, token);
	ASSERT_INT_EQ(mt_auth(d, net, token), AUTH_OK);
	mt_hello(d, "", 26, NULL);
	(void)mt_welcome(net);
	mt_up(d);
}

/* --- an operator --- */

UNIT_STATIC void
mt_operator(uint32_t client, int role)
{
	struct msg_ctl_client v = { client, 1000, 1, role };

	MT_SAY(1, CTL_CLIENT, 0, &v, -1);
}

#define MT_ID(client, req) ((uint64_t)(client) << 32 | (req))

UNIT_STATIC void
mt_run_spec(uint64_t id, struct msg_ctl_run *v, struct spec *s)
{
	static char *argv[] = { (char *)(uintptr_t)"true" };
	uint32_t len;
	int fd;

	s->argv = argv;
	s->nargv = 1;
	fd = mt_memfd(&spec_start_table, s, &len);
	v->len = len;
	MT_SAY(1, CTL_RUN, id, v, fd);
	mon_end_turn(&mt);
}

UNIT_STATIC void
mt_run(uint64_t id, const char *where, int detach)
{
	struct msg_ctl_run v = { .where = where, .detach = detach };
	struct spec s;

	spec_init(&s);
	mt_run_spec(id, &v, &s);
}

/* A request that is a name or an id, or with a reason. */
UNIT_STATIC void
mt_ask(uint32_t type, uint64_t id, const char *name)
{
	struct msg_name v = { name };

	mt_say_body(1, type, id, &v, -1);
	mon_end_turn(&mt);
}

UNIT_STATIC void
mt_ask_reason(uint32_t type, uint64_t id, const char *name,
    const char *reason)
{
	struct msg_name_reason v = { name, reason };

	mt_say_body(1, type, id, &v, -1);
	mon_end_turn(&mt);
}

/* The code of the CTL_ERR that answers id, until the next mt_hear(). */
UNIT_STATIC const char *
mt_refusal(uint64_t id)
{
	struct imsg m;

	mt_expect(1, MSG_CTL_ERR, &m);
	ASSERT_U64_EQ(m.id, id);
	return mt_got.CTL_ERR.code;
}

#endif
