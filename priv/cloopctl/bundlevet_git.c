/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The objects of a returned bundle: unpacked by a confined git into an
 * empty repository in a temporary directory, checked there, and only then
 * fetched into the operator's.  Nothing is ever checked out.
 */
#include <sys/stat.h>

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "bundlevet.h"

#define VET_LIST_MAX (48 << 20)	/* raw changes of 20 000 long paths fit */
#define VET_SIZE_MAX "134217728"

/* --------------------------------------------------------- its repository */

static int
vet_save_line(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    sizeof(path))
		return CL_TOOBIG;
	return util_save_file(path, 0600, text, strlen(text));
}

/* A shallow repository of the operator's ends where his ends. */
static int
vet_copy_shallow(struct vet *v, const char *file)
{
	uint8_t *data;
	size_t len;
	int fd, r;

	if (util_open_file(file, 0, &fd, NULL) != CL_OK)
		return CL_OK;
	r = util_load_fd(fd, 16 << 20, &data, &len);
	close(fd);
	if (r != CL_OK)
		return r;
	r = vet_save_line(v->repo, "shallow", (const char *)data);
	free(data);
	return r;
}

static int
vet_borrow(struct vet *v, const char *into)
{
	char line[PATH_MAX + 2], path[PATH_MAX];
	struct gitjob j;
	const char *s;
	int r = CL_OK;

	gitjob_init(&j, into, NULL);
	s = GIT_ASK(&j, "rev-parse", "--show-object-format");
	if (s[0] == '\0')
		r = vet_refuse(v, "%.300s is not a git repository: %.400s",
		    into, j.err);
	else if (strcmp(s, "sha1") != 0)
		r = vet_refuse(v, "%.300s is not a repository of SHA-1 "
		    "objects", into);
	if (r == CL_OK) {
		s = GIT_ASK(&j, "rev-parse", "--path-format=absolute",
		    "--git-path", "objects");
		(void)snprintf(line, sizeof(line), "%s\n", s);
		r = vet_save_line(v->repo, "objects/info/alternates", line);
	}
	if (r == CL_OK) {
		s = GIT_ASK(&j, "rev-parse", "--path-format=absolute",
		    "--git-path", "shallow");
		strlcpy(path, s, sizeof(path));
		r = vet_copy_shallow(v, path);
	}
	gitjob_clear(&j);
	return r;
}

static int
vet_make_repo(struct vet *v, const char *into)
{
	const char *tmp = getenv("TMPDIR");
	struct gitjob j;
	int r;

	(void)snprintf(v->repo, sizeof(v->repo), "%.3000s/cloopctl.XXXXXX",
	    tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
	if (mkdtemp(v->repo) == NULL) {
		v->repo[0] = '\0';
		return CL_SYSTEM;
	}
	gitjob_init(&j, NULL, v->repo);
	r = GIT_RUN(&j, "init", "-q", "--bare", "--template=",
	    "--object-format=sha1", v->repo);
	if (r != CL_OK)
		(void)vet_refuse(v, "git: %s", j.err);
	gitjob_clear(&j);
	return r != CL_OK ? CL_FORMAT : vet_borrow(v, into);
}

void
vet_clear(struct vet *v)
{
	char *paths[2] = { v->repo, NULL };
	FTSENT *e;
	FTS *fts;

	if (v->repo[0] == '\0')
		return;
	if ((fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL)) !=
	    NULL) {
		while ((e = fts_read(fts)) != NULL) {
			if (e->fts_info == FTS_DP)
				(void)rmdir(e->fts_accpath);
			else if (e->fts_info != FTS_D)
				(void)unlink(e->fts_accpath);
		}
		(void)fts_close(fts);
	}
	v->repo[0] = '\0';
}

/* ---------------------------------------------------------------- objects */

static int
vet_check_base(struct vet *v, struct gitjob *j, const char *into)
{
	char name[64];
	size_t i;

	for (i = 0; i < v->nprerequisites; i++) {
		(void)snprintf(name, sizeof(name), "%s^{commit}",
		    v->prerequisite[i]);
		if (GIT_RUN(j, "cat-file", "-e", name) != CL_OK)
			return vet_refuse(v, "%.300s does not have commit "
			    "%s, on which the work builds; fetch it first",
			    into, v->prerequisite[i]);
		if (GIT_RUN(j, "merge-base", "--is-ancestor",
		    v->prerequisite[i], v->base) != CL_OK)
			return vet_refuse(v, "the bundle builds on %s, which "
			    "is not in the history of %s",
			    v->prerequisite[i], v->base);
	}
	return CL_OK;
}

