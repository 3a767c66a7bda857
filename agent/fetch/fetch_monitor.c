/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages of the monitor about the session itself: configuration, TLS roots
 * and the start (warm-up of the libraries, confinement: the last moment at
 * which this process can open anything), then its answers.  The monitor is
 * trusted; if it breaks the catalogue, one of the two programs is not what
 * the other believes, and this one ends.
 */
#include "fetch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "net/codec/http1.h"
#include "net/codec/tlsio.h"
#include "sandbox/self/self.h"

/* ------------------------------------------------------------------- set-up */

#define FETCH_MON_CA_MAX 1048576	/* PEM text of extra roots */
#define FETCH_MON_FDS_EXTRA 64	/* beyond spool and eventfd of a workload */

static int
fetch_conf_parse(struct buf *b, struct fetch_conf *c)
{
	char url[MAX_URL_LEN + 1];
	const uint8_t *digest;
	size_t i, n, len;
	int r;

	buf_get_str(b, url, MAX_URL_LEN);
	buf_get_str(b, c->host, FETCH_HOST_MAX);
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

static int
fetch_conf_parse_bearer(struct buf *b, struct fetch_conf *c)
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

/* PEM of FETCH_CA until FETCH_START. */
static uint8_t *fetch_mon_ca_pem;
static size_t fetch_mon_ca_len;

int
fetch_mon_on_config(struct fetch *f, struct imsg *m)
{
	int r;

	if ((r = fetch_conf_parse(&m->body, &f->conf)) == 0 &&
	    f->conf.log_level <= LOGL_DEBUG)
		log_init("agentd-fetch", f->conf.log_level, LOGF_TEXT);
	return r;
}

int
fetch_mon_on_ca(struct fetch *f, struct imsg *m)
{
	uint32_t len;
	int fd, r;

	(void)f;
	len = buf_get_u32(&m->body);
	if ((r = buf_end(&m->body)) != 0)
		return r;
	fd = imsg_take_fd(m);
	r = util_load_memfd(fd, len, FETCH_MON_CA_MAX, &fetch_mon_ca_pem);
	close(fd);
	fetch_mon_ca_len = len;
	return r;
}

/* Whatever a library draws or looks up once, it does here. */
static void
fetch_mon_start_libraries(void)
{
	char key[HTTP1_KEY_LEN + 1], accept[HTTP1_ACCEPT_LEN + 1];

	http1_format_key(key);
	if (http1_format_accept(key, accept) != 0)
		fatal("start", "reason=\"SHA-1 is not available\"");
}

static void
fetch_mon_confine(struct fetch *f)
{
	struct self_opts o = { .profile = SELF_FETCH, .user = USER_FETCH,
	    .nofile = f->conf.max_concurrent * 2ULL + FETCH_MON_FDS_EXTRA };
	struct self_report rep;
	char text[SELF_REPORT_MAX];
	int r;

	if ((r = self_confine(&o, &rep)) != 0)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_info("confined", "%s", self_format_report(&rep, text));
}

static void
fetch_mon_put_ready(struct fetch *f)
{
	struct buf b;

	buf_init(&b, 4);
	buf_put_u32(&b, MSGCAT_VERSION);
	fetch_tell(f, MSG_FETCH_READY, 0, &b, -1);
	buf_clear(&b);
}

int
fetch_mon_on_start(struct fetch *f, struct imsg *m)
{
	const char *why = NULL;
	int r;

	if ((r = buf_end(&m->body)) != 0)
		return r;
	if (f->conf.port == 0 || f->conf.bearer.len == 0)
		return CL_STATE;	/* no configuration came before */
	if (f->conf.tls && tlsio_ctx_new_client(fetch_mon_ca_pem,
	    fetch_mon_ca_len, &f->ctx, &why) != 0)
		fatal("start", "reason=\"%s\"", why);
	free(fetch_mon_ca_pem);
	fetch_mon_ca_pem = NULL;
	fetch_mon_start_libraries();
	fetch_mon_confine(f);
	f->chan.state = MS_SERVING;
	fetch_mon_put_ready(f);
	fetch_put_event(f, FEV_DUE);	/* dial */
	return CL_OK;
}

/* ------------------------------------------------------------------ answers */

int
fetch_mon_on_bearer(struct fetch *f, struct imsg *m)
{
	return fetch_conf_parse_bearer(&m->body, &f->conf);
}

int
fetch_mon_on_stop(struct fetch *f, struct imsg *m)
{
	f->stopping = 1;
	fetch_put_event(f, FEV_STOP);
	return buf_end(&m->body);
}

int
fetch_mon_on_resolved(struct fetch *f, struct imsg *m)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_RESOLVE);
	char why[FETCH_REASON_MAX];
	int ok, r;

	r = fetch_addrs_get(&m->body, &ok, why, sizeof(why), f->addrs,
	    &f->naddrs);
	if (r != 0 || a == NULL)
		return r;
	fetch_ask_del(f, a);
	if (ok)
		fetch_put_event(f, FEV_ADDRS);
	else
		fetch_fail(f, "cannot resolve the hub's name: %s", why);
	return CL_OK;
}

int
fetch_mon_on_saved(struct fetch *f, struct imsg *m)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_ENROLLED);
	char error[FETCH_REASON_MAX];
	int saved, r;

	saved = buf_get_bool(&m->body);
	buf_get_str(&m->body, error, sizeof(error) - 1);
	if ((r = buf_end(&m->body)) != 0 || a == NULL)
		return r;
	fetch_ask_del(f, a);
	fetch_set_saved(f, saved, error);
	return CL_OK;
}

/* The memfd of DEV_CAPS_ANS. */
static int
fetch_mon_load_caps(struct imsg *m, struct caps *c)
{
	struct buf b;
	uint8_t *data = NULL;
	uint32_t len;
	int fd, r;

	len = buf_get_u32(&m->body);
	fd = imsg_take_fd(m);
	if ((r = buf_end(&m->body)) == 0 &&
	    (r = util_load_memfd(fd, len, MAX_CAPS_LEN, &data)) == 0) {
		buf_init_read(&b, data, len);
		if ((r = caps_get(&b, c)) == 0 && (r = buf_end(&b)) != 0)
			caps_clear(c);
	}
	free(data);
	close(fd);
	return r;
}

int
fetch_mon_on_caps(struct fetch *f, struct imsg *m)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_DEV_CAPS);
	struct caps c;
	int r;

	if ((r = fetch_mon_load_caps(m, &c)) != 0)
		return r;
	if (a != NULL && a->session == 0) {
		caps_clear(&f->caps);
		f->caps = c;
		fetch_put_event(f, FEV_CAPS);
	} else {
		if (a != NULL)
			fetch_frame_on_caps(f, a, &c);
		caps_clear(&c);
	}
	fetch_ask_del(f, a);
	return CL_OK;
}
