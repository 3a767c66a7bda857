/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/conn: both ends of a connection over a socket pair: what is handed out
 * and when it is not, pings, what ends a connection, unfinished messages and
 * their sum, a peer that does not read, and the close on both sides.
 */
#include "regress/unit/unit.h"

#include <sys/socket.h>

#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "net/conn/conn.h"

/* One end, and what its callbacks were told. */
struct end {
	struct conn conn;
	int reading;
	unsigned int ntexts, nfaults, ncloses, npings, nready;
	enum conn_fault fault;
	uint16_t code;
	char text[64];
};

static struct event_base *base;
static struct end hub, device;
static int64_t now;

static void
on_ready(void *arg)
{
	((struct end *)arg)->nready++;
}

static int
is_reading(void *arg)
{
	return ((struct end *)arg)->reading;
}

static void
on_message(void *arg, const uint8_t *data, size_t len)
{
	struct end *e = arg;

	e->ntexts++;
	(void)snprintf(e->text, sizeof(e->text), "%.*s", (int)len,
	    (const char *)data);
}

static void
on_close(void *arg, const struct ws_event *ev)
{
	struct end *e = arg;

	e->ncloses++;
	e->code = ev->code;
	(void)snprintf(e->text, sizeof(e->text), "%.*s", (int)ev->len,
	    (const char *)ev->data);
}

static void
on_fault(void *arg, enum conn_fault fault)
{
	struct end *e = arg;

	e->nfaults++;
	e->fault = fault;
	e->reading = 0;
}

static void
on_ping(void *arg)
{
	((struct end *)arg)->npings++;
}

static const struct conn_ops ops = { on_ready, is_reading, on_message,
	on_close, on_fault, on_ping };

static void
open_end(struct end *e, enum ws_role role, int fd)
{
	struct tlsio *io;

	memset(e, 0, sizeof(*e));
	e->reading = 1;
	conn_init(&e->conn, role, &ops, e);
	if (role == WS_SERVER)
		ASSERT_ERR(tlsio_new_server(NULL, fd, &io), CL_OK);
	else
		ASSERT_ERR(tlsio_new_client(NULL, fd, "h", NULL, 0, &io),
		    CL_OK);
	ASSERT_ERR(conn_open(&e->conn, base, io), CL_OK);
}

static void
set_up(void)
{
	int fds[2];

	now = 1000000;
	ASSERT_TRUE((base = event_base_new()) != NULL);
	ASSERT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0, fds), 0);
	open_end(&hub, WS_SERVER, fds[0]);
	open_end(&device, WS_CLIENT, fds[1]);
}

static void
tear_down(void)
{
	conn_close(&hub.conn);
	conn_close(&device.conn);
	event_base_free(base);
}

/* What `from` queued goes over and is looked at. */
static int
move(struct end *from, struct end *to)
{
	int r;

	r = conn_flush(&from->conn, now);
	ASSERT_TRUE(r == CL_OK || r == CL_INCOMPLETE);
	while (tlsio_read(to->conn.io, to->conn.in, 65536) == CL_OK)
		;
	return conn_process(&to->conn, 128, now);
}

/* A frame as no side of ours sends it. */
static void
put_raw(struct end *from, enum ws_op op, const void *data, size_t len)
{
	static const uint8_t mask[WS_MASK_LEN] = { 1, 2, 3, 4 };
	uint8_t frame[512];
	size_t n = ws_format_frame(frame, sizeof(frame), op, data, len,
	    from == &device ? mask : NULL);

	ASSERT_INT_NE(n, 0);
	ASSERT_ERR(conn_put_bytes(&from->conn, frame, n), CL_OK);
}

