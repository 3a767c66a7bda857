/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a row of the bench reads of the machine: the clock, CPU time and
 * memory of processes, and the time that a command takes.  A program of its
 * own, because sh has no fine clock and an interpreter would cost more than
 * what is measured.  Uses: measure now | cpu PID... | cputree PID... |
 * pss PID... | tree PID... | each COUNT COMMAND...
 */

#include <sys/types.h>
#include <sys/wait.h>

#include <err.h>
#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "regress/bench/load/proc.h"

/* A hub and its children, sshd and its sessions: far below this. */
#define MAX_TREE	65536

extern char **environ;

static long
read_pid(const char *s)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end != '\0' || v < 1)
		errx(1, "not a process: %s", s);
	return v;
}

/* Fields of stat after the name, which may hold anything: parent first. */
static int
read_stat(long pid, long *ppid, double *waited)
{
	char line[1024], *p;
	long cu, cs;
	FILE *f;
	int ok;

	if ((f = proc_open(pid, "stat")) == NULL)
		return 0;
	ok = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	if (!ok || (p = strrchr(line, ')')) == NULL)
		return 0;
	if (sscanf(p + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u"
	    " %*u %*u %ld %ld", ppid, &cu, &cs) != 3)
		return 0;
	*waited = (double)(cu + cs) / sysconf(_SC_CLK_TCK);
	return 1;
}

/*
 * All living descendants of the processes in tree[0..n), parents first: one
 * look through /proc per generation.
 */
static size_t
add_descendants(long *tree, size_t n)
{
	static long pids[MAX_TREE], parents[MAX_TREE];
	size_t i, j, k, count = 0;
	struct dirent *d;
	double waited;
	DIR *dir;

	if ((dir = opendir("/proc")) == NULL)
		err(1, "/proc");
	while ((d = readdir(dir)) != NULL && count < MAX_TREE) {
		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		pids[count] = read_pid(d->d_name);
		if (read_stat(pids[count], &parents[count], &waited))
			count++;
	}
	closedir(dir);
	for (i = 0; i < n; i++)
		for (j = 0; j < count; j++) {
			if (parents[j] != tree[i] || n == MAX_TREE)
				continue;
			for (k = 0; k < n && tree[k] != pids[j]; k++)
				;
			if (k == n)
				tree[n++] = pids[j];
		}
	return n;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
run_each(const char *count, char **argv)
{
	size_t i, n = (size_t)read_pid(count);
	double *ms, start, sum = 0;
	int status, failed = 0;
	pid_t pid;

	if ((ms = calloc(n, sizeof(*ms))) == NULL)
		err(1, NULL);
	for (i = 0; i < n; i++) {
		start = proc_now();
		if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
			errx(1, "cannot start %s", argv[0]);
		if (waitpid(pid, &status, 0) != pid)
			err(1, "waitpid");
		ms[i] = (proc_now() - start) * 1e3;
		sum += ms[i];
		failed += status != 0;
	}
	qsort(ms, n, sizeof(*ms), compare);
	printf("%.4f %.4f %.4f\n", ms[n / 2], ms[n * 95 / 100], sum / n);
	free(ms);
	if (failed)
		warnx("%d of %zu runs of %s failed", failed, n, argv[0]);
	return failed != 0;
}

static void
usage(void)
{
	errx(1, "usage: measure now | cpu PID... | cputree PID... | "
	    "pss PID... | tree PID... | each COUNT COMMAND...");
}

/*
 * Prints what is asked of tree[0..n).  The first `named' were asked for: it
 * is an error when one of them is gone, while a descendant may end any time.
 */
static void
print_sum(const char *what, const long *tree, size_t named, size_t n)
{
	int is_pss = strcmp(what, "pss") == 0;
	double sum = 0, v, waited;
	long ppid;
	size_t i;

	for (i = 0; i < n; i++) {
		v = is_pss ? proc_get_pss(tree[i]) : proc_get_cpu(tree[i]);
		if (v < 0 && i < named)
			errx(1, "process %ld has ended", tree[i]);
		if (v > 0)
			sum += v;
		if (strcmp(what, "cputree") == 0 &&
		    read_stat(tree[i], &ppid, &waited))
			sum += waited;
	}
	printf(is_pss ? "%.0f\n" : "%.6f\n", sum);
}

int
main(int argc, char **argv)
{
	static long tree[MAX_TREE];
	size_t i, n, named;
	const char *what;

	if (argc < 2)
		usage();
	what = argv[1];
	if (strcmp(what, "now") == 0) {
		printf("%.6f\n", proc_now());
		return 0;
	}
	if (argc < 3 || argc - 2 > MAX_TREE)
		usage();
	if (strcmp(what, "each") == 0) {
		if (argc < 4)
			usage();
		return run_each(argv[2], argv + 3);
	}
	named = n = (size_t)argc - 2;
	for (i = 0; i < named; i++)
		tree[i] = read_pid(argv[i + 2]);
	if (strcmp(what, "cputree") == 0 || strcmp(what, "tree") == 0)
		n = add_descendants(tree, n);
	if (strcmp(what, "tree") == 0)
		for (i = 0; i < n; i++)
			printf("%ld\n", tree[i]);
	else if (strcmp(what, "pss") == 0 || strncmp(what, "cpu", 3) == 0)
		print_sum(what, tree, named, n);
	else
		usage();
	return 0;
}
