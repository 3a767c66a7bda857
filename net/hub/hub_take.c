/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Returned bundles, chunk by chunk.  Runs in cloopd-net; the bytes are what
 * a device sent and are never looked at, only counted, hashed and written
 * to a file the monitor opened.
 */
#include "hub_take.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <openssl/evp.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "net/codec/frame.h"

struct htake *
htake_new(const struct msg_handle_work *v)
{
	struct htake *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->asked = (int)v->asked;
	t->cap = v->cap;
	t->seeded = v->seeded;
	t->over = v->over;
	t->fd = -1;
	strlcpy(t->branch, v->branch, sizeof(t->branch));
	strlcpy(t->failure, v->failure, sizeof(t->failure));
	return t;
}

static void
htake_drop_file(struct htake *t)
{
	if (t->fd != -1)
		close(t->fd);
	t->fd = -1;
	t->size = t->left = t->cost = t->hashed = 0;
	EVP_MD_CTX_free(t->md);
	t->md = NULL;
}

void
htake_free(struct htake *t)
{
	if (t == NULL)
		return;
	htake_drop_file(t);
	free(t);
}

int
htake_set_file(struct htake *t, int fd)
{
	struct stat st;

	htake_drop_file(t);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		return CL_FORMAT;
	}
	t->fd = fd;
	/* What an earlier session brought; its budget is still held. */
	t->size = (uint64_t)st.st_size;
	t->cost = t->size + (t->size > 0 ? WORK_CHUNK_COST : 0);
	return CL_OK;
}

enum htake_verdict
htake_check(struct htake *t, int closed, uint64_t off, size_t len,
    const char **whyp)
{
	*whyp = NULL;
	if (t == NULL || (t->asked != WORK_BUNDLE &&
	    t->asked != WORK_UNKNOWN))
		*whyp = "no bundle was asked for";
	else if (closed)
		*whyp = "the workload is over";
	else if (t->failure[0] != '\0')
		*whyp = t->failure;
	else if (t->over)
		*whyp = "its result came already";
	if (*whyp != NULL)
		return HTAKE_REFUSED;
	/* Before the file is there, its length is not known either. */
	if (t->fd == -1)
		return off == 0 ? HTAKE_RESTART : HTAKE_ROOM;
	if (off == 0 && t->size > 0)
		return len > t->cap ? (*whyp = "the bundle is larger than "
		    "was allowed", HTAKE_FAILS) : HTAKE_RESTART;
	if (off != t->size)
		*whyp = off < t->size ? "a chunk overlaps the one before" :
		    "a chunk is missing before this one";
	else if (len > t->cap || off > t->cap - len)
		*whyp = "the bundle is larger than was allowed";
	if (*whyp != NULL)
		return HTAKE_FAILS;
	return t->left < len + WORK_CHUNK_COST ? HTAKE_ROOM : HTAKE_FITS;
}

void
htake_get_need(size_t len, uint32_t *minp, uint32_t *maxp)
{
	*minp = (uint32_t)(len + WORK_CHUNK_COST);
	*maxp = *minp > HTAKE_AHEAD ? *minp : HTAKE_AHEAD;
}

int
htake_grant(struct htake *t, int restart, uint32_t granted)
{
	if (restart && t->fd != -1 && t->size > 0 &&
	    ftruncate(t->fd, 0) == -1)
		return CL_SYSTEM;
	if (restart) {
		t->size = t->hashed = t->cost = t->left = 0;
		EVP_MD_CTX_free(t->md);
		t->md = NULL;
	}
	t->left += granted;
	return CL_OK;
}

/* The digest up to the end of the file; what an earlier session wrote is
 * read back once. */
static int
htake_hash(struct htake *t, const void *data, size_t len)
{
	uint8_t block[16384];
	size_t want;
	ssize_t n;

	if (t->md == NULL && ((t->md = EVP_MD_CTX_new()) == NULL ||
	    EVP_DigestInit_ex(t->md, EVP_sha256(), NULL) != 1))
		return CL_NOMEM;
	while (t->hashed < t->size) {
		want = t->size - t->hashed < sizeof(block) ?
		    (size_t)(t->size - t->hashed) : sizeof(block);
		n = pread(t->fd, block, want, (off_t)t->hashed);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return CL_SYSTEM;
		if (EVP_DigestUpdate(t->md, block, (size_t)n) != 1)
			return CL_NOMEM;
		t->hashed += (uint64_t)n;
	}
	if (len == 0)
		return CL_OK;
	if (EVP_DigestUpdate(t->md, data, len) != 1)
		return CL_NOMEM;
	t->hashed += len;
	return CL_OK;
}

