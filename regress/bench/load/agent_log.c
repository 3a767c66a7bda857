/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Output of a workload as log_chunk frames.  The text is the same in each
 * and is kept masked for the four phases in which it can lie under the mask;
 * only the few bytes before and behind it are made anew.
 */
#include "agent.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_LEN (1024 * 1024)	/* sent and not acknowledged */
#define TEXT_MAX (2 * CHUNK_LEN)	/* escaped */
#define TAIL "\",\"time\":\"2026-11-30T01:02:03.004005006Z\"}}"

static char plain[CHUNK_LEN + 1];
static uint8_t masked[4][TEXT_MAX];
static size_t text_len;			/* escaped */
static uint8_t frame[LINK_HEAD_MAX + TEXT_MAX + 1024];

static uint8_t
mask_at(size_t i)
{
	return (uint8_t)(LINK_MASK >> (24 - 8 * (i % 4)));
}

/* Lines as a build prints them. */
void
chunk_init(void)
{
	char text[TEXT_MAX], line[128];
	size_t i, j, n = 0;
	int k;

	for (i = 0; n < CHUNK_LEN; i++) {
		k = snprintf(line, sizeof(line), i % 4 == 3 ?
		    "\tsrc/module_%04zu.c:%zu: note: \"value\" is %zu\n" :
		    "[%4zu] Building C object src/CMakeFiles/core.dir/"
		    "module_%04zu.c.o\n", i, i * 7 % 1000, i * 13 % 997);
		for (j = 0; j < (size_t)k && n < CHUNK_LEN; j++)
			plain[n++] = line[j];
	}
	for (i = 0; i < CHUNK_LEN; i++) {
		if (strchr("\n\t\"", plain[i]) != NULL) {
			text[text_len++] = '\\';
			text[text_len++] = plain[i] == '\n' ? 'n' :
			    plain[i] == '\t' ? 't' : '"';
		} else
			text[text_len++] = plain[i];
	}
	for (j = 0; j < 4; j++)
		for (i = 0; i < text_len; i++)
			masked[j][i] = (uint8_t)text[i] ^ mask_at(i + j);
}

const char *
chunk_get_text(void)
{
	return plain;
}

/* The next chunk of a handle, masked, into `frame'. */
static size_t
chunk_format(const struct agent *a)
{
	char head[256];
	size_t i, n, len, at;

	n = (size_t)snprintf(head, sizeof(head), "{\"v\":26,\"type\":"
	    "\"log_chunk\",\"handle\":\"%s\",\"payload\":{\"stream\":"
	    "\"combined\",\"offset\":%llu,\"text\":\"", a->handle,
	    (unsigned long long)a->offset);
	len = n + text_len + sizeof(TAIL) - 1;
	frame[0] = 0x80 | LINK_TEXT;
	frame[1] = 0x80 | (len <= 0xffff ? 126 : 127);
	at = 2;
	for (i = len <= 0xffff ? 2 : 8; i > 0; i--)
		frame[at++] = (uint8_t)((uint64_t)len >> (8 * (i - 1)));
	for (i = 0; i < 4; i++)
		frame[at++] = mask_at(i);
	for (i = 0; i < n; i++)
		frame[at + i] = (uint8_t)head[i] ^ mask_at(i);
	memcpy(frame + at + n, masked[n % 4], text_len);
	for (i = n + text_len; i < len; i++)
		frame[at + i] = (uint8_t)TAIL[i - n - text_len] ^ mask_at(i);
	return at + len;
}

void
agent_send_chunks(struct agent *a)
{
	while (a->handle != NULL && a->offset < a->end &&
	    a->offset - a->acked < WINDOW_LEN && !link_is_full(&a->link) &&
	    a->link.failed == NULL) {
		link_send(&a->link, frame, chunk_format(a));
		a->offset += CHUNK_LEN;
	}
}
