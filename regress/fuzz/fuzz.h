/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What every fuzz target has: one function for libFuzzer (make fuzz) and
 * for main.c, which replays regress/corpus/<name>/ in every build.
 */
#ifndef CLOOP_FUZZ_H
#define CLOOP_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A target that has it: one run takes milliseconds, so that a replay tries
 * few mutations. */
int fuzz_is_slow(void) __attribute__((__weak__));

/* A property of the decoder does not hold. */
#define FUZZ_CHECK(e) do {                                                     \
	if (!(e)) {                                                            \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #e);        \
		abort();                                                       \
	}                                                                      \
} while (0)

#endif
