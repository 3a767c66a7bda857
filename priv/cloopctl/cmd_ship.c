/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl run: the tree a workload gets and what it is to return.  A
 * shipped branch is bundled here, by git, from the operator's repository,
 * into a sealed memfd; the hub and the device never see that repository.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <bsd/stdlib.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/idgen.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/spec.h"
#include "bundlevet.h"
#include "cloopctl.h"

#define SHIP_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SHIP_SHALLOW_MAX 256
#define SHIP_STATE_MAX 33554432

static int
cmd_refuse(struct tool *t, const char *what, const char *why)
{
	return tool_fail(t, "usage", "", "%.4000s: %.4000s", what, why);
}

static void
cmd_set_text(char **dst, const char *value)
{
	free(*dst);
	*dst = xstrdup(value);
}

/* ---------------------------------------------------------------- branch */

/* Where the history of a shallow repository ends. */
static int
cmd_add_shallow(struct gitjob *j, struct spec_bundle *b)
{
	const char *name = GIT_ASK(j, "rev-parse", "--path-format=absolute",
	    "--git-path", "shallow");
	uint8_t *data;
	char *line, *rest;
	size_t len;
	int fd, r;

	if (name[0] == '\0' || util_open_file(name, 0, &fd, NULL) != CL_OK)
		return CL_OK;
	r = util_load_fd(fd, 41 * SHIP_SHALLOW_MAX, &data, &len);
	close(fd);
	if (r != CL_OK)
		return r;
	rest = (char *)data;
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '\0')
			continue;
		b->shallow = xreallocarray(b->shallow, b->nshallow + 1,
		    sizeof(*b->shallow));
		b->shallow[b->nshallow++] = xstrdup(line);
	}
	free(data);
	return CL_OK;
}

