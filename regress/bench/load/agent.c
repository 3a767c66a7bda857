/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The life of the load generator's agents: connect, upgrade, hello, beats,
 * a workload's frames, and back after a loss with an agent's delays.
 */
#include "agent.h"

#include <sys/epoll.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "proc.h"

#define EVENTS 512
#define FRAME_LEN 1024
#define WS_KEY "dGhlIHNhbXBsZSBub25jZQ=="

static int64_t
now_ms(void)
{
	return (int64_t)(proc_now() * 1000);
}

/* A quarter up or down. */
static int64_t
get_jittered(int64_t ms)
{
	return ms - ms / 4 + (int64_t)arc4random_uniform((uint32_t)(ms / 2) +
	    1);
}

static void
agent_send_text(struct agent *a, const char *text, size_t len)
{
	uint8_t frame[LINK_HEAD_MAX + FRAME_LEN];

	if (len >= FRAME_LEN)
		errx(1, "a frame of %zu bytes", len);
	link_send(&a->link, frame, link_format_frame(frame, LINK_TEXT, text,
	    len));
}

/* ------------------------------------------------------------- connecting */

static void
agent_connect(struct agent *a)
{
	struct fleet *f = a->fleet;
	size_t i = (size_t)(a - f->agents);
	double since;

	if (f->lost_at != 0) {
		since = (proc_now() - f->lost_at) * 10;
		if (since < FLEET_BINS)
			f->bins[(size_t)since]++;
		f->ntries++;
	}
	a->trying = 1;
	f->ntrying++;
	link_connect(&a->link, f->per_source == 0 ? 0 :
	    f->source_base + (uint32_t)(i / f->per_source));
}

/* The first time, so many at once; later each has its own delay. */
static void
fleet_start_more(struct fleet *f)
{
	while (f->first && f->ntrying < f->width && f->nstarted < f->n)
		agent_connect(&f->agents[f->nstarted++]);
}

static size_t
on_request(const struct link *l, char *dst, size_t len)
{
	const struct agent *a = (const struct agent *)l;
	const struct fleet *f = a->fleet;
	int n;

	n = snprintf(dst, len, "GET %s HTTP/1.1\r\nHost: %s\r\n"
	    "%s%s%sConnection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " WS_KEY "\r\n"
	    "%s%s%s\r\n", f->path, f->host,
	    a->credential != NULL ? "Authorization: Bearer " : "",
	    a->credential != NULL ? a->credential : "",
	    a->credential != NULL ? "\r\n" : "",
	    f->subprotocol != NULL ? "Sec-WebSocket-Protocol: " : "",
	    f->subprotocol != NULL ? f->subprotocol : "",
	    f->subprotocol != NULL ? "\r\n" : "");
	if (n < 0 || (size_t)n >= len)
		errx(1, "the request is too long");
	return (size_t)n;
}

static void
agent_set_timer(struct agent *a)
{
	struct fleet *f = a->fleet;

	if (f->beat_ms != 0)
		wheel_set(&f->wheel, &a->timer, now_ms() +
		    get_jittered(f->beat_ms));
}

static void
agent_send_beat(struct agent *a)
{
	uint8_t ping[LINK_HEAD_MAX + 16];
	char text[FRAME_LEN];
	int n;

	a->fleet->nbeats++;
	a->beating = 1;
	if (a->fleet->ping) {
		link_send(&a->link, ping, link_format_frame(ping, LINK_PING,
		    "beat", 4));
		return;
	}
	a->seq++;
	n = snprintf(text, sizeof(text), "{\"v\":26,\"type\":\"heartbeat\","
	    "\"id\":\"hb-%llu\",\"payload\":{\"seq\":%llu%s%s%s}}",
	    (unsigned long long)a->seq, (unsigned long long)a->seq,
	    a->handle != NULL ? ",\"active_handles\":[\"" : "",
	    a->handle != NULL ? a->handle : "",
	    a->handle != NULL ? "\"]" : "");
	agent_send_text(a, text, (size_t)n);
}

