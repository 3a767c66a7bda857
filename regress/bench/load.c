/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The load generator of the bench: thousands of agents in one process, with
 * real credentials, upgrade, hello and back-off, or as many plain WebSocket
 * clients for a peer.  Connects them all, prints "up", and then does what
 * lines on standard input say, answering each with a line:
 *
 *	pids PID...	whose CPU and memory is measured from now on
 *	hold SECONDS	beat at the period of -t
 *	beat SECONDS	beat as fast as beats are answered
 *	ingest BYTES	each agent with a workload sends so much output
 *	end		those workloads have ended
 *	storm SECONDS	await the server's end, and all to be back
 *	write DIR BYTES	the same output with write(2) into -n files
 *
 * At the end of input it leaves.  It trusts its command line and whoever
 * started it; what the server sends is counted, not believed.
 */
#include <sys/epoll.h>
#include <sys/resource.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "regress/bench/load/agent.h"
#include "regress/bench/load/proc.h"

#define MAX_PIDS 64
#define SOURCE_BASE 0x7f010001U		/* 127.1.0.1 and on */

static long pids[MAX_PIDS];
static size_t npids;

static double
sum_cpu(void)
{
	double v, sum = 0;
	size_t i;

	for (i = 0; i < npids; i++)
		if ((v = proc_get_cpu(pids[i])) > 0)
			sum += v;
	return sum;
}

static double
sum_pss(void)
{
	double v, sum = 0;
	size_t i;

	for (i = 0; i < npids; i++)
		if ((v = proc_get_pss(pids[i])) > 0)
			sum += v;
	return sum;
}

/* Until `until' (seconds) or, with done, until it says so. */
static void
run_until(struct fleet *f, double until, int (*done)(struct fleet *))
{
	double now;

	while ((now = proc_now()) < until && (done == NULL || !done(f)))
		fleet_turn(f, (int)((until - now) * 1000) + 1);
}

static int
is_up(struct fleet *f)
{
	return f->nup == f->n;
}

static int
is_sent(struct fleet *f)
{
	return f->nsending == 0;
}

static int
is_lost(struct fleet *f)
{
	return f->nup == 0;
}

static int
is_back(struct fleet *f)
{
	return f->nup >= f->n - f->n / 100;
}

/* ---------------------------------------------------------------- commands */

static double
get_seconds(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || v <= 0 || v > 86400)
		errx(1, "not a number of seconds: %s", text);
	return v;
}

static void
do_pids(struct fleet *f, char *text)
{
	const char *why;
	char *word;

	npids = 0;
	while ((word = strsep(&text, " ")) != NULL) {
		if (*word == '\0')
			continue;
		if (npids == MAX_PIDS)
			errx(1, "more than %d processes", MAX_PIDS);
		pids[npids++] = (long)strtonum(word, 1, INT32_MAX, &why);
		if (why != NULL)
			errx(1, "pids %s: %s", word, why);
	}
	(void)f;
	printf("pids %zu\n", npids);
}

static void
do_beats(struct fleet *f, const char *what, double seconds)
{
	uint64_t sent = f->nbeats, acked = f->nacks;
	double start = proc_now(), cpu = sum_cpu();

	run_until(f, start + seconds, NULL);
	cpu = sum_cpu() - cpu;
	printf("%s seconds=%.3f beats=%llu acks=%llu cpu=%.6f pss=%.0f "
	    "up=%zu\n", what, proc_now() - start,
	    (unsigned long long)(f->nbeats - sent),
	    (unsigned long long)(f->nacks - acked), cpu, sum_pss(), f->nup);
}

static void
do_hold(struct fleet *f, char *text)
{
	do_beats(f, "hold", get_seconds(text));
}

static void
do_beat(struct fleet *f, char *text)
{
	fleet_set_rate(f, 1);
	do_beats(f, "beat", get_seconds(text));
	fleet_set_rate(f, 0);
	/* The last answers, so that none disturbs what comes next. */
	run_until(f, proc_now() + 0.3, NULL);
}

static void
do_ingest(struct fleet *f, char *text)
{
	double start, cpu = sum_cpu();
	const char *why;
	uint64_t len = (uint64_t)strtonum(text, 1, INT64_MAX, &why);
	size_t n;

	if (why != NULL)
		errx(1, "ingest %s: %s", text, why);
	start = proc_now();
	n = fleet_ingest(f, len);
	run_until(f, start + 120, is_sent);
	printf("ingest seconds=%.6f bytes=%llu agents=%zu cpu=%.6f "
	    "missing=%zu\n", proc_now() - start,
	    (unsigned long long)(n * f->chunk_bytes), n, sum_cpu() - cpu,
	    f->nsending);
}

static void
do_end(struct fleet *f, char *text)
{
	(void)text;
	printf("end %zu\n", fleet_end_work(f));
	run_until(f, proc_now() + 0.2, NULL);
}

static void
do_storm(struct fleet *f, char *text)
{
	double limit = get_seconds(text), lost, t99;

	run_until(f, proc_now() + limit, is_lost);
	lost = f->lost_at;
	run_until(f, lost + limit, is_back);
	t99 = proc_now() - lost;
	printf("storm back=%zu t99=%.3f tries=%llu peak=%llu mean=%.2f "
	    "refused=%llu\n", f->nup, t99, (unsigned long long)f->ntries,
	    (unsigned long long)fleet_get_peak(f), fleet_get_mean(f),
	    (unsigned long long)f->nrefused);
	run_until(f, proc_now() + 10, is_up);
}

