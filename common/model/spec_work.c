/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rules of a spec, second half: workspace, write-back, seed, secret files,
 * sandbox settings and virtual executors.  Runs where spec_check.c runs;
 * changes nothing.
 */
#include "spec.h"

#include <string.h>
#include <strings.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"

#define MAX_DEPTH 100000
#define MAX_SHALLOW 256
#define MAX_COMMIT_MESSAGE 4096
#define MAX_SELECTORS 16
#define SHOWN "%.*s"			/* a value from outside, cut */
#define SHOW(s) 128, (s) == NULL ? "" : (s)

static int
spec_check_git(const struct spec_workspace *w, char **whyp)
{
	if (!rule_is_repo_url(w->repo))
		return rule_fail(whyp, "workspace.repo: is not an https URL "
		    "of a repository without user, query and fragment");
	if (!rule_is_ref(w->ref))
		return rule_fail(whyp, "workspace.ref: \"" SHOWN
		    "\" is not a git ref", SHOW(w->ref));
	if (w->depth < 0 || w->depth > MAX_DEPTH)
		return rule_fail(whyp, "workspace.depth: %lld is not 0 to %d",
		    (long long)w->depth, MAX_DEPTH);
	if (!rule_is_empty(w->credential_grant) &&
	    !rule_is_charset(w->credential_grant, strlen(w->credential_grant),
	    "._:-", 128))
		return rule_fail(whyp, "workspace.credential_grant: is not a "
		    "grant name");
	if (!rule_is_empty(w->upstream) && !rule_is_repo_url(w->upstream))
		return rule_fail(whyp, "workspace.upstream: is not an https "
		    "URL of a repository without user, query and fragment");
	return CL_OK;
}

static int
spec_check_not_git(const struct spec_workspace *w, char **whyp)
{
	if (!rule_is_empty(w->repo) || !rule_is_empty(w->ref) ||
	    w->depth != 0 || !rule_is_empty(w->credential_grant) ||
	    !rule_is_empty(w->upstream))
		return rule_fail(whyp, "workspace: repo, ref, depth, "
		    "credential_grant and upstream need kind git, not \""
		    SHOWN "\"", SHOW(w->kind));
	return CL_OK;
}

static int
spec_check_shallow(const struct spec_bundle *b, int is_git, char **whyp)
{
	size_t i;

	if (b->nshallow > 0 && (is_git || b->bytes == 0))
		return rule_fail(whyp, "workspace.branch_bundle.shallow: "
		    "only for kind bundle");
	if (b->nshallow > MAX_SHALLOW)
		return rule_fail(whyp, "workspace.branch_bundle.shallow: "
		    "%zu entries, at most %d", b->nshallow, MAX_SHALLOW);
	for (i = 0; i < b->nshallow; i++) {
		if (!rule_is_hex(b->shallow[i], 40))
			return rule_fail(whyp,
			    "workspace.branch_bundle.shallow[%zu]: \"" SHOWN
			    "\" is not a commit", i, SHOW(b->shallow[i]));
	}
	return CL_OK;
}

static int
spec_check_bundle(const struct spec_workspace *w, char **whyp)
{
	const struct spec_bundle *b = w->branch_bundle;
	int is_git = rule_is_equal(w->kind, "git");

	if (!is_git && !rule_is_equal(w->kind, "bundle"))
		return rule_fail(whyp, "workspace.branch_bundle: not with "
		    "kind \"" SHOWN "\"", SHOW(w->kind));
	if (!rule_is_branch(b->branch))
		return rule_fail(whyp, "workspace.branch_bundle.branch: \""
		    SHOWN "\" is not a branch below cloop/", SHOW(b->branch));
	if (!rule_is_hex(b->head, 40))
		return rule_fail(whyp, "workspace.branch_bundle.head: \""
		    SHOWN "\" is not a commit", SHOW(b->head));
	if (b->bytes < (is_git ? 0 : 1) || b->bytes > MAX_BUNDLE_LEN)
		return rule_fail(whyp, "workspace.branch_bundle.bytes: %lld "
		    "is out of range", (long long)b->bytes);
	if (b->bytes > 0 ? !rule_is_hex(b->sha256, 64) :
	    !rule_is_empty(b->sha256))
		return rule_fail(whyp, "workspace.branch_bundle.sha256: goes "
		    "with bytes, 64 hex digits");
	if (is_git && !rule_is_hex(w->ref, 40))
		return rule_fail(whyp, "workspace.ref: \"" SHOWN "\" must be "
		    "a commit when a branch is shipped", SHOW(w->ref));
	if (is_git && b->bytes == 0 && !rule_is_equal(b->head, w->ref))
		return rule_fail(whyp, "workspace.branch_bundle.head: \""
		    SHOWN "\" is not ref, and nothing is shipped",
		    SHOW(b->head));
	return spec_check_shallow(b, is_git, whyp);
}