static void
test_messages(void)
{
	static char big[CONN_COPY_MAX + 1];
	unsigned int i;

	TEST_START("texts arrive in both directions, long and secret ones too");
	set_up();
	memset(big, 'b', sizeof(big));
	ASSERT_ERR(conn_put_text(&device.conn, "up", 2, 0), CL_OK);
	ASSERT_INT_EQ(move(&device, &hub), 0);
	ASSERT_STRING_EQ(hub.text, "up");
	ASSERT_ERR(conn_put_text(&hub.conn, "down", 4, 1), CL_OK);
	ASSERT_ERR(conn_put_text(&hub.conn, big, sizeof(big), 0), CL_OK);
	ASSERT_INT_EQ(move(&hub, &device), 0);
	ASSERT_INT_EQ(device.ntexts, 2);
	ASSERT_SIZE_T_EQ(conn_get_queued(&hub.conn), 0);
	ASSERT_INT_EQ(conn_get_written(&hub.conn), hub.conn.queued);

	TEST_START("who does not want to read is not handed anything");
	hub.reading = 0;
	ASSERT_ERR(conn_put_text(&device.conn, "later", 5, 0), CL_OK);
	ASSERT_INT_EQ(move(&device, &hub), 0);
	ASSERT_STRING_EQ(hub.text, "up");
	ASSERT_TRUE(conn_has_input(&hub.conn));
	hub.reading = 1;
	ASSERT_INT_EQ(conn_process(&hub.conn, 1, now), 1);
	ASSERT_STRING_EQ(hub.text, "later");

	TEST_START("no more than so many at once");
	hub.ntexts = 0;
	for (i = 0; i < 129; i++)
		ASSERT_ERR(conn_put_text(&device.conn, "x", 1, 0), CL_OK);
	ASSERT_INT_EQ(move(&device, &hub), 1);
	ASSERT_INT_EQ(hub.ntexts, 128);
	ASSERT_INT_EQ(conn_process(&hub.conn, 128, now), 0);
	ASSERT_INT_EQ(hub.ntexts, 129);
	tear_down();
}

static void
test_pings(void)
{
	static char block[65536];
	unsigned int i;

	TEST_START("one pong waits, the latest, and is output");
	set_up();
	put_raw(&device, WS_PING, "one", 3);
	put_raw(&device, WS_PING, "two", 3);
	(void)move(&device, &hub);
	ASSERT_INT_EQ(hub.npings, 2);
	ASSERT_SIZE_T_EQ(conn_get_queued(&hub.conn), 0);
	ASSERT_TRUE(conn_has_output(&hub.conn));
	ASSERT_MEM_EQ(hub.conn.pong, "two", 3);

	TEST_START("a hub's goes when nothing else waits, a device's before");
	ASSERT_ERR(conn_put_text(&hub.conn, "text", 4, 0), CL_OK);
	conn_put_pong(&hub.conn);
	ASSERT_TRUE(hub.conn.has_pong);
	(void)move(&hub, &device);
	conn_put_pong(&hub.conn);
	ASSERT_FALSE(hub.conn.has_pong);
	put_raw(&hub, WS_PING, "", 0);
	(void)move(&hub, &device);
	ASSERT_ERR(conn_put_bytes(&device.conn, block, sizeof(block)), CL_OK);
	conn_put_pong(&device.conn);
	ASSERT_TRUE(device.conn.has_pong);
	evbuffer_drain(device.conn.out, 1);
	conn_put_pong(&device.conn);
	ASSERT_FALSE(device.conn.has_pong);
	tear_down();

	TEST_START("too many in a window are a fault, pongs count");
	set_up();
	for (i = 0; i < MAX_CONTROL_FRAMES; i++) {
		put_raw(&hub, i % 2 ? WS_PING : WS_PONG, "", 0);
		(void)move(&hub, &device);
	}
	ASSERT_INT_EQ(device.nfaults, 0);
	put_raw(&hub, WS_PONG, "", 0);
	(void)move(&hub, &device);
	ASSERT_INT_EQ(device.nfaults, 1);
	ASSERT_INT_EQ(device.fault, CONN_PINGS);
	tear_down();
}

/* One fault a connection. */
static void
check_fault(const void *bytes, size_t len, enum conn_fault fault)
{
	set_up();
	ASSERT_ERR(conn_put_bytes(&device.conn, bytes, len), CL_OK);
	(void)move(&device, &hub);
	ASSERT_INT_EQ(hub.nfaults, 1);
	ASSERT_INT_EQ(hub.fault, fault);
	tear_down();
}

