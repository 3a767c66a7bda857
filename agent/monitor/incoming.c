/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Shipped branches, in the device monitor.  The bytes never pass here: a
 * file is opened in our state directory and belongs to nobody's name, so a
 * crash leaves nothing.  The fetcher keeps order, bounds and time of the
 * chunks (fetch_incoming.c); if it lies about them, length and digest of
 * the start find out.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "incoming.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/xmem.h"
#include "agentd.h"

static struct incoming *
incoming_find(struct agentd *a, const char *handle_id)
{
	size_t i;

	for (i = 0; i < MAX_INCOMING; i++)
		if (a->incoming[i].handle_id != NULL &&
		    strcmp(a->incoming[i].handle_id, handle_id) == 0)
			return &a->incoming[i];
	return NULL;
}

static void
incoming_clear(struct incoming *in)
{
	free(in->handle_id);
	if (in->fd != -1)
		close(in->fd);
	memset(in, 0, sizeof(*in));
	in->fd = -1;
}

/* A file without a name, on the disk of the state directory. */
static int
incoming_make_file(const struct agentd *a, int *fdp)
{
	char *path;
	int fd;

	fd = open(a->conf.state_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd == -1) {
		xasprintf(&path, "%s/.incoming-XXXXXX", a->conf.state_dir);
		if ((fd = mkostemp(path, O_CLOEXEC)) != -1)
			(void)unlink(path);
		free(path);
	}
	*fdp = fd;
	return fd == -1 ? CL_SYSTEM : CL_OK;
}

int
incoming_open(struct agentd *a, const char *handle_id, int *fdp)
{
	struct incoming *in = incoming_find(a, handle_id);
	size_t i;
	int r;

	*fdp = -1;
	if (in != NULL)
		incoming_clear(in);
	for (i = 0; in == NULL && i < MAX_INCOMING; i++)
		if (a->incoming[i].handle_id == NULL)
			in = &a->incoming[i];
	if (in == NULL)
		return CL_LIMIT;
	memset(in, 0, sizeof(*in));
	if ((r = incoming_make_file(a, &in->fd)) != 0)
		return r;
	if ((*fdp = fcntl(in->fd, F_DUPFD_CLOEXEC, 0)) == -1) {
		incoming_clear(in);
		return CL_SYSTEM;
	}
	in->handle_id = xstrdup(handle_id);
	return CL_OK;
}

void
incoming_end(struct agentd *a, const char *handle_id, const char *failure)
{
	struct incoming *in = incoming_find(a, handle_id);

	if (in == NULL)
		return;
	in->is_ended = 1;
	strlcpy(in->failure, failure, sizeof(in->failure));
}

void
incoming_drop(struct agentd *a, const char *handle_id)
{
	struct incoming *in = incoming_find(a, handle_id);

	if (in != NULL)
		incoming_clear(in);
}

void
incoming_drop_all(struct agentd *a)
{
	size_t i;

	for (i = 0; i < MAX_INCOMING; i++)
		if (a->incoming[i].handle_id != NULL)
			incoming_clear(&a->incoming[i]);
}

const char *
incoming_claim(struct agentd *a, const char *handle_id, int64_t bytes,
    int *fdp, char why[256])
{
	struct incoming *in = incoming_find(a, handle_id);
	struct stat st;

	*fdp = -1;
	why[0] = '\0';
	if (in == NULL || !in->is_ended)
		(void)snprintf(why, 256, "no branch was shipped for this "
		    "start");
	else if (in->failure[0] != '\0')
		(void)snprintf(why, 256, "the shipped branch: %.200s",
		    in->failure);
	else if (fstat(in->fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    st.st_size != bytes)
		(void)snprintf(why, 256, "the shipped branch has not the "
		    "%lld bytes that were announced", (long long)bytes);
	else {
		*fdp = in->fd;
		in->fd = -1;
	}
	if (in != NULL)
		incoming_clear(in);
	return why[0] == '\0' ? NULL : why;
}
