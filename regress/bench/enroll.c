/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Racing for enrollment tokens: each is offered twice, at the same moment.
 *
 *	enroll mint KEYDIR STATEDIR COUNT
 *		while no hub runs, in one turn of the store; a token a line
 *	enroll race PORT FILE CLIENTS
 *		prints redeemed/s, redeemed, refused, doubles, lost tokens
 *	enroll insert FILE COUNT
 *		the limit: rows into a new SQLite file, a transaction each,
 *		synchronous=FULL; prints rows/s
 */
#include <sys/epoll.h>

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/util.h"
#include "regress/bench/load/link.h"
#include "regress/bench/load/proc.h"
#include "store/db/store.h"
#include "store/db/token.h"

#define MAX_CLIENTS 256
#define MAX_COUNT 1000000
#define QUIET_S 30		/* nothing for so long: the hub hangs */
#define WS_KEY "dGhlIHNhbXBsZSBub25jZQ=="

/* ------------------------------------------------------------------- mint */

static void
mint(const char *key_dir, const char *state_dir, int count)
{
	struct secret key = SECRET_INIT, token = SECRET_INIT;
	struct token_mint m = { .created_by = "bench" };
	struct store_enrollment e;
	const char *why = "";
	char text[512], name[32];
	struct store *s;
	int i;

	if (token_load_key(key_dir, &key, text, sizeof(text)) != CL_OK ||
	    store_open(state_dir, 1000, &s, text, sizeof(text)) != CL_OK)
		errx(1, "%s", text);
	if (store_begin_turn(s) != CL_OK)
		errx(1, "%s", store_error(s));
	m.now = util_wall_ns();
	m.ttl_s = 3600;
	m.name = name;
	for (i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "race-%06d", i);
		if (token_mint(s, &key, &m, &token, &e, &why) != CL_OK)
			errx(1, "mint: %s", why);
		printf("%s\n", (const char *)token.data);
		store_enrollment_clear(&e);
		secret_clear(&token);
	}
	if (store_commit_turn(s) != CL_OK)
		errx(1, "%s", store_error(s));
	store_close(s);
	secret_clear(&key);
}

/* ------------------------------------------------------------------- race */

struct client {
	struct link link;		/* first: callbacks get it */
	size_t token;
	int is_over;			/* connect again */
};

static struct race {
	struct link_env env;
	struct client clients[MAX_CLIENTS];
	char **tokens;
	unsigned char *accepted;	/* how often */
	size_t ntokens, noffered;	/* two offers a token */
	size_t ndone, nredeemed, nrefused;
	double last;			/* when something came */
	char host[64];
} race;

static size_t
on_request(const struct link *l, char *dst, size_t len)
{
	const struct client *c = (const struct client *)l;
	int n;

	n = snprintf(dst, len, "GET /api/executors/connect HTTP/1.1\r\n"
	    "Host: %s\r\nAuthorization: Bearer %s\r\n"
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " WS_KEY
	    "\r\n\r\n", race.host, race.tokens[c->token]);
	if (n < 0 || (size_t)n >= len)
		errx(1, "the request is too long");
	return (size_t)n;
}

static void
on_open(struct link *l)
{
	static const char hello[] = "{\"v\":1,\"type\":\"hello\",\"id\":\"h\","
	    "\"payload\":{\"protocol_version\":26,\"name\":\"race\","
	    "\"agent_version\":\"bench\",\"capabilities\":{\"os\":\"linux\","
	    "\"arch\":\"amd64\",\"cpus\":4,\"memory_mb\":8192,"
	    "\"workdir_root\":\"/var/lib/cloop/work\","
	    "\"max_concurrent\":16}}}";
	uint8_t frame[LINK_HEAD_MAX + sizeof(hello)];

	link_send(l, frame, link_format_frame(frame, LINK_TEXT, hello,
	    sizeof(hello) - 1));
}

static void
client_end(struct client *c, int is_accepted)
{
	if (c->is_over)
		return;
	c->is_over = 1;
	race.ndone++;
	race.last = proc_now();
	if (!is_accepted) {
		race.nrefused++;
		return;
	}
	race.nredeemed++;
	race.accepted[c->token]++;
}

static void
on_text(struct link *l, char *text, size_t len)
{
	client_end((struct client *)l, memmem(text, len,
	    "\"type\":\"welcome\"", 16) != NULL && memmem(text, len,
	    "\"credential\":\"clac1.", 20) != NULL);
}

static void
on_down(struct link *l, const char *why)
{
	struct client *c = (struct client *)l;

	if (!c->is_over && strncmp(why, "status", 6) != 0)
		errx(1, "a client was cut off: %s", why);
	client_end(c, 0);
}

static void
on_nothing(struct link *l)
{
	(void)l;
}

