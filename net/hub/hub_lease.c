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

void
hs_send_revoked(struct hub *hub, uint64_t ask_id,
    const struct msg_device_ans *ans, const struct dev_revoked *f)
{
	char *env[LEASE_NAMES_MAX], *killed[LEASE_NAMES_MAX];
	char error[LEASE_ERROR_MAX + 1];
	struct msg_revoke_ans body = { .ans = *ans };
	struct lease_revoked *rep = &body.report;	/* borrows only */

	if (f != NULL) {
		rep->known = f->known;
		rep->env_scrubbed = env;
		rep->nenv_scrubbed = hs_pick_names(env, f->env_scrubbed,
		    f->nenv_scrubbed);
		rep->files_removed = f->files_removed > 0 ?
		    f->files_removed : 0;
		rep->egress_dropped = f->egress_dropped;
		rep->killed = killed;
		rep->nkilled = hs_pick_names(killed, f->killed, f->nkilled);
		hs_cut(error, sizeof(error), f->error);
		rep->error = error;
	}
	(void)hub_send(hub, MSG_REVOKE_ANS, ask_id, &body, -1);
}

void
hs_send_refreshed(struct hub *hub, uint64_t ask_id,
    const struct msg_device_ans *ans, const struct dev_refreshed *f)
{
	char *handles[LEASE_NAMES_MAX];
	char error[LEASE_ERROR_MAX + 1];
	struct msg_refresh_ans body = { .ans = *ans };
	struct lease_refreshed *rep = &body.report;

	if (f != NULL) {
		rep->known = f->known;
		rep->files_rewritten = f->files_rewritten > 0 ?
		    f->files_rewritten : 0;
		rep->handles = handles;
		rep->nhandles = hs_pick_names(handles, f->handles,
		    f->nhandles);
		rep->eventual = f->eventual;
		rep->unsupported = f->unsupported;
		hs_cut(error, sizeof(error), f->error);
		rep->error = error;
	}
	(void)hub_send(hub, MSG_REFRESH_ANS, ask_id, &body, -1);
}

/* --------------------------------------------------------------- messages */

static void __attribute__((__noreturn__))
hs_lease_fatal(const struct imsg *m, int r)
{
	fatal("monitor-message", "type=%s reason=%s", msgcat_name(m->type),
	    cl_errname(r));
}

void
hs_on_handle_redact(struct hub *hub, struct imsg *m,
    struct msg_handle_redact *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);
	size_t len = (size_t)v->len;
	uint8_t *data;
	int r;

	if ((r = util_load_memfd(m->fd, len, HS_REDACT_MAX, &data)) != CL_OK)
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

void
hs_on_revoke(struct hub *hub, struct imsg *m, struct msg_revoke *v)
{
	struct lease_revoke f = { .lease_id = (char *)(uintptr_t)v->lease,
	    .grant_id = (char *)(uintptr_t)v->grant,
	    .reason = (char *)(uintptr_t)v->reason };
	struct hs *s;

	if (v->lease[0] == '\0')
		hs_lease_fatal(m, CL_FORMAT);
	f.action = (char *)(uintptr_t)(v->action == REVOKE_KILL ? "kill" :
	    "scrub");
	if ((s = hs_find_live(hub, m, v->session)) != NULL)
		hs_start_request(s, m, 0, NULL, &f);
}

void
hs_on_refresh(struct hub *hub, struct imsg *m, struct msg_session_memfd *v)
{
	struct lease_refresh f;
	size_t len = (size_t)v->len;
	uint8_t *data;
	struct buf b;
	struct hs *s;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		hs_lease_fatal(m, r);
	buf_init_read(&b, data, len);
	if ((r = field_get(&lease_refresh_table, &b, &f)) == CL_OK &&
	    (r = buf_end(&b)) != CL_OK)
		field_clear(&lease_refresh_table, &f);
	freezero(data, len);
	if (r != CL_OK)
		hs_lease_fatal(m, r);
	if ((s = hs_find_live(hub, m, v->session)) != NULL)
		hs_start_request(s, m, 0, NULL, &f);
	field_clear(&lease_refresh_table, &f);	/* wipes */
}

