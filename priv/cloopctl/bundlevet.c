/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rules of a returned bundle that need no git: digest, header, paths and
 * modes.  Everything looked at is a device's.
 */
#include "bundlevet.h"

#include <errno.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"

#define VET_MAGIC "# v2 git bundle\n"

int
vet_refuse(struct vet *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(v->why, sizeof(v->why), fmt, ap);
	va_end(ap);
	return CL_FORMAT;
}

int
vet_hash(int fd, int64_t *lenp, char hex[65])
{
	uint8_t block[65536], md[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;
	ssize_t n;

	*lenp = 0;
	SHA256Init(&ctx);
	while ((n = pread(fd, block, sizeof(block), *lenp)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return CL_SYSTEM;
		SHA256Update(&ctx, block, (size_t)n);
		*lenp += n;
	}
	SHA256Final(md, &ctx);
	util_format_hex(md, sizeof(md), hex);
	return CL_OK;
}

int
vet_check_digest(struct vet *v, int fd, uint64_t bytes, const char *sha256)
{
	char hex[65];
	int64_t len;
	int r;

	if ((r = vet_hash(fd, &len, hex)) != CL_OK)
		return r;
	if ((uint64_t)len != bytes)
		return vet_refuse(v, "the bundle has %llu bytes, the device "
		    "said %llu", (unsigned long long)len,
		    (unsigned long long)bytes);
	if (strcmp(hex, sha256) != 0)
		return vet_refuse(v, "the bundle does not have the SHA-256 "
		    "the device named");
	return CL_OK;
}

/* ----------------------------------------------------------------- header */

/* "-COMMIT[ words]" */
static int
vet_add_prerequisite(struct vet *v, const char *line)
{
	char id[41];

	if (strlen(line) < 41 || (line[41] != '\0' && line[41] != ' '))
		return vet_refuse(v, "the bundle's header has a prerequisite "
		    "that is not a commit");
	memcpy(id, line + 1, 40);
	id[40] = '\0';
	if (!rule_is_hex(id, 40))
		return vet_refuse(v, "the bundle's header has a prerequisite "
		    "that is not a commit");
	if (v->nprerequisites == VET_PREREQUISITES)
		return vet_refuse(v, "the bundle has more than %d "
		    "prerequisites", VET_PREREQUISITES);
	memcpy(v->prerequisite[v->nprerequisites++], id, sizeof(id));
	return CL_OK;
}

/* "COMMIT refs/heads/BRANCH" */
static int
vet_check_ref(struct vet *v, const char *line, int *seenp)
{
	char want[41 + 11 + 256];

	if ((*seenp)++ > 0)
		return vet_refuse(v, "the bundle holds more than one ref");
	if (strlen(line) < 42 || line[40] != ' ')
		return vet_refuse(v, "the bundle's header has a line that is "
		    "not a ref");
	(void)snprintf(want, sizeof(want), "refs/heads/%s", v->branch);
	if (strcmp(line + 41, want) != 0)
		return vet_refuse(v, "the bundle holds %.300s, not %s",
		    line + 41, want);
	if (strncmp(line, v->commit, 40) != 0)
		return vet_refuse(v, "the bundle has branch %s at %.40s, the "
		    "device said %s", v->branch, line, v->commit);
	return CL_OK;
}

static int
vet_check_lines(struct vet *v, char *text, size_t len)
{
	char *line = text + strlen(VET_MAGIC), *end;
	int seen = 0, r;

	while ((end = memchr(line, '\n', len - (size_t)(line - text))) !=
	    NULL) {
		*end = '\0';
		if (strlen(line) != (size_t)(end - line))
			return vet_refuse(v, "the bundle's header has a NUL");
		if (line == end) {
			v->pack_off = end + 1 - text;
			return seen == 1 ? CL_OK : vet_refuse(v,
			    "the bundle holds no branch");
		}
		if (line[0] == '-' && seen > 0)
			return vet_refuse(v, "the bundle's header has a "
			    "prerequisite after a ref");
		r = line[0] == '-' ? vet_add_prerequisite(v, line) :
		    vet_check_ref(v, line, &seen);
		if (r != CL_OK)
			return r;
		line = end + 1;
	}
	return vet_refuse(v, "the bundle's header is cut off or too long");
}

int
vet_check_header(struct vet *v, int fd)
{
	char text[VET_HEADER_MAX + 1];
	ssize_t n = pread(fd, text, VET_HEADER_MAX, 0);
	size_t i;
	int r;

	if (n == -1)
		return CL_SYSTEM;
	text[n] = '\0';
	if ((size_t)n < strlen(VET_MAGIC) ||
	    memcmp(text, VET_MAGIC, strlen(VET_MAGIC)) != 0)
		return vet_refuse(v, "the bytes are not a git bundle of "
		    "version 2");
	if ((r = vet_check_lines(v, text, (size_t)n)) != CL_OK)
		return r;
	for (i = 0; i < v->nprerequisites; i++)
		if (strcmp(v->prerequisite[i], v->base) == 0)
			return CL_OK;
	return vet_refuse(v, "the bundle does not build on %s, which is what "
	    "the hub sent", v->base);
}

/* ------------------------------------------------------------------ paths */

/* ".git" as any file system may read it. */
static int
vet_is_git_name(const char *s, size_t len)
{
	if ((len == 5 && strncasecmp(s, "git~1", 5) == 0) ||
	    (len == 6 && strncasecmp(s, ".git~1", 6) == 0))
		return 1;
	while (len > 0 && (s[len - 1] == '.' || s[len - 1] == ' '))
		len--;
	return len == 4 && strncasecmp(s, ".git", 4) == 0;
}

static const char *
vet_check_elements(const char *path)
{
	const char *p = path, *slash;
	size_t len;

	for (;;) {
		slash = strchr(p, '/');
		len = slash != NULL ? (size_t)(slash - p) : strlen(p);
		if (len == 0 || (len == 1 && p[0] == '.'))
			return "is not a clean path";
		if (len == 2 && memcmp(p, "..", 2) == 0)
			return "leaves the tree";
		if (vet_is_git_name(p, len))
			return "goes into .git";
		if (slash == NULL)
			return NULL;
		p = slash + 1;
	}
}

/* Where a link points, seen from the directory it is in. */
static const char *
vet_check_link(const char *path, const char *link)
{
	const char *p = link;
	size_t depth = 0, len;

	if (link[0] == '\0' || strlen(link) > VET_PATH_MAX)
		return "is a link to nowhere";
	if (link[0] == '/' || strchr(link, '\\') != NULL)
		return "is a link out of the tree";
	for (; *path != '\0'; path++)
		depth += *path == '/';
	for (;;) {
		len = strcspn(p, "/");
		if (len == 2 && memcmp(p, "..", 2) == 0) {
			if (depth-- == 0)
				return "is a link out of the tree";
		} else if (vet_is_git_name(p, len))
			return "is a link into .git";
		else if (len > 0 && !(len == 1 && p[0] == '.'))
			depth++;
		if (p[len] == '\0')
			return NULL;
		p += len + 1;
	}
}

const char *
vet_check_path(const char *path, const char *link)
{
	const char *p, *why;

	if (path[0] == '\0')
		return "is empty";
	if (strlen(path) > VET_PATH_MAX)
		return "is too long";
	for (p = path; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\')
			return "has control characters or a backslash";
	if (path[0] == '/')
		return "is absolute";
	if ((why = vet_check_elements(path)) != NULL)
		return why;
	return link != NULL ? vet_check_link(path, link) : NULL;
}

const char *
vet_check_mode(const char *mode)
{
	static const char *const good[] = { "000000", "100644", "100755",
		"040000", "120000" };
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (strcmp(mode, good[i]) == 0)
			return NULL;
	return strcmp(mode, "160000") == 0 ? "is a submodule" :
	    "has a mode that no tree may have";
}