static int
vet_unpack(struct vet *v, struct gitjob *j, int fd)
{
	int r;

	if (lseek(fd, v->pack_off, SEEK_SET) == -1)
		return CL_SYSTEM;
	j->in_fd = fd;
	r = GIT_RUN(j, "index-pack", "--stdin", "--fix-thin", "--strict",
	    ("--max-input-size=" VET_SIZE_MAX));
	j->in_fd = -1;
	if (r != CL_OK)
		return vet_refuse(v, "git refuses the objects of branch %s: "
		    "%s", v->branch, j->err[0] != '\0' ? j->err :
		    cl_strerror(r));
	return CL_OK;
}

static int
vet_check_range(struct vet *v, struct gitjob *j)
{
	char name[64], range[96];
	const char *s;
	char *end;

	(void)snprintf(name, sizeof(name), "%s^{commit}", v->commit);
	if (GIT_RUN(j, "cat-file", "-e", name) != CL_OK)
		return vet_refuse(v, "the bundle does not hold commit %s",
		    v->commit);
	if (GIT_RUN(j, "merge-base", "--is-ancestor", v->base, v->commit) !=
	    CL_OK)
		return vet_refuse(v, "commit %s of branch %s does not descend "
		    "from %s", v->commit, v->branch, v->base);
	(void)snprintf(range, sizeof(range), "%s..%s", v->base, v->commit);
	s = GIT_ASK(j, "rev-list", "--count", range);
	v->ncommits = strtoul(s, &end, 10);
	if (s[0] == '\0' || *end != '\0' || v->ncommits == 0)
		return vet_refuse(v, "branch %s has no commits beyond %s",
		    v->branch, v->base);
	if (v->ncommits > VET_COMMITS)
		return vet_refuse(v, "branch %s has %lu commits, at most %d",
		    v->branch, v->ncommits, VET_COMMITS);
	return CL_OK;
}

/* ---------------------------------------------------------------- changes */

/* A blob that a change brings, to be looked at by size or as a link. */
struct vet_blob {
	const char *id;		/* 40 digits, not ended */
	const char *path;
	const char *commit;
	int is_link;
};

struct vet_blobs {
	struct vet_blob *v;
	size_t n, cap;
};

static int
vet_add_blob(struct vet_blobs *b, const struct vet_blob *one)
{
	struct vet_blob *grown;

	if (b->n == b->cap) {
		grown = reallocarray(b->v, b->cap + 1024, sizeof(*b->v));
		if (grown == NULL)
			return CL_NOMEM;
		b->v = grown;
		b->cap += 1024;
	}
	b->v[b->n++] = *one;
	return CL_OK;
}

/* ":OLDMODE NEWMODE OLDID NEWID X", then the path. */
static int
vet_check_change(struct vet *v, const char *commit, const char *raw,
    const char *path, struct vet_blobs *blobs)
{
	struct vet_blob one = { raw + 56, path, commit, 0 };
	const char *why;
	char mode[7];

	if (strlen(raw) < 98 || raw[7] != ' ' || raw[14] != ' ' ||
	    raw[55] != ' ' || raw[96] != ' ')
		return vet_refuse(v, "git described a change in another way "
		    "than expected");
	if (++v->npaths > VET_PATHS)
		return vet_refuse(v, "branch %s changes more than %d paths",
		    v->branch, VET_PATHS);
	memcpy(mode, raw + 8, 6);
	mode[6] = '\0';
	if ((why = vet_check_path(path, NULL)) == NULL)
		why = vet_check_mode(mode);
	if (why != NULL)
		return vet_refuse(v, "branch %s, commit %.40s: \"%.300s\" %s",
		    v->branch, commit, path, why);
	if (strcmp(mode, "000000") == 0 || strcmp(mode, "040000") == 0)
		return CL_OK;
	one.is_link = strcmp(mode, "120000") == 0;
	return vet_add_blob(blobs, &one);
}

static int
vet_check_changes(struct vet *v, const struct gitjob *j,
    struct vet_blobs *blobs)
{
	const char *p = (const char *)j->out, *commit = "", *path, *end;
	int r;

