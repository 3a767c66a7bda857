/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Reads the same frames again and again on one core: as cloopd-net does
 * (strict scan, envelope, typed payload, every check), with json-c's
 * tokener alone, or by only finding and copying the bytes.
 *
 *	parse record small|large FILE	write the frames, length before each
 *	parse ours|json-c|limit FILE SECONDS	prints messages/s and MB/s
 *
 * The frames are what our encoder, which is byte for byte Go's, makes of a
 * device's day: small is heartbeats of none to four workloads and lines of a
 * build, large is chunks of 32 KiB of the same build.
 */
#include <sys/stat.h>

#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/json/jsonw.h"
#include "net/codec/frame.h"

#define NSMALL 512
#define NLARGE 32
#define LARGE_LEN 32768

static const char *const lines[] = {
	"  CC      build/obj/net/hub_session.o\n",
	"net/hub/hub_io.c:214:9: warning: unused variable 'left' "
	    "[-Wunused-variable]\n",
	"\t214 |  size_t left = len;\n",
	"test_frame: ok 14 - a chunk's length (01 \xc2\xa7" "2.3)\n",
	"Get:3 http://deb.debian.org/debian bookworm/main amd64 libevent-dev "
	    "amd64 2.1.12-stable-8 [283 kB]\n",
	"{\"level\":\"info\",\"msg\":\"served\",\"path\":\"/api/v1/jobs\","
	    "\"ms\":12}\n",
	"\x1b[32m\xe2\x9c\x93\x1b[0m 128 passed, 0 failed <took 3.2s>\n",
	"[ 61%] Building C object src/CMakeFiles/core.dir/queue.c.o\n",
};
#define NLINES (sizeof(lines) / sizeof(lines[0]))

struct msg {
	const char *data;
	size_t len;
};

static struct msg msgs[NSMALL];
static size_t nmsgs, nbytes;
static volatile size_t sink;

static double
clock_now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		err(1, "clock_gettime");
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ----------------------------------------------------------------- record */

static void
put(FILE *f, struct jsonw *w, enum frame_type type, const char *handle,
    const void *payload)
{
	uint32_t len;

	if (frame_encode(w, type, 26, NULL, handle, payload) != CL_OK)
		errx(1, "frame_encode");
	len = (uint32_t)w->len;
	if (fwrite(&len, sizeof(len), 1, f) != 1 ||
	    fwrite(w->data, len, 1, f) != 1)
		err(1, "write");
}

static const char *
make_handle(unsigned int n, char dst[40])
{
	(void)snprintf(dst, 40, "h_01J%05u5T3Z8Q9WXKBV7M2NC%02u", n * 7919 %
	    100000, n % 100);
	return dst;
}

static void
put_heartbeat(FILE *f, struct jsonw *w, unsigned int n)
{
	char text[4][40], *list[4];
	struct frame_heartbeat p = { .seq = 40000 + n,
		.active_handles = list, .nactive_handles = n % 5,
		.load_percent = n * 13 % 100 };
	unsigned int i;

	for (i = 0; i < p.nactive_handles; i++) {
		(void)make_handle(n + i, text[i]);
		list[i] = text[i];
	}
	put(f, w, FRAME_HEARTBEAT, NULL, &p);
}

static void
put_chunk(FILE *f, struct jsonw *w, unsigned int n, size_t max)
{
	static char text[LARGE_LEN + 256];
	struct frame_log_chunk p = { .stream = (char *)(uintptr_t)"stdout",
		.offset = (int64_t)n * 31337, .time =
		1764460800000000000 + (int64_t)n * 41000000 };
	char handle[40];
	const char *line;
	size_t len = 0;

	do {
		line = lines[n++ * 5 % NLINES];
		memcpy(text + len, line, strlen(line));
		len += strlen(line);
	} while (len < max);
	p.text.data = text;
	p.text.len = len;
	put(f, w, FRAME_LOG_CHUNK, make_handle(n % 9, handle), &p);
}

static void
record(const char *size, const char *path)
{
	FILE *f = fopen(path, "we");
	struct jsonw w;
	unsigned int n;

