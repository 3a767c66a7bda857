/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a worker says of a device that just enrolled, to standard output: the
 * blob of HELLO for a worker that was taken over (attack_worker).
 */
#include <stdio.h>

#include "common/base/limits.h"
#include "common/base/xmem.h"
#include "common/json/jsonw.h"
#include "common/model/caps.h"
#include "common/msg/buf.h"

int
main(int argc, char **argv)
{
	struct hello_blob h;
	struct jsonw w;
	struct buf b;

	hello_blob_init(&h);
	h.protocol_version = 26;
	h.agent_id = xstrdup("");
	h.name = xstrdup("");
	h.agent_version = xstrdup("1");
	h.caps.os = xstrdup(argc > 1 ? argv[1] : "linux");
	h.caps.arch = xstrdup("amd64");
	jsonw_init(&w, 1 << 20, 0);
	caps_format_json(&h.caps, &w);
	h.caps_json = xstrdup((const char *)w.data);
	buf_init(&b, MAX_SPEC_LEN);
	hello_blob_put(&h, &b);
	fwrite(b.data, 1, b.len, stdout);
	return buf_error(&b) != 0;
}
