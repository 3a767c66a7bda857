/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Replays a corpus: main CORPUS_DIR (or files).  Each file is one TAP point;
 * each is then tried with a few hundred fixed mutations, the same in every
 * run, so that builds without libFuzzer see broken input too.  -s: the files
 * alone, for the coverage of a corpus.
 */
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_INPUT_LEN (2 * 1024 * 1024)
#define MUTATIONS 400

static int npoints, seeds_only;
static char current[512];

/* The input at fault, for the runner's diagnostics. */
static void
on_crash(int sig)
{
	ssize_t n = write(1, current, strlen(current));

	(void)n;
	signal(sig, SIG_DFL);
	raise(sig);
}

static uint32_t
next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Run on an allocation of exactly the input's size. */
static void
run_exact(const uint8_t *data, size_t len)
{
	uint8_t *exact = malloc(len == 0 ? 1 : len);

	memcpy(exact, data, len);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
}

static void
run_mutations(const char *name, const uint8_t *data, size_t len)
{
	uint32_t state = 2463534242u;
	uint8_t *copy;
	size_t n, at;
	int i, changes, rounds;

	if (len == 0 || (copy = malloc(len + 1)) == NULL)
		return;
	/* Large inputs get fewer rounds: the time is what counts. */
	rounds = len > 4096 ? MUTATIONS / 10 : MUTATIONS;
	if (fuzz_is_slow != NULL)
		rounds = MUTATIONS / 40;
	for (i = 0; i < rounds; i++) {
		snprintf(current, sizeof(current),
		    "# in mutation %d of %s\n", i, name);
		memcpy(copy, data, len);
		n = len;
		if (i % 4 == 0)
			n = next_random(&state) % (len + 1);
		for (changes = i % 5; changes > 0 && n > 0; changes--) {
			at = next_random(&state) % n;
			if (next_random(&state) % 2)
				copy[at] ^= (uint8_t)(1u <<
				    next_random(&state) % 8);
			else
				copy[at] = data[next_random(&state) % len];
		}
		run_exact(copy, n);
	}
	free(copy);
}

static void
run_file(const char *path)
{
	const char *name = strrchr(path, '/');
	uint8_t *data;
	size_t len;
	FILE *fp;

	name = name == NULL ? path : name + 1;
	npoints++;
	if ((fp = fopen(path, "r")) == NULL) {
		printf("not ok %d - cannot open %s\n", npoints, name);
		return;
	}
	if ((data = malloc(MAX_INPUT_LEN)) == NULL)
		abort();
	len = fread(data, 1, MAX_INPUT_LEN, fp);
	fclose(fp);
	snprintf(current, sizeof(current), "# in %s\n", name);
	run_exact(data, len);
	if (!seeds_only)
		run_mutations(name, data, len);
	free(data);
	printf("ok %d - %s\n", npoints, name);
}

static int
is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void
run_dir(const char *path)
{
	struct dirent **names;
	char file[4096];
	int i, n;

	if ((n = scandir(path, &names, is_visible, alphasort)) < 0)
		n = 0;
	for (i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		run_file(file);
		free(names[i]);
	}
	if (n > 0)
		free(names);
}

int
main(int argc, char **argv)
{
	struct stat st;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	seeds_only = argc > 1 && strcmp(argv[1], "-s") == 0;
	for (i = 1 + seeds_only; i < argc; i++)
		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			run_dir(argv[i]);
		else
			run_file(argv[i]);
	if (npoints == 0) {
		printf("not ok 1 - no corpus in %s\n1..1\n",
		    argc > 1 ? argv[1] : "(nothing)");
		return 1;
	}
	printf("1..%d\n", npoints);
	return 0;
}
