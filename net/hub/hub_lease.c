/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Leases as they pass through cloopd-net: values to hide, revocations and
 * refreshes on their way out, and the device's reports on their way in.
 * Plaintext is here only for the session it is sent on, and is wiped once it
 * is in a frame.
 */
#include "hub_session.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "hub.h"
#include "hub_logredact.h"

#define HS_REDACT_MAX (16 * 1048576)	/* what redact.h takes */
#define HS_LEASE_TEXT 512

void
hs_redact_text(const struct hs *s, const char *text, char *dst, size_t dstlen)
{
	char from[MAX_ERROR_TEXT_LEN + 1];
	struct hlog_ids *ids = (struct hlog_ids *)(uintptr_t)&s->logs;
	struct hlog *h = NULL;
	size_t len = strlen(text);

	if (len >= sizeof(from))
		len = utf8_cut(text, sizeof(from) - 1);
	memcpy(from, text, len);
	from[len] = '\0';
	(void)memmove(dst, from, len < dstlen ? len + 1 : dstlen);
	dst[dstlen - 1] = '\0';
	while ((h = hlog_next(ids, h)) != NULL) {
		if (h->redact == NULL)
			continue;
		hlog_redact_text(h, from, dst, dstlen);
		strlcpy(from, dst, sizeof(from));
	}
	dst[utf8_cut(dst, strlen(dst))] = '\0';
}

/* ---------------------------------------------------------------- reports */

/* Names that may be names; the rest of the list is dropped. */
static size_t
hs_pick_names(char *dst[LEASE_NAMES_MAX], char **names, size_t n)
{
	size_t i, k = 0;

	for (i = 0; i < n && k < LEASE_NAMES_MAX; i++)
		if (util_is_id(names[i]))
			dst[k++] = names[i];
	return k;
}

static void
hs_cut_error(char *dst, size_t dstlen, const char *text)
{
	strlcpy(dst, text != NULL ? text : "", dstlen);
	dst[utf8_cut(dst, strlen(dst))] = '\0';
}

static void
hs_put_revoked(struct buf *b, const struct dev_revoked *f)
{
	char *env[LEASE_NAMES_MAX], *killed[LEASE_NAMES_MAX];
	char error[LEASE_ERROR_MAX + 1];
	struct lease_revoked row;

	memset(&row, 0, sizeof(row));
	if (f != NULL) {
		row.known = f->known;
		row.env_scrubbed = env;
		row.nenv_scrubbed = hs_pick_names(env, f->env_scrubbed,
		    f->nenv_scrubbed);
		row.files_removed = f->files_removed > 0 ?
		    f->files_removed : 0;
		row.egress_dropped = f->egress_dropped;
		row.killed = killed;
		row.nkilled = hs_pick_names(killed, f->killed, f->nkilled);
		hs_cut_error(error, sizeof(error), f->error);
		row.error = error;
	}
	field_put(&lease_revoked_table, &row, b);	/* borrows only */
}

static void
hs_put_refreshed(struct buf *b, const struct dev_refreshed *f)
{
	char *handles[LEASE_NAMES_MAX];
	char error[LEASE_ERROR_MAX + 1];
	struct lease_refreshed row;

	memset(&row, 0, sizeof(row));
	if (f != NULL) {
		row.known = f->known;
		row.files_rewritten = f->files_rewritten > 0 ?
		    f->files_rewritten : 0;
		row.handles = handles;
		row.nhandles = hs_pick_names(handles, f->handles,
		    f->nhandles);
		row.eventual = f->eventual;
		row.unsupported = f->unsupported;
		hs_cut_error(error, sizeof(error), f->error);
		row.error = error;
	}
	field_put(&lease_refreshed_table, &row, b);
}

void
hs_put_report(struct buf *b, uint32_t type, const void *report)
{
	if (type == MSG_REVOKE)
		hs_put_revoked(b, report);
	else if (type == MSG_REFRESH)
		hs_put_refreshed(b, report);
}

