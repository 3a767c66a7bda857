/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The machine's basic figures, for the device monitor's capability report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmem.h"
#include "common/model/caps.h"
#include "caps_detect.h"

/* Go's spelling of what we were built for. */
#if defined(__x86_64__)
#define CAPS_ARCH "amd64"
#elif defined(__aarch64__)
#define CAPS_ARCH "arm64"
#elif defined(__arm__)
#define CAPS_ARCH "arm"
#elif defined(__i386__)
#define CAPS_ARCH "386"
#elif defined(__riscv)
#define CAPS_ARCH "riscv64"
#else
#error "name this architecture in Go's spelling"
#endif

/* MemTotal in MiB; 0 when it cannot be read. */
static int64_t
caps_load_memory(void)
{
	static const char key[] = "MemTotal:";
	char line[256];
	int64_t kb = 0;
	FILE *fp;

	if ((fp = fopen("/proc/meminfo", "re")) == NULL)
		return 0;
	while (kb == 0 && fgets(line, sizeof(line), fp) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoll(line + strlen(key), NULL, 10);
	fclose(fp);
	return kb > 0 ? kb / 1024 : 0;
}

void
caps_detect_host(struct caps *c)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	c->os = xstrdup("linux");
	c->arch = xstrdup(CAPS_ARCH);
	c->cpus = n > 0 ? n : 1;
	c->memory_mb = caps_load_memory();
}
