/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sessions by the hundred thousand, for regress/sessions.sh: agents that
 * connect, say hello, are welcomed, say bye and go, and begin again at
 * once.  cycle -a HOST:PORT -c CREDENTIALS -n AGENTS MARK... prints
 * "MARK seconds" when so many have been welcomed and nobody is connected
 * any more, and goes on at a line on standard input.
 */
#include <sys/epoll.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "regress/bench/load/link.h"
#include "regress/bench/load/proc.h"

#define MAX_AGENTS 1024
#define TEXT_LEN 1024
#define STALL_S 120		/* without one welcome: it hangs */

struct cycle {
	struct link link;	/* first: callbacks get it */
	char *id, *credential;
	int busy;		/* connected, or on its way */
	int welcomed;
};

static struct link_env env;
static struct cycle agents[MAX_AGENTS];
static size_t nagents;
static uint64_t nwelcomes, nfailures;
static const char *last_why = "-";

static size_t
on_request(const struct link *l, char *dst, size_t len)
{
	const struct cycle *c = (const struct cycle *)l;
	int n;

	n = snprintf(dst, len, "GET /api/executors/connect HTTP/1.1\r\n"
	    "Host: localhost\r\nAuthorization: Bearer %s\r\n"
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	    c->credential);
	if (n < 0 || (size_t)n >= len)
		errx(1, "the request is too long");
	return (size_t)n;
}

static void
send_text(struct link *l, const char *text)
{
	uint8_t frame[LINK_HEAD_MAX + TEXT_LEN];

	link_send(l, frame, link_format_frame(frame, LINK_TEXT, text,
	    strlen(text)));
}

static void
on_open(struct link *l)
{
	const struct cycle *c = (const struct cycle *)l;
	char text[TEXT_LEN];

	snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"hello\",\"id\":"
	    "\"h\",\"payload\":{\"protocol_version\":26,\"agent_id\":\"%s\","
	    "\"name\":\"cycle\",\"agent_version\":\"1\",\"capabilities\":"
	    "{\"os\":\"linux\",\"arch\":\"amd64\",\"max_concurrent\":1}}}",
	    c->id);
	send_text(l, text);
}

static void
on_text(struct link *l, char *text, size_t len)
{
	struct cycle *c = (struct cycle *)l;
	static const char welcome[] = "\"type\":\"welcome\"";

	if (c->welcomed ||
	    memmem(text, len, welcome, sizeof(welcome) - 1) == NULL)
		return;
	c->welcomed = 1;
	nwelcomes++;
	send_text(l, "{\"v\":26,\"type\":\"bye\",\"payload\":{\"reason\":"
	    "\"cycle\",\"reconnect\":true}}");
}

static void
on_nothing(struct link *l)
{
	(void)l;
}

static void
on_down(struct link *l, const char *why)
{
	struct cycle *c = (struct cycle *)l;

	if (!c->welcomed) {
		nfailures++;
		last_why = why;
	}
	c->busy = 0;
}

/* What may begin begins; who was welcomed and has said bye goes. */
static size_t
turn(uint64_t wanted)
{
	static struct epoll_event ev[256];
	size_t i, nbusy = 0;
	int n;

	for (i = 0; i < nagents; i++)
		nbusy += (size_t)(agents[i].busy && !agents[i].welcomed);
	for (i = 0; i < nagents; i++) {
		if (agents[i].busy || nwelcomes + nbusy >= wanted)
			continue;
		agents[i].busy = 1;
		agents[i].welcomed = 0;
		nbusy++;
		link_connect(&agents[i].link, 0);
	}
	n = epoll_wait(env.epoll, ev, 256, 50);
	while (n-- > 0)
		link_on_event(ev[n].data.ptr, ev[n].events);
	for (nbusy = i = 0; i < nagents; i++) {
		if (agents[i].busy && agents[i].welcomed &&
		    agents[i].link.out == NULL) {
			link_close(&agents[i].link);
			agents[i].busy = 0;
		}
		nbusy += (size_t)agents[i].busy;
	}
	return nbusy;
}

static void
run_to(uint64_t mark)
{
	double start = proc_now(), moved = start;
	uint64_t last = nwelcomes;

	while (turn(mark) > 0 || nwelcomes < mark) {
		if (nwelcomes != last) {
			last = nwelcomes;
			moved = proc_now();
		} else if (proc_now() - moved > STALL_S)
			errx(1, "no session for %d s after %llu: %s", STALL_S,
			    (unsigned long long)nwelcomes, last_why);
	}
	printf("%llu %.1f failures=%llu why=%s\n", (unsigned long long)mark,
	    proc_now() - start, (unsigned long long)nfailures, last_why);
	fflush(stdout);
	while (getchar() != '\n')
		if (feof(stdin))
			exit(0);
}

static void
load_credentials(const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL, *space;
	size_t i, cap = 0;

	if (f == NULL)
		err(1, "%s", path);
	for (i = 0; i < nagents && getline(&line, &cap, f) != -1; i++) {
		line[strcspn(line, "\n")] = '\0';
		if ((space = strchr(line, ' ')) == NULL)
			errx(1, "%s: not \"id credential\"", path);
		agents[i].id = strndup(line, (size_t)(space - line));
		agents[i].credential = strdup(space + 1);
		if (agents[i].id == NULL || agents[i].credential == NULL)
			err(1, NULL);
		agents[i].link.env = &env;
		agents[i].link.fd = -1;
	}
	if (i < nagents)
		errx(1, "%s: %zu credentials only", path, i);
	free(line);
	fclose(f);
}

static void
set_peer(const char *text)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&env.peer;
	unsigned int port;
	char host[32];

	if (sscanf(text, "%31[0-9.]:%u", host, &port) != 2 ||
	    inet_pton(AF_INET, host, &sin->sin_addr) != 1)
		errx(1, "not IPV4:PORT: %s", text);
	sin->sin_family = AF_INET;
	sin->sin_port = htons((uint16_t)port);
	env.peer_len = sizeof(*sin);
}

int
main(int argc, char **argv)
{
	const char *credentials = NULL, *why;
	int c;

	signal(SIGPIPE, SIG_IGN);
	env.ctx = link_new_ctx();
	env.format_request = on_request;
	env.on_open = on_open;
	env.on_text = on_text;
	env.on_pong = env.on_drain = on_nothing;
	env.on_down = on_down;
	while ((c = getopt(argc, argv, "a:c:n:")) != -1) {
		if (c == 'a')
			set_peer(optarg);
		else if (c == 'c')
			credentials = optarg;
		else if (c == 'n')
			nagents = (size_t)strtonum(optarg, 1, MAX_AGENTS,
			    &why);
	}
	if (optind == argc || credentials == NULL || env.peer_len == 0 ||
	    nagents == 0)
		errx(1, "usage: cycle -a IPV4:PORT -c CREDENTIALS -n AGENTS "
		    "MARK...");
	if ((env.epoll = epoll_create1(EPOLL_CLOEXEC)) == -1)
		err(1, "epoll_create1");
	load_credentials(credentials);
	for (; optind < argc; optind++) {
		run_to((uint64_t)strtonum(argv[optind], 1, INT64_MAX, &why));
		if (why != NULL)
			errx(1, "%s: %s", argv[optind], why);
	}
	return 0;
}