/* Welcomed, or at a plain peer upgraded. */
static void
agent_set_up(struct agent *a)
{
	struct fleet *f = a->fleet;

	if (a->up)
		return;
	a->up = 1;
	a->nfailures = 0;
	a->trying = 0;
	f->ntrying--;
	if (++f->nup == f->n)
		f->first = 0;
	agent_set_timer(a);
	if (f->fast)
		agent_send_beat(a);
}

static void
on_open(struct link *l)
{
	struct agent *a = (struct agent *)l;
	char text[FRAME_LEN];
	int n;

	if (a->credential == NULL) {
		agent_set_up(a);
		return;
	}
	n = snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"hello\","
	    "\"id\":\"hello\",\"payload\":{\"protocol_version\":26,"
	    "\"agent_id\":\"%s\",\"name\":\"bench\",\"agent_version\":"
	    "\"bench\",\"capabilities\":{\"os\":\"linux\",\"arch\":\"amd64\","
	    "\"cpus\":4,\"memory_mb\":8192,\"workdir_root\":\"/var/lib/cloop/"
	    "work\",\"max_concurrent\":16}}}", a->id);
	agent_send_text(a, text, (size_t)n);
}

static void
on_down(struct link *l, const char *why)
{
	struct agent *a = (struct agent *)l;
	struct fleet *f = a->fleet;
	int64_t ms;

	f->ndowns++;
	f->last_why = why;
	if (strncmp(why, "status", 6) == 0)
		f->nrefused++;
	if (a->trying)
		f->ntrying--;
	if (a->up && f->lost_at == 0)
		f->lost_at = proc_now();
	if (a->up) {
		f->nup--;
		a->nfailures = 0;
	}
	a->trying = a->up = a->beating = 0;
	ms = a->nfailures < 7 ? 1000LL << a->nfailures : 120000;
	a->nfailures++;
	wheel_set(&f->wheel, &a->timer, now_ms() +
	    get_jittered(ms < 120000 ? ms : 120000));
}

static void
on_timer(struct wheel_timer *t)
{
	struct agent *a = (struct agent *)((char *)t -
	    offsetof(struct agent, timer));

	if (a->up) {
		if (!a->fleet->fast)
			agent_send_beat(a);
		agent_set_timer(a);
		link_settle(&a->link);
	} else if (a->link.state == LINK_DOWN)
		agent_connect(a);
}

/* ------------------------------------------------------------------ frames */

/* The string behind a member, to dst; 0 when there is none or no room. */
static int
get_member(const char *text, size_t len, const char *name, char *dst,
    size_t dstlen)
{
	const char *p = memmem(text, len, name, strlen(name)), *end;

	if (p == NULL)
		return 0;
	p += strlen(name);
	end = memchr(p, '"', (size_t)(text + len - p));
	if (end == NULL || (size_t)(end - p) >= dstlen)
		return 0;
	memcpy(dst, p, (size_t)(end - p));
	dst[end - p] = '\0';
	return 1;
}

/* A workload: it starts, and from then on `ingest' has output for it. */
static void
agent_on_start(struct agent *a, const char *text, size_t len)
{
	char id[AGENT_HANDLE_MAX], handle[AGENT_HANDLE_MAX], out[FRAME_LEN];
	int n;

	if (!get_member(text, len, "\"id\":\"", id, sizeof(id)) ||
	    !get_member(text, len, "\"handle\":\"", handle, sizeof(handle)))
		return;
	free(a->handle);
	if ((a->handle = strdup(handle)) == NULL)
		err(1, NULL);
	a->offset = a->acked = a->end = 0;
	n = snprintf(out, sizeof(out), "{\"v\":26,\"type\":\"started\",\"id\":"
	    "\"%s\",\"handle\":\"%s\",\"payload\":{\"handle_id\":\"%s\","
	    "\"pid\":4242,\"started_at\":\"2026-11-30T01:02:03Z\"}}", id,
	    handle, handle);
	agent_send_text(a, out, (size_t)n);
}