static void
test_faults(void)
{
	/* Length MAX_FRAME_LEN + 1 and not a byte of it; a ping between two
	 * fragments is no part of the message. */
	static const uint8_t binary[] = { 0x82, 0x80, 0, 0, 0, 0 };
	static const uint8_t unmasked[] = { 0x81, 0x01, 'x' };
	static const uint8_t announced[] = { 0x81, 0xff, 0, 0, 0, 0, 0, 0x10,
	    0, 1, 0, 0, 0, 0 };
	static const uint8_t ping[] = { 0x89, 0xfd, 0, 0, 0, 0, 'p' };
	uint8_t head[] = { 0x01, 0xff, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xf6, 0, 0,
	    0, 0 };
	static char fill[0xffff6];

	TEST_START("binary, unmasked, too big: each has its name");
	check_fault(binary, sizeof(binary), CONN_BINARY);
	check_fault(unmasked, sizeof(unmasked), CONN_PROTOCOL);
	check_fault(announced, sizeof(announced), CONN_TOO_BIG);

	TEST_START("a ping in the middle of a message is not part of it");
	set_up();
	ASSERT_ERR(conn_put_bytes(&device.conn, head, sizeof(head)), CL_OK);
	ASSERT_ERR(conn_put_bytes(&device.conn, fill, sizeof(fill)), CL_OK);
	ASSERT_ERR(conn_put_bytes(&device.conn, ping, sizeof(ping)), CL_OK);
	while (conn_get_queued(&device.conn) > 0)
		(void)move(&device, &hub);
	ASSERT_INT_EQ(hub.nfaults, 0);
	ASSERT_SIZE_T_EQ(hub.conn.ws.message_len, sizeof(fill));
	tear_down();
}

static void
test_unfinished(void)
{
	static const uint8_t head[] = { 0x01, 0x83, 0, 0, 0, 0, 'a', 'b', 'c' };
	size_t sum = MAX_ASSEMBLING_LEN;

	TEST_START("what is not whole counts, and past the sum one has to go");
	set_up();
	ASSERT_INT_EQ(conn_count_unfinished(&hub.conn, &sum, now), 0);
	ASSERT_ERR(conn_put_bytes(&device.conn, head, sizeof(head)), CL_OK);
	(void)move(&device, &hub);
	ASSERT_INT_EQ(conn_count_unfinished(&hub.conn, &sum, now + 1), 1);
	ASSERT_INT_EQ(hub.conn.unfinished_at, now + 1);
	ASSERT_SIZE_T_EQ(sum, MAX_ASSEMBLING_LEN + hub.conn.unfinished);
	ASSERT_INT_EQ(conn_count_unfinished(&hub.conn, &sum, now + 2), 0);

	TEST_START("given up, it leaves the sum");
	conn_drop_unfinished(&hub.conn, &sum);
	ASSERT_SIZE_T_EQ(sum, MAX_ASSEMBLING_LEN);
	ASSERT_TRUE(ws_is_idle(&hub.conn.ws));
	tear_down();
}

/* Queue so much that the socket does not take it. */
static void
fill_queue(struct end *e)
{
	static char block[65536];
	unsigned int i;

	for (i = 0; i < MAX_SESSION_OUT_LEN / sizeof(block); i++)
		ASSERT_ERR(conn_put_bytes(&e->conn, block, sizeof(block)),
		    CL_OK);
	ASSERT_FALSE(conn_is_full(&e->conn));
	ASSERT_ERR(conn_put_bytes(&e->conn, "x", 1), CL_OK);
	ASSERT_TRUE(conn_is_full(&e->conn));
	ASSERT_ERR(conn_flush(&e->conn, now), CL_INCOMPLETE);
	ASSERT_FALSE(conn_is_full(&e->conn));
}