	if (p == NULL)
		return CL_OK;	/* commits that change nothing */
	for (end = p + j->out_len; p < end; ) {
		if (p[0] != ':') {
			commit = p;
			p += strlen(p) + 1;
			continue;
		}
		path = p + strlen(p) + 1;
		if (path >= end)
			return vet_refuse(v, "git ended in the middle of a "
			    "change");
		if ((r = vet_check_change(v, commit, p, path, blobs)) !=
		    CL_OK)
			return r;
		p = path + strlen(path) + 1;
	}
	return CL_OK;
}

/* The ids as lines, for git to read. */
static int
vet_make_list(const struct vet_blobs *b, int links, int *fdp)
{
	char *text = malloc(b->n * 41 + 1), *p = text;
	size_t i;
	int r;

	if (text == NULL)
		return CL_NOMEM;
	for (i = 0; i < b->n; i++) {
		if (links && !b->v[i].is_link)
			continue;
		memcpy(p, b->v[i].id, 40);
		p[40] = '\n';
		p += 41;
	}
	r = util_make_memfd(text, (size_t)(p - text), fdp);
	free(text);
	return r;
}

static int
vet_check_sizes(struct vet *v, struct gitjob *j, const struct vet_blobs *b)
{
	const char *p;
	char *end;
	size_t i;
	int r;

	if ((r = vet_make_list(b, 0, &j->in_fd)) != CL_OK)
		return r;
	r = GIT_RUN(j, "cat-file", "--batch-check=%(objectsize)");
	close(j->in_fd);
	j->in_fd = -1;
	p = (const char *)j->out;
	for (i = 0; r == CL_OK && i < b->n; i++) {
		if (p == NULL || strtoull(p, &end, 10) > VET_BLOB_MAX ||
		    end == p || *end != '\n')
			return vet_refuse(v, "branch %s, commit %.40s: "
			    "\"%.300s\" is missing or larger than %llu bytes",
			    v->branch, b->v[i].commit, b->v[i].path,
			    (unsigned long long)VET_BLOB_MAX);
		p = end + 1;
	}
	return r == CL_OK ? CL_OK : vet_refuse(v, "git: %s", j->err);
}

/* "ID blob SIZE\n", SIZE bytes, "\n", for each link. */
static int
vet_check_link(struct vet *v, const struct vet_blob *b, const char **pp,
    const char *end)
{
	char target[VET_PATH_MAX + 1];
	const char *nl = memchr(*pp, '\n', (size_t)(end - *pp)), *why;
	unsigned long long size;
	char *stop;

	if (nl == NULL || nl - *pp < 47 || strncmp(*pp + 40, " blob ", 6) != 0)
		return vet_refuse(v, "git did not show a link");
	size = strtoull(*pp + 46, &stop, 10);
	if (stop != nl || size + 1 > (size_t)(end - nl - 1))
		return vet_refuse(v, "git did not show a link whole");
	why = size > VET_PATH_MAX || memchr(nl + 1, '\0', size) != NULL ?
	    "is a link to nowhere" : NULL;
	if (why == NULL) {
		memcpy(target, nl + 1, size);
		target[size] = '\0';
		why = vet_check_path(b->path, target);
	}
	if (why != NULL)
		return vet_refuse(v, "branch %s, commit %.40s: \"%.300s\" -> "
		    "\"%.*s\" %s", v->branch, b->commit, b->path,
		    size > 300 ? 300 : (int)size, nl + 1, why);
	*pp = nl + 1 + size + 1;
	return CL_OK;
}

static int
vet_check_links(struct vet *v, struct gitjob *j, const struct vet_blobs *b)
{
	const char *p;
	size_t i;
	int r;

	if ((r = vet_make_list(b, 1, &j->in_fd)) != CL_OK)
		return r;
	r = GIT_RUN(j, "cat-file", "--batch");
	close(j->in_fd);
	j->in_fd = -1;
	if (r != CL_OK)
		return vet_refuse(v, "the links of branch %s cannot be read: "
		    "%s", v->branch, j->err[0] != '\0' ? j->err :
		    cl_strerror(r));
	p = (const char *)j->out;
	for (i = 0; i < b->n; i++) {
		if (!b->v[i].is_link)
			continue;
		if (p == NULL)
			return vet_refuse(v, "git did not show a link");
		if ((r = vet_check_link(v, &b->v[i], &p,
		    (const char *)j->out + j->out_len)) != CL_OK)
			return r;
	}
	return CL_OK;
}