/* git bundle create, to a memfd that nobody can change afterwards. */
static int
cmd_make_bundle(struct gitjob *j, struct spec_bundle *b, const char *base,
    int *fdp)
{
	char ref[256], exclude[48], hex[65];
	const char *const thin[] = { "bundle", "create", "-q", "-", exclude,
		ref, NULL };
	const char *const full[] = { "bundle", "create", "-q", "-", ref,
		NULL };
	int r;

	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", b->branch);
	(void)snprintf(exclude, sizeof(exclude), "^%s", base);
	*fdp = memfd_create("cloop-branch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fdp == -1)
		return CL_SYSTEM;
	j->out_fd = *fdp;
	r = gitjob_run(j, base[0] != '\0' ? thin : full);
	j->out_fd = -1;
	if (r == CL_OK && fcntl(*fdp, F_ADD_SEALS, SHIP_SEALS) == -1)
		r = CL_SYSTEM;
	if (r == CL_OK)
		r = vet_hash(*fdp, &b->bytes, hex);
	if (r == CL_OK)
		cmd_set_text(&b->sha256, hex);
	return r == CL_OK && b->bytes > MAX_BUNDLE_LEN ? CL_TOOBIG : r;
}

static int
cmd_add_branch(struct tool *t, const char *value, struct spec *s, int *fdp)
{
	struct spec_workspace *ws = &s->workspace;
	const char *colon = strrchr(value, ':'), *base = "";
	char *repo, name[256];
	struct spec_bundle *b;
	struct gitjob j;
	int r = CL_OK;

	if (colon == NULL || colon == value || !rule_is_branch(colon + 1))
		return cmd_usage(t, "--branch-bundle %s: must be "
		    "REPOSITORY:cloop/BRANCH", value);
	if (ws->branch_bundle != NULL)
		return cmd_usage(t, "--branch-bundle: only once");
	b = ws->branch_bundle = xcalloc(1, sizeof(*b));
	b->branch = xstrdup(colon + 1);
	repo = xstrndup(value, (size_t)(colon - value));
	if (rule_is_equal(ws->kind, "git"))
		base = ws->ref != NULL ? ws->ref : "";
	else
		cmd_set_text(&ws->kind, "bundle");
	gitjob_init(&j, repo, NULL);
	(void)snprintf(name, sizeof(name), "refs/heads/%s^{commit}",
	    b->branch);
	cmd_set_text(&b->head, GIT_ASK(&j, "rev-parse", "--verify", "--quiet",
	    "--end-of-options", name));
	if (!rule_is_hex(b->head, 40)) {
		(void)cmd_refuse(t, value, j.err[0] != '\0' ? j.err :
		    b->head[0] != '\0' ? "the repository is not one of SHA-1 "
		    "objects" : "there is no such branch");
		r = CL_STATE;
	} else if (base[0] == '\0' || strcmp(b->head, base) != 0) {
		if (base[0] == '\0')
			r = cmd_add_shallow(&j, b);
		if (r == CL_OK)
			r = cmd_make_bundle(&j, b, base, fdp);
		if (r != CL_OK)
			(void)cmd_refuse(t, value, r == CL_TOOBIG ? "the "
			    "bundle of the branch is larger than 128M" :
			    j.err[0] != '\0' ? j.err : cl_strerror(r));
	}
	gitjob_clear(&j);
	free(repo);
	return r == CL_OK ? EXIT_DONE : EXIT_REFUSED;
}

/* ------------------------------------------------------------------- seed */

static int
cmd_add_seed(struct tool *t, const char *dir, struct spec *s)
{
	static const char *const args[] = { "-n", "-9", "-c", NULL };
	char path[PATH_MAX];
	struct gitjob j;
	struct stat st;
	char first = '\0';
	int fd, r;

	(void)snprintf(path, sizeof(path), "%.3900s/.cloop/state.json", dir);
	if ((r = util_open_file(path, 0, &fd, NULL)) != CL_OK)
		return cmd_refuse(t, path, cl_strerror(r));
	gitjob_init(&j, NULL, NULL);
	j.out_max = MAX_SEED_LEN;
	j.in_fd = fd;
	if (fstat(fd, &st) == -1 || st.st_size > SHIP_STATE_MAX)
		r = CL_TOOBIG;
	while (r == CL_OK && pread(fd, &first, 1, lseek(fd, 0, SEEK_CUR)) ==
	    1 && isspace((unsigned char)first))
		(void)lseek(fd, 1, SEEK_CUR);
	if (r == CL_OK && first != '{')
		r = CL_FORMAT;
	(void)lseek(fd, 0, SEEK_SET);
	if (r == CL_OK)
		r = gitjob_run_program(&j, "gzip", args);
	close(fd);
	if (r != CL_OK) {
		(void)cmd_refuse(t, path, r == CL_FORMAT ? "must hold one "
		    "JSON object" : r == CL_STATE ? j.err : cl_strerror(r));
		gitjob_clear(&j);
		return EXIT_REFUSED;
	}
	s->project_seed = j.out;
	s->project_seed_len = j.out_len;
	return EXIT_DONE;
}

/* -------------------------------------------------------------------- all */

static int
cmd_add_git(struct tool *t, const struct cmd_ship *w, struct spec *s)
{
	struct spec_workspace *ws = &s->workspace;
	const char *at = strrchr(w->git, '@'), *why;
	const char *path = strstr(w->git, "://");

	/* What stands before the path is no ref but a user name. */
	path = path != NULL ? strchr(path + 3, '/') : NULL;
	if (at != NULL && (path == NULL || at < path))
		at = NULL;
	cmd_set_text(&ws->kind, "git");
	free(ws->repo);
	ws->repo = at != NULL ? xstrndup(w->git, (size_t)(at - w->git)) :
	    xstrdup(w->git);
	cmd_set_text(&ws->ref, at != NULL ? at + 1 : "");
	if (w->depth != NULL) {
		ws->depth = strtonum(w->depth, 1, 100000, &why);
		if (why != NULL)
			return cmd_usage(t, "--depth %s: is %s", w->depth,
			    why);
	}
	return EXIT_DONE;
}

static int
cmd_add_limit(struct tool *t, const struct cmd_ship *w, struct spec *s)
{
	uint64_t bytes;

	if (w->max_bundle == NULL)
		return EXIT_DONE;
	if (w->write_back == NULL || strcmp(w->write_back, "bundle") != 0)
		return cmd_usage(t, "--max-bundle needs --write-back bundle");
	if (conf_parse_size(w->max_bundle, &bytes) != CL_OK || bytes == 0 ||
	    bytes > MAX_BUNDLE_LEN)
		return cmd_usage(t, "--max-bundle %s: not a size up to 128M",
		    w->max_bundle);
	s->write_back.max_bundle_bytes = (int64_t)bytes;
	return EXIT_DONE;
}

static int
cmd_add_write_back(struct tool *t, const struct cmd_ship *w, struct spec *s)
{
	char id[IDGEN_CORR_LEN + 1], name[IDGEN_CORR_LEN + 16];
	int status;

	if ((status = cmd_add_limit(t, w, s)) != EXIT_DONE)
		return status;
	if (w->write_back == NULL)
		return w->branch == NULL ? EXIT_DONE :
		    cmd_usage(t, "--branch needs --write-back");
	cmd_set_text(&s->write_back.mode, w->write_back);
	if (w->branch != NULL)
		cmd_set_text(&s->write_back.branch, w->branch);
	else if (s->workspace.branch_bundle != NULL)
		cmd_set_text(&s->write_back.branch,
		    s->workspace.branch_bundle->branch);
	else {
		idgen_corr(id);
		(void)snprintf(name, sizeof(name), "cloop/%s", id);
		cmd_set_text(&s->write_back.branch, name);
	}
	return EXIT_DONE;
}

/*
 * A tree is not built in the device's root, where everything else is: the
 * directory is named after its source and a hash of it.
 */
static void
cmd_set_work_dir(struct spec *s, const char *source)
{
	char name[49] = "", dir[64], hex[2 * SHA256_DIGEST_LENGTH + 1];
	char real[PATH_MAX];
	uint8_t md[SHA256_DIGEST_LENGTH];
	size_t n = 0, len;
	const char *p;
	SHA2_CTX ctx;

	if (strstr(source, "://") == NULL && realpath(source, real) != NULL)
		source = real;
	len = strlen(source);
	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)source, len);
	SHA256Final(md, &ctx);
	util_format_hex(md, 4, hex);
	if (len > 4 && strcmp(source + len - 4, ".git") == 0)
		len -= 4;
	for (p = source + len; p > source && p[-1] != '/'; p--)
		;
	for (; p < source + len && n < sizeof(name) - 1; p++)
		if (isalnum((unsigned char)*p) || *p == '_')
			name[n++] = *p;
		else if (n > 0)
			name[n++] = '-';
	while (n > 0 && name[n - 1] == '-')
		n--;
	name[n] = '\0';
	(void)snprintf(dir, sizeof(dir), "%.48s-%.8s", n > 0 ? name : "project",
	    hex);
	cmd_set_text(&s->work_dir, dir);
}

