/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/buf as a decoder: the first bytes say what to get, the rest is the
 * message.  Nothing is read outside it, and errors stick.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/msg/buf.h"

static void
get_one(struct buf *b, unsigned int op)
{
	char text[17], *s;
	size_t len;

	switch (op % 9) {
	case 0:
		buf_get_u8(b);
		break;
	case 1:
		buf_get_u16(b);
		break;
	case 2:
		buf_get_u32(b);
		break;
	case 3:
		buf_get_u64(b);
		break;
	case 4:
		buf_get_i64(b);
		break;
	case 5:
		buf_get_bool(b);
		break;
	case 6:
		buf_get_str(b, text, sizeof(text) - 1);
		FUZZ_CHECK(strlen(text) < sizeof(text));
		break;
	case 7:
		if ((s = buf_get_strdup(b, 64)) != NULL)
			FUZZ_CHECK(strlen(s) <= 64);
		free(s);
		break;
	default:
		if (buf_get_blob(b, 64, &len) == NULL)
			FUZZ_CHECK(len == 0 && b->error != 0);
		else
			FUZZ_CHECK(len <= 64);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct buf b;
	size_t i, nops;
	int error = 0;

	if (len == 0 || (nops = data[0]) >= len)
		return 0;
	buf_init_read(&b, data + 1 + nops, len - 1 - nops);
	for (i = 0; i < nops; i++) {
		get_one(&b, data[1 + i]);
		FUZZ_CHECK(b.off <= b.len);
		FUZZ_CHECK(error == 0 || b.error == error);
		error = b.error;
	}
	FUZZ_CHECK(buf_end(&b) == (error != 0 ? error :
	    buf_left(&b) == 0 ? 0 : CL_TRAILING));
	return 0;
}