static void
agent_on_log_ack(struct agent *a, const char *text, size_t len)
{
	static const char name[] = "\"offset\":";
	const char *p = memmem(text, len, name, sizeof(name) - 1);
	uint64_t offset;

	if (p == NULL || a->handle == NULL)
		return;
	offset = strtoull(p + sizeof(name) - 1, NULL, 10);
	if (offset > a->acked)
		a->acked = offset;
	if (a->end != 0 && a->acked >= a->end) {
		a->end = 0;
		a->fleet->nsending--;
	}
	agent_send_chunks(a);
}

static void
agent_on_answer(struct agent *a)
{
	a->beating = 0;
	a->fleet->nacks++;
	if (a->fleet->fast)
		agent_send_beat(a);
}

static void
on_text(struct link *l, char *text, size_t len)
{
	struct agent *a = (struct agent *)l;
	char type[32];

	if (a->credential == NULL) {
		if (a->beating)
			agent_on_answer(a);
		return;
	}
	if (!get_member(text, len, "\"type\":\"", type, sizeof(type)))
		return;
	if (strcmp(type, "heartbeat_ack") == 0)
		agent_on_answer(a);
	else if (strcmp(type, "log_ack") == 0)
		agent_on_log_ack(a, text, len);
	else if (strcmp(type, "welcome") == 0)
		agent_set_up(a);
	else if (strcmp(type, "start") == 0)
		agent_on_start(a, text, len);
	else if (strcmp(type, "error") == 0)
		warnx("%.*s", (int)(len < 300 ? len : 300), text);
}

static void
on_pong(struct link *l)
{
	struct agent *a = (struct agent *)l;

	if (a->beating)
		agent_on_answer(a);
}

static void
on_drain(struct link *l)
{
	agent_send_chunks((struct agent *)l);
}

/* ------------------------------------------------------------------- fleet */

static void
fleet_load_credentials(struct fleet *f)
{
	FILE *file = fopen(f->credentials, "re");
	char *line = NULL, *space;
	size_t i, cap = 0;

	if (file == NULL)
		err(1, "%s", f->credentials);
	for (i = 0; i < f->n; i++) {
		if (getline(&line, &cap, file) == -1)
			errx(1, "%s has %zu credentials, not %zu",
			    f->credentials, i, f->n);
		line[strcspn(line, "\n")] = '\0';
		if ((space = strchr(line, ' ')) == NULL)
			errx(1, "%s: not \"id credential\"", f->credentials);
		f->agents[i].id = strndup(line, (size_t)(space - line));
		f->agents[i].credential = strdup(space + 1);
		if (f->agents[i].id == NULL ||
		    f->agents[i].credential == NULL)
			err(1, NULL);
	}
	free(line);
	fclose(file);
}

void
fleet_init(struct fleet *f)
{
	size_t i;

	f->env.format_request = on_request;
	f->env.on_open = on_open;
	f->env.on_text = on_text;
	f->env.on_pong = on_pong;
	f->env.on_drain = on_drain;
	f->env.on_down = on_down;
	if ((f->env.epoll = epoll_create1(EPOLL_CLOEXEC)) == -1)
		err(1, "epoll_create1");
	if ((f->agents = calloc(f->n, sizeof(*f->agents))) == NULL)
		err(1, NULL);
	for (i = 0; i < f->n; i++) {
		f->agents[i].fleet = f;
		f->agents[i].link.env = &f->env;
		f->agents[i].link.fd = -1;
	}
	if (f->credentials != NULL)
		fleet_load_credentials(f);
	wheel_init(&f->wheel, now_ms());
	chunk_init();
}

void
fleet_connect(struct fleet *f)
{
	f->first = 1;
	fleet_start_more(f);
}

void
fleet_turn(struct fleet *f, int ms)
{
	static struct epoll_event ev[EVENTS];
	int i, n;

	n = epoll_wait(f->env.epoll, ev, EVENTS, ms < WHEEL_SLOT_MS ? ms :
	    WHEEL_SLOT_MS);
	for (i = 0; i < n; i++)
		link_on_event(ev[i].data.ptr, ev[i].events);
	wheel_run(&f->wheel, now_ms(), on_timer);
	fleet_start_more(f);
	if (f->nup == f->n && f->lost_at == 0)
		f->ntries = 0;
}

