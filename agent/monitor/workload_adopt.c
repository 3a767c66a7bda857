/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Finding again what a dead agent left behind: each directory below
 * StateDirectory/handles is one workload.  Its shim answers on its socket; or
 * the exit record says how it ended; or it is lost, with the machine (another
 * boot id) or with its shim, and is reported as failed with that reason.
 * Runs in the device monitor before the fetcher is started, so that the first
 * hello offers everything.  A directory that makes no sense is removed: it
 * belongs to a start that never got as far as its GO.
 *
 * What cannot be told now (no descriptor or memory left, a disk that fails)
 * is asked again, and the fetcher waits for it: a handle that is not offered
 * is lost to the hub.  A directory that cannot be told for too long is left
 * as it is, with what runs.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "agentd.h"
#include "workload_int.h"

#define ADOPT_TIMEOUT_MS 10000

static int
workload_adopt_connect(const struct workload *w, int *fdp)
{
	struct sockaddr_un sun;
	int fd;

	*fdp = -1;
	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	if (workload_format_socket(w, sun.sun_path, sizeof(sun.sun_path)) != 0)
		return CL_TOOBIG;
	/* The socket lies in a directory of ours, 0700: whoever listens there
	 * was started by us. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return CL_SYSTEM;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		close(fd);
		return CL_SYSTEM;
	}
	*fdp = fd;
	return CL_OK;
}

static int
workload_adopt_greet(struct workload *w)
{
	struct msg_version ours = { .version = MSGCAT_VERSION };
	int fd, r;

	if ((r = CHAN_SEND(&w->chan, SHIM_ADOPT, 0, &ours, -1)) != 0)
		return r;
	if ((fd = fcntl(w->wake_fd, F_DUPFD_CLOEXEC, 0)) == -1)
		return CL_SYSTEM;
	return chan_send(&w->chan, MSG_SHIM_WAKE, 0, NULL, fd);
}

/* Once more: its time stands still meanwhile. */
static void
workload_adopt_wait(struct workload *w, int r)
{
	log_warn("workload-unsure", "handle=%s reason=\"%s\"",
	    log_q(w->handle_id), cl_strerror(r));
	w->adopt_until += WORKLOAD_AGAIN_MS;
	workload_set_timer(w, WORKLOAD_AGAIN_MS);
}

/* By its record, else with the reason in w->lost. */
static void
workload_adopt_lost(struct workload *w)
{
	struct shim_exit end;
	int r = shim_exit_load(w->dir.fd, &end);

	if (kern_is_unsure(r) && workload_is_patient(w)) {
		workload_adopt_wait(w, r);
		return;
	}
	if (r != 0)
		workload_set_lost(w, &end, w->lost);
	workload_end(w, &end);
	if (r == 0)
		field_clear(&shim_exit_table, &end);
}

static int
workload_adopt_ask(struct workload *w)
{
	int fd, r, saved;

	if ((r = workload_adopt_connect(w, &fd)) != 0)
		return r;
	if ((r = workload_shim_open(w, fd)) != 0 ||
	    (r = workload_adopt_greet(w)) != 0) {
		saved = errno;
		chan_close(&w->chan);
		errno = saved;
	}
	return r;
}

/* Try, or try again, or give up. */
void
workload_adopt_on_timer(struct workload *w)
{
	int alive, r;

	if (w->chan.is_open) {	/* connected, but it does not answer */
		chan_close(&w->chan);
		w->adopt_until = 0;
	}
	alive = kern_check_process(w->shim_pid, w->shim_ticks);
	if (alive == CL_SYSTEM) {
		workload_adopt_wait(w, alive);
		return;
	}
	if (alive == CL_OK && util_now_ms() < w->adopt_until) {
		if ((r = workload_adopt_ask(w)) == 0)
			workload_set_timer(w, ADOPT_TIMEOUT_MS);
		else if (kern_is_short(r) && errno != EAGAIN)
			workload_adopt_wait(w, r);
		else
			workload_set_timer(w, WORKLOAD_RETRY_MS);
		return;
	}
	if (alive == CL_OK) {
		/* A workload that nobody can reach must not run unseen; one
		 * that is over has its record, and needs no shim. */
		log_error("workload-adopt", "handle=%s reason=\"its shim does "
		    "not answer\"", log_q(w->handle_id));
		if (kern_kill(w->shim_pid, w->shim_ticks) == CL_SYSTEM) {
			workload_set_timer(w, WORKLOAD_AGAIN_MS);
			return;
		}
	}
	workload_adopt_lost(w);
}

static int
workload_adopt_open_files(struct workload *w)
{
	int fd, r;

	if ((r = handledir_open_spool(&w->dir, O_RDWR, &fd)) != 0 ||
	    (r = spool_open(&w->spool, fd, 1)) != 0)
		return r;
	w->has_spool = 1;
	spool_save_u64(&w->spool.head->link_up, 0);
	return workload_make_wake(w);
}

/* What it will give back; without, its end is reported all the same. */
static int
workload_adopt_work(struct workload *w)
{
	int r = work_load(w->ws->a, &w->dir, &w->work);

	if (r == 0 || r == CL_NOTFOUND)
		return CL_OK;
	log_error("workload-adopt", "handle=%s reason=\"its work cannot be "
	    "returned: %s\"", log_q(w->handle_id), cl_strerror(r));
	return kern_is_unsure(r) ? r : CL_OK;
}

/* Its record says nothing.  An error: perhaps later. */
static int
workload_adopt_reject(struct workloads *ws, struct handledir *d, int r)
{
	int saved = errno;

	log_warn("workload-adopt", "dir=%s reason=\"no usable record: %s\"",
	    log_q(d->name), cl_strerror(r));
	errno = saved;
	/* One of a later version is left to that. */
	if (r == CL_VERSION)
		r = CL_OK;
	else if (!kern_is_unsure(r) &&
	    (r = workload_lease_wipe_record(d->fd, d->name)) == CL_OK) {
		(void)handledir_remove(ws->base_fd, d);
		return CL_OK;
	}
	handledir_close(d);
	return r;
}

/* Without its spool it cannot go on.  An error: perhaps later. */
static int
workload_adopt_drop(struct workload *w, int r)
{
	log_error("workload-adopt", "handle=%s reason=\"its spool cannot be "
	    "opened: %s\"", log_q(w->handle_id), cl_strerror(r));
	if ((r = kern_kill(w->shim_pid, w->shim_ticks)) == CL_SYSTEM) {
		workload_leave(w);
		return r;
	}
	workload_forget(w, "no spool");
	return CL_OK;
}

/* All that belongs to it.  An error: perhaps later, and it is left as it
 * was. */
static int
workload_adopt_load(struct workload *w, const struct handle_meta *m)
{
	char boot[KERN_BOOT_LEN + 1];
	int r;

	w->shim_pid = (pid_t)m->shim_pid;
	w->shim_ticks = m->shim_ticks;
	w->started_at = m->created_at;
	w->adopt_until = util_now_ms() + ADOPT_TIMEOUT_MS;
	w->lost = "the workload was lost when the agent on the device "
	    "restarted";
	if ((r = kern_load_boot(boot)) != 0 ||
	    (r = workload_lease_load(w)) != 0 ||
	    (r = workload_adopt_work(w)) != 0 ||
	    ((r = workload_adopt_open_files(w)) != 0 && kern_is_unsure(r))) {
		int saved = errno;

		workload_leave(w);
		errno = saved;
		return r;
	}
	if (r != 0)
		return workload_adopt_drop(w, r);
	if (strcmp(boot, m->boot_id) != 0) {
		w->lost = "the device was restarted while the workload ran";
		w->shim_ticks = 0;	/* of that boot */
	}
	workload_adopt_on_timer(w);
	return CL_OK;
}

static int
workload_adopt_has(struct workloads *ws, const char *name)
{
	const struct workload *w;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state != WL_DEAD && strcmp(w->dir.name, name) == 0)
			return 1;
	return 0;
}

