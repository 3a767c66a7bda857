/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A live session of cloopd-net over a socket pair, without TLS, with a clock
 * of our own: pings nobody should send (BC-28), peers that do not read
 * (BC-34), ends at any moment (BC-32), and an end that waits for a disk that
 * fails.
 */
#include "regress/unit/unit.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

/* The machine of one session, with its statics. */
#include "net/hub/hub_session.c"
#include "regress/unit/msgtest.h"

static struct hub hub;
static struct hs *s;
static struct hlog *h;
static struct chan mon;		/* the monitor's end */
static union msg_any told;	/* what it got last */
static uint32_t told_type;
static struct ws_parser device;	/* what the device reads */
static int peer;		/* the device's end */
static int disk;		/* h's log file, while it fails */

static int
on_message(void *arg, struct imsg *m, union msg_any *v)
{
	return hub_on_message(arg, m, v);
}

static void
set_up(void)
{
	static struct hub_addr addr;
	int fds[2];

	memset(&hub, 0, sizeof(hub));
	hub.now = 1000000;
	hub.conf.net.heartbeat_s = HEARTBEAT_S;
	hub.tls.key_fd = -1;
	ASSERT_TRUE((hub.base = event_base_new()) != NULL);
	ask_init(&hub.asks, &hub, hub_send);
	src_init(&hub.sources, &hub.conf);
	hlog_init(&hub.logs);
	hs_init(&hub.sessions);
	jx_init(&hub.jx);
	jsonw_init(&hub.jw, MAX_FRAME_LEN, 0);
	msgtest_open(&hub.chan, msgtest_pair(&mon, MSG_N2M, MSG_M2N), MSG_M2N,
	    MSG_N2M);
	hub.chan.on_msg = on_message;
	hub.chan.arg = &hub;
	ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0, fds), 0);
	peer = fds[1];
	ws_init(&device, WS_CLIENT, MAX_FRAME_LEN);
	hs_new(&hub, fds[0], 0, &addr, 1, NULL, 0);
	s = hs_find_conn(&hub.sessions, 1);
	ASSERT_TRUE(s != NULL);
	ASSERT_ERR(hs_set_number(s, 5), CL_OK);
	s->agent_id = strdup("AAECAwQFBgcICQoL");
	s->name = strdup("edge-1");
	s->negotiated = PROTO_MAX;
	hs_enter_state(s, HST_LIVE, HE_NONE);
}

static void
tear_down(void)
{
	if (s != NULL && s->state != HST_DEAD)
		hs_run(s, HE_FAIL);
	(void)hs_settle_all(&hub);
	h = NULL;
	close(peer);
	ws_clear(&device);
	chan_close(&hub.chan);
	chan_close(&mon);
	msg_clear(told_type, &told);
	told_type = 0;
	hlog_clear(&hub.logs);
	jx_clear(&hub.jx);
	jsonw_clear(&hub.jw);
	src_clear(&hub.sources);
	event_base_free(hub.base);
}

/* The device writes a frame; the hub reads it. */
static void
say(enum ws_op op, const char *text)
{
	static const uint8_t mask[WS_MASK_LEN] = { 1, 2, 3, 4 };
	uint8_t frame[512];
	size_t n = ws_format_frame(frame, sizeof(frame), op, text,
	    strlen(text), mask);

	ASSERT_INT_NE(n, 0);
	ASSERT_INT_EQ(write(peer, frame, n), n);
	hs_pump(s);
}

/* What the device reads next; NULL: nothing. */
static const struct ws_event *
hear(void)
{
	static uint8_t in[65536];
	static size_t have, used;
	static struct ws_event ev;
	size_t n;
	ssize_t got;
	int r;

	if (used == have) {
		used = have = 0;
		if ((got = read(peer, in, sizeof(in))) <= 0)
			return NULL;
		have = (size_t)got;
	}
	r = ws_parse(&device, in + used, have - used, &n, &ev);
	used += n;
	return r == CL_OK ? &ev : NULL;
}

/* Does the monitor get a message of this type?  What came is forgotten but
 * for its body, and its id. */
static uint64_t told_id;