static void
do_write(struct fleet *f, char *text)
{
	char *dir = strsep(&text, " ");
	struct rusage a, b;
	double start, cpu;
	const char *why = "missing";
	uint64_t len = text != NULL ?
	    (uint64_t)strtonum(text, 1, INT64_MAX, &why) : 0;

	if (why != NULL)
		errx(1, "write DIR BYTES: %s", why);
	getrusage(RUSAGE_SELF, &a);
	start = proc_now();
	fleet_write_files(f, dir, len);
	getrusage(RUSAGE_SELF, &b);
	cpu = (double)(b.ru_utime.tv_sec - a.ru_utime.tv_sec +
	    b.ru_stime.tv_sec - a.ru_stime.tv_sec) +
	    (double)(b.ru_utime.tv_usec - a.ru_utime.tv_usec +
	    b.ru_stime.tv_usec - a.ru_stime.tv_usec) / 1e6;
	printf("write seconds=%.6f bytes=%llu cpu=%.6f\n", proc_now() - start,
	    (unsigned long long)(f->n * len), cpu);
}

static void
do_nothing(struct fleet *f, char *text)
{
	(void)f;
	errx(1, "unknown command: %s", text);
}

static void
do_line(struct fleet *f, char *line)
{
	static const struct {
		const char *name;
		void (*fn)(struct fleet *, char *);
	} rows[] = {
		{ "pids ", do_pids }, { "hold ", do_hold },
		{ "beat ", do_beat }, { "ingest ", do_ingest },
		{ "end", do_end }, { "storm ", do_storm },
		{ "write ", do_write }, { "", do_nothing }
	};
	size_t i = 0;

	line[strcspn(line, "\n")] = '\0';
	while (strncmp(line, rows[i].name, strlen(rows[i].name)) != 0)
		i++;
	rows[i].fn(f, line + strlen(rows[i].name));
	fflush(stdout);
}

/* Serve the connections while no command has come; 0: end of input. */
static int
wait_for_line(struct fleet *f, char *line, size_t len)
{
	size_t have = 0;
	ssize_t n;

	for (;;) {
		n = read(STDIN_FILENO, line + have, 1);
		if (n == 0)
			return 0;
		if (n == -1 && errno != EAGAIN && errno != EINTR)
			err(1, "stdin");
		if (n == -1) {
			fleet_turn(f, 10);
			continue;
		}
		if (line[have++] == '\n' || have == len - 1) {
			line[have] = '\0';
			return 1;
		}
	}
}

/* ----------------------------------------------------------------- options */

static void
set_peer(struct fleet *f, const char *text)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	const char *colon = strrchr(text, ':');
	char host[64];

	if (colon == NULL || (size_t)(colon - text) >= sizeof(host))
		errx(1, "not HOST:PORT: %s", text);
	strlcpy(host, text, (size_t)(colon - text) + 1);
	if (getaddrinfo(host, colon + 1, &hints, &ai) != 0)
		errx(1, "not an address: %s", text);
	memcpy(&f->env.peer, ai->ai_addr, ai->ai_addrlen);
	f->env.peer_len = ai->ai_addrlen;
	strlcpy(f->host, text, sizeof(f->host));
	freeaddrinfo(ai);
}

static void
usage(void)
{
	errx(1, "usage: load -a HOST:PORT -n AGENTS [-c CREDENTIALS] "
	    "[-u PATH] [-s SUBPROTOCOL] [-b text|ping] [-t BEAT_MS] "
	    "[-w IN_FLIGHT] [-k PER_SOURCE] [-P]");
}

static size_t
get_count(const char *text, long long max)
{
	const char *why;
	size_t n = (size_t)strtonum(text, 0, max, &why);

	if (why != NULL)
		errx(1, "%s: %s", text, why);
	return n;
}

static void
parse_options(struct fleet *f, int argc, char **argv)
{
	int c;

	f->path = "/";
	f->width = 100;
	f->env.ctx = link_new_ctx();
	while ((c = getopt(argc, argv, "a:b:c:k:n:Ps:t:u:w:")) != -1) {
		switch (c) {
		case 'a': set_peer(f, optarg); break;
		case 'b': f->ping = strcmp(optarg, "ping") == 0; break;
		case 'c': f->credentials = optarg; break;
		case 'k': f->per_source = get_count(optarg, 100000); break;
		case 'n': f->n = get_count(optarg, 1000000); break;
		case 'P': f->env.ctx = NULL; break;	/* plaintext */
		case 's': f->subprotocol = optarg; break;
		case 't': f->beat_ms = (int64_t)get_count(optarg, 1000000);
			break;
		case 'u': f->path = optarg; break;
		case 'w': f->width = get_count(optarg, 100000); break;
		default: usage();
		}
	}
	if (optind != argc || f->n == 0 || f->width == 0)
		usage();
	f->source_base = SOURCE_BASE;
}

int
main(int argc, char **argv)
{
	static struct fleet f;
	struct rlimit files;
	char line[8192];
	double start;

	signal(SIGPIPE, SIG_IGN);
	parse_options(&f, argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	fleet_init(&f);
	start = proc_now();
	if (f.env.peer_len != 0) {
		fleet_connect(&f);
		run_until(&f, start + 280, is_up);
	}
	printf("up agents=%zu seconds=%.3f failed=%llu why=%s\n", f.nup,
	    proc_now() - start, (unsigned long long)f.ndowns,
	    f.last_why != NULL ? f.last_why : "-");
	fflush(stdout);
	if (fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == -1)
		err(1, "stdin");
	while (wait_for_line(&f, line, sizeof(line)))
		do_line(&f, line);
	fleet_close(&f);
	return 0;
}
