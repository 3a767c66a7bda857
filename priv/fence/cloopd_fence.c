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
#include "common/msg/chan.h"
#include "sandbox/rules/fence_nft.h"
#include "sandbox/self/landlock.h"
#include "sandbox/self/self.h"
#include "fence_run.h"

#define FENCE_CHANNEL_FD 3
#define FENCE_QUEUE_MAX 16	/* the monitor waits for each answer */
#define FENCE_LINE_MAX 200

struct fence_state {
	struct chan monitor;
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

static int
fence_open(struct fence_state *fs, const struct msg_fence_open *m)
{
	struct msg_version ready = { .version = MSGCAT_VERSION };
	int r;

	if ((fs->nft = fence_nft_find_program()) == NULL)
		fatal("nft", "reason=\"not installed\"");
	fence_confine();
	/* Confined already: what works now works later. */
	r = fence_start_nft(fs, fence_nft_format_table(m->ports, m->nports,
	    fs->text, sizeof(fs->text)));
	if (r != CL_OK)
		fatal("table", "reason=\"%s\" nft=%s remedy=\"enforce nft "
		    "needs CAP_NET_ADMIN and a kernel with nftables\"",
		    cl_strerror(r), log_q(fs->line));
	log_info("table", "table=\"inet cloopd\" ports=%zu", m->nports);
	fs->monitor.state = MS_SERVING;
	return CHAN_SEND(&fs->monitor, FENCE_READY, 0, &ready, -1);
}

static int
fence_add(struct fence_state *fs, uint64_t id, const struct msg_fence_add *m)
{
	static struct fence_source s[MAX_FENCE_BATCH];
	struct msg_fence_add_ans ans = { .ok = 0 };
	size_t i, k;
	int r;

	for (i = 0; i < m->nsources; i++) {
		for (k = 0; k < 8; k++) {
			s[i].addr[k] = (uint8_t)(m->sources[i].high >>
			    (56 - k * 8));
			s[i].addr[8 + k] = (uint8_t)(m->sources[i].low >>
			    (56 - k * 8));
		}
		s[i].ms = (uint32_t)m->sources[i].ms;
	}
	r = fence_start_nft(fs, fence_nft_format_add(s, i, fs->text,
	    sizeof(fs->text)));
	ans.ok = r == CL_OK;
	ans.reason = r == CL_DENIED ? fs->line : cl_strerror(r);
	return CHAN_SEND(&fs->monitor, FENCE_ADD_ANS, id, &ans, -1);
}

static int
fence_on_order(void *arg, struct imsg *m, union msg_any *v)
{
	if (m->type == MSG_FENCE_OPEN)
		return fence_open(arg, &v->FENCE_OPEN);
	return fence_add(arg, m->id, &v->FENCE_ADD);
}

/* The monitor stops, or is gone: nobody would take sources out again. */
static void
fence_on_end(void *arg, const char *why)
{
	struct fence_state *fs = arg;
	int r;

	if (why != NULL)
		fatal("monitor-violation", "reason=\"%s\"", why);
	if (fs->monitor.state == MS_STARTING)
		_exit(0);
	r = fence_start_nft(fs, fence_nft_format_end(fs->text,
	    sizeof(fs->text)));
	if (r != CL_OK)
		fatal("table", "reason=\"it stays: %s\" nft=%s",
		    cl_strerror(r), log_q(fs->line));
	_exit(0);
}

static void
fence_loop(struct fence_state *fs)
{
	struct pollfd pfd = { .fd = fs->monitor.im.fd };

	for (;;) {
		pfd.events = chan_has_output(&fs->monitor) ?
		    POLLIN | POLLOUT : POLLIN;
		if (poll(&pfd, 1, -1) == -1 && errno != EINTR)
			fatal("poll", "reason=\"%s\"", strerror(errno));
		chan_flush(&fs->monitor);
		if (pfd.revents & (POLLIN | POLLHUP | POLLERR))
			chan_turn(&fs->monitor);
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
	if ((r = chan_init(&fs.monitor, FENCE_CHANNEL_FD, MSG_M2W, MSG_W2M,
	    FENCE_QUEUE_MAX, fence_on_order, fence_on_end, &fs)) != CL_OK)
		fatal("start", "reason=\"no channel on descriptor 3: %s\"",
		    cl_strerror(r));
	fence_loop(&fs);
	return 0;
}
