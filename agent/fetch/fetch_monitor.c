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
#include <sys/socket.h>

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

/* What the bounds of a member do not say. */
static int
fetch_conf_check(const struct msg_fetch_config *c)
{
	return c->host[0] == '\0' || c->path[0] != '/' ||
	    c->pins_len % PIN_DIGEST_LEN != 0 ||
	    (!c->tls && c->pins_len > 0) ? CL_FORMAT : CL_OK;
}

/* PEM of FETCH_CA until FETCH_START. */
static uint8_t *fetch_mon_ca_pem;
static size_t fetch_mon_ca_len;

int
fetch_mon_on_config(struct fetch *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	if (fetch_conf_check(&v->FETCH_CONFIG) != 0)
		return CL_FORMAT;
	f->conf = v->FETCH_CONFIG;	/* what it owns is ours */
	field_init(&msg_fetch_config_table, &v->FETCH_CONFIG);
	log_init("agentd-fetch", (enum log_level)f->conf.log_level, LOGF_TEXT);
	return CL_OK;
}

int
fetch_mon_on_ca(struct fetch *f, struct imsg *m, union msg_any *v)
{
	(void)f;
	fetch_mon_ca_len = (size_t)v->FETCH_CA.len;
	return util_load_memfd(m->fd, fetch_mon_ca_len, FETCH_MON_CA_MAX,
	    &fetch_mon_ca_pem);
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
	    .nofile = (uint64_t)f->conf.max_concurrent * 2 +
	    FETCH_MON_FDS_EXTRA };
	struct self_report rep;
	char text[SELF_REPORT_MAX];
	int r;

	if ((r = self_confine(&o, &rep)) != 0)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_info("confined", "%s", self_format_report(&rep, text));
}

int
fetch_mon_on_start(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct msg_version ready = { .version = MSGCAT_VERSION };
	const char *why = NULL;

	(void)m;
	(void)v;
	if (f->conf.port == 0 || f->auth.bearer.len == 0)
		return CL_STATE;	/* no configuration came before */
	if (f->conf.tls && tlsio_ctx_new_client(fetch_mon_ca_pem,
	    fetch_mon_ca_len, &f->ctx, &why) != 0)
		fatal("start", "reason=\"%s\"", why);
	free(fetch_mon_ca_pem);
	fetch_mon_ca_pem = NULL;
	fetch_mon_start_libraries();
	fetch_mon_confine(f);
	f->chan.state = MS_SERVING;
	FETCH_TELL(f, FETCH_READY, &ready);
	fetch_put_event(f, FEV_DUE);	/* dial */
	return CL_OK;
}

/* ------------------------------------------------------------------ answers */

int
fetch_mon_on_bearer(struct fetch *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	secret_clear(&f->auth.bearer);
	f->auth = v->FETCH_BEARER;	/* what it owns is ours */
	field_init(&msg_fetch_bearer_table, &v->FETCH_BEARER);
	return CL_OK;
}

int
fetch_mon_on_stop(struct fetch *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	(void)v;
	f->stopping = 1;
	fetch_put_event(f, FEV_STOP);
	return CL_OK;
}

int
fetch_mon_on_resolved(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_RESOLVE);
	const struct msg_addrs *ans = &v->RESOLVE_ANS;
	const struct msg_addr *in;

	if (a == NULL)
		return CL_OK;
	fetch_ask_del(f, a);
	for (f->naddrs = 0; f->naddrs < ans->naddrs; f->naddrs++) {
		in = &ans->addrs[f->naddrs];
		if (in->bytes_len != 4 && in->bytes_len != 16)
			return CL_FORMAT;
		f->addrs[f->naddrs].family = in->bytes_len == 4 ? AF_INET :
		    AF_INET6;
		memcpy(f->addrs[f->naddrs].bytes, in->bytes, in->bytes_len);
	}
	if (f->naddrs > 0)
		fetch_put_event(f, FEV_ADDRS);
	else
		fetch_fail(f, "cannot resolve the hub's name: %s", ans->error);
	return CL_OK;
}

int
fetch_mon_on_saved(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_ENROLLED);

	if (a == NULL)
		return CL_OK;
	fetch_ask_del(f, a);
	fetch_set_saved(f, v->ENROLLED_ANS.saved, v->ENROLLED_ANS.error);
	return CL_OK;
}

int
fetch_mon_on_caps(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_DEV_CAPS);
	struct caps c;
	int r;

	if ((r = msg_load_memfd(m->fd, v->DEV_CAPS_ANS.len, MAX_CAPS_LEN,
	    &caps_table, &c)) != 0)
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