static int
is_told(uint32_t type)
{
	struct imsg m;
	int found = 0;

	while (!found) {
		msg_clear(told_type, &told);
		if ((told_type = msgtest_hear(&mon, &m, &told)) == 0)
			return 0;
		told_id = m.id;
		found = m.type == type;
		imsg_free(&m);
	}
	return 1;
}

static void
test_pings(void)
{
	const struct ws_event *ev;
	unsigned int i, npongs = 0;

	TEST_START("every ping is answered by one that is read");
	set_up();
	say(WS_PING, "first");
	hs_flush(s);
	ASSERT_TRUE((ev = hear()) != NULL);
	ASSERT_INT_EQ(ev->op, WS_PONG);
	ASSERT_MEM_EQ(ev->data, "first", 5);

	TEST_START("as many as there may be, and one pong waits: the latest "
	    "(BC-28)");
	for (i = 1; i < MAX_CONTROL_FRAMES; i++)
		say(i % 2 ? WS_PING : WS_PONG, i % 2 ? "flood" : "");
	ASSERT_INT_EQ(s->state, HST_LIVE);
	ASSERT_TRUE(conn_has_output(&s->conn));
	ASSERT_SIZE_T_EQ(evbuffer_get_length(s->conn.out), 0);
	say(WS_TEXT, "{\"v\":26,\"type\":\"heartbeat\",\"id\":\"hb-1\","
	    "\"payload\":{\"seq\":1}}");
	hs_flush(s);
	while ((ev = hear()) != NULL)
		npongs += ev->op == WS_PONG;
	ASSERT_INT_EQ(npongs, 0);	/* frames go first */
	hs_flush(s);
	ASSERT_TRUE((ev = hear()) != NULL);
	ASSERT_INT_EQ(ev->op, WS_PONG);

	TEST_START("a new window begins anew");
	hub.now += CONTROL_WINDOW_MS;
	for (i = 0; i < MAX_CONTROL_FRAMES; i++)
		say(WS_PING, "again");
	ASSERT_INT_EQ(s->state, HST_LIVE);

	TEST_START("one more ends the session, with 1008 and a reason");
	hub.now += CONTROL_WINDOW_MS - 1;
	say(WS_PING, "again");
	ASSERT_INT_EQ(s->state, HST_CLOSING);
	ASSERT_INT_EQ(s->close_code, WS_CODE_POLICY);
	ASSERT_TRUE(is_told(MSG_SESSION_DOWN));
	hs_flush(s);
	ASSERT_TRUE((ev = hear()) != NULL);
	ASSERT_INT_EQ(ev->op, WS_CLOSE);
	ASSERT_INT_EQ(ev->code, WS_CODE_POLICY);
	ASSERT_MEM_EQ(ev->data, "too many pings or pongs", ev->len);
	tear_down();
}

/* It names no handle: for the device the workload is over. */
static void
beat(void)
{
	say(WS_TEXT, "{\"v\":26,\"type\":\"heartbeat\",\"id\":\"hb-1\","
	    "\"payload\":{\"seq\":1}}");
}

/* A peer that does not read: the queue has an end (BC-34). */
static void
test_unread(void)
{
	static uint8_t block[65536];
	size_t i;

	TEST_START("a peer that does not read is not read from either");
	set_up();
	for (i = 0; i < MAX_SESSION_OUT_LEN / sizeof(block); i++)
		ASSERT_ERR(hs_put_bytes(s, block, sizeof(block)), CL_OK);
	s->seen = 0;
	beat();
	ASSERT_FALSE(s->seen);
	ASSERT_INT_EQ(s->state, HST_LIVE);

	TEST_START("one byte more than may wait, and it is closed (BC-34)");
	ASSERT_ERR(hs_put_bytes(s, "x", 1), CL_LIMIT);
	hs_flush(s);
	ASSERT_INT_EQ(s->state, HST_DEAD);
	ASSERT_TRUE(is_told(MSG_SESSION_DOWN));
	tear_down();

	TEST_START("one that takes nothing for 20 s is closed");
	set_up();
	for (i = 0; i < 16; i++)
		ASSERT_ERR(hs_put_bytes(s, block, sizeof(block)), CL_OK);
	hs_flush(s);
	s->seen_at = hub.now + WRITE_TIMEOUT_MS;
	ASSERT_FALSE(conn_is_stalled(&s->conn, hub.now + WRITE_TIMEOUT_MS));
	ASSERT_TRUE(conn_is_stalled(&s->conn, hub.now + WRITE_TIMEOUT_MS + 1));
	tear_down();
}

