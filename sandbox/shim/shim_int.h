/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Private to cloop-shim: cloop_shim.c (main, loop, states), shim_msg.c
 * (messages), shim_start.c (the shim's half of starting), shim_exec.c (the
 * workload's half), shim_view.c (Landlock of a workload), shim_pump.c
 * (output), shim_kill.c (ends).
 */
#ifndef CLOOP_SHIM_INT_H
#define CLOOP_SHIM_INT_H

#include <sys/types.h>

#include <dirent.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/msg/chan.h"
#include "common/output/redact.h"
#include "common/output/spool.h"
#include "sandbox/box/cgroup.h"
#include "sandbox/box/cgroup_net.h"
#include "sandbox/box/shim.h"
#include "sandbox/self/bpf.h"

/* One workload's processes and threads: above what big builds use, below
 * what hurts the machine.  By pids.max, or RLIMIT_NPROC counted in the
 * workload's own user namespace; see shim_exec.c for when neither. */
#define MAX_WORKLOAD_TASKS 1024

enum shim_state {
	SHIM_SETUP,		/* messages come in, nothing runs */
	SHIM_RUNNING,
	SHIM_DRAINING,		/* leader ended, somebody holds the pipe */
	SHIM_CLEARING,		/* everything was killed, waiting for it */
	SHIM_ENDED,		/* record saved and reported */
	SHIM_DONE		/* exit */
};

struct shim_pump {
	struct spool spool;
	int fd;			/* read end of the workload's pipe; -1: EOF */
	int wake_fd;		/* eventfd, or -1 */
	uint8_t *block;		/* SPOOL_BLOCK_LEN */
	int64_t stall_at;	/* when `sent` was last seen to move; 0 */
	uint64_t stall_sent;
	int is_lossy;		/* a write to the spool failed */
	struct redact *redact;	/* values to hide; NULL: none */
	struct redact_stream *stream;
	uint8_t *clean;		/* a block without them */
	size_t clean_len;
	int is_step;		/* SHIM_F_STEP: others write on */
};

struct shim {
	enum shim_state state;
	struct shim_job job;
	struct chan chan;	/* to the monitor, when there is one */
	int listen_fd;		/* re-adoption socket or -1 */
	int signal_fd;		/* SIGCHLD */
	int dir_fd, tree_fd;	/* handle directory, work directory */
	int exit_fd;		/* exit record's temporary file */
	int null_fd;
	int stdin_fd;		/* SHIM_STDIN, or -1 */
	struct shim_pump pump;
	struct bpf_set filters;	/* until the workload runs */
	int has_filters;
	int no_redact;		/* a value could not be learned: no start */
	int lease_fds[MAX_SHIM_PATHS];	/* held for their locks */
	size_t nleases;
	struct cgroup cgroup;
	DIR *proc;		/* without a pid namespace: to find them */
	pid_t init_pid;		/* of the pid namespace; -1 */
	pid_t leader_pid;
	int64_t reported_pid;	/* the leader's, also after its end */
	int is_leader_gone;	/* its status is known */
	int has_user_ns;
	uint32_t missing;	/* SHIM_NO_* */
	unsigned int asked;	/* bit n: signal n was requested */
	int is_stopping;	/* SHIM_SIG_STOP: no drain grace */
	int is_timeout;
	int64_t deadline_at;	/* timeout; 0: none */
	int64_t drain_at;
	struct shim_exit end;
	char end_text[MAX_SHIM_ERROR_LEN + 1];	/* end.error */
	int is_saved;		/* its record is on disk, or nobody wants it */
	int64_t save_at;	/* when to try again */
};

/* What this machine did not give a confined workload, for the log. */
#define SHIM_NO_NAMESPACES 0x01
#define SHIM_NO_LANDLOCK 0x02
#define SHIM_NO_CGROUP 0x04
#define SHIM_NO_TASKS 0x08	/* nothing bounds the number of tasks */

/* cloop_shim.c */
void shim_enter_state(struct shim *s, enum shim_state next);

/* shim_msg.c: the channel over fd, which is taken.  CL_NOMEM. */
int shim_msg_open(struct shim *s, int fd);
void shim_msg_accept(struct shim *s);
/* What may be said to us is another thing from now on. */
void shim_msg_set_state(struct shim *s);
/* A monitor that is gone is no error: another one will ask. */
int shim_msg_send_started(struct shim *s);
int shim_msg_send_exited(struct shim *s);
void shim_msg_send_failed(struct shim *s, const char *text);
/* Everything needed for a start has come. */
int shim_msg_has_all(const struct shim *s);

/* shim_start.c: start the workload; on failure the reason in why. */
int shim_start(struct shim *s, char *why, size_t whylen);

/* shim_exec.c: what the started process does; does not return. */
struct shim_child {
	struct shim *s;
	int out_fd;		/* write end of the pipe */
	int err_fd;		/* close-on-exec; text of a failure */
	int sync_fd;		/* "write my id maps", and the answer */
};
void shim_exec_leader(struct shim_child *c) __attribute__((__noreturn__));
void shim_exec_init(int sync_fd, long shim_pid,
    const struct sock_fprog *filter)
    __attribute__((__noreturn__));

/* shim_view.c: what the workload may reach; NULL view: no mount namespace. */
struct ns_view;
int shim_view_start_landlock(const struct shim_job *j,
    const struct ns_view *v, int tree_fd);

/* shim_pump.c */
void shim_pump_init(struct shim_pump *p);
/* Now, or how many ms until it is worth asking again. */
int shim_pump_may_read(struct shim_pump *p, int64_t now_ms, int *wait_msp);
/* Move what is there; closes fd at EOF. */
void shim_pump_read(struct shim_pump *p);
/* Hide one more value, from the next byte that is read on.  CL_NOMEM,
 * CL_LIMIT. */
int shim_pump_add_value(struct shim_pump *p, const void *data, size_t len);
/* The same for the variables CLOOP_REDACT_ENV names. */
int shim_pump_add_env(struct shim_pump *p, char *const *env, size_t n);
/* The rest that fits into a pipe, then the end of the output. */
void shim_pump_end(struct shim_pump *p);

/* shim_kill.c */
/* SIG_* to the workload; remembers what was asked. */
void shim_kill_signal(struct shim *s, int sig);
/* SIGKILL to everything; called again until shim_kill_is_done. */
void shim_kill_all(struct shim *s);
/* Collect ended children; notes the leader's status. */
void shim_kill_reap(struct shim *s);
int shim_kill_is_done(struct shim *s);
/* State, exit code and error of the leader's status. */
void shim_kill_format_end(struct shim *s, int code, int status);

#endif