void
fleet_set_rate(struct fleet *f, int fast)
{
	size_t i;

	f->fast = fast;
	for (i = 0; fast && i < f->n; i++)
		if (f->agents[i].up && !f->agents[i].beating) {
			agent_send_beat(&f->agents[i]);
			link_settle(&f->agents[i].link);
		}
}

size_t
fleet_ingest(struct fleet *f, uint64_t len)
{
	struct agent *a;
	size_t i, n = 0;

	/* Whole chunks: an end is an acknowledged offset. */
	f->chunk_bytes = (len + CHUNK_LEN - 1) / CHUNK_LEN * CHUNK_LEN;
	for (i = 0; i < f->n; i++) {
		a = &f->agents[i];
		if (!a->up || a->handle == NULL)
			continue;
		a->end = a->offset + f->chunk_bytes;
		f->nsending++;
		n++;
		agent_send_chunks(a);
		link_settle(&a->link);
	}
	return n;
}

size_t
fleet_end_work(struct fleet *f)
{
	char text[FRAME_LEN];
	struct agent *a;
	size_t i, count = 0;
	int n;

	for (i = 0; i < f->n; i++) {
		a = &f->agents[i];
		if (!a->up || a->handle == NULL)
			continue;
		n = snprintf(text, sizeof(text), "{\"v\":26,\"type\":"
		    "\"status\",\"handle\":\"%s\",\"payload\":{\"status\":{"
		    "\"handle_id\":\"%s\",\"executor_id\":\"%s\",\"state\":"
		    "\"exited\",\"pid\":4242,\"exit_code\":0,\"started_at\":"
		    "\"2026-11-30T01:02:03Z\",\"finished_at\":"
		    "\"2026-11-30T01:12:03Z\"},\"final_offset\":%llu}}",
		    a->handle, a->handle, a->id,
		    (unsigned long long)a->offset);
		agent_send_text(a, text, (size_t)n);
		link_settle(&a->link);
		free(a->handle);
		a->handle = NULL;
		count++;
	}
	return count;
}

void
fleet_write_files(struct fleet *f, const char *dir, uint64_t len)
{
	char path[512];
	uint64_t done;
	size_t i;
	int *fds;

	if ((fds = calloc(f->n, sizeof(*fds))) == NULL)
		err(1, NULL);
	for (i = 0; i < f->n; i++) {
		snprintf(path, sizeof(path), "%s/%zu", dir, i);
		fds[i] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND |
		    O_CLOEXEC, 0600);
		if (fds[i] == -1)
			err(1, "%s", path);
	}
	for (done = 0; done < len; done += CHUNK_LEN)
		for (i = 0; i < f->n; i++)
			if (write(fds[i], chunk_get_text(), CHUNK_LEN) !=
			    CHUNK_LEN)
				err(1, "write");
	for (i = 0; i < f->n; i++)
		close(fds[i]);
	free(fds);
}

uint64_t
fleet_get_peak(const struct fleet *f)
{
	uint64_t peak = 0;
	size_t i;

	for (i = 0; i < FLEET_BINS; i++)
		if (f->bins[i] > peak)
			peak = f->bins[i];
	return peak;
}

double
fleet_get_mean(const struct fleet *f)
{
	size_t i, first = FLEET_BINS, last = 0;
	uint64_t sum = 0;

	for (i = 0; i < FLEET_BINS; i++) {
		if (f->bins[i] == 0)
			continue;
		if (first == FLEET_BINS)
			first = i;
		last = i;
		sum += f->bins[i];
	}
	return sum == 0 ? 0 : (double)sum / (double)(last - first + 1);
}

void
fleet_close(struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		wheel_del(&f->agents[i].timer);
		link_close(&f->agents[i].link);
		free(f->agents[i].id);
		free(f->agents[i].credential);
		free(f->agents[i].handle);
	}
	free(f->agents);
	close(f->env.epoll);
}