/* Connections end at random moments; deadlines come all the while. */
static void
test_deadlines(void)
{
	static struct hub_addr addr;
	struct hs_queue *lists[2];
	struct hs *t, *next;
	int fds[2], peers[64];
	unsigned int i, k, n = 0, seed = 32;

	TEST_START("no deadline finds a connection that is gone (BC-32)");
	set_up();
	lists[0] = &hub.sessions.young;
	lists[1] = &hub.sessions.live;
	for (i = 0; i < 4000; i++) {
		ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM |
		    SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
		hs_new(&hub, fds[0], 0, &addr, 1, NULL, 0);
		t = hs_find_conn(&hub.sessions, i + 2);
		seed = seed * 1103515245 + 12345;
		if (seed >> 30 & 1)
			hs_enter_state(t, HST_LIVE, HE_NONE);
		if (n == 64) {
			for (k = 0; k < n; k++)
				close(peers[k]);
			n = 0;
		}
		peers[n++] = fds[1];
		hub.now += (int64_t)(seed >> 16 & 0x3fff);
		for (k = 0; k < 2; k++)
			TAILQ_FOREACH_SAFE(t, lists[k], link, next) {
				seed = seed * 1103515245 + 12345;
				if ((seed >> 28) == 0)
					hs_run(t, HE_FAIL);
				else if ((seed >> 28) < 4)
					hs_pump(t);
			}
		hs_on_time(&hub);
		(void)hs_settle_all(&hub);
		hs_start_turn(&hub.sessions);
		while (is_told(MSG_SESSION_DOWN))
			;
	}
	while (n > 0)
		close(peers[--n]);
	s = NULL;
	for (k = 0; k < 2; k++)
		TAILQ_FOREACH_SAFE(t, lists[k], link, next)
			hs_run(t, HE_FAIL);
	(void)hs_settle_all(&hub);
	ASSERT_SIZE_T_EQ(hub.sessions.nyoung + hub.sessions.nlive, 0);
	tear_down();
}

static int
open_temp(void)
{
	char path[] = "/tmp/cloop-unit-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC | O_APPEND);

	ASSERT_INT_NE(fd, -1);
	unlink(path);
	return fd;
}

static void
set_up_workload(void)
{
	struct msg_handle_open o = { .handle = 7, .session = 5,
		.handle_id = "w", .state = HS_RUNNING };

	set_up();
	ASSERT_ERR(hlog_open(&hub.logs, &s->logs, &o, &h), CL_OK);
	hlog_set_log(&hub.logs, h, open_temp());
	ASSERT_ERR(hlog_set_index(&hub.logs, h, open_temp()), CL_OK);
	s->nlogs++;
	h->running_at = hub.now;
	h->spared = 1;
	hub.now += 10 * HEARTBEAT_S * 1000;
	s->seen_at = hub.now;
	say(WS_TEXT, "{\"v\":26,\"type\":\"log_chunk\",\"handle\":\"w\","
	    "\"payload\":{\"stream\":\"combined\",\"offset\":0,"
	    "\"text\":\"one \",\"time\":\"2026-01-02T03:04:05Z\"}}");
	ASSERT_U64_EQ(h->stored, 4);
}

static void
fail_disk(void)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ASSERT_INT_NE(full, -1);
	disk = dup(h->log_fd);
	ASSERT_INT_NE(dup2(full, h->log_fd), -1);
	close(full);
}

