/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The session role of agentd-fetch: what fetch_*.c share.  One process, one
 * link, one monitor; a single `struct fs`.  Prefixes: fs_ (state machine,
 * fetch_session.c; frames out, fetch_send.c), fm_ (the monitor's messages);
 * ff_ (fetch_frame.h), fa_ (fetch_ask.h).
 */
#ifndef CLOOP_FETCH_SESSION_H
#define CLOOP_FETCH_SESSION_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/json/jsonw.h"
#include "common/model/caps.h"
#include "common/msg/chan.h"
#include "net/codec/frame.h"
#include "net/codec/json.h"
#include "fetch_ask.h"
#include "fetch_conf.h"
#include "fetch_incoming.h"
#include "fetch_link.h"
#include "fetch_work.h"

#define FS_STATES(X)                                                           \
	X(WAIT) X(CAPS) X(RESOLVE) X(DIAL) X(HELLO) X(SAVE) X(UP) X(CLOSING)   \
	X(OVER)
#define FS_EVENTS(X)                                                           \
	X(DUE) X(CAPS) X(ADDRS) X(OPEN) X(WELCOME) X(FRESH) X(SAVED)           \
	X(FAILED) X(ENDED) X(TIMEOUT) X(STOP)

enum fs_state {
#define X(name) FS_##name,
	FS_STATES(X)
#undef X
	FS_NSTATES
};
enum fs_event {
#define X(name) FE_##name,
	FS_EVENTS(X)
#undef X
	FS_NEVENTS
};

#define FS_WHY_MAX 512
#define FS_QUEUE_MAX 16		/* events of one turn */

struct fs {
	struct event_base *base;
	struct event *turn;	/* activated by hand */
	struct event *timer;	/* the next of all deadlines */
	struct chan chan;	/* to the monitor */
	struct fetch_conf conf;
	struct tlsio_ctx *ctx;
	struct fl *link;
	/* the state machine */
	enum fs_state state;
	int64_t state_deadline_at;	/* 0: none */
	enum fs_event queue[FS_QUEUE_MAX];
	size_t nqueue;
	unsigned int nfailures;	/* since the last welcome: the ladder */
	int stopping;		/* FETCH_STOP came */
	int fatal;		/* FATAL_*: never dial again */
	char why[FS_WHY_MAX];	/* of the end of this attempt */
	/* the session */
	uint64_t session;	/* counts links that were opened */
	int negotiated;
	struct caps caps;	/* of the hello to come */
	struct fl_addr addrs[MAX_RESOLVED];
	size_t naddrs;
	struct frame_welcome welcome;	/* between HELLO and UP */
	int has_welcome;
	uint64_t beat_seq;
	int64_t beat_ms, beat_at;
	int64_t heard_at;	/* last frame of the hub */
	uint64_t logged_types;	/* bit a type: said once a session */
	int logged_unknown, logged_skew;
	/* tables */
	struct fw_list works, dirty, waiting;
	size_t nworks;
	struct fi_list incoming;
	size_t nincoming;
	struct fa_list asks;
	size_t nasks;
	uint64_t next_ask;
	/* codecs */
	struct jx jx;
	struct jsonw out;
	uint8_t raw[MAX_LOG_TEXT_LEN];
	uint8_t text[3 * (MAX_LOG_TEXT_LEN + 3)];
};

/* fetch_session.c */
int fs_open(struct fs *fs, struct event_base *base);
void fs_start(struct fs *fs);	/* configured and confined: dial */
void fs_put_event(struct fs *fs, enum fs_event ev);
void fs_wake(struct fs *fs);
/* End this link; the reason is logged when it is gone. */
void fs_fail(struct fs *fs, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
void fs_enter_state(struct fs *fs, enum fs_state state, enum fs_event ev);
const char *fs_state_name(enum fs_state state);

/* fetch_action.c: what a transition does. */
typedef void fs_action_fn(struct fs *);
struct fs_row {
	fs_action_fn *act;	/* NULL: nothing may happen here */
	enum fs_state next;
};
extern const struct fs_row fs_table[FS_NSTATES][FS_NEVENTS];
void fs_on_saved(struct fs *fs, int saved, const char *error);
void fs_put_beat(struct fs *fs);

/* fetch_hello.c: a message of the link. */
void fs_on_message(void *arg, const uint8_t *data, size_t len);

/* fetch_send.c; each returns CL_*, having ended the session on failure. */
int fs_send(struct fs *fs, enum frame_type type, const char *id,
    const char *handle, const void *payload, uint64_t *posp);
int fs_send_error(struct fs *fs, const char *id, const char *code,
    const char *message);
int fs_send_hello(struct fs *fs);
void fs_report_session(struct fs *fs, uint8_t link_state, const char *why);
void fs_ask_monitor(struct fs *fs, uint32_t type, uint64_t id,
    const struct buf *body, int fd);

/* fetch_monitor.c, fetch_setup.c */
int fm_open(struct fs *fs, int fd);
int fm_on_config(struct fs *fs, struct imsg *m);
int fm_on_ca(struct fs *fs, struct imsg *m);
int fm_on_start(struct fs *fs, struct imsg *m);

/* fetch_resolve.c: the other role; returns the exit status. */
int fr_main(void);

#endif
