/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages from the monitor while the session role serves: one handler a
 * row of DEV_FETCH_CATALOGUE.  The monitor is trusted; if it breaks the
 * catalogue, one of the two programs is not what the other believes, and
 * this one ends.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "fetch_frame.h"
#include "fetch_session.h"

static int
fm_on_bearer(struct fs *fs, struct imsg *m)
{
	return fc_parse_bearer(&m->body, &fs->conf);
}

static int
fm_on_stop(struct fs *fs, struct imsg *m)
{
	fs->stopping = 1;
	fs_put_event(fs, FE_STOP);
	return buf_end(&m->body);
}

static int
fm_on_resolved(struct fs *fs, struct imsg *m)
{
	struct fa *a = fa_find(fs, m->id, MSG_RESOLVE);
	char why[FS_WHY_MAX];
	int ok, r;

	r = fc_parse_addrs(&m->body, &ok, why, sizeof(why), fs->addrs,
	    &fs->naddrs);
	if (r != 0 || a == NULL)
		return r;
	fa_del(fs, a);
	if (ok)
		fs_put_event(fs, FE_ADDRS);
	else
		fs_fail(fs, "cannot resolve the hub's name: %s", why);
	return CL_OK;
}

static int
fm_on_saved(struct fs *fs, struct imsg *m)
{
	struct fa *a = fa_find(fs, m->id, MSG_ENROLLED);
	char error[FS_WHY_MAX];
	int saved, r;

	saved = buf_get_bool(&m->body);
	buf_get_str(&m->body, error, sizeof(error) - 1);
	if ((r = buf_end(&m->body)) != 0 || a == NULL)
		return r;
	fa_del(fs, a);
	fs_on_saved(fs, saved, error);
	return CL_OK;
}

/* The memfd of DEV_CAPS_ANS. */
static int
fm_load_caps(struct imsg *m, struct caps *c)
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

static int
fm_on_caps(struct fs *fs, struct imsg *m)
{
	struct fa *a = fa_find(fs, m->id, MSG_DEV_CAPS);
	struct caps c;
	int r;

	if ((r = fm_load_caps(m, &c)) != 0)
		return r;
	if (a != NULL && a->session == 0) {
		caps_clear(&fs->caps);
		fs->caps = c;
		fs_put_event(fs, FE_CAPS);
	} else {
		if (a != NULL)
			ff_on_caps(fs, a, &c);
		caps_clear(&c);
	}
	fa_del(fs, a);
	return CL_OK;
}

static const struct fm_row {
	uint32_t type;
	int (*handler)(struct fs *, struct imsg *);
} fm_rows[] = {
	{ MSG_FETCH_CONFIG, fm_on_config },
	{ MSG_FETCH_CA, fm_on_ca },
	{ MSG_FETCH_START, fm_on_start },
	{ MSG_FETCH_BEARER, fm_on_bearer },
	{ MSG_FETCH_STOP, fm_on_stop },
	{ MSG_RESOLVE_ANS, fm_on_resolved },
	{ MSG_ENROLLED_ANS, fm_on_saved },
	{ MSG_DEV_CAPS_ANS, fm_on_caps },
	{ MSG_DEV_START_ANS, ff_on_started },
	{ MSG_DEV_HANDLE, fw_on_handle },
	{ MSG_DEV_WAKE, fw_on_wake },
	{ MSG_DEV_EXIT, fw_on_exit },
	{ MSG_DEV_RESULT, fb_on_result },
	{ MSG_DEV_BUNDLE, fb_on_bundle },
	{ MSG_DEV_PROJECT, fb_on_project },
	{ MSG_DEV_PROJECT_FILE, fb_on_project_file },
	{ MSG_BRANCH_OPEN_ANS, fi_on_opened },
	{ MSG_DEV_SIGNAL_ANS, ff_on_signalled },
	{ MSG_DEV_REVOKE_ANS, ff_on_revoked },
	{ MSG_DEV_REFRESH_ANS, ff_on_refreshed },
};

static int
fm_on_message(void *arg, struct imsg *m, union msg_any *v)
{
	struct fs *fs = arg;
	size_t i;
	int r = CL_FORMAT;

	(void)v;
	for (i = 0; i < sizeof(fm_rows) / sizeof(fm_rows[0]); i++) {
		if (fm_rows[i].type == m->type)
			r = fm_rows[i].handler(fs, m);
	}
	fs_wake(fs);
	return r;
}

static void
fm_on_end(void *arg, const char *why)
{
	struct fs *fs = arg;

	/* The hub learns at once; giving memory back takes longer. */
	fl_free(fs->link);
	if (why != NULL)
		fatal("monitor-violation", "reason=\"%s\"", why);
	/* The monitor is gone: workloads go on without us. */
	_exit(0);
}

int
fm_open(struct fs *fs, int fd)
{
	return chan_open(&fs->chan, fs->base, fd, MSG_M2F, MSG_F2M, CHAN_QUEUE_MAX,
	    fm_on_message, fm_on_end, fs);
}