/* --------------------------------------------------------------- messages */

static void __attribute__((__noreturn__))
hs_lease_fatal(const struct imsg *m, int r)
{
	fatal("monitor-message", "type=%s reason=%s", msgcat_name(m->type),
	    cl_errname(r));
}

static void
hs_on_redact(struct hub *hub, struct imsg *m)
{
	struct hlog *h = hlog_find(&hub->logs, buf_get_u64(&m->body));
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data;
	int r;

	if ((r = buf_end(&m->body)) != CL_OK ||
	    (r = util_load_memfd(m->fd, len, HS_REDACT_MAX, &data)) != CL_OK)
		hs_lease_fatal(m, r);
	r = h != NULL ? hlog_add_redactions(h, data, len) : CL_OK;
	freezero(data, len);
	if (r == CL_LIMIT) {
		/* After very many refreshes; the device hides it as well. */
		log_error("redact", "handle=%s reason=\"too many values\"",
		    log_q(h->id));
		r = CL_OK;
	}
	/* Output that would be kept in the clear must not come at all. */
	if (r != CL_OK)
		hs_lease_fatal(m, r);
}

/* The session a request is for; NULL when it was answered. */
static struct hs *
hs_find_live(struct hub *hub, const struct imsg *m, uint64_t session)
{
	struct hs *s = hs_find(&hub->sessions, session);

	if (s != NULL && s->state == HST_LIVE)
		return s;
	hs_send_failure(hub, m->type, m->id, 0, RES_SESSION_CLOSED,
	    "the connection was lost");
	return NULL;
}

static void
hs_on_revoke(struct hub *hub, struct imsg *m)
{
	char lease[MAX_ID_LEN + 1], grant[MAX_ID_LEN + 1];
	char reason[HS_LEASE_TEXT + 1];
	struct lease_revoke f = { lease, grant, reason, NULL };
	uint64_t session = buf_get_u64(&m->body);
	struct hs *s;
	int action;

	buf_get_str(&m->body, lease, sizeof(lease) - 1);
	buf_get_str(&m->body, grant, sizeof(grant) - 1);
	action = buf_get_u8(&m->body);
	buf_get_str(&m->body, reason, sizeof(reason) - 1);
	if (buf_end(&m->body) != CL_OK || lease[0] == '\0')
		hs_lease_fatal(m, CL_FORMAT);
	f.action = (char *)(uintptr_t)(action == REVOKE_KILL ? "kill" :
	    "scrub");
	if ((s = hs_find_live(hub, m, session)) != NULL)
		hs_start_request(s, m, 0, NULL, &f);
}

static void
hs_on_refresh(struct hub *hub, struct imsg *m)
{
	struct lease_refresh f;
	uint64_t session = buf_get_u64(&m->body);
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data;
	struct buf b;
	struct hs *s;
	int r;

	if ((r = buf_end(&m->body)) != CL_OK ||
	    (r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		hs_lease_fatal(m, r);
	buf_init_read(&b, data, len);
	if ((r = field_get(&lease_refresh_table, &b, &f)) == CL_OK &&
	    (r = buf_end(&b)) != CL_OK)
		field_clear(&lease_refresh_table, &f);
	freezero(data, len);
	if (r != CL_OK)
		hs_lease_fatal(m, r);
	if ((s = hs_find_live(hub, m, session)) != NULL)
		hs_start_request(s, m, 0, NULL, &f);
	field_clear(&lease_refresh_table, &f);	/* wipes */
}

void
hs_on_lease(struct hub *hub, struct imsg *m)
{
	switch (m->type) {
	case MSG_HANDLE_REDACT:
		hs_on_redact(hub, m);
		break;
	case MSG_REVOKE:
		hs_on_revoke(hub, m);
		break;
	default:
		hs_on_refresh(hub, m);
		break;
	}
}
