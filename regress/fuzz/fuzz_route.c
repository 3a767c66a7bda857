/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/hub_route over net/codec/http1: the header lines of an upgrade (Host,
 * Origin, X-Forwarded-*, Authorization).  Input: flags, then header lines
 * that stand behind a good request line, or a whole head.  A request that
 * gets through has a credential and an allowed origin; any other has a
 * status with an answer.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "net/codec/http1.h"
#include "net/hub/hub_conf.h"
#include "net/hub/hub_route.h"

#define FUZZ_TLS 0x01
#define FUZZ_PROXY 0x02		/* a TrustedProxy that is the peer */
#define FUZZ_WHOLE 0x04		/* the input is all of the head */
#define FUZZ_UPGRADE 0x08	/* the five lines are put before it */

static const char lead[] = "GET " HR_PATH " HTTP/1.1\r\n";
static const char upgrade[] = "Host: hub.local:7443\r\n"
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

static void
make_conf(struct hub_conf *conf, int proxy)
{
	static char *origins[] = { (char *)(uintptr_t)"https://ops.example",
	    (char *)(uintptr_t)"tools.example:444" };
	static struct hub_cidr cidr;

	memset(conf, 0, sizeof(*conf));
	conf->net.external_origin = "wss://hub.example:8443/x";
	conf->net.origins = origins;
	conf->net.norigins = 2;
	if (!proxy)
		return;
	FUZZ_CHECK(hub_cidr_parse("192.0.2.0/24", &cidr) == CL_OK);
	conf->proxies = &cidr;
	conf->nproxies = 1;
}

static void
check_head(struct http1_head *h, unsigned int flags)
{
	static struct hub_conf conf[2];
	static struct hub_addr peer;
	char bearer[MAX_TOKEN_LEN + 1] = "", answer[HR_ANSWER_MAX];
	const char *origin = NULL;
	struct hr_request q;
	unsigned int status = 0;
	enum hr_why why;

	if (conf[0].net.external_origin == NULL) {
		make_conf(&conf[0], 0);
		make_conf(&conf[1], 1);
		FUZZ_CHECK(hub_addr_parse("192.0.2.7", &peer) == CL_OK);
	}
	q.head = h;
	q.conf = &conf[(flags & FUZZ_PROXY) != 0];
	q.peer = &peer;
	q.tls = (flags & FUZZ_TLS) != 0;
	why = hr_check_request(&q, bearer, &status);
	if (why == HR_OK) {
		FUZZ_CHECK(bearer[0] != '\0');
		FUZZ_CHECK(strlen(bearer) <= MAX_TOKEN_LEN);
		FUZZ_CHECK(hr_check_origin(&q, &origin) == 1);
		return;
	}
	FUZZ_CHECK(status >= 400 && status < 600);
	FUZZ_CHECK(hr_format_answer(answer, status) > 0);
	if (why == HR_ORIGIN)
		FUZZ_CHECK(hr_check_origin(&q, &origin) == 0 &&
		    origin != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t head[HTTP_HEAD_MAX];
	size_t n = 0, scanned = 0, whole;
	struct http1_head h;
	unsigned int flags;

	if (len == 0)
		return 0;
	flags = *data++;
	len--;
	if (!(flags & FUZZ_WHOLE)) {
		n = sizeof(lead) - 1;
		memcpy(head, lead, n);
	}
	if (flags & FUZZ_UPGRADE) {
		memcpy(head + n, upgrade, sizeof(upgrade) - 1);
		n += sizeof(upgrade) - 1;
	}
	if (len > sizeof(head) - n - 4)
		return 0;
	memcpy(head + n, data, len);
	n += len;
	if (!(flags & FUZZ_WHOLE)) {
		memcpy(head + n, "\r\n\r\n", 4);
		n += 4;
	}
	if (http1_find_end(head, n, &scanned, &whole) == CL_OK &&
	    http1_parse_request(head, whole, &h) == CL_OK)
		check_head(&h, flags);
	return 0;
}