int
spec_check_seed(const struct spec *s, char **whyp)
{
	const uint8_t *p = s->project_seed;

	if (s->project_seed_len > MAX_SEED_LEN)
		return rule_fail(whyp, "project_seed: %zu bytes, at most %d",
		    s->project_seed_len, MAX_SEED_LEN);
	if (s->project_seed_len > 0 &&
	    (s->project_seed_len < 2 || p[0] != 0x1f || p[1] != 0x8b))
		return rule_fail(whyp, "project_seed: is not gzip");
	return CL_OK;
}

int
spec_check_workspace(const struct spec *s, char **whyp)
{
	const struct spec_workspace *w = &s->workspace;
	int is_git = rule_is_equal(w->kind, "git"), r;

	if (!rule_is_empty(w->kind) &&
	    !rule_is_one_of(w->kind, "bind git executor bundle none"))
		return rule_fail(whyp, "workspace.kind: \"" SHOWN
		    "\" is unknown", SHOW(w->kind));
	r = is_git ? spec_check_git(w, whyp) : spec_check_not_git(w, whyp);
	if (r != 0)
		return r;
	if (w->size_limit_mb < 0)
		return rule_fail(whyp, "workspace.size_limit_mb: %lld is "
		    "negative", (long long)w->size_limit_mb);
	if (rule_is_equal(w->kind, "bundle") && w->branch_bundle == NULL)
		return rule_fail(whyp, "workspace.branch_bundle: is missing");
	if (w->branch_bundle != NULL &&
	    (r = spec_check_bundle(w, whyp)) != 0)
		return r;
	if (s->project_seed_len > 0 && rule_is_equal(w->kind, "bind"))
		return rule_fail(whyp, "project_seed: not with workspace "
		    "kind bind");
	if (is_git && s->disable_network)
		return rule_fail(whyp, "workspace.kind: git needs a network, "
		    "and disable_network is set");
	return CL_OK;
}

static int
spec_check_write_back_fields(const struct spec_write_back *b, char **whyp)
{
	if (rule_is_empty(b->mode)) {
		if (!rule_is_empty(b->branch) || !rule_is_empty(b->message) ||
		    b->max_bundle_bytes != 0)
			return rule_fail(whyp,
			    "write_back: has members but no mode");
		return CL_OK;
	}
	if (!rule_is_one_of(b->mode, "push bundle"))
		return rule_fail(whyp, "write_back.mode: \"" SHOWN
		    "\" is unknown", SHOW(b->mode));
	if (!rule_is_branch(b->branch))
		return rule_fail(whyp, "write_back.branch: \"" SHOWN
		    "\" is not a branch below cloop/", SHOW(b->branch));
	if (b->message != NULL && strlen(b->message) > MAX_COMMIT_MESSAGE)
		return rule_fail(whyp, "write_back.message: %zu bytes, at "
		    "most %d", strlen(b->message), MAX_COMMIT_MESSAGE);
	if (b->max_bundle_bytes < 0 || b->max_bundle_bytes > MAX_BUNDLE_LEN ||
	    (rule_is_equal(b->mode, "push") && b->max_bundle_bytes != 0))
		return rule_fail(whyp, "write_back.max_bundle_bytes: %lld is "
		    "out of range", (long long)b->max_bundle_bytes);
	return CL_OK;
}

int
spec_check_write_back(const struct spec *s, char **whyp)
{
	const struct spec_workspace *w = &s->workspace;
	const struct spec_write_back *b = &s->write_back;
	int r;

	if ((r = spec_check_write_back_fields(b, whyp)) != 0)
		return r;
	if (rule_is_empty(b->mode))
		return CL_OK;
	if (rule_is_equal(b->mode, "push") && s->disable_network)
		return rule_fail(whyp, "write_back.mode: push needs a "
		    "network, and disable_network is set");
	if (!rule_is_one_of(w->kind, "git bundle"))
		return rule_fail(whyp, "write_back: not with workspace kind "
		    "\"" SHOWN "\"", SHOW(w->kind));
	if (rule_is_equal(w->kind, "git") && !rule_is_hex(w->ref, 40))
		return rule_fail(whyp, "write_back: workspace.ref \"" SHOWN
		    "\" must be a commit", SHOW(w->ref));
	if (w->branch_bundle != NULL &&
	    !rule_is_equal(w->branch_bundle->branch, b->branch))
		return rule_fail(whyp, "write_back.branch: \"" SHOWN
		    "\" is not the shipped branch", SHOW(b->branch));
	return CL_OK;
}