/* Where the tree of a run comes from, unless a directory was named. */
static void
cmd_name_work_dir(const struct cmd_ship *w, struct spec *s)
{
	char *repo;

	if (s->work_dir != NULL && s->work_dir[0] != '\0')
		return;
	if (w->git != NULL)
		cmd_set_work_dir(s, s->workspace.repo);
	else if (w->branch_bundle != NULL) {
		repo = xstrndup(w->branch_bundle,
		    strlen(w->branch_bundle) -
		    strlen(strrchr(w->branch_bundle, ':')));
		cmd_set_work_dir(s, repo);
		free(repo);
	} else if (w->seed != NULL)
		cmd_set_work_dir(s, w->seed);
}

int
cmd_add_work(struct tool *t, const struct cmd_ship *w, struct spec *s,
    int *fdp)
{
	int status = EXIT_DONE;

	if (w->git != NULL)
		status = cmd_add_git(t, w, s);
	else if (w->depth != NULL)
		status = cmd_usage(t, "--depth needs --git");
	if (status == EXIT_DONE && w->branch_bundle != NULL)
		status = cmd_add_branch(t, w->branch_bundle, s, fdp);
	if (status == EXIT_DONE && w->seed != NULL)
		status = cmd_add_seed(t, w->seed, s);
	if (status == EXIT_DONE)
		cmd_name_work_dir(w, s);
	return status == EXIT_DONE ? cmd_add_write_back(t, w, s) : status;
}