/*
 * One directory; the workload is ADOPTING or over afterwards.  An error: it
 * cannot be told now.
 */
static int
workload_adopt_dir(struct workloads *ws, const char *name)
{
	struct workload *w = NULL;
	struct handledir d;
	struct handle_meta m;
	int r;

	if (workload_adopt_has(ws, name))
		return CL_OK;
	/* Living ones are not refused; too many ended ones go. */
	if ((r = workloads_drop_ended(ws, MAX_CONCURRENT + WORKLOADS_MAX_TOLD,
	    1)) != 0)
		return r;
	if ((r = handledir_open(ws->base_fd, name, &d)) != 0)
		return kern_is_unsure(r) ? r : CL_OK;
	if ((r = handledir_load_meta(&d, &m)) == 0 && (w = workload_new(ws,
	    m.handle_id, m.slot, WL_ADOPTING)) == NULL)
		r = CL_NOMEM;
	if (r != 0)
		return workload_adopt_reject(ws, &d, r);
	w->dir = d;
	return workload_adopt_load(w, &m);
}

/* Sockets of shims that are in no directory any more. */
static void
workload_adopt_sweep(struct workloads *ws)
{
	char path[PATH_MAX];
	struct workload *w;
	struct dirent *e;
	DIR *d;

	if ((d = opendir(ws->socket_dir)) == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		if (*e->d_name == '.')
			continue;
		TAILQ_FOREACH(w, &ws->list, entry)
			if (w->state != WL_DEAD && workload_format_socket(w,
			    path, sizeof(path)) == 0 &&
			    strcmp(strrchr(path, '/') + 1, e->d_name) == 0)
				break;
		if (w == NULL)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
}

/* CL_OK: every directory is decided, or will be. */
static int
workload_adopt_all(struct workloads *ws)
{
	struct dirent *e;
	DIR *d;
	int fd, one, r = CL_OK;

	fd = openat(ws->base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return CL_SYSTEM;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return CL_SYSTEM;
	}
	while ((errno = 0, e = readdir(d)) != NULL)
		if (*e->d_name != '.' &&
		    (one = workload_adopt_dir(ws, e->d_name)) != 0)
			r = one;
	if (errno != 0)
		r = CL_SYSTEM;
	closedir(d);
	return r;
}

void
workload_adopt_scan(struct workloads *ws)
{
	int r;

	ws->is_unsure = 1;	/* until all were looked at */
	r = workload_adopt_all(ws);
	ws->is_unsure = r != 0 && util_now_ms() < ws->unsure_until;
	if (ws->is_unsure)
		workloads_set_again(ws);
	else if (r != 0)
		log_error("workload-adopt", "reason=\"not all directories can "
		    "be read; they are left alone\"");
	if (r == 0)	/* all sockets of living ones are known */
		workload_adopt_sweep(ws);
	workload_adopt_check(ws);
}

void
workloads_adopt(struct workloads *ws, void (*done)(struct agentd *))
{
	ws->adopted = done;
	ws->unsure_until = util_now_ms() + WORKLOAD_PATIENCE_MS;
	workload_adopt_scan(ws);
}

void
workload_adopt_check(struct workloads *ws)
{
	struct workload *w;
	void (*done)(struct agentd *) = ws->adopted;

	if (done == NULL || ws->is_unsure)
		return;
	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state == WL_ADOPTING)
			return;
	ws->adopted = NULL;
	done(ws->a);
}