/* The other side takes a little. */
static void
take_some(struct end *from, struct end *to)
{
	ASSERT_ERR(tlsio_read(to->conn.io, to->conn.in, 65536), CL_OK);
	evbuffer_drain(to->conn.in, evbuffer_get_length(to->conn.in));
	(void)conn_flush(&from->conn, now);
}

static void
test_stall(void)
{
	struct end *ends[2] = { &hub, &device };
	int i;

	TEST_START("nothing leaves for 20 s: it does not read");
	for (i = 0; i < 2; i++) {
		set_up();
		fill_queue(ends[i]);
		ASSERT_FALSE(conn_is_stalled(&ends[i]->conn,
		    now + WRITE_TIMEOUT_MS));
		ASSERT_TRUE(conn_is_stalled(&ends[i]->conn,
		    now + WRITE_TIMEOUT_MS + 1));
		tear_down();
	}

	TEST_START("a byte now and then helps a device, not a hub");
	for (i = 0; i < 2; i++) {
		set_up();
		fill_queue(ends[i]);
		now += WRITE_TIMEOUT_MS;
		take_some(ends[i], ends[!i]);
		now++;
		ASSERT_INT_EQ(conn_is_stalled(&ends[i]->conn, now), i == 0);
		tear_down();
	}
}

static void
test_close(void)
{
	TEST_START("the close frame has its code and its reason");
	set_up();
	ASSERT_ERR(conn_put_close(&hub.conn, WS_CODE_POLICY, "enough"), CL_OK);
	(void)move(&hub, &device);
	ASSERT_INT_EQ(device.ncloses, 1);
	ASSERT_INT_EQ(device.code, WS_CODE_POLICY);
	ASSERT_STRING_EQ(device.text, "enough");

	TEST_START("after it only the peer's own counts, and no pong goes");
	put_raw(&device, WS_PING, "late", 4);
	ASSERT_ERR(conn_put_text(&device.conn, "late", 4, 0), CL_OK);
	ASSERT_ERR(conn_put_close(&device.conn, WS_CODE_POLICY, ""), CL_OK);
	(void)move(&device, &hub);
	ASSERT_INT_EQ(hub.ntexts + hub.npings, 0);
	ASSERT_INT_EQ(hub.ncloses, 1);
	ASSERT_FALSE(conn_has_output(&hub.conn));

	TEST_START("an end that is shut is seen, and its rest dropped");
	ASSERT_ERR(conn_drop_input(&hub.conn), CL_INCOMPLETE);
	conn_shut(&device.conn);
	ASSERT_TRUE(device.conn.shut);
	ASSERT_ERR(conn_drop_input(&hub.conn), CL_EOF);

	TEST_START("closed, it can be opened again");
	conn_close(&hub.conn);
	conn_close(&hub.conn);
	ASSERT_PTR_EQ(hub.conn.io, NULL);
	ASSERT_SIZE_T_EQ(conn_get_queued(&hub.conn), 0);
	conn_close(&device.conn);
	event_base_free(base);
	set_up();
	ASSERT_ERR(conn_put_text(&device.conn, "again", 5, 0), CL_OK);
	(void)move(&device, &hub);
	ASSERT_STRING_EQ(hub.text, "again");
	tear_down();
}

static void
test_events(void)
{
	TEST_START("the owner is called for what it polls for");
	set_up();
	conn_set_events(&hub.conn, conn_get_wants(&hub.conn, 0));
	ASSERT_ERR(conn_put_text(&device.conn, "x", 1, 0), CL_OK);
	ASSERT_ERR(conn_flush(&device.conn, now), CL_OK);
	(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	ASSERT_INT_EQ(hub.nready, 0);
	conn_set_events(&hub.conn, conn_get_wants(&hub.conn, 1));
	(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	ASSERT_INT_EQ(hub.nready, 1);
	conn_set_events(&hub.conn, 0);
	(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	ASSERT_INT_EQ(hub.nready, 1);
	tear_down();
}

UNIT_MAIN(test_messages, test_pings, test_faults, test_unfinished, test_stall,
    test_close, test_events)
