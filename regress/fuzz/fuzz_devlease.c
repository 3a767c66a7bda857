/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A device that is lent something, over its life: files of up to four leases
 * in up to three directories, then revokes, refreshes and crashes of the
 * agent in any order, each as the message that asks for it (leasemsg.h).
 * Beside it a model says what must be on disk after every step.  What the
 * workload could print at any time is redacted.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/monitor/vault.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/model/leasemsg.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"
#include "common/output/redact.h"

#define NFILES_MAX 6
#define NBINDINGS_MAX 6
#define NSTEPS_MAX 12
#define NDIRS 3

static const char *const leases[] = { "l1", "l2", " l1", "" };
static const char *const grants[] = { "", "g1", "g2", "g1 ", " " };
static const char *const dirs[NDIRS] = { "/d/cloop-lease-a",
	"/d/cloop-lease-b", "/d/cloop-lease-a/in" };
static const char *const names[] = { "cfg", "tok", "n" };
#define PICK(list) (list[take() % (sizeof(list) / sizeof(list[0]))])

static const uint8_t *in;
static size_t in_len;

static char base[] = "/dev/shm/cloop-fuzz-XXXXXX";
static int base_fd = -1;

static struct spec spec;
static struct holding holding;
static struct redact *values;
static struct {
	int is_live;
	char text[32];
} model[NFILES_MAX];
static unsigned int last_value;

static unsigned int
take(void)
{
	if (in_len == 0)
		return 0;
	in_len--;
	return *in++;
}

static char *
copy_of(const char *s)
{
	char *p = strdup(s);

	if (p == NULL)
		abort();
	return p;
}

static void
remove_base(void)
{
	(void)rmdir(base);
}

/* A value no other file ever had. */
static void
make_value(char text[32])
{
	snprintf(text, 32, "value-%08u-secret", ++last_value);
	FUZZ_CHECK(redact_add(values, text, strlen(text)) == 0);
}

/* ------------------------------------------------------------------- start */

static void
add_file(void)
{
	size_t n = spec.nsecret_files;
	struct spec_secret_file *f;

	spec.secret_files = reallocarray(spec.secret_files, n + 1,
	    sizeof(*f));
	if (spec.secret_files == NULL)
		abort();
	f = &spec.secret_files[spec.nsecret_files++];
	memset(f, 0, sizeof(*f));
	f->lease_id = copy_of(PICK(leases));
	f->grant_id = copy_of(PICK(grants));
	f->dir = copy_of(PICK(dirs));
	f->name = copy_of(PICK(names));
	f->mode = take() % 2 == 0 ? 0 : 0400;
	make_value(model[n].text);
	if (secret_init(&f->content, model[n].text, strlen(model[n].text),
	    32) != 0)
		abort();
}

static void
add_binding(void)
{
	struct spec_secret *b;
	char path[64];

	spec.secrets = reallocarray(spec.secrets, spec.nsecrets + 1,
	    sizeof(*b));
	if (spec.secrets == NULL)
		abort();
	b = &spec.secrets[spec.nsecrets++];
	memset(b, 0, sizeof(*b));
	b->lease_id = copy_of(PICK(leases));
	b->grant_id = copy_of(PICK(grants));
	b->dir = copy_of(PICK(dirs));
	snprintf(path, sizeof(path), "%s/%s", PICK(dirs), take() % 16 == 0 ?
	    "../../etc/passwd" : PICK(names));
	b->files = calloc(1, sizeof(*b->files));
	if (b->files == NULL)
		abort();
	b->files[b->nfiles++] = copy_of(path);
}

/* As start.c does it; 0 when the frame would be refused. */
static int
place_all(void)
{
	size_t i, n;

	for (n = take() % NFILES_MAX + 1, i = 0; i < n; i++)
		add_file();
	if (spec_check_secret_files(spec.secret_files, spec.nsecret_files,
	    NULL) != 0)
		return 0;
	for (n = take() % NBINDINGS_MAX, i = 0; i < n; i++)
		add_binding();
	if (secretfiles_make_dirs(base, &spec, (uid_t)-1, (gid_t)-1,
	    &holding.set) != 0 ||
	    secretfiles_relocate(&holding.set, &spec) != 0 ||
	    holding_bind(&holding, &spec) != 0 ||
	    secretfiles_place(&holding.set, &spec) != 0)
		abort();
	for (i = 0; i < spec.nsecret_files; i++)
		model[i].is_live = 1;
	return 1;
}

/* ------------------------------------------------------------------- model */

static int
is_id(const char *a, const char *b)
{
	size_t alen, blen;

	a = a == NULL ? "" : a + strspn(a, " ");
	b = b == NULL ? "" : b + strspn(b, " ");
	alen = strcspn(a, " ");
	blen = strcspn(b, " ");
	return alen == blen && memcmp(a, b, alen) == 0;
}