static int
spec_check_secret_file(const struct spec_secret_file *f, char **whyp)
{
	if (rule_is_empty(f->name) || rule_is_one_of(f->name, ". ..") ||
	    strpbrk(f->name, "/\\") != NULL || rule_has_control(f->name))
		return rule_fail(whyp, "secret_files: \"" SHOWN
		    "\" is not a file name", SHOW(f->name));
	if (!rule_is_abs_path(f->dir) || rule_has_control(f->dir))
		return rule_fail(whyp, "secret_files: \"" SHOWN
		    "\": dir is not a clean absolute path", SHOW(f->name));
	if ((f->mode & ~(uint64_t)0777) != 0 || (f->mode & 0077) != 0)
		return rule_fail(whyp, "secret_files: \"" SHOWN
		    "\": mode 0%llo", SHOW(f->name),
		    (unsigned long long)f->mode);
	if (f->content.len > MAX_SECRET_FILE_LEN)
		return rule_fail(whyp, "secret_files: \"" SHOWN
		    "\": %zu bytes, at most %d", SHOW(f->name),
		    f->content.len, MAX_SECRET_FILE_LEN);
	return CL_OK;
}

int
spec_check_secret_files(const struct spec_secret_file *files, size_t n,
    char **whyp)
{
	size_t i, k, left = MAX_SECRET_FILES_LEN;
	int r;

	for (i = 0; i < n; i++) {
		if ((r = spec_check_secret_file(&files[i], whyp)) != 0)
			return r;
		for (k = 0; k < i; k++) {
			if (rule_is_equal(files[k].name, files[i].name) &&
			    rule_is_equal(files[k].dir, files[i].dir))
				return rule_fail(whyp, "secret_files: \"" SHOWN
				    "\" appears twice", SHOW(files[i].name));
		}
		if (files[i].content.len > left)
			return rule_fail(whyp, "secret_files: more than %d "
			    "bytes together", MAX_SECRET_FILES_LEN);
		left -= files[i].content.len;
	}
	return CL_OK;
}

/* The trimmed value is empty, or of these characters and not "-...". */
static int
spec_is_sandbox_name(const char *s, const char *extra, size_t max)
{
	size_t len;
	const char *p = rule_trim(s, &len);

	return len == 0 || (*p != '-' && rule_is_charset(p, len, extra, max));
}

/* The trimmed value is empty or one of the words. */
static int
spec_is_sandbox_word(const char *s, const char *words)
{
	char word[16];
	size_t len;
	const char *p = rule_trim(s, &len);

	if (len >= sizeof(word))
		return 0;
	memcpy(word, p, len);
	word[len] = '\0';
	return len == 0 || rule_is_one_of(word, words);
}

static int
spec_is_image(const char *s)
{
	size_t len, i;
	const char *p = rule_trim(s, &len);

	if (len > 512 || (len > 0 && *p == '-'))
		return 0;
	for (i = 0; i < len; i++) {
		if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f)
			return 0;
	}
	return 1;
}

int
spec_check_sandbox(const struct spec_sandbox *sb, char **whyp)
{
	if (!spec_is_sandbox_word(sb->mode, "host container"))
		return rule_fail(whyp, "sandbox.mode: \"" SHOWN
		    "\" is not host or container", SHOW(sb->mode));
	if (!spec_is_sandbox_word(sb->engine, "docker podman nerdctl"))
		return rule_fail(whyp, "sandbox.engine: \"" SHOWN
		    "\" is not docker, podman or nerdctl", SHOW(sb->engine));
	if (!spec_is_sandbox_name(sb->runtime, "._-", 64))
		return rule_fail(whyp, "sandbox.runtime: \"" SHOWN
		    "\" is not a runtime name", SHOW(sb->runtime));
	if (!spec_is_image(sb->image))
		return rule_fail(whyp, "sandbox.image: \"" SHOWN
		    "\" is not an image reference", SHOW(sb->image));
	if (!spec_is_sandbox_name(sb->network, "_.-", 128) ||
	    (!rule_is_blank(sb->network) &&
	    spec_is_sandbox_word(sb->network, "host")))
		return rule_fail(whyp, "sandbox.network: \"" SHOWN
		    "\" is not a network a sandbox may join",
		    SHOW(sb->network));
	return CL_OK;
}

/* A runtime with a kernel of its own cannot be given devices. */
static int
spec_is_kernel_isolated(const char *runtime)
{
	static const char *const names[] = { "kata", "runsc", "gvisor" };
	size_t i, len, n;
	const char *p = rule_trim(runtime, &len), *q;

	if (len == 14 && strncasecmp(p, "katacontainers", 14) == 0)
		return 1;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = strlen(names[i]);
		if (len >= n && strncasecmp(p, names[i], n) == 0 &&
		    (len == n || p[n] == '-' || p[n] == '.'))
			return 1;
		/* "*.name.*" */
		for (q = p; (size_t)(q - p) + n + 2 <= len; q++) {
			if (q[0] == '.' && q[n + 1] == '.' &&
			    strncasecmp(q + 1, names[i], n) == 0)
				return 1;
		}
	}
	return 0;
}

