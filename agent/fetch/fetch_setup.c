/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The session role of agentd-fetch until it serves: configuration from the
 * monitor, TLS roots, warm-up of the libraries, confinement.  The last moment
 * at which this process can open anything.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "net/codec/http1.h"
#include "net/codec/tlsio.h"
#include "sandbox/self/self.h"
#include "fetch_session.h"

#define FM_CA_MAX 1048576	/* PEM text of extra roots */
#define FM_FDS_EXTRA 64		/* beyond spool and eventfd of a workload */

/* PEM of FETCH_CA until FETCH_START. */
static uint8_t *fm_ca_pem;
static size_t fm_ca_len;

int
fm_on_config(struct fs *fs, struct imsg *m)
{
	int r;

	if ((r = fc_parse(&m->body, &fs->conf)) == 0 &&
	    fs->conf.log_level <= LOGL_DEBUG)
		log_init("agentd-fetch", fs->conf.log_level, LOGF_TEXT);
	return r;
}

int
fm_on_ca(struct fs *fs, struct imsg *m)
{
	uint32_t len;
	int fd, r;

	(void)fs;
	len = buf_get_u32(&m->body);
	if ((r = buf_end(&m->body)) != 0)
		return r;
	fd = imsg_take_fd(m);
	r = util_load_memfd(fd, len, FM_CA_MAX, &fm_ca_pem);
	close(fd);
	fm_ca_len = len;
	return r;
}

/* Whatever a library draws or looks up once, it does here. */
static void
fm_start_libraries(void)
{
	char key[HTTP1_KEY_LEN + 1], accept[HTTP1_ACCEPT_LEN + 1];

	http1_format_key(key);
	if (http1_format_accept(key, accept) != 0)
		fatal("start", "reason=\"SHA-1 is not available\"");
}

static void
fm_confine(struct fs *fs)
{
	struct self_opts o = { .profile = SELF_FETCH, .user = USER_FETCH,
	    .nofile = fs->conf.max_concurrent * 2ULL + FM_FDS_EXTRA };
	struct self_report rep;
	char text[SELF_REPORT_MAX];
	int r;

	if ((r = self_confine(&o, &rep)) != 0)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_info("confined", "%s", self_format_report(&rep, text));
}

static void
fm_put_ready(struct fs *fs)
{
	struct buf b;

	buf_init(&b, 4);
	buf_put_u32(&b, MSGCAT_VERSION);
	fs_ask_monitor(fs, MSG_FETCH_READY, 0, &b, -1);
	buf_clear(&b);
}

int
fm_on_start(struct fs *fs, struct imsg *m)
{
	const char *why = NULL;
	int r;

	if ((r = buf_end(&m->body)) != 0)
		return r;
	if (fs->conf.port == 0 || fs->conf.bearer.len == 0)
		return CL_STATE;	/* no configuration came before */
	if (fs->conf.tls && tlsio_ctx_new_client(fm_ca_pem, fm_ca_len,
	    &fs->ctx, &why) != 0)
		fatal("start", "reason=\"%s\"", why);
	free(fm_ca_pem);
	fm_ca_pem = NULL;
	fm_start_libraries();
	fm_confine(fs);
	fs->chan.state = MS_SERVING;
	fm_put_ready(fs);
	fs_start(fs);
	return CL_OK;
}