int
htake_put(struct htake *t, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t done = 0;
	ssize_t n;
	int r;

	while (done < len) {
		n = pwrite(t->fd, p + done, len - done,
		    (off_t)(t->size + done));
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return CL_SYSTEM;
		done += (size_t)n;
	}
	if ((r = htake_hash(t, data, len)) != CL_OK)
		return r;
	t->size += len;
	t->left -= len + WORK_CHUNK_COST;
	t->cost += len + WORK_CHUNK_COST;
	return CL_OK;
}

void
htake_fail(struct htake *t, const char *why)
{
	if (t->failure[0] == '\0')
		strlcpy(t->failure, why, sizeof(t->failure));
	htake_drop_file(t);
}

static int
htake_is_digest(struct htake *t, const char *hex)
{
	uint8_t md[EVP_MAX_MD_SIZE];
	char text[2 * EVP_MAX_MD_SIZE + 1];
	unsigned int len;

	if (htake_hash(t, NULL, 0) != CL_OK ||
	    EVP_DigestFinal_ex(t->md, md, &len) != 1)
		return 0;
	EVP_MD_CTX_free(t->md);
	t->md = NULL;
	util_format_hex(md, len, text);
	return strcmp(text, hex) == 0;
}

/* A bundle that is said to be delivered. */
static const char *
htake_check_bundle(struct htake *t, const struct frame_write_back *wb)
{
	if (t->asked == WORK_PUSH)
		return "a push was asked for, not a bundle";
	if (!rule_is_hex(wb->bundle_sha256, 64))
		return "the result has no SHA-256 of the bundle";
	if (t->size == 0 || wb->bundle_bytes < 0 ||
	    (uint64_t)wb->bundle_bytes != t->size)
		return "the length of the bundle is not what arrived";
	if (!htake_is_digest(t, wb->bundle_sha256))
		return "the SHA-256 of the bundle is not that of what arrived";
	if (!rule_is_hex(wb->commit_sha, 40) ||
	    (!rule_is_empty(wb->base_sha) && !rule_is_hex(wb->base_sha, 40)))
		return "commit and base must be 40 hex digits";
	if (!rule_is_branch(wb->branch) || (t->branch[0] != '\0' &&
	    strcmp(wb->branch, t->branch) != 0))
		return "the branch is not the one that was asked for";
	return NULL;
}

static void
htake_fill_end(const struct htake *t, const struct frame_write_back *wb,
    struct work_end *end)
{
	memset(end, 0, sizeof(*end));
	end->skipped = wb->skipped;
	end->pushed = wb->pushed;
	end->mode = wb->mode;
	end->branch = wb->branch;
	end->commit = wb->commit_sha;
	end->base = wb->base_sha;
	end->sha256 = wb->bundle_sha256;
	end->bytes = t->size;
	end->commits = wb->commits;
	end->files_changed = wb->files_changed;
	end->cost = t->cost;
	end->text = !rule_is_empty(wb->error) ? wb->error :
	    wb->skipped ? wb->skip_reason : NULL;
}

const char *
htake_end(struct htake *t, int closed, const struct frame_write_back *wb,
    struct work_end *end)
{
	const char *why = NULL;

	memset(end, 0, sizeof(*end));
	if (t == NULL || t->asked == WORK_NONE)
		return "no returned work was asked for";
	if (closed)
		return "the workload is over";
	if (t->over)
		return "its result came already";
	if (t->failure[0] != '\0') {
		/* Recorded when it happened. */
		t->over = 1;
		return t->failure;
	}
	htake_fill_end(t, wb, end);
	if (!rule_is_empty(wb->error) || wb->skipped ||
	    !rule_is_equal(wb->mode, "bundle")) {
		if (t->size > 0)
			why = "bytes came with a result that has none";
	} else
		why = htake_check_bundle(t, wb);
	t->over = 1;
	if (why != NULL) {
		end->failed = 1;
		end->skipped = 0;
		end->text = (char *)(uintptr_t)why;
		end->bytes = end->cost = 0;
		htake_fail(t, why);
	} else
		/* The monitor takes the file over; no more of ours. */
		htake_drop_file(t);
	return why;
}
