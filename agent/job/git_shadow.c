/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A repository of our own for the way back, in cloop-git.  The tree's
 * repository was in the workload's hands: its configuration, hooks, index,
 * attributes and links are not read at all.  Ours has a configuration,
 * references and an index that we wrote, and uses nothing of the tree's but
 * the objects, which are data, and the working files.  What HEAD names is
 * found here by reading, not by asking git.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "git_job.h"

#define GIT_SHADOW_SYMREFS 5			/* HEAD -> branch -> ... */
#define GIT_SHADOW_REF_MAX 4096
#define GIT_SHADOW_PACKED_MAX (16 * 1048576)
#define GIT_SHADOW_SHALLOW_MAX (4 * 1048576)
#define GIT_SHADOW_INDEX_MAX (64 * 1048576)

static const char git_shadow_config[] =
    "[core]\n\trepositoryformatversion = 0\n"
    "\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n";

/* The line of packed-refs that ends with " NAME". */
static int
git_shadow_find_packed(const char *text, const char *name,
    char id[GIT_HEX_LEN + 1])
{
	size_t len = strlen(name);
	const char *line, *end;

	for (line = text; *line != '\0'; line = *end == '\0' ? end :
	    end + 1) {
		end = strchrnul(line, '\n');
		if ((size_t)(end - line) != GIT_HEX_LEN + 1 + len ||
		    line[GIT_HEX_LEN] != ' ' ||
		    memcmp(line + GIT_HEX_LEN + 1, name, len) != 0)
			continue;
		memcpy(id, line, GIT_HEX_LEN);
		id[GIT_HEX_LEN] = '\0';
		return rule_is_hex(id, GIT_HEX_LEN) ? CL_OK : CL_FORMAT;
	}
	return CL_NOTFOUND;
}

/* One step: CL_OK with an object name, CL_INCOMPLETE with the next name. */
static int
git_shadow_load_ref(int git_fd, char name[GIT_SHADOW_REF_MAX],
    char id[GIT_HEX_LEN + 1])
{
	char *text;
	size_t len;
	int r;

	r = git_tree_load(git_fd, name, GIT_SHADOW_REF_MAX - 1, &text, &len);
	if (r == CL_NOTFOUND) {
		if ((r = git_tree_load(git_fd, "packed-refs",
		    GIT_SHADOW_PACKED_MAX, &text, &len)) == 0)
			r = git_shadow_find_packed(text, name, id);
		free(text);
		return r;
	}
	if (r != 0)
		return r;
	while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL)
		text[--len] = '\0';
	if (strncmp(text, "ref: refs/", 10) == 0 && rule_is_ref(text + 5)) {
		memcpy(name, text + 5, len - 5 + 1);
		r = CL_INCOMPLETE;
	} else if (rule_is_hex(text, GIT_HEX_LEN))
		memcpy(id, text, GIT_HEX_LEN + 1);
	else
		r = CL_FORMAT;
	free(text);
	return r;
}