static void
end_workload(void)
{
	say(WS_TEXT, "{\"v\":26,\"type\":\"log_chunk\",\"handle\":\"w\","
	    "\"payload\":{\"stream\":\"combined\",\"offset\":4,"
	    "\"text\":\"two\",\"time\":\"2026-01-02T03:04:05Z\"}}");
	say(WS_TEXT, "{\"v\":26,\"type\":\"status\",\"handle\":\"w\","
	    "\"payload\":{\"status\":{\"handle_id\":\"w\",\"executor_id\":"
	    "\"\",\"state\":\"exited\",\"exit_code\":3,"
	    "\"started_at\":\"2026-01-02T03:04:05Z\","
	    "\"finished_at\":\"2026-01-02T03:04:06Z\"},"
	    "\"final_offset\":7}}");
}

static void
test_held_end(void)
{
	char text[16];
	int kept;

	TEST_START("an end waits for a disk that fails, and is not told");
	set_up_workload();
	fail_disk();
	end_workload();
	ASSERT_TRUE(h->end_text != NULL);
	ASSERT_FALSE(h->closed);
	ASSERT_FALSE(is_told(MSG_HANDLE_STATUS));

	TEST_START("a beat that does not name the workload any more does not "
	    "make it lost");
	beat();
	hub.now += HEARTBEAT_S * 1000;
	beat();
	ASSERT_FALSE(is_told(MSG_HANDLE_LOST));
	ASSERT_TRUE(h->end_text != NULL);
	ASSERT_INT_NE(h->log_fd, -1);
	ASSERT_SIZE_T_EQ(h->waiting_len, 3);

	TEST_START("the disk works again: all of it is stored, and the end "
	    "is told");
	hub.now += HLOG_RETRY_MS;
	kept = dup(disk);
	ASSERT_INT_NE(dup2(disk, h->log_fd), -1);
	close(disk);
	(void)hlog_on_time(&hub.logs, hub.now, hs_report_progress, &hub);
	hs_release_ends(&hub);
	ASSERT_TRUE(is_told(MSG_HANDLE_STATUS));
	ASSERT_U64_EQ(told.HANDLE_STATUS.session, 5);
	ASSERT_U64_EQ(told.HANDLE_STATUS.handle, 7);
	ASSERT_INT_EQ(told.HANDLE_STATUS.state, HS_EXITED);
	ASSERT_FALSE(h->gapped);
	ASSERT_U64_EQ(h->stored, 7);
	ASSERT_INT_EQ(pread(kept, text, sizeof(text), 0), 7);
	ASSERT_MEM_EQ(text, "one two", 7);
	close(kept);
	tear_down();
}

static void
test_lost(void)
{
	TEST_START("without an end, one beat makes it lost, and what waited "
	    "is a gap");
	set_up_workload();
	fail_disk();
	say(WS_TEXT, "{\"v\":26,\"type\":\"log_chunk\",\"handle\":\"w\","
	    "\"payload\":{\"stream\":\"combined\",\"offset\":4,"
	    "\"text\":\"two\",\"time\":\"2026-01-02T03:04:05Z\"}}");
	beat();
	ASSERT_TRUE(is_told(MSG_HANDLE_LOST));
	ASSERT_TRUE(h->closed);
	ASSERT_TRUE(h->gapped);
	close(disk);
	tear_down();

	TEST_START("a disk that does not come back: the end is told in the "
	    "end, with a gap");
	set_up_workload();
	fail_disk();
	end_workload();
	hub.now += HLOG_HOLD_MS - 1;
	hs_release_ends(&hub);
	ASSERT_FALSE(is_told(MSG_HANDLE_STATUS));
	hub.now++;
	hs_release_ends(&hub);
	ASSERT_TRUE(is_told(MSG_HANDLE_STATUS));
	ASSERT_TRUE(h->gapped);
	close(disk);
	tear_down();
}

/* The next frame of a type; others are passed over. */
static int
hears(const char *type)
{
	const struct ws_event *ev;
	char want[64];

	snprintf(want, sizeof(want), "\"type\":\"%s\"", type);
	hs_flush(s);
	while ((ev = hear()) != NULL)
		if (ev->op == WS_TEXT && memmem(ev->data, ev->len,
		    want, strlen(want)) != NULL)
			return 1;
	return 0;
}

/* The monitor says that what it was told is on disk. */
static void
confirm(uint64_t number)
{
	struct msg_handle body = { number };

	MSGTEST_SEND(&mon, HANDLE_SHUT, 0, &body, -1);
	chan_turn(&hub.chan);
}

