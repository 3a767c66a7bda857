/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopd-fence: puts penalised sources into the kernel's packet filter, when
 * PerSourcePenalty says "enforce nft".  Runs as root with CAP_NET_ADMIN
 * alone, which the monitor does not keep; behind a filter and Landlock.  It
 * touches nft and its channel, decides nothing, and can be told three
 * things: make the table, add sources, and, by the channel's end, take the
 * table away.  One order at a time, each with a deadline.
 */
#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "sandbox/rules/fence_nft.h"
#include "sandbox/self/landlock.h"
#include "sandbox/self/self.h"
#include "fence_run.h"

#define FENCE_CHANNEL_FD 3
#define FENCE_QUEUE_MAX 16	/* the monitor waits for each answer */
#define FENCE_LINE_MAX 200

struct fence_state {
	struct imsg_chan monitor;
	struct msgcat_seen seen;
	unsigned int state;	/* MS_* */
	const char *nft;
	char text[FENCE_TEXT_MAX];
	char line[FENCE_LINE_MAX];	/* why nft refused */
};

/* n: the length of fs->text, or what formatting it came to. */
static int
fence_start_nft(struct fence_state *fs, int n)
{
	const char *const argv[] = { fs->nft, "-f", "-", NULL };

	fs->line[0] = '\0';
	if (n < 0)
		return n;
	return fence_run(argv, fs->text, (size_t)n, FENCE_RUN_MS, fs->line,
	    sizeof(fs->line));
}

/* nft and what it reads; no key, no state, and nothing to write. */
static void
fence_confine(void)
{
	static const struct self_path paths[] = {
		{ "/usr", LL_READONLY }, { "/lib", LL_READONLY },
		{ "/lib64", LL_READONLY }, { "/sbin", LL_READONLY },
		{ "/etc/ld.so.cache", LL_READ },
		{ "/etc/iproute2", LL_READ },
		{ "/dev/null", LL_READ | LL_WRITE }, { NULL, 0 }
	};
	struct self_opts o = { .profile = SELF_FENCE, .paths = paths };
	struct self_report rep;
	char text[SELF_REPORT_MAX];
	int r;

	if ((r = self_confine(&o, &rep)) != CL_OK)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_info("confined", "%s", self_format_report(&rep, text));
}

static void
fence_open(struct fence_state *fs, struct imsg *m)
{
	uint16_t ports[MAX_FENCE_PORTS];
	struct buf b;
	size_t i, n;
	int r;

	if ((n = buf_get_u16(&m->body)) > MAX_FENCE_PORTS)
		fatal("monitor-violation", "type=FENCE_OPEN");
	for (i = 0; i < n; i++)
		ports[i] = buf_get_u16(&m->body);
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-violation", "type=FENCE_OPEN");
	if ((fs->nft = fence_nft_find_program()) == NULL)
		fatal("nft", "reason=\"not installed\"");
	fence_confine();
	/* Confined already: what works now works later. */
	r = fence_start_nft(fs, fence_nft_format_table(ports, n, fs->text,
	    sizeof(fs->text)));
	if (r != CL_OK)
		fatal("table", "reason=\"%s\" nft=%s remedy=\"enforce nft "
		    "needs CAP_NET_ADMIN and a kernel with nftables\"",
		    cl_strerror(r), log_q(fs->line));
	log_info("table", "table=\"inet cloopd\" ports=%zu", n);
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, MSGCAT_VERSION);
	r = imsg_compose(&fs->monitor, MSG_FENCE_READY, 0, &b, -1);
	buf_clear(&b);
	if (r != CL_OK)
		fatal("ready", "reason=\"%s\"", cl_strerror(r));
	fs->state = MS_SERVING;
}

static void
fence_add(struct fence_state *fs, struct imsg *m)
{
	static struct fence_source s[MAX_FENCE_BATCH];
	struct buf b;
	uint64_t half;
	size_t i, n;
	int k, r;

	if ((n = buf_get_u16(&m->body)) > MAX_FENCE_BATCH)
		fatal("monitor-violation", "type=FENCE_ADD");
	for (i = 0; i < n; i++) {
		for (k = 0, half = 0; k < 16; k++) {
			if (k % 8 == 0)
				half = buf_get_u64(&m->body);
			s[i].addr[k] = (uint8_t)(half >> (56 - k % 8 * 8));
		}
		s[i].ms = buf_get_u32(&m->body);
	}
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-violation", "type=FENCE_ADD");
	r = fence_start_nft(fs, fence_nft_format_add(s, n, fs->text,
	    sizeof(fs->text)));
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u8(&b, r == CL_OK);
	buf_put_str(&b, r == CL_DENIED ? fs->line : cl_strerror(r));
	r = imsg_compose(&fs->monitor, MSG_FENCE_ADD_ANS, m->id, &b, -1);
	buf_clear(&b);
	if (r != CL_OK)
		fatal("answer", "reason=\"%s\"", cl_strerror(r));
}

/* The monitor stops, or is gone: nobody would take sources out again. */
static void
fence_stop(struct fence_state *fs)
{
	int r;

	if (fs->state == MS_STARTING)
		_exit(0);
	r = fence_start_nft(fs, fence_nft_format_end(fs->text,
	    sizeof(fs->text)));
	if (r != CL_OK)
		fatal("table", "reason=\"it stays: %s\" nft=%s",
		    cl_strerror(r), log_q(fs->line));
	_exit(0);
}

static void
fence_on_monitor(struct fence_state *fs)
{
	struct imsg m;
	const char *why;
	int r;

	while ((r = imsg_read(&fs->monitor, &m)) == CL_OK) {
		if (msgcat_check(MSG_M2W, fs->state, &m, &fs->seen, &why) !=
		    CL_OK)
			fatal("monitor-violation", "type=%s reason=\"%s\"",
			    msgcat_name(m.type), why);
		if (m.type == MSG_FENCE_OPEN)
			fence_open(fs, &m);
		else
			fence_add(fs, &m);
		imsg_free(&m);
	}
	if (r == CL_EOF)
		fence_stop(fs);
	if (r != CL_INCOMPLETE)
		fatal("monitor-read", "reason=\"%s\"", cl_strerror(r));
}

static void
fence_loop(struct fence_state *fs)
{
	struct pollfd pfd = { .fd = fs->monitor.fd };
	int r;

	for (;;) {
		r = imsg_write(&fs->monitor);
		if (r == CL_EOF)
			fence_stop(fs);
		if (r != CL_OK && r != CL_INCOMPLETE)
			fatal("monitor-write", "reason=\"%s\"",
			    cl_strerror(r));
		pfd.events = POLLIN;
		if (fs->monitor.nqueued > 0)
			pfd.events |= POLLOUT;
		if (poll(&pfd, 1, -1) == -1 && errno != EINTR)
			fatal("poll", "reason=\"%s\"", strerror(errno));
		if (pfd.revents & (POLLIN | POLLHUP | POLLERR))
			fence_on_monitor(fs);
	}
}

int
main(void)
{
	static const int ignored[] = { SIGPIPE, SIGHUP, SIGINT, SIGTERM };
	static struct fence_state fs;
	size_t i;
	int r;

	umask(077);
	log_init("cloopd-fence", LOGL_INFO, LOGF_TEXT);
	/* The monitor decides when this process stops. */
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	if ((r = imsg_init(&fs.monitor, FENCE_CHANNEL_FD, FENCE_QUEUE_MAX)) !=
	    CL_OK)
		fatal("start", "reason=\"no channel on descriptor 3: %s\"",
		    cl_strerror(r));
	fs.state = MS_STARTING;
	fence_loop(&fs);
	return 0;
}
