/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Shipped branches in the monitor: an operator's bundle in a sealed memfd,
 * held to what the spec says of it before anything leaves.  It is counted
 * and hashed, never parsed.
 */
#include "hwork.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "common/msg/msgcat.h"
#include "agents.h"
#include "dispatch.h"
#include "handles.h"
#include "monitor.h"
#include "refuse.h"

#define BRANCH_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)
#define BRANCH_CODE "invalid_spec"

/* SHA-256 of the first len bytes. */
static int
branch_hash(int fd, uint64_t len, char hex[65])
{
	uint8_t block[65536], md[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint64_t off = 0;
	unsigned int n;
	ssize_t got;
	int ok;

	ok = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
	while (ok && off < len) {
		got = pread(fd, block, sizeof(block), (off_t)off);
		if (got == -1 && errno == EINTR)
			continue;
		ok = got > 0 && EVP_DigestUpdate(ctx, block, (size_t)got) ==
		    1;
		off += ok ? (uint64_t)got : 0;
	}
	ok = ok && EVP_DigestFinal_ex(ctx, md, &n) == 1 && n == 32;
	EVP_MD_CTX_free(ctx);
	if (ok)
		util_format_hex(md, n, hex);
	return ok;
}

int
work_check_branch(const struct dispatch *d, struct refusal *r)
{
	const struct spec_bundle *b = d->spec->workspace.branch_bundle;
	char hex[65];
	struct stat st;
	int seals;

	if (b == NULL || b->bytes == 0)
		return 0;
	if (d->branch_fd == -1) {
		refuse_set(r, BRANCH_CODE, "the bundle of branch %s did not "
		    "come with the run", b->branch);
		return 1;
	}
	seals = fcntl(d->branch_fd, F_GET_SEALS);
	if (seals == -1 || (seals & BRANCH_SEALS) != BRANCH_SEALS ||
	    fstat(d->branch_fd, &st) == -1) {
		refuse_set(r, BRANCH_CODE, "the bundle of branch %s is not a "
		    "sealed file", b->branch);
		return 1;
	}
	if (st.st_size != b->bytes || d->branch_len != b->bytes) {
		refuse_set(r, BRANCH_CODE, "the bundle of branch %s has %lld "
		    "bytes, the description says %lld", b->branch,
		    (long long)st.st_size, (long long)b->bytes);
		return 1;
	}
	if (!branch_hash(d->branch_fd, (uint64_t)b->bytes, hex) ||
	    strcmp(hex, b->sha256) != 0) {
		refuse_set(r, BRANCH_CODE, "the bundle of branch %s does not "
		    "have the SHA-256 of the description", b->branch);
		return 1;
	}
	return 0;
}

int
work_send_branch(struct monitor *mon, const struct session *s,
    const struct handle *h, const struct dispatch *d)
{
	const struct spec_bundle *bundle = d->spec->workspace.branch_bundle;
	struct msg_branch_file body = { s->number, h->row.number, 0 };
	int fd;

	if (bundle == NULL || bundle->bytes == 0)
		return CL_OK;
	if ((fd = fcntl(d->branch_fd, F_DUPFD_CLOEXEC, 3)) == -1)
		return CL_SYSTEM;
	body.len = bundle->bytes;
	MON_SEND(mon_find_child(mon, s->generation), BRANCH_FILE, 0, &body,
	    fd);
	return CL_OK;
}
