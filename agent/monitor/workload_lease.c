/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The leases of a workload over its life, in the device monitor.  Plaintext
 * exists in this process only between the arrival of a start or refresh and
 * the writing of its files; what is kept are names.  The record comes before
 * the first secret byte: whoever dies in between leaves an empty directory,
 * and after it the next agent knows what to wipe.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "agentd.h"
#include "fetchctl.h"
#include "workload_int.h"

/* A directory just made is not locked yet: it is left for later. */
#define SWEEP_MIN_AGE_S 60
#define SWEEP_AGAIN_S 120

int
workload_lease_place(struct workload *w, const struct spec *spec)
{
	size_t i;
	int r;

	if (w->holding == NULL)
		return CL_OK;
	for (i = 0; i < w->holding->ngrants; i++)
		tombstones_del(&w->ws->tombstones,
		    w->holding->grants[i].lease_id);
	if ((r = holding_save(w->holding, w->dir.fd)) != 0 ||
	    (r = secretfiles_place(&w->holding->set, spec)) != 0 ||
	    (r = holding_save(w->holding, w->dir.fd)) != 0)
		return r;
	log_info("lease-place", "handle=%s grants=%zu files=%zu dirs=%zu",
	    log_q(w->handle_id), w->holding->ngrants,
	    w->holding->set.nfiles, w->holding->set.ndirs);
	return CL_OK;
}

int
workload_lease_send_values(struct workload *w, uint64_t id,
    const struct spec_secret_file *files, size_t n)
{
	struct msg_values set = { .nvalues = n };
	struct msg_memfd body;
	size_t i;
	int fd, r;

	if ((set.values = calloc(n + 1, sizeof(*set.values))) == NULL)
		return CL_NOMEM;
	for (i = 0; i < n; i++)
		set.values[i].value = files[i].content;	/* borrowed */
	r = msg_make_memfd(&msg_values_table, &set, MAX_SPEC_LEN, &fd,
	    &body.len);
	free(set.values);
	return r != 0 ? r : CHAN_SEND(&w->chan, SHIM_REDACT, id, &body, fd);
}

int
workload_lease_send(struct workload *w, const struct spec *spec)
{
	size_t i;
	int fd, r = CL_OK;

	if (w->holding == NULL)
		return CL_OK;
	for (i = 0; r == CL_OK && i < w->holding->set.ndirs; i++) {
		/* Not a second open: the lock belongs to this one. */
		fd = fcntl(w->holding->set.dirs[i].lock_fd, F_DUPFD_CLOEXEC,
		    0);
		if (fd == -1)
			return CL_SYSTEM;
		r = chan_send(&w->chan, MSG_SHIM_LEASE, 0, NULL, fd);
	}
	if (r == CL_OK && spec->nsecret_files > 0)
		r = workload_lease_send_values(w, 0, spec->secret_files,
		    spec->nsecret_files);
	return r;
}

/* ------------------------------------------------------------------- ends */

static void
workload_lease_wipe(struct holding *h, const char *handle)
{
	struct secretnote note = { "" };

	secretfiles_wipe(&h->set, &note);
	if (*note.text != '\0')
		log_error("lease-wipe", "handle=%s reason=\"%s\"",
		    log_q(handle), note.text);
	else if (h->set.ndirs > 0)
		log_info("lease-wipe", "handle=%s files=%zu", log_q(handle),
		    h->set.nfiles);
}

void
workload_lease_drop(struct holding *h)
{
	if (h == NULL)
		return;
	workload_lease_wipe(h, NULL);
	holding_clear(h);
	free(h);
}

void
workload_lease_release(struct workload *w)
{
	struct holding *h = w->holding;
	size_t i;

	w->holding = NULL;
	if (h != NULL) {
		workload_lease_wipe(h, w->handle_id);
		for (i = 0; i < h->ngrants; i++)
			tombstones_add(&w->ws->tombstones,
			    h->grants[i].lease_id);
		holding_clear(h);
		free(h);
		if (w->dir.fd != -1)
			(void)unlinkat(w->dir.fd, VAULT_RECORD, 0);
	}
	w->ws->ops->on_end(w->ws, w->slot);
}

/* ---------------------------------------------------------------- adoption */

int
workload_lease_load(struct workload *w)
{
	struct holding *h = calloc(1, sizeof(*h));
	int r;

	if (h == NULL)
		return CL_NOMEM;
	if ((r = holding_load(h, w->dir.fd)) == 0) {
		w->holding = h;
		return CL_OK;
	}
	free(h);
	if (r != CL_NOTFOUND)
		log_error("lease-load", "handle=%s reason=\"%s\"",
		    log_q(w->handle_id), cl_strerror(r));
	return kern_is_unsure(r) ? r : CL_OK;
}

int
workload_lease_wipe_record(int dir_fd, const char *name)
{
	struct holding h;
	int r;

	if ((r = holding_load(&h, dir_fd)) != 0)
		return kern_is_unsure(r) ? r : CL_OK;
	workload_lease_wipe(&h, name);
	holding_clear(&h);
	return CL_OK;
}

static void
workload_lease_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	workloads_sweep(arg, SWEEP_MIN_AGE_S);
}

void
workloads_sweep(struct workloads *ws, int64_t min_age_s)
{
	static const struct timeval again = { .tv_sec = SWEEP_AGAIN_S };
	struct secretnote note = { "" };
	size_t n;

	n = secretfiles_sweep(ws->a->lease_base, geteuid(),
	    ws->a->work_uid == (uid_t)-1 ? geteuid() : ws->a->work_uid,
	    min_age_s, &note);
	if (n > 0 || *note.text != '\0')
		log_warn("lease-sweep", "base=%s wiped=%zu reason=\"%s\"",
		    ws->a->lease_base, n, note.text);
	if (ws->sweep != NULL)
		return;		/* the second look was the last */
	ws->sweep = event_new(ws->a->base, -1, 0, workload_lease_on_sweep,
	    ws);
	if (ws->sweep != NULL)
		event_add(ws->sweep, &again);
}

/* ----------------------------------------------------------------- answers */

void
workload_lease_answer(struct workloads *ws, uint32_t type,
    const struct workload_ask *ask, const struct field_table *t,
    const void *v)
{
	struct msg_memfd ans;
	int fd, r;

	if ((r = msg_make_memfd(t, v, MAX_SPEC_LEN, &fd, &ans.len)) == 0)
		fetchctl_send(ws->a->fetch, type, ask->id, ask->generation,
		    &ans, fd);
	else	/* its fetcher answers when the time is over */
		log_error("lease-answer", "type=%s reason=\"%s\"",
		    msgcat_name(type), cl_strerror(r));
}
