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
	struct buf b;
	int fd, r;

	buf_init(&b, 4);
	buf_put_u32(&b, MSGCAT_VERSION);
	r = chan_send_buf(&w->chan, MSG_SHIM_ADOPT, 0, &b, -1);
	buf_clear(&b);
	if (r != 0)
		return r;
	if ((fd = fcntl(w->wake_fd, F_DUPFD_CLOEXEC, 0)) == -1)
		return CL_SYSTEM;
	return chan_send(&w->chan, MSG_SHIM_WAKE, 0, NULL, fd);
}

static void
workload_adopt_lost(struct workload *w, const char *why)
{
	struct shim_exit end;

	if (shim_exit_load(w->dir.fd, &end) != 0) {
		memset(&end, 0, sizeof(end));
		end.state = HS_FAILED;
		end.exit_code = -1;
		end.started_at = w->started_at;
		end.finished_at = util_wall_ns();
		strlcpy(end.error, why, sizeof(end.error));
		if (w->has_spool)
			end.total_raw =
			    spool_load_u64(&w->spool.head->total);
	}
	workload_end(w, &end);
}

/* Try, or try again, or give up. */
void
workload_adopt_on_timer(struct workload *w)
{
	int fd, alive;

	if (w->chan.is_open) {	/* connected, but it does not answer */
		chan_close(&w->chan);
		w->adopt_until = 0;
	}
	alive = procid_is_alive(w->shim_pid, w->shim_ticks);
	if (alive && util_now_ms() < w->adopt_until) {
		if (workload_adopt_connect(w, &fd) != 0) {
			workload_set_timer(w, WORKLOAD_RETRY_MS);
			return;
		}
		if (workload_shim_open(w, fd) == 0 &&
		    workload_adopt_greet(w) == 0) {
			workload_set_timer(w, ADOPT_TIMEOUT_MS);
			return;
		}
		chan_close(&w->chan);
	}
	if (alive) {
		/* A workload that nobody can reach must not run unseen; one
		 * that is over has its record, and needs no shim. */
		log_error("workload-adopt", "handle=%s reason=\"its shim does "
		    "not answer\"", log_q(w->handle_id));
		(void)kill(w->shim_pid, SIGKILL);
	}
	workload_adopt_lost(w, "the workload was lost when the agent on the "
	    "device restarted");
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
static void
workload_adopt_work(struct workload *w)
{
	int r = work_load(w->ws->a, &w->dir, &w->work);

	if (r != 0 && r != CL_NOTFOUND)
		log_error("workload-adopt", "handle=%s reason=\"its work "
		    "cannot be returned: %s\"", log_q(w->handle_id),
		    cl_strerror(r));
}

/* One directory; the workload is ADOPTING or over afterwards. */
static void
workload_adopt_dir(struct workloads *ws, const char *name)
{
	char boot[PROCID_BOOT_LEN + 1];
	struct handledir d;
	struct handle_meta m;
	struct workload *w;

	if (handledir_open(ws->base_fd, name, &d) != 0)
		return;
	if (handledir_load_meta(&d, &m) != 0 ||
	    (w = workload_new(ws, m.handle_id, m.slot, WL_ADOPTING)) == NULL) {
		log_warn("workload-adopt", "dir=%s reason=\"no usable record, "
		    "removed\"", log_q(name));
		workload_lease_wipe_record(d.fd, name);
		(void)handledir_remove(ws->base_fd, &d);
		return;
	}
	w->dir = d;
	workload_lease_load(w);
	workload_adopt_work(w);
	w->shim_pid = (pid_t)m.shim_pid;
	w->shim_ticks = m.shim_ticks;
	w->started_at = m.created_at;
	w->adopt_until = util_now_ms() + ADOPT_TIMEOUT_MS;
	if (workload_adopt_open_files(w) != 0) {
		log_error("workload-adopt", "handle=%s reason=\"its spool "
		    "cannot be opened: %s\"", log_q(w->handle_id),
		    strerror(errno));
		if (procid_is_alive(w->shim_pid, w->shim_ticks))
			(void)kill(w->shim_pid, SIGKILL);
		workload_forget(w, "no spool");
		return;
	}
	procid_load_boot(boot);
	if (strcmp(boot, m.boot_id) != 0) {
		workload_adopt_lost(w, "the device was restarted while the "
		    "workload ran");
		return;
	}
	workload_adopt_on_timer(w);
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

void
workloads_adopt(struct workloads *ws, void (*done)(struct agentd *))
{
	struct dirent *e;
	DIR *d = NULL;
	int fd;

	fd = openat(ws->base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1 && (d = fdopendir(fd)) == NULL)
		close(fd);
	if (d == NULL)
		log_error("workload-adopt", "reason=%s", strerror(errno));
	while (d != NULL && (e = readdir(d)) != NULL)
		if (*e->d_name != '.')
			workload_adopt_dir(ws, e->d_name);
	if (d != NULL)
		closedir(d);
	workload_adopt_sweep(ws);
	ws->adopted = done;
	workload_adopt_check(ws);
}

void
workload_adopt_check(struct workloads *ws)
{
	struct workload *w;
	void (*done)(struct agentd *) = ws->adopted;

	if (done == NULL)
		return;
	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state == WL_ADOPTING)
			return;
	ws->adopted = NULL;
	done(ws->a);
}
