/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Starts, in the device monitor.  The spec was decoded by the fetcher, which
 * may have been taken over: it is read again from its message form, checked
 * again in full, and confined by this device's own configuration.  The order
 * of steps is the order in which refusals are told; whatever this build
 * cannot honour is refused before anything is made, and never ignored:
 * start_check_support() is the gate that makes a high protocol version honest
 * (agent_conf.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "start.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/model/spec.h"
#include "common/output/redact.h"
#include "sandbox/box/shim.h"
#include "agentd.h"
#include "kern.h"
#include "vault.h"
#include "work.h"
#include "workloads.h"

static int
start_is_set(const char *s)
{
	return s != NULL && *s != '\0';
}

/* What a process on the host cannot be given. */
static const char *
start_check_host(const struct spec *s)
{
	const struct spec_limits *l = &s->resource_limits;

	if (l->cpu_millis != 0 || l->memory_mb != 0 || l->disk_mb != 0 ||
	    l->pids != 0)
		return "host mode cannot enforce resource limits";
	if (start_is_set(s->image))
		return "host mode has no image";
	if (s->nsetup_commands > 0)
		return "host mode runs no setup commands";
	if (s->nmounts > 0 || s->nhost_mounts > 0)
		return "host mode has no mounts";
	if (s->ndevices > 0)
		return "host mode hands over no devices";
	if (s->ninterfaces > 0)
		return "host mode hands over no interfaces";
	if (start_is_set(s->egress_scope))
		return "host mode cannot limit the network (egress_scope)";
	if (s->disable_network)
		return "host mode cannot take the network away "
		    "(disable_network)";
	if (s->egress_rules != NULL || s->egress_bound != NULL)
		return "host mode has no firewall (egress_rules)";
	if (s->egress_proxy != NULL)
		return "host mode has no firewall (egress_proxy)";
	return NULL;
}

const char *
start_check_support(const struct agentd *a, const struct spec *s)
{
	const char *why;

	if (start_is_set(s->refusal))
		return s->refusal;
	if (s->git_ca != NULL)
		return "this device cannot honour a git CA: name the roots "
		    "in GIT_SSL_CAINFO of its agent";
	if (s->virtual != NULL)
		return "this device has no virtual executors";
	if (s->sandbox.mode != NULL &&
	    strcmp(s->sandbox.mode, "container") == 0)
		return "this device cannot run containers";
	if (s->nforwarded_devices > 0)
		return "no such device channel is open on this device";
	if ((why = work_check(a, s)) != NULL)
		return why;
	if (a->conf.host_mode == HOSTMODE_OFF)
		return "host mode is switched off on this device "
		    "(HostMode off)";
	return start_check_host(s);
}

/* One start under way. */
struct start {
	struct agentd *a;
	const struct workload_ask *ask;
	const char *handle_id;
	struct spec spec;
	struct workdir wd;
	char *home;
	struct shim_job job;
	struct holding *holding;
	struct redact *redact;		/* of its own material */
	struct work *work;
};

/*
 * The same with a line in the log.  A text may quote the spec: what this
 * start was lent is taken out of it.
 */
static void
start_refuse_log(struct start *st, const char *code, const char *text)
{
	char clean[MAX_ERROR_TEXT_LEN + 1];

	redact_format(st->redact, text, clean, sizeof(clean));
	log_info("start-refused", "handle=%s code=%s reason=%s",
	    log_q(st->handle_id), code == NULL ? "-" : code, log_q(clean));
	workloads_refuse(st->a->workloads, st->ask, code, clean);
}

/* Where the work directory could not be had: code or text of the answer. */
static void
start_refuse_workdir(struct start *st, int r)
{
	const char *code = NULL, *text;

	switch (r) {
	case CL_DENIED:
		code = "forbidden_path";
		text = "the work directory is outside the device's root";
		break;
	case CL_LIMIT:
		code = "forbidden_path";
		text = "the work directory has too many symbolic links";
		break;
	case CL_EXISTS:
		text = "something that is no directory is in the way of the "
		    "work directory";
		break;
	case CL_TOOBIG:
		text = "the work directory's name is too long";
		break;
	default:
		if (kern_is_short(r))
			code = "busy";
		text = "the work directory cannot be made";
		log_error("start-workdir", "handle=%s reason=\"%s\"",
		    log_q(st->handle_id), cl_strerror(r));
		break;
	}
	start_refuse_log(st, code, text);
}

/* Is it well-formed, valid, supported? */
static int
start_check(struct start *st)
{
	const char *no;
	char *why = NULL;
	int r;

	if (spec_check_siblings(&st->spec, &why) != 0) {
		start_refuse_log(st, "protocol",
		    why == NULL ? "malformed start" : why);
		free(why);
		return -1;
	}
	if (spec_check(&st->spec, &why) != 0) {
		start_refuse_log(st, NULL,
		    why == NULL ? "invalid spec" : why);
		free(why);
		return -1;
	}
	/* A path that must not be is told before what cannot be. */
	r = workdir_check(&st->a->root, st->spec.work_dir);
	if (r != 0) {
		start_refuse_workdir(st, r);
		return -1;
	}
	if ((no = start_check_support(st->a, &st->spec)) != NULL) {
		start_refuse_log(st, NULL, no);
		return -1;
	}
	return 0;
}

/* Directories, relocation, what a revoke will find; the contents are written
 * once the record is on disk (workload_lease.c). */
static int
start_make_lease(struct start *st)
{
	struct holding *h;
	int r;

	if ((h = calloc(1, sizeof(*h))) == NULL)
		return CL_NOMEM;
	holding_init(h);
	if ((r = secretfiles_make_dirs(st->a->lease_base, &st->spec,
	    st->a->work_uid, st->a->work_gid, &h->set)) == 0 &&
	    (r = secretfiles_relocate(&h->set, &st->spec)) == 0)
		r = holding_bind(h, &st->spec);
	if (r != 0 || holding_is_empty(h)) {
		workload_lease_drop(h);
		return r;
	}
	st->holding = h;
	return CL_OK;
}

/* Its supervisor could not be had. */
static void
start_refuse_launch(struct start *st, int r)
{
	int saved = errno;

	log_error("start", "handle=%s reason=\"%s\"", log_q(st->handle_id),
	    cl_strerror(r));
	errno = saved;
	if (kern_is_short(r))
		workloads_refuse(st->a->workloads, st->ask, "busy",
		    "the device has no room for it now");
	else
		workloads_refuse(st->a->workloads, st->ask, NULL,
		    r == CL_SYSTEM && (errno == ENOSPC || errno == EDQUOT) ?
		    "the device's disk is full" :
		    "the workload's supervisor cannot be started");
}

static void
start_launch(struct start *st)
{
	struct workload_start ws = { .handle_id = st->handle_id,
	    .job = &st->job, .spec = &st->spec, .ask = st->ask };
	char *why = NULL;
	int r, is_short;

	r = workdir_open(&st->a->root, st->spec.work_dir, &st->wd);
	if (r != 0) {
		start_refuse_workdir(st, r);
		return;
	}
	if ((r = start_make_lease(st)) != 0) {
		start_refuse_log(st, kern_is_short(r) ? "busy" : NULL,
		    r == CL_LIMIT ?
		    "the start declares too many secret directories" :
		    "the secret files cannot be placed");
		return;
	}
	r = workdir_open_home(&st->a->root, &st->wd, &st->home);
	if (r == 0)
		r = start_make_job(st->a, &st->spec, st->handle_id,
		    st->wd.path, st->home, &st->job);
	if (r == 0 && st->holding != NULL)
		r = start_add_leases(&st->holding->set, &st->job);
	if (r == 0)
		r = work_make(st->a, &st->spec, st->handle_id, &st->wd,
		    &st->work, &why);
	if (r != 0) {
		is_short = why == NULL && kern_is_short(r);
		workload_lease_drop(st->holding);
		st->holding = NULL;
		start_refuse_log(st, is_short ? "busy" : NULL,
		    why != NULL ? why :
		    "the workload's environment cannot be made");
		free(why);
		return;
	}
	ws.tree_fd = st->wd.fd;
	ws.holding = st->holding;
	ws.work = st->work;
	if (st->work != NULL) {	/* its texts are told later */
		st->work->redact = st->redact;
		st->redact = NULL;
	}
	st->work = NULL;
	st->wd.fd = -1;
	st->holding = NULL;
	if ((r = workloads_start(st->a->workloads, &ws)) != 0)
		start_refuse_launch(st, r);
}

/* Before anything of the start is quoted anywhere. */
static int
start_make_redact(struct start *st)
{
	size_t i;
	int r;

	if ((st->redact = redact_new()) == NULL)
		return CL_NOMEM;
	r = redact_add_env(st->redact, st->spec.env, st->spec.nenv);
	for (i = 0; r == 0 && i < st->spec.nsecret_files; i++)
		r = redact_add(st->redact,
		    st->spec.secret_files[i].content.data,
		    st->spec.secret_files[i].content.len);
	return r;
}

static void
start_serve(struct start *st)
{
	const char *no;

	/* The same start again is no second start. */
	if (workloads_answer_again(st->a->workloads, st->handle_id, st->ask))
		return;
	if (start_make_redact(st) != 0) {
		workloads_refuse(st->a->workloads, st->ask, NULL,
		    "the start carries more secrets than can be redacted");
		return;
	}
	if (start_check(st) != 0)
		return;
	if (st->a->stopping)
		start_refuse_log(st, "busy", "the device is shutting down");
	else if ((no = workloads_make_room(st->a->workloads)) != NULL)
		start_refuse_log(st, "busy", no);
	else
		start_launch(st);
}

int
start_answer(struct agentd *a, const struct workload_ask *ask,
    const char *handle_id, const uint8_t *data, size_t len)
{
	struct start st;
	struct buf b;
	int r;

	memset(&st, 0, sizeof(st));
	st.a = a;
	st.ask = ask;
	st.handle_id = handle_id;
	st.wd.fd = -1;
	spec_init(&st.spec);
	buf_init_read(&b, data, len);
	r = spec_get(&b, &st.spec);
	if (r == 0)
		r = buf_end(&b);
	if (r == 0)
		start_serve(&st);
	/* A shipped branch that this start did not take. */
	incoming_drop(a, handle_id);
	workload_lease_drop(st.holding);
	redact_free(st.redact);
	work_free(st.work);
	workdir_close(&st.wd);
	free(st.home);
	shim_job_clear(&st.job);
	spec_clear(&st.spec);
	if (r != CL_NOMEM)
		return r;
	workloads_refuse(a->workloads, ask, "busy", "out of memory");
	return CL_OK;
}
