/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl(8): the operator's program.  Runs as whoever calls it and holds
 * nothing; it sends typed requests to cloopd-ctl over the control socket and
 * prints the rows that come back.  It trusts the hub it was pointed at, but
 * what devices said is cleaned before it reaches a terminal.
 */
#include <sys/types.h>

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cloopctl.h"
#include "common/base/paths.h"

static const struct ctl_command {
	const char *name;
	ctl_command_fn *run;
	const char *usage;
} ctl_commands[] = {
	{ "status", ctl_cmd_status, "" },
	{ "agents", ctl_cmd_agents, "[NAME]" },
	{ "run", ctl_cmd_run, "--on WHERE [options] -- COMMAND..." },
	{ "ps", ctl_cmd_ps, "[-a]" },
	{ "show", ctl_cmd_show, "HANDLE" },
	{ "wait", ctl_cmd_wait, "HANDLE" },
	{ "logs", ctl_cmd_logs,
	    "[-f] [--tail N] [--since T] [--from OFFSET] HANDLE" },
	{ "signal", ctl_cmd_signal, "HANDLE INT|TERM|KILL" },
	{ "kill", ctl_cmd_kill, "HANDLE" },
	{ "abandon", ctl_cmd_abandon, "[--reason TEXT] HANDLE" },
	{ "inventory", ctl_cmd_inventory, "NAME [--refresh]" },
	{ "audit", ctl_cmd_audit, "[--since T] [-f] [verify]" },
	{ "secret", ctl_cmd_secret, "put|ls|show|rm ..." },
	{ "grant", ctl_cmd_grant, "add|ls|rm ..." },
	{ "lease", ctl_cmd_lease, "ls|revoke|refresh ..." },
	{ "cordon", ctl_cmd_cordon, "[--reason TEXT] NAME" },
	{ "uncordon", ctl_cmd_uncordon, "[--reason TEXT] NAME" },
	{ "drain", ctl_cmd_drain, "[--reason TEXT] [--no-wait] NAME" },
	{ "result", ctl_cmd_result, "[-o DIR | --into REPOSITORY] HANDLE" },
	{ "reload", ctl_cmd_reload, "" },
	{ "completion", ctl_cmd_completion, "bash|zsh|fish" },
};
#define NCOMMANDS (sizeof(ctl_commands) / sizeof(ctl_commands[0]))

static const struct ctl_command *
ctl_find_command(const char *name)
{
	size_t i;

	for (i = 0; i < NCOMMANDS; i++)
		if (strcmp(ctl_commands[i].name, name) == 0)
			return &ctl_commands[i];
	return NULL;
}

void
ctl_print_commands(FILE *out)
{
	size_t i;

	for (i = 0; i < NCOMMANDS; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", ctl_commands[i].name);
}

static void
ctl_print_usage(FILE *out)
{
	size_t i;

	fprintf(out, "usage: cloopctl [-q] [-s socket] [--json] [--no-color] "
	    "[--utc] command ...\n");
	for (i = 0; i < NCOMMANDS; i++)
		fprintf(out, "       cloopctl %s%s%s\n", ctl_commands[i].name,
		    ctl_commands[i].usage[0] != '\0' ? " " : "",
		    ctl_commands[i].usage);
}

/*
 * Wrong use of a command: say what, then how it goes.  With --json the
 * refusal has the document every refusal has.
 */
int
ctl_usage(struct ctl *c, const char *fmt, ...)
{
	const struct ctl_command *cmd;
	struct ctl_error e = { .code = "usage" };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.message, sizeof(e.message), fmt, ap);
	va_end(ap);
	cmd = ctl_find_command(c->command);
	if (cmd != NULL)
		snprintf(e.remedy, sizeof(e.remedy), "cloopctl %s %s",
		    cmd->name, cmd->usage);
	(void)ctl_print_error(c, &e);
	return EXIT_USAGE;
}

const char *
ctl_get_operand(int argc, char **argv)
{
	int i = 1;

	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	return i == argc - 1 && argv[i][0] != '\0' ? argv[i] : NULL;
}

static int
ctl_run_command(struct ctl *c, int argc, char **argv)
{
	const struct ctl_command *cmd;
	struct ctl_error e = { .code = "usage" };
	int status;

	c->command = argv[0];
	cmd = ctl_find_command(argv[0]);
	if (cmd == NULL) {
		snprintf(e.message, sizeof(e.message), "no such command");
		snprintf(e.remedy, sizeof(e.remedy), "cloopctl --help");
		(void)ctl_print_error(c, &e);
		return EXIT_USAGE;
	}
	status = cmd->run(c, argc, argv);
	ctlclient_close(c->client);
	if (fflush(stdout) != 0 && status == EXIT_DONE) {
		fprintf(stderr, "cloopctl: stdout: write failed\n");
		status = EXIT_REFUSED;
	}
	return status;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "no-color", no_argument, NULL, 'n' },
		{ "utc", no_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct ctl c = { .socket = PATH_CONTROL_SOCKET };
	const char *no_color = getenv("NO_COLOR");
	int ch;

	c.color = isatty(STDOUT_FILENO) &&
	    (no_color == NULL || no_color[0] == '\0');
	/* A reader that went away is seen as a failed write. */
	signal(SIGPIPE, SIG_IGN);
	while ((ch = getopt_long(argc, argv, "+qs:", options, NULL)) != -1) {
		switch (ch) {
		case 'j':
			c.json = 1;
			break;
		case 'n':
			c.color = 0;
			break;
		case 'u':
			c.utc = 1;
			break;
		case 'q':
			c.quiet = 1;
			break;
		case 's':
			c.socket = optarg;
			break;
		case 'h':
			ctl_print_usage(stdout);
			return EXIT_DONE;
		default:
			ctl_print_usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind >= argc) {
		ctl_print_usage(stderr);
		return EXIT_USAGE;
	}
	argc -= optind;
	argv += optind;
	optind = 0;	/* commands have options of their own */
	return ctl_run_command(&c, argc, argv);
}
