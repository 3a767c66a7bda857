/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Bodies of the monitor's set-up messages, in agentd-fetch.  The monitor is
 * trusted; the checks are those every decoder of messages has.
 */
#include "fetch_conf.h"

#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/err.h"
#include "common/msg/buf.h"
#include "fetch_link.h"

#define FC_ERROR_MAX 512	/* of a resolver's reason */

int
fc_parse(struct buf *b, struct fetch_conf *c)
{
	char url[MAX_URL_LEN + 1];
	const uint8_t *digest;
	size_t i, n, len;
	int r;

	buf_get_str(b, url, MAX_URL_LEN);
	buf_get_str(b, c->host, FC_HOST_MAX);
	c->port = buf_get_u16(b);
	c->tls = buf_get_bool(b);
	buf_get_str(b, c->path, MAX_URL_LEN);
	c->insecure = buf_get_bool(b);
	n = buf_get_u16(b);
	if (n > MAX_PINS)
		return CL_LIMIT;
	for (i = 0; i < n; i++) {
		digest = buf_get_blob(b, PIN_DIGEST_LEN, &len);
		if (digest == NULL || len != PIN_DIGEST_LEN)
			return CL_FORMAT;
		memcpy(c->pins[i].digest, digest, PIN_DIGEST_LEN);
	}
	c->npins = n;
	buf_get_str(b, c->agent_id, MAX_ID_LEN);
	buf_get_str(b, c->name, MAX_LABEL_LEN);
	buf_get_str(b, c->agent_version, MAX_LABEL_LEN);
	c->max_protocol = buf_get_u16(b);
	c->max_concurrent = buf_get_u32(b);
	(void)buf_get_u64(b);	/* retained bytes: the spool's header says */
	c->log_level = buf_get_u8(b);
	if ((r = buf_end(b)) != 0)
		return r;
	if (c->host[0] == '\0' || c->port == 0 || c->path[0] != '/' ||
	    c->max_protocol < PROTO_MIN || c->max_protocol > PROTO_MAX ||
	    c->max_concurrent < 1 || c->max_concurrent > MAX_CONCURRENT ||
	    (!c->tls && c->npins > 0))
		return CL_FORMAT;
	return CL_OK;
}

int
fc_parse_bearer(struct buf *b, struct fetch_conf *c)
{
	char *bearer;
	int enrolling, r;

	bearer = buf_get_strdup(b, MAX_TOKEN_LEN);
	enrolling = buf_get_bool(b);
	if ((r = buf_end(b)) == 0) {
		secret_clear(&c->bearer);
		r = secret_init(&c->bearer, bearer, strlen(bearer),
		    MAX_TOKEN_LEN);
		c->enrolling = enrolling;
	}
	if (bearer != NULL) {
		explicit_bzero(bearer, strlen(bearer));
		free(bearer);
	}
	return r;
}

int
fc_parse_addrs(struct buf *b, int *okp, char *why, size_t whylen,
    struct fl_addr *addrs, size_t *np)
{
	char text[FC_ERROR_MAX + 1];
	const uint8_t *bytes;
	size_t i, len, n, want;
	uint8_t family;

	*np = 0;
	*okp = buf_get_bool(b);
	buf_get_str(b, text, FC_ERROR_MAX);
	n = buf_get_u8(b);
	if (n > MAX_RESOLVED)
		return CL_LIMIT;
	for (i = 0; i < n; i++) {
		family = buf_get_u8(b);
		bytes = buf_get_blob(b, sizeof(addrs[i].bytes), &len);
		want = family == 4 ? 4 : 16;
		if ((family != 4 && family != 6) || bytes == NULL ||
		    len != want)
			return CL_FORMAT;
		addrs[i].family = family == 4 ? AF_INET : AF_INET6;
		memcpy(addrs[i].bytes, bytes, len);
	}
	if (buf_end(b) != 0 || (*okp && n == 0))
		return CL_FORMAT;
	strlcpy(why, text, whylen);
	*np = n;
	return CL_OK;
}

void
fc_put_addrs(struct buf *b, const char *error, const struct fl_addr *addrs,
    size_t n)
{
	size_t i;

	buf_put_u8(b, error == NULL);
	buf_put_str(b, error);
	buf_put_u8(b, (uint8_t)n);
	for (i = 0; i < n; i++) {
		buf_put_u8(b, addrs[i].family == AF_INET ? 4 : 6);
		buf_put_blob(b, addrs[i].bytes,
		    addrs[i].family == AF_INET ? 4 : 16);
	}
}