static void
load_tokens(const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	race.tokens = calloc(MAX_COUNT, sizeof(*race.tokens));
	race.accepted = calloc(MAX_COUNT, 1);
	if (f == NULL || race.tokens == NULL || race.accepted == NULL)
		err(1, "%s", path);
	while (race.ntokens < MAX_COUNT && getline(&line, &cap, f) != -1) {
		line[strcspn(line, "\n")] = '\0';
		if ((race.tokens[race.ntokens++] = strdup(line)) == NULL)
			err(1, NULL);
	}
	free(line);
	fclose(f);
}

/* Neighbours get the same token, so its two offers meet. */
static void
client_next(struct client *c)
{
	if (c->link.state != LINK_DOWN)
		link_close(&c->link);
	c->is_over = 0;
	c->token = race.noffered++ / 2;
	link_connect(&c->link, 0);
}

static void
race_open(const char *port, const char *path)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&race.env.peer;

	load_tokens(path);
	sin->sin_family = AF_INET;
	sin->sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)snprintf(race.host, sizeof(race.host), "127.0.0.1:%s", port);
	race.env.peer_len = sizeof(*sin);
	race.env.ctx = link_new_ctx();
	race.env.format_request = on_request;
	race.env.on_open = on_open;
	race.env.on_text = on_text;
	race.env.on_pong = on_nothing;
	race.env.on_drain = on_nothing;
	race.env.on_down = on_down;
	if ((race.env.epoll = epoll_create1(EPOLL_CLOEXEC)) == -1)
		err(1, "epoll_create1");
}

static int
race_report(double seconds)
{
	size_t i, doubles = 0, lost = 0;

	for (i = 0; i < race.ntokens; i++) {
		doubles += race.accepted[i] > 1;
		lost += race.accepted[i] == 0;
	}
	printf("%.1f %zu %zu %zu %zu\n", (double)race.nredeemed / seconds,
	    race.nredeemed, race.nrefused, doubles, lost);
	return doubles != 0 || lost != 0;
}

static int
do_race(const char *port, const char *path, size_t nclients)
{
	struct epoll_event ev[64];
	double begin;
	size_t k;
	int i, n;

	race_open(port, path);
	begin = race.last = proc_now();
	for (k = 0; k < nclients && race.noffered < 2 * race.ntokens; k++) {
		race.clients[k].link.env = &race.env;
		race.clients[k].link.fd = -1;
		client_next(&race.clients[k]);
	}
	while (race.ndone < 2 * race.ntokens) {
		n = epoll_wait(race.env.epoll, ev, 64, 1000);
		for (i = 0; i < n; i++)
			link_on_event(ev[i].data.ptr, ev[i].events);
		for (k = 0; k < nclients; k++)
			if (race.clients[k].is_over &&
			    race.noffered < 2 * race.ntokens)
				client_next(&race.clients[k]);
		if (proc_now() - race.last > QUIET_S)
			errx(1, "no answer for %d s", QUIET_S);
	}
	return race_report(race.last - begin);
}

/* ------------------------------------------------------------------ insert */

static void
run_sql(sqlite3 *db, const char *sql)
{
	char *why;

	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		errx(1, "%s: %s", sql, why);
}

static void
insert(const char *path, int count)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	double begin;
	int i;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		errx(1, "%s", path);
	run_sql(db, "PRAGMA journal_mode = PERSIST");
	run_sql(db, "PRAGMA synchronous = FULL");
	run_sql(db, "PRAGMA locking_mode = EXCLUSIVE");
	run_sql(db, "CREATE TABLE t (id TEXT PRIMARY KEY, hash TEXT, n INT)");
	if (sqlite3_prepare_v2(db, "INSERT INTO t VALUES (hex(randomblob(16)),"
	    " hex(randomblob(32)), ?)", -1, &st, NULL) != SQLITE_OK)
		errx(1, "%s", sqlite3_errmsg(db));
	begin = proc_now();
	for (i = 0; i < count; i++) {
		sqlite3_bind_int(st, 1, i);
		if (sqlite3_step(st) != SQLITE_DONE)
			errx(1, "%s", sqlite3_errmsg(db));
		sqlite3_reset(st);
	}
	printf("%.1f\n", count / (proc_now() - begin));
	sqlite3_finalize(st);
	sqlite3_close(db);
}

int
main(int argc, char **argv)
{
	const char *why = NULL;
	int n;

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 4)
		errx(1, "enroll mint|race|insert; see the source");
	n = (int)strtonum(argv[argc - 1], 1, MAX_COUNT, &why);
	if (why != NULL)
		errx(1, "%s: %s", argv[argc - 1], why);
	if (strcmp(argv[1], "mint") == 0 && argc == 5)
		mint(argv[2], argv[3], n);
	else if (strcmp(argv[1], "race") == 0 && argc == 5 &&
	    n <= MAX_CLIENTS)
		return do_race(argv[2], argv[3], (size_t)n);
	else if (strcmp(argv[1], "insert") == 0)
		insert(argv[2], n);
	else
		errx(1, "enroll mint|race|insert; see the source");
	return fflush(stdout) == 0 ? 0 : 1;
}