/* Whether binding i names file k (both relocated). */
static int
names_file(size_t i, size_t k)
{
	const struct spec_secret *b = &spec.secrets[i];
	const struct secretfile *f = &holding.set.files[k];
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", holding.set.dirs[f->dir].path,
	    f->name);
	return spec_is_revocable(b) && strcmp(b->files[0], path) == 0;
}

/* Calls for every (lease, grant) that file k is filed under. */
static int
is_filed(size_t k, const char *lease, const char *grant, int any_grant)
{
	const struct spec_secret_file *f = &spec.secret_files[k];
	int is_named = 0, found = 0;
	size_t i;

	for (i = 0; i < spec.nsecrets; i++) {
		if (!names_file(i, k))
			continue;
		is_named = 1;
		found |= is_id(spec.secrets[i].lease_id, lease) &&
		    (any_grant || is_id(spec.secrets[i].grant_id, grant));
	}
	if (!is_named && !is_id(f->lease_id, ""))
		found = is_id(f->lease_id, lease) &&
		    (any_grant || is_id(f->grant_id, grant));
	return found;
}

/* Whether anything, a binding without files of ours included, is there. */
static int
has_entry(const char *lease, const char *grant, int any_grant)
{
	size_t i;
	int found = 0;

	for (i = 0; i < spec.nsecrets; i++)
		found |= spec_is_revocable(&spec.secrets[i]) &&
		    is_id(spec.secrets[i].lease_id, lease) &&
		    (any_grant || is_id(spec.secrets[i].grant_id, grant));
	for (i = 0; i < spec.nsecret_files; i++)
		found |= is_filed(i, lease, grant, any_grant);
	return found;
}