/* Each commit of the range against each of its parents. */
static int
vet_check_tree(struct vet *v, struct gitjob *j)
{
	struct gitjob list;
	struct vet_blobs blobs = { NULL, 0, 0 };
	char range[96];
	int r;

	(void)snprintf(range, sizeof(range), "%s..%s", v->base, v->commit);
	if (GIT_RUN(j, "rev-list", range) != CL_OK || util_make_memfd(j->out,
	    j->out_len, &j->in_fd) != CL_OK)
		return vet_refuse(v, "the commits of branch %s cannot be "
		    "listed: %s", v->branch, j->err);
	gitjob_init(&list, j->repo, j->write_dir);
	list.in_fd = j->in_fd;
	list.out_max = VET_LIST_MAX;
	r = GIT_RUN(&list, "diff-tree", "--stdin", "-r", "-z", "-m", "--root",
	    "--no-renames", "--no-abbrev", "--no-ext-diff");
	close(j->in_fd);
	j->in_fd = -1;
	if (r != CL_OK)
		r = vet_refuse(v, "the changes of branch %s cannot be listed: "
		    "%s", v->branch, r == CL_STATE ? list.err :
		    cl_strerror(r));
	else if ((r = vet_check_changes(v, &list, &blobs)) == CL_OK &&
	    blobs.n > 0 && (r = vet_check_sizes(v, j, &blobs)) == CL_OK)
		r = vet_check_links(v, j, &blobs);
	free(blobs.v);
	gitjob_clear(&list);
	return r;
}

int
vet_import(struct vet *v, int fd, const char *into)
{
	struct gitjob j;
	char ref[256];
	int r;

	if ((r = vet_make_repo(v, into)) != CL_OK)
		return r;
	gitjob_init(&j, v->repo, v->repo);
	j.out_max = VET_LIST_MAX;
	if ((r = vet_check_base(v, &j, into)) == CL_OK &&
	    (r = vet_unpack(v, &j, fd)) == CL_OK &&
	    (r = vet_check_range(v, &j)) == CL_OK)
		r = vet_check_tree(v, &j);
	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", v->branch);
	if (r == CL_OK && GIT_RUN(&j, "update-ref", ref, v->commit) != CL_OK)
		r = vet_refuse(v, "git: %s", j.err);
	gitjob_clear(&j);
	return r;
}

int
vet_land(struct vet *v, const char *into)
{
	char refspec[512], refname[256];
	struct gitjob j;
	int r;

	(void)snprintf(refspec, sizeof(refspec), "refs/heads/%s:refs/heads/%s",
	    v->branch, v->branch);
	gitjob_init(&j, into, NULL);
	(void)snprintf(refname, sizeof(refname), "refs/heads/%s", v->branch);
	v->is_head = strcmp(GIT_ASK(&j, "symbolic-ref", "-q", "HEAD"),
	    refname) == 0;
	/* Without a plus: a branch that went another way is not replaced. */
	r = GIT_RUN(&j, "-c", "fetch.fsckObjects=true", "-c",
	    "remote.pushDefault=", "fetch", "-q", "--no-tags",
	    "--no-recurse-submodules", "--no-write-fetch-head",
	    "--no-auto-gc", "--update-head-ok", "--end-of-options", v->repo,
	    refspec);
	if (r != CL_OK) {
		(void)vet_refuse(v, "branch %s cannot be put into %.300s: %s",
		    v->branch, into, j.err[0] != '\0' ? j.err :
		    cl_strerror(r));
		r = CL_STATE;
	}
	gitjob_clear(&j);
	return r;
}

char *
vet_format_diffstat(struct vet *v)
{
	struct gitjob j;
	char *text = NULL;

	gitjob_init(&j, v->repo, v->repo);
	if (GIT_RUN(&j, "diff", "--stat=78", "--no-color", "--no-ext-diff",
	    "--no-textconv", "--no-renames", v->base, v->commit) == CL_OK &&
	    j.out != NULL)
		text = strdup((const char *)j.out);
	gitjob_clear(&j);
	return text;
}