/* Four hex digits, an optional 0x before them. */
static int
spec_is_usb_id(const char *s)
{
	size_t len;
	const char *p = rule_trim(s, &len);

	if (len == 6 && strncasecmp(p, "0x", 2) == 0) {
		p += 2;
		len -= 2;
	}
	return len == 4 && strspn(p, "0123456789abcdefABCDEF") >= 4;
}

static int
spec_is_group(const char *s)
{
	size_t len = strlen(s);

	if (strspn(s, "0123456789") == len)
		return len <= 10 && strspn(s, "0") < len;
	return strcmp(s, "root") != 0 && len <= 32 &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz_") >= 1 &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static int
spec_check_selector(const struct spec_selector *d, char **whyp)
{
	if (!rule_is_device_name(d->name))
		return rule_fail(whyp, "virtual.devices: \"" SHOWN
		    "\" is not a device name", SHOW(d->name));
	if ((d->usb == NULL) == rule_is_empty(d->path))
		return rule_fail(whyp, "virtual.devices: \"" SHOWN
		    "\" needs either usb or path", SHOW(d->name));
	if (d->usb != NULL && (!spec_is_usb_id(d->usb->vendor_id) ||
	    !spec_is_usb_id(d->usb->product_id) ||
	    (!rule_is_empty(d->usb->port) &&
	    !rule_is_usb_port(d->usb->port)) ||
	    rule_has_control(d->usb->serial)))
		return rule_fail(whyp, "virtual.devices: \"" SHOWN
		    "\": usb is malformed", SHOW(d->name));
	if (d->usb == NULL && !rule_is_dev_path(d->path))
		return rule_fail(whyp, "virtual.devices: \"" SHOWN
		    "\": path is not below /dev", SHOW(d->name));
	if (!rule_is_empty(d->permissions) &&
	    !rule_is_one_of(d->permissions, "r rw rwm"))
		return rule_fail(whyp, "virtual.devices: \"" SHOWN
		    "\": permissions are not r, rw or rwm", SHOW(d->name));
	if (!rule_is_empty(d->group) && !spec_is_group(d->group))
		return rule_fail(whyp, "virtual.devices: \"" SHOWN
		    "\": group is not allowed", SHOW(d->name));
	return CL_OK;
}

/* ^[a-z0-9][a-z0-9-]{2,62}$ */
static int
spec_is_virtual_id(const char *s)
{
	size_t len = s == NULL ? 0 : strlen(s);

	return len >= 3 && len <= 63 && *s != '-' &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int
spec_check_virtual(const struct spec_virtual *v,
    const struct spec_sandbox *sb, char **whyp)
{
	size_t i, k;
	int r;

	if (!spec_is_virtual_id(v->id))
		return rule_fail(whyp, "virtual.id: \"" SHOWN
		    "\" is not an id", SHOW(v->id));
	if (rule_is_blank(sb->mode) ||
	    !spec_is_sandbox_word(sb->mode, "container"))
		return rule_fail(whyp, "virtual: needs sandbox mode "
		    "container");
	if (v->firewall != NULL &&
	    !spec_is_sandbox_word(sb->network, "bridge"))
		return rule_fail(whyp, "virtual.firewall: not on the network "
		    "\"" SHOWN "\"", SHOW(sb->network));
	if (v->firewall != NULL && (r = spec_check_firewall(
	    "virtual.firewall", v->firewall, whyp)) != 0)
		return r;
	if (v->ndevices > MAX_SELECTORS)
		return rule_fail(whyp, "virtual.devices: %zu entries, at "
		    "most %d", v->ndevices, MAX_SELECTORS);
	if (v->ndevices > 0 && spec_is_kernel_isolated(sb->runtime))
		return rule_fail(whyp, "virtual.devices: not with runtime \""
		    SHOWN "\"", SHOW(sb->runtime));
	for (i = 0; i < v->ndevices; i++) {
		if ((r = spec_check_selector(&v->devices[i], whyp)) != 0)
			return r;
		for (k = 0; k < i; k++) {
			if (rule_is_equal(v->devices[k].name,
			    v->devices[i].name))
				return rule_fail(whyp, "virtual.devices: \""
				    SHOWN "\" appears twice",
				    SHOW(v->devices[i].name));
		}
	}
	return CL_OK;
}

int
spec_check_siblings(const struct spec *s, char **whyp)
{
	int r;

	*whyp = NULL;
	r = spec_check_secret_files(s->secret_files, s->nsecret_files, whyp);
	if (r == 0)
		r = spec_check_seed(s, whyp);
	if (r == 0)
		r = spec_check_sandbox(&s->sandbox, whyp);
	if (r == 0 && s->virtual != NULL)
		r = spec_check_virtual(s->virtual, &s->sandbox, whyp);
	return r;
}
