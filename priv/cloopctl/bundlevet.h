/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A bundle a device returned, judged before it lands: its header here, its
 * objects by a confined git in a repository of their own that borrows the
 * operator's objects.
 */
#ifndef PRIV_BUNDLEVET_H
#define PRIV_BUNDLEVET_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VET_PREREQUISITES 64
#define VET_HEADER_MAX 16384
#define VET_COMMITS 1000
#define VET_PATHS 20000
#define VET_PATH_MAX 4096
#define VET_BLOB_MAX (UINT64_C(512) << 20)

struct vet {
	/* what was promised */
	const char *branch;		/* cloop/... */
	const char *commit;
	const char *base;		/* by the hub's record */
	/* found */
	char prerequisite[VET_PREREQUISITES][41];
	size_t nprerequisites;
	off_t pack_off;
	char repo[PATH_MAX];		/* the one of its own; "" */
	size_t npaths;
	unsigned long ncommits;
	int is_head;			/* the operator has it checked out */
	char why[5120];			/* of a refusal */
};

/* Length and SHA-256 of the file.  CL_FORMAT: why says what differs. */
int vet_check_digest(struct vet *v, int fd, uint64_t bytes,
    const char *sha256);
/* One branch, at the promised commit, on the recorded base. */
int vet_check_header(struct vet *v, int fd);
/* One path of a change; link: where a symbolic link points, else NULL.
 * NULL, or what is wrong. */
const char *vet_check_path(const char *path, const char *link);
const char *vet_check_mode(const char *mode);

/*
 * Import into a repository below dir that borrows the objects of `into`,
 * and judge all of the range.  CL_FORMAT: why.  vet_clear() removes it.
 */
int vet_import(struct vet *v, int fd, const char *into);
/* Put the branch into the operator's repository: CL_STATE: why. */
int vet_land(struct vet *v, const char *into);
/* "path | n +-" lines, owned; NULL when git gives none. */
char *vet_format_diffstat(struct vet *v);
void vet_clear(struct vet *v);

#endif
