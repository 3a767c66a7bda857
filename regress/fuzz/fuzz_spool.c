/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/output/spool: any bytes as the header of a spool that another process
 * left or shares.  Reading and trimming stay inside the file and the
 * reader's buffer and come to an end, whatever the numbers say.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/output/spool.h"

static int
make_file(const uint8_t *data, size_t len)
{
	static const uint64_t magic = SPOOL_MAGIC;
	static const uint8_t zero[SPOOL_DATA];
	size_t head = len < sizeof(struct spool_head) ? len :
	    sizeof(struct spool_head);
	int fd = memfd_create("spool", MFD_CLOEXEC);

	if (fd == -1 || pwrite(fd, zero, sizeof(zero), 0) == -1)
		abort();
	/* The rest of the input is the output; the magic is put right in
	 * three of four, or nothing else would ever be seen. */
	if (pwrite(fd, data, head, 0) == -1 ||
	    pwrite(fd, data + head, len - head, SPOOL_DATA) == -1 ||
	    (len % 4 != 0 && pwrite(fd, &magic, 8, 0) == -1))
		abort();
	return fd;
}

static void
check_reader(struct spool *s)
{
	uint8_t dst[64 + 1];
	struct spool_mark m;
	uint64_t off = 0, before;
	size_t n;
	int i, r;

	spool_get_acked(s, &m);
	for (i = 0; i < 64; i++) {
		before = off;
		dst[64] = 0xa5;
		r = spool_get(s, &off, dst, 64, &n);
		FUZZ_CHECK(dst[64] == 0xa5 && n <= 64 && off >= before);
		FUZZ_CHECK(r == CL_OK || r == CL_FORMAT || r == CL_SYSTEM);
		if (r != CL_OK || n == 0)
			break;
		FUZZ_CHECK(off >= spool_load_u64(&s->head->base));
		FUZZ_CHECK(off + n <= spool_load_u64(&s->head->total));
		off += n;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct spool s;
	uint64_t base;

	if (spool_open(&s, make_file(data, len), len % 2 != 0) != CL_OK) {
		FUZZ_CHECK(s.fd == -1 && s.head == NULL);
		return 0;
	}
	check_reader(&s);
	if (s.writable) {
		base = spool_load_u64(&s.head->base);
		spool_trim(&s);
		FUZZ_CHECK(spool_load_u64(&s.head->base) >= base);
		/* A writer has the header to itself: its own numbers. */
		if (spool_load_u64(&s.head->total) < 1 << 20 &&
		    base <= spool_load_u64(&s.head->total)) {
			(void)spool_put(&s, data, len);
			check_reader(&s);
		}
		spool_set_acked(&s, 1, 1);
	}
	spool_close(&s);
	return 0;
}
