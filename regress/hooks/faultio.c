/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A failing disk, for the tests: preloaded into the programs of build/hooks,
 * it lets chosen calls on chosen files fail.  $CLOOP_FAULTS names a file of
 * rules that every process maps before it is confined and the test rewrites
 * at will.  No system call is made that the program would not make anyway
 * (fstat on files in cloopd-net, whose names nobody there knows).
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NRULES 8
#define NFDS 1024

struct rule {
	char program[16];	/* as the kernel knows it; "" ends the list */
	char op[16];		/* open, write, pwrite (in cloop-shim), sync,
				 * rename, mkdir */
	char name[64];		/* text in the file's name; "": any */
	int32_t len;		/* of a write: this; -n: not n; 0: any */
	int32_t skip;		/* so many pass first */
	int32_t count;		/* so many fail */
	int32_t error;
	int32_t half;		/* a write takes half of it first */
	int32_t nfired;
	int32_t spare[2];
};

static struct rule *rules;
static char fd_names[NFDS][64];	/* the ends of names */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((__constructor__)) static void
fault_open(void)
{
	const char *path = getenv("CLOOP_FAULTS");
	void *p;
	int fd;

	if (path == NULL ||
	    (fd = REAL(open)(path, O_RDWR | O_CLOEXEC)) == -1)
		return;
	p = mmap(NULL, NRULES * sizeof(*rules), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		rules = p;
	close(fd);
}

static const char *
fault_get_end(const char *path)
{
	size_t len = strlen(path);

	return len > 63 ? path + len - 63 : path;
}

static void
fault_set_name(int fd, const char *path)
{
	if (fd >= 0 && fd < NFDS && path != NULL)
		snprintf(fd_names[fd], sizeof(fd_names[fd]), "%s",
		    fault_get_end(path));
}

/* The rule that hits this call, or NULL. */
static struct rule *
fault_find(const char *op, const char *name, size_t len)
{
	struct rule *r;

	for (r = rules; r != NULL && r < rules + NRULES; r++) {
		if (r->program[0] == '\0')
			return NULL;
		if (strcmp(r->op, op) != 0 ||
		    strncmp(r->program, program_invocation_short_name,
		    sizeof(r->program) - 1) != 0 ||
		    (r->name[0] != '\0' && (name == NULL ||
		    strstr(name, r->name) == NULL)) ||
		    (r->len > 0 && len != (size_t)r->len) ||
		    (r->len < 0 && len == (size_t)-r->len))
			continue;
		if (__atomic_fetch_sub(&r->skip, 1, __ATOMIC_SEQ_CST) > 0)
			continue;
		if (__atomic_fetch_sub(&r->count, 1, __ATOMIC_SEQ_CST) <= 0)
			continue;
		__atomic_fetch_add(&r->nfired, 1, __ATOMIC_SEQ_CST);
		return r;
	}
	return NULL;
}

static int
fault_fail(const struct rule *r)
{
	errno = r->error;
	return -1;
}

/* A descriptor that came over a channel has no name: is it a file at all? */
static int
fault_is_file(int fd)
{
	struct stat st;

	if (fd < 0 || fd >= NFDS)
		return 0;
	if (fd_names[fd][0] != '\0')
		return 1;
	return fd > 2 && strcmp(program_invocation_short_name,
	    "cloopd-net") == 0 &&
	    fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static struct rule *
fault_find_write(int fd, size_t len)
{
	if (rules == NULL || rules[0].program[0] == '\0' ||
	    !fault_is_file(fd))
		return NULL;
	return fault_find("write", fd_names[fd], len);
}

#define OPEN_BODY(call, path)						\
	va_list ap;							\
	mode_t mode = 0;						\
	struct rule *r;							\
	int fd;								\
									\
	if ((flags & (O_CREAT | O_TMPFILE)) != 0) {			\
		va_start(ap, flags);					\
		mode = va_arg(ap, mode_t);				\
		va_end(ap);						\
	}								\
	r = (flags & O_ACCMODE) != O_RDONLY ?				\
	    fault_find("open", path, 0) : NULL;				\
	if (r != NULL)							\
		return fault_fail(r);					\
	fd = call;							\
	fault_set_name(fd, path);					\
	return fd

int
open(const char *path, int flags, ...)
{
	OPEN_BODY(REAL(open)(path, flags, mode), path);
}

int
open64(const char *path, int flags, ...)
{
	OPEN_BODY(REAL(open64)(path, flags, mode), path);
}

int
openat(int dir, const char *path, int flags, ...)
{
	OPEN_BODY(REAL(openat)(dir, path, flags, mode), path);
}

int
openat64(int dir, const char *path, int flags, ...)
{
	OPEN_BODY(REAL(openat64)(dir, path, flags, mode), path);
}

int
close(int fd)
{
	if (fd >= 0 && fd < NFDS)
		fd_names[fd][0] = '\0';
	return REAL(close)(fd);
}

ssize_t
write(int fd, const void *p, size_t len)
{
	struct rule *r = fault_find_write(fd, len);

	if (r != NULL && (!r->half || len < 2))
		return fault_fail(r);
	return REAL(write)(fd, p, r != NULL ? len / 2 : len);
}

ssize_t
pwrite(int fd, const void *p, size_t len, off_t off)
{
	/* cloop-shim knows its files by no name: it has only the spool. */
	struct rule *r = strcmp(program_invocation_short_name,
	    "cloop-shim") == 0 ? fault_find("pwrite", "", len) :
	    fault_find_write(fd, len);

	if (r != NULL && (!r->half || len < 2))
		return fault_fail(r);
	return REAL(pwrite)(fd, p, r != NULL ? len / 2 : len, off);
}

ssize_t
pwrite64(int fd, const void *p, size_t len, off64_t off)
{
	struct rule *r = fault_find_write(fd, len);

	if (r != NULL && (!r->half || len < 2))
		return fault_fail(r);
	return REAL(pwrite64)(fd, p, r != NULL ? len / 2 : len, off);
}

int
fsync(int fd)
{
	struct rule *r = fd >= 0 && fd < NFDS ?
	    fault_find("sync", fd_names[fd], 0) : NULL;

	return r != NULL ? fault_fail(r) : REAL(fsync)(fd);
}

int
fdatasync(int fd)
{
	struct rule *r = fd >= 0 && fd < NFDS ?
	    fault_find("sync", fd_names[fd], 0) : NULL;

	return r != NULL ? fault_fail(r) : REAL(fdatasync)(fd);
}

int
rename(const char *from, const char *to)
{
	struct rule *r = fault_find("rename", to, 0);

	return r != NULL ? fault_fail(r) : REAL(rename)(from, to);
}

int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	struct rule *r = fault_find("rename", to, 0);

	return r != NULL ? fault_fail(r) : REAL(renameat)(from_fd, from,
	    to_fd, to);
}

int
mkdir(const char *path, mode_t mode)
{
	struct rule *r = fault_find("mkdir", path, 0);

	return r != NULL ? fault_fail(r) : REAL(mkdir)(path, mode);
}

int
mkdirat(int dir, const char *path, mode_t mode)
{
	struct rule *r = fault_find("mkdir", path, 0);

	return r != NULL ? fault_fail(r) : REAL(mkdirat)(dir, path, mode);
}