static void
check_file(size_t k)
{
	const struct secretfile *f = &holding.set.files[k];
	char path[512], text[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", holding.set.dirs[f->dir].path,
	    f->name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FUZZ_CHECK((fd != -1) == model[k].is_live);
	FUZZ_CHECK(f->is_gone == !model[k].is_live);
	if (fd == -1)
		return;
	n = read(fd, text, sizeof(text));
	close(fd);
	FUZZ_CHECK(n == (ssize_t)strlen(model[k].text));
	FUZZ_CHECK(memcmp(text, model[k].text, (size_t)n) == 0);
}

static void
check_disk(void)
{
	size_t i, k, live;

	for (k = 0; k < holding.set.nfiles; k++)
		check_file(k);
	for (i = 0; i < holding.set.ndirs; i++) {
		for (k = live = 0; k < holding.set.nfiles; k++)
			live += holding.set.files[k].dir == i &&
			    model[k].is_live;
		FUZZ_CHECK((access(holding.set.dirs[i].path, F_OK) == 0) ==
		    (live > 0));
	}
}

/* ------------------------------------------------------------------- steps */

/* A message there and back, as it goes through the memfd. */
static void
carry(const struct field_table *t, const void *from, void *to)
{
	struct buf b, r;

	buf_init(&b, MAX_SPEC_LEN);
	field_put(t, from, &b);
	FUZZ_CHECK(buf_error(&b) == 0);
	buf_init_read(&r, b.data, b.len);
	FUZZ_CHECK(field_get(t, &r, to) == 0 && buf_end(&r) == 0);
	buf_clear(&b);
}

static void
step_revoke(void)
{
	struct lease_revoke ask, req;
	struct secretnote note = { "" };
	int64_t want = 0;
	int known, whole, want_known, want_whole;
	size_t k;

	memset(&ask, 0, sizeof(ask));
	ask.lease_id = (char *)(uintptr_t)PICK(leases);
	ask.grant_id = (char *)(uintptr_t)PICK(grants);
	carry(&lease_revoke_table, &ask, &req);
	if (is_id(req.lease_id, "")) {		/* refused before */
		field_clear(&lease_revoke_table, &req);
		return;
	}
	/* An unknown grant of a lease that has things of no grant: all. */
	want_whole = is_id(req.grant_id, "") ||
	    (!has_entry(req.lease_id, req.grant_id, 0) &&
	    has_entry(req.lease_id, "", 0));
	want_known = want_whole ? has_entry(req.lease_id, "", 1) :
	    has_entry(req.lease_id, req.grant_id, 0);
	known = vault_decide(holding_find(&holding, req.lease_id,
	    req.grant_id), req.grant_id, &whole);
	FUZZ_CHECK(known == want_known);
	FUZZ_CHECK(!known || whole == want_whole);
	if (known) {
		for (k = 0; k < holding.set.nfiles; k++) {
			if (!model[k].is_live || !is_filed(k, req.lease_id,
			    req.grant_id, whole))
				continue;
			model[k].is_live = 0;
			want++;
		}
		FUZZ_CHECK(holding_scrub(&holding, req.lease_id, req.grant_id,
		    whole, &note) == want);
	}
	field_clear(&lease_revoke_table, &req);
}

/* The only live file with that name, or the only one there as declared. */
static int
find_model(const char *lease, const char *dir, const char *name, size_t *kp)
{
	const struct secretfile *f;
	size_t k, n = 0, exact = 0;

	for (k = 0; k < holding.set.nfiles; k++) {
		f = &holding.set.files[k];
		if (!model[k].is_live || strcmp(f->name, name) != 0 ||
		    !is_filed(k, lease, "", 1))
			continue;
		if (strcmp(holding.set.dirs[f->dir].declared, dir) == 0) {
			exact++;
			*kp = k;
		} else if (exact == 0)
			*kp = k;
		n++;
	}
	return n == 0 ? CL_NOTFOUND : n == 1 || exact == 1 ? CL_OK : CL_LIMIT;
}

static void
step_refresh(void)
{
	struct spec_secret_file file;
	struct lease_refresh ask, req;
	char text[32];
	size_t want = 0, got;
	int r;

	memset(&ask, 0, sizeof(ask));
	memset(&file, 0, sizeof(file));
	ask.lease_id = (char *)(uintptr_t)PICK(leases);
	file.dir = (char *)(uintptr_t)PICK(dirs);
	file.name = (char *)(uintptr_t)PICK(names);
	make_value(text);		/* hidden before it is there */
	file.content.data = (unsigned char *)text;
	file.content.len = strlen(text);
	ask.files = &file;
	ask.nfiles = 1;
	carry(&lease_refresh_table, &ask, &req);
	r = find_model(req.lease_id, req.files[0].dir, req.files[0].name,
	    &want);
	FUZZ_CHECK(holding_find_file(&holding, req.lease_id,
	    req.files[0].dir, req.files[0].name, &got) == r);
	if (r == CL_OK) {
		FUZZ_CHECK(got == want);
		FUZZ_CHECK(secretfiles_replace(&holding.set, got,
		    &req.files[0].content) == 0);
		memcpy(model[got].text, text, sizeof(text));
	}
	field_clear(&lease_refresh_table, &req);
}

/* The next agent knows it from the record. */
static void
step_crash(void)
{
	struct holding back;

	FUZZ_CHECK(holding_save(&holding, base_fd) == 0);
	FUZZ_CHECK(holding_load(&back, base_fd) == 0);
	FUZZ_CHECK(unlinkat(base_fd, VAULT_RECORD, 0) == 0);
	holding_clear(&holding);
	holding = back;
}

/* What a workload may print now, in pieces, holds no value. */
static int
on_piece(void *arg, const struct redact_piece *p)
{
	FUZZ_CHECK(memmem(p->data, p->len, "-secret", 7) == NULL);
	(void)arg;
	return 0;
}

static void
step_print(void)
{
	static struct redact_stream rs;
	size_t k, n, half = take() % 22;

	redact_stream_init(&rs);
	for (k = 0; k < holding.set.nfiles; k++) {
		n = strlen(model[k].text);
		FUZZ_CHECK(half <= n);
		FUZZ_CHECK(redact_put(&rs, values, model[k].text, half,
		    on_piece, NULL) == 0);
		FUZZ_CHECK(redact_put(&rs, values, model[k].text + half,
		    n - half, on_piece, NULL) == 0);
	}
	FUZZ_CHECK(redact_end(&rs, values, on_piece, NULL) == 0);
	redact_stream_clear(&rs);
}

static void
set_up(void)
{
	if (base_fd == -1) {
		if (mkdtemp(base) == NULL || (base_fd = open(base,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
			abort();
		(void)atexit(remove_base);
	}
	memset(model, 0, sizeof(model));
	last_value = 0;
	if ((values = redact_new()) == NULL)
		abort();
	spec_init(&spec);
	holding_init(&holding);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const steps[])(void) = { step_revoke, step_refresh,
		step_crash, step_print };
	struct secretnote note = { "" };
	size_t i;

	in = data;
	in_len = len;
	set_up();
	if (place_all()) {
		check_disk();
		for (i = 0; i < NSTEPS_MAX && in_len > 0; i++) {
			steps[take() % 4]();
			check_disk();
		}
		secretfiles_wipe(&holding.set, &note);
		FUZZ_CHECK(*note.text == '\0');
		for (i = 0; i < holding.set.ndirs; i++)
			FUZZ_CHECK(access(holding.set.dirs[i].path, F_OK) !=
			    0);
	}
	spec_clear(&spec);
	holding_clear(&holding);
	redact_free(values);
	return 0;
}
