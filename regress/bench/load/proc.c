/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Clock, CPU time and memory of other processes, read in /proc.
 */
#include "proc.h"

#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <time.h>

double
proc_now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		err(1, "clock_gettime");
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

FILE *
proc_open(long pid, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	return fopen(path, "re");
}

double
proc_get_cpu(long pid)
{
	char path[64];
	struct dirent *d;
	double sum = 0, ns;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	if ((dir = opendir(path)) == NULL)
		return -1;
	while ((d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "task/%.20s/schedstat",
		    d->d_name);
		if ((f = proc_open(pid, path)) == NULL)
			continue;
		if (fscanf(f, "%lf", &ns) == 1)
			sum += ns;
		fclose(f);
	}
	closedir(dir);
	return sum / 1e9;
}

double
proc_get_pss(long pid)
{
	char line[256];
	long kib = -1;
	FILE *f;

	if ((f = proc_open(pid, "smaps_rollup")) == NULL)
		return -1;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Pss: %ld", &kib) == 1)
			break;
	fclose(f);
	return (double)kib;
}