static void
test_beat_after_end(void)
{
	TEST_START("a beat behind an end is answered once that is on disk: the "
	    "device forgets it then");
	set_up_workload();
	beat();
	ASSERT_TRUE(hears("heartbeat_ack"));
	end_workload();
	ASSERT_TRUE(is_told(MSG_HANDLE_STATUS));
	beat();
	ASSERT_FALSE(hears("heartbeat_ack"));
	confirm(7);
	ASSERT_TRUE(hears("heartbeat_ack"));
	ASSERT_TRUE(s->beat_id == NULL);

	TEST_START("told again, it is confirmed again");
	end_workload();
	beat();
	ASSERT_FALSE(hears("heartbeat_ack"));
	confirm(7);
	ASSERT_TRUE(hears("heartbeat_ack"));
	beat();
	ASSERT_TRUE(hears("heartbeat_ack"));
	tear_down();
}

static void
test_quiet(void)
{
	log_init("test", LOGL_FATAL, LOGF_TEXT);
}

/* What the monitor says about the files it was asked for. */
static void
answer_files(uint64_t ask, int result)
{
	struct msg_handle_files_ans body = { 7, result };

	MSGTEST_SEND(&mon, HANDLE_FILES_ANS, ask, &body, -1);
	chan_turn(&hub.chan);
	hs_start_turn(&hub.sessions);
	(void)hs_settle_all(&hub);
}

static void
test_files(void)
{
	struct msg_handle_open o = { .handle = 7, .session = 5,
		.handle_id = "w", .state = HS_RUNNING };
	struct logindex_record rec = { .wire_len = 2, .file_len = 2,
		.kind = LOGINDEX_DATA };
	uint8_t raw[LOGINDEX_RECORD_LEN];
	char text[8];
	int log = open_temp(), idx = open_temp(), keep = dup(log);

	TEST_START("files are asked for with the first output");
	set_up();
	ASSERT_ERR(hlog_open(&hub.logs, &s->logs, &o, &h), CL_OK);
	s->nlogs++;
	say(WS_TEXT, "{\"v\":26,\"type\":\"log_chunk\",\"handle\":\"w\","
	    "\"payload\":{\"stream\":\"combined\",\"offset\":0,"
	    "\"text\":\"one \",\"time\":\"2026-01-02T03:04:05Z\"}}");
	ASSERT_TRUE(is_told(MSG_HANDLE_FILES));
	ASSERT_TRUE(s->paused);

	TEST_START("not now: the output waits, the session goes on");
	answer_files(told_id, FILES_LATER);
	ASSERT_FALSE(s->paused);
	ASSERT_U64_EQ(h->received, 4);
	ASSERT_U64_EQ(h->stored, 0);
	ASSERT_ERR(hlog_flush(&hub.logs, h, hub.now), CL_SYSTEM);

	TEST_START("asked for again; what they hold is not kept twice");
	hub.now += 500;
	hs_ask_waiting(&hub);
	ASSERT_FALSE(is_told(MSG_HANDLE_FILES));
	hub.now += 500;
	hs_ask_waiting(&hub);
	ASSERT_TRUE(is_told(MSG_HANDLE_FILES));
	logindex_format(&rec, raw);
	ASSERT_INT_EQ(write(idx, raw, sizeof(raw)), sizeof(raw));
	ASSERT_INT_EQ(write(log, "on", 2), 2);
	hlog_set_log(&hub.logs, h, log);
	ASSERT_ERR(hlog_set_index(&hub.logs, h, idx), CL_OK);
	answer_files(told_id, FILES_OK);
	ASSERT_ERR(hlog_flush(&hub.logs, h, hub.now), CL_OK);
	ASSERT_U64_EQ(h->indexed, 4);
	ASSERT_INT_EQ(pread(keep, text, sizeof(text), 0), 4);
	ASSERT_BYTES_EQ(text, 4, "one ", 4);
	ASSERT_FALSE(h->gapped);
	close(keep);
	tear_down();
}

UNIT_MAIN(test_files, test_quiet, test_pings, test_unread, test_deadlines,
    test_held_end, test_lost, test_beat_after_end)