int
git_shadow_find_head(struct git_job *g, char id[GIT_HEX_LEN + 1])
{
	char name[GIT_SHADOW_REF_MAX] = "HEAD";
	int git_fd, i, r = CL_INCOMPLETE;

	id[0] = '\0';
	if (git_tree_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return git_job_fail(g, ".git is no directory");
	for (i = 0; i < GIT_SHADOW_SYMREFS && r == CL_INCOMPLETE; i++)
		r = git_shadow_load_ref(git_fd, name, id);
	close(git_fd);
	return r == 0 ? CL_OK : git_job_fail(g, "HEAD names no commit");
}

static int
git_shadow_save(struct git_job *g, const char *name, const void *data,
    size_t len)
{
	char path[GIT_JOB_PATH_MAX];
	int fd, r;

	(void)snprintf(path, sizeof(path), "%s/%s", g->shadow, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd == -1 ? CL_SYSTEM : util_write_all(fd, data, len);
	if (fd != -1)
		close(fd);
	return r;
}

/* Where history ends, when the tree's was fetched that way. */
static int
git_shadow_save_shallow(struct git_job *g)
{
	char *text;
	size_t len, i;
	int r;

	r = git_tree_load(g->dir_fd, ".git/shallow", GIT_SHADOW_SHALLOW_MAX,
	    &text, &len);
	if (r == CL_NOTFOUND)
		return CL_OK;
	for (i = 0; r == 0 && i < len; i += GIT_HEX_LEN + 1) {
		if (len - i < GIT_HEX_LEN + 1 || text[i + GIT_HEX_LEN] !=
		    '\n' || strspn(text + i, "0123456789abcdef") !=
		    GIT_HEX_LEN)
			r = CL_FORMAT;
	}
	if (r == 0)
		r = git_shadow_save(g, "shallow", text, len);
	free(text);
	return r;
}

int
git_shadow_open(struct git_job *g, const char *head)
{
	static const char *const dirs[] = { "refs", "refs/heads", "info" };
	char path[GIT_JOB_PATH_MAX], line[GIT_HEX_LEN + 2];
	size_t i;
	int r = CL_OK;

	(void)snprintf(g->shadow, sizeof(g->shadow), "/tmp/cloop-git-XXXXXX");
	if (mkdtemp(g->shadow) == NULL) {
		g->shadow[0] = '\0';
		return git_job_fail(g, "/tmp: %s", strerror(errno));
	}
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && r == 0; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", g->shadow,
		    dirs[i]);
		r = mkdir(path, 0700) == -1 ? CL_SYSTEM : CL_OK;
	}
	(void)snprintf(line, sizeof(line), "%s\n", head);
	if (r != 0 ||
	    (r = git_shadow_save(g, "config", git_shadow_config,
	    sizeof(git_shadow_config) - 1)) || (r = git_shadow_save(g, "HEAD",
	    line, strlen(line))) != 0 || (r = git_shadow_save_shallow(g)) != 0)
		return git_job_fail(g, "a repository of our own: %s",
		    cl_strerror(r));
	return CL_OK;
}

void
git_shadow_close(struct git_job *g)
{
	int fd;

	if (g->shadow[0] == '\0')
		return;
	if ((fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) != -1) {
		(void)git_tree_remove(fd, g->shadow + strlen("/tmp/"));
		close(fd);
	}
	g->shadow[0] = '\0';
}

/* Directories below .git, real ones or none. */
static void
git_shadow_make_dirs(int git_fd, const char *path)
{
	char part[GIT_JOB_TAIL_MAX];
	size_t n;

	for (n = strcspn(path, "/"); n < sizeof(part) && path[n] != '\0';
	    n += 1 + strcspn(path + n + 1, "/")) {
		memcpy(part, path, n);
		part[n] = '\0';
		(void)mkdirat(git_fd, part, 0700);
	}
}

static void
git_shadow_save_index(struct git_job *g, int git_fd)
{
	char *text;
	size_t len;
	int fd;

	if ((fd = open(g->shadow, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return;
	if (git_tree_load(fd, "index", GIT_SHADOW_INDEX_MAX, &text, &len) == 0)
		(void)git_tree_save(git_fd, "index", text, len);
	free(text);
	close(fd);
}

void
git_shadow_save_back(struct git_job *g, const char *branch, const char *commit)
{
	char ref[GIT_JOB_TAIL_MAX], line[GIT_JOB_TAIL_MAX + 8];
	int git_fd;

	if (git_tree_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return;
	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", branch);
	(void)snprintf(line, sizeof(line), "%s\n", commit);
	git_shadow_make_dirs(git_fd, ref);
	if (git_tree_save(git_fd, ref, line, strlen(line)) == 0) {
		(void)snprintf(line, sizeof(line), "ref: %s\n", ref);
		if (git_tree_save(git_fd, "HEAD", line, strlen(line)) == 0)
			git_shadow_save_index(g, git_fd);
	}
	close(git_fd);
}