	if (f == NULL)
		err(1, "%s", path);
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	if (strcmp(size, "large") == 0) {
		for (n = 0; n < NLARGE; n++)
			put_chunk(f, &w, n, LARGE_LEN);
	} else {
		for (n = 0; n < NSMALL; n++) {
			if (n % 2 == 0)
				put_heartbeat(f, &w, n / 2);
			else
				put_chunk(f, &w, n, 1);
		}
	}
	jsonw_clear(&w);
	if (fclose(f) != 0)
		err(1, "%s", path);
}

/* ------------------------------------------------------------------- read */

static void
load(const char *path)
{
	static char *data;
	struct stat st;
	size_t off = 0;
	uint32_t len;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1 ||
	    fstat(fd, &st) == -1 ||
	    (data = malloc((size_t)st.st_size)) == NULL ||
	    read(fd, data, (size_t)st.st_size) != st.st_size)
		err(1, "%s", path);
	close(fd);
	while (off < (size_t)st.st_size && nmsgs < NSMALL) {
		memcpy(&len, data + off, sizeof(len));
		off += sizeof(len);
		msgs[nmsgs].data = data + off;
		msgs[nmsgs++].len = len;
		nbytes += len;
		off += len;
	}
}

static void
run_ours(void)
{
	static union {
		struct frame_heartbeat heartbeat;
		struct frame_log_chunk chunk;
	} payload;
	static struct jx x;
	static int is_ready;
	struct frame_env env;
	size_t i;

	if (!is_ready)
		jx_init(&x);
	is_ready = 1;
	for (i = 0; i < nmsgs; i++) {
		if (frame_decode_envelope(&x, msgs[i].data, msgs[i].len,
		    &env) != CL_OK || !frame_is_inbound(env.type, FRAME_A2H) ||
		    frame_decode_payload(&x, &env, &payload) != CL_OK)
			errx(1, "message %zu: %s", i, x.why);
		sink += (size_t)env.type;
		frame_clear_payload(env.type, &payload);
	}
}

static void
run_jsonc(void)
{
	static struct json_tokener *tok;
	struct json_object *v;
	size_t i;

	if (tok == NULL && (tok = json_tokener_new_ex(32)) == NULL)
		errx(1, "json-c");
	for (i = 0; i < nmsgs; i++) {
		json_tokener_reset(tok);
		v = json_tokener_parse_ex(tok, msgs[i].data,
		    (int)msgs[i].len);
		if (v == NULL)
			errx(1, "message %zu: %s", i, json_tokener_error_desc(
			    json_tokener_get_error(tok)));
		sink += (size_t)json_object_get_type(v);
		json_object_put(v);
	}
}

/* Once over the bytes to find an end that is not there, once to copy. */
static void
run_limit(void)
{
	static char copy[MAX_FRAME_LEN];
	size_t i;

	for (i = 0; i < nmsgs; i++) {
		if (memchr(msgs[i].data, '\0', msgs[i].len) != NULL)
			errx(1, "message %zu holds a NUL", i);
		memcpy(copy, msgs[i].data, msgs[i].len);
		__asm__ volatile("" : : "r"(copy) : "memory");
		sink += (size_t)copy[msgs[i].len / 2];
	}
}

int
main(int argc, char **argv)
{
	double begin, end, seconds;
	size_t turns = 0;
	void (*run)(void);

	if (argc == 4 && strcmp(argv[1], "record") == 0) {
		record(argv[2], argv[3]);
		return 0;
	}
	if (argc != 4 || (seconds = strtod(argv[3], NULL)) <= 0)
		errx(1, "parse ours|json-c|limit FILE SECONDS");
	run = strcmp(argv[1], "ours") == 0 ? run_ours :
	    strcmp(argv[1], "json-c") == 0 ? run_jsonc : run_limit;
	load(argv[2]);
	run();		/* warm: memory, caches */
	begin = clock_now();
	do {
		run();
		turns++;
		end = clock_now();
	} while (end - begin < seconds);
	printf("%.0f %.2f\n", (double)(turns * nmsgs) / (end - begin),
	    (double)(turns * nbytes) / (end - begin) / 1e6);
	return 0;
}
