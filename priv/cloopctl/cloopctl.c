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

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/paths.h"
#include "common/base/xmem.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

#define CMD_OPTIONS 8		/* of one command, at most */

static cmd_fn cmd_completion;

static const struct cmd {
	const char *name;
	cmd_fn *run;
	const char *usage;
} cmds[] = {
	{ "status", cmd_status, "" },
	{ "agents", cmd_agents, "[NAME]" },
	{ "run", cmd_run, "--on WHERE [options] -- COMMAND..." },
	{ "ps", cmd_ps, "[-a]" },
	{ "show", cmd_show, "HANDLE" },
	{ "wait", cmd_wait, "HANDLE" },
	{ "logs", cmd_logs,
	    "[-f] [--tail N] [--since T] [--from OFFSET] HANDLE" },
	{ "signal", cmd_signal, "HANDLE INT|TERM|KILL" },
	{ "kill", cmd_kill, "HANDLE" },
	{ "abandon", cmd_abandon, "[--reason TEXT] HANDLE" },
	{ "inventory", cmd_inventory, "NAME [--refresh]" },
	{ "audit", cmd_audit, "[--since T] [-f] [verify]" },
	{ "secret", cmd_secret, "put|ls|show|rm ..." },
	{ "grant", cmd_grant, "add|ls|rm ..." },
	{ "lease", cmd_lease, "ls|revoke|refresh ..." },
	{ "cordon", cmd_cordon, "[--reason TEXT] NAME" },
	{ "uncordon", cmd_uncordon, "[--reason TEXT] NAME" },
	{ "drain", cmd_drain, "[--reason TEXT] [--no-wait] NAME" },
	{ "result", cmd_result, "[-o DIR | --into REPOSITORY] HANDLE" },
	{ "reload", cmd_reload, "" },
	{ "completion", cmd_completion, "bash|zsh|fish" },
};
#define NCMDS (sizeof(cmds) / sizeof(cmds[0]))

static const struct cmd *
cmd_find(const char *name)
{
	size_t i;

	for (i = 0; i < NCMDS; i++)
		if (strcmp(cmds[i].name, name) == 0)
			return &cmds[i];
	return NULL;
}

static void
cmd_print_usage(FILE *out)
{
	size_t i;

	fprintf(out, "usage: cloopctl [-q] [-s socket] [--json] [--no-color] "
	    "[--utc] command ...\n");
	for (i = 0; i < NCMDS; i++)
		fprintf(out, "       cloopctl %s%s%s\n", cmds[i].name,
		    cmds[i].usage[0] != '\0' ? " " : "", cmds[i].usage);
}

/*
 * Wrong use of a command: say what, then how it goes.  With --json the
 * refusal has the document every refusal has.
 */
int
cmd_usage(struct tool *t, const char *fmt, ...)
{
	const struct cmd *cmd;
	struct ctl_error e = { .code = "usage" };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.message, sizeof(e.message), fmt, ap);
	va_end(ap);
	cmd = cmd_find(t->command);
	if (cmd != NULL)
		snprintf(e.remedy, sizeof(e.remedy), "cloopctl %s %s",
		    cmd->name, cmd->usage);
	(void)tool_print_error(t, &e);
	return EXIT_USAGE;
}

const char *
cmd_get_operand(int argc, char **argv)
{
	int i = 1;

	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	return i == argc - 1 && argv[i][0] != '\0' ? argv[i] : NULL;
}

/* The table in getopt's two forms: names, and single letters. */
static void
cmd_format_options(const struct cmd_option *o, struct option *names,
    char *letters)
{
	int i;

	for (i = 0; o[i].name != NULL && i < CMD_OPTIONS; i++) {
		if (o[i].name[1] == '\0') {
			*letters++ = o[i].name[0];
			if (o[i].valuep != NULL)
				*letters++ = ':';
		} else
			*names++ = (struct option){ o[i].name,
				o[i].valuep != NULL ? required_argument :
				no_argument, NULL, 256 + i };
	}
	*letters = '\0';
	memset(names, 0, sizeof(*names));
}

int
cmd_parse(struct tool *t, int argc, char **argv,
    const struct cmd_option *options, const char *what,
    const char **operandp)
{
	struct option names[CMD_OPTIONS + 1];
	char letters[2 * CMD_OPTIONS + 1];
	const struct cmd_option *o;
	int ch;

	cmd_format_options(options, names, letters);
	while ((ch = names[0].name == NULL ? getopt(argc, argv, letters) :
	    getopt_long(argc, argv, letters, names, NULL)) != -1) {
		for (o = options; o->name != NULL; o++)
			if (ch == 256 + (o - options) || (o->name[1] == '\0' &&
			    o->name[0] == ch))
				break;
		if (o->name == NULL)
			return cmd_usage(t, "unknown option");
		if (o->valuep != NULL)
			*o->valuep = optarg;
		else
			*o->flagp = 1;
	}
	if (what == NULL)
		return optind == argc ? EXIT_DONE :
		    cmd_usage(t, "takes no argument");
	if (optind != argc - 1)
		return cmd_usage(t, "%s", what);
	*operandp = argv[optind];
	return EXIT_DONE;
}

int
cmd_add_pair(struct field_pair **v, size_t *n, const char *text)
{
	const char *eq = strchr(text, '=');

	if (eq == NULL || eq == text)
		return CL_FORMAT;
	*v = xreallocarray(*v, *n + 1, sizeof(**v));
	(*v)[*n].key = xstrndup(text, (size_t)(eq - text));
	(*v)[(*n)++].value = xstrdup(eq + 1);
	return CL_OK;
}

int
cmd_check_reason(struct tool *t, const char *reason)
{
	return strlen(reason) <= MAX_REASON_LEN ? EXIT_DONE :
	    cmd_usage(t, "--reason: over %d bytes", MAX_REASON_LEN);
}

int
cmd_find_verb(struct tool *t, const struct cmd_verb *verbs, int argc,
    char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && verbs[i].name != NULL; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(t, argc - 1, argv + 1);
	return argc > 1 ? cmd_usage(t, "%s: no such action", argv[1]) :
	    cmd_usage(t, "an action is missing");
}

/* ------------------------------------------------------ reload, completion */

int
cmd_reload(struct tool *t, int argc, char **argv)
{
	int status;

	(void)argv;
	if (argc != 1)
		return cmd_usage(t, "takes no argument");
	status = tool_ask(t, TOOL_REQUEST(CTL_RELOAD, NULL), -1, NULL,
	    NULL, NULL);
	if (status == EXIT_DONE && t->json)
		printf("{\"reloaded\":true}\n");
	else if (status == EXIT_DONE && !t->quiet)
		printf("configuration reloaded\n");
	return status;
}

static void
cmd_print_names(void)
{
	size_t i;

	for (i = 0; i < NCMDS; i++)
		printf("%s%s", i > 0 ? " " : "", cmds[i].name);
}

static int
cmd_completion(struct tool *t, int argc, char **argv)
{
	const char *shell = cmd_get_operand(argc, argv);

	if (shell == NULL)
		return cmd_usage(t, "bash, zsh or fish");
	if (strcmp(shell, "fish") == 0) {
		printf("complete -c cloopctl -n __fish_use_subcommand -f -a '");
		cmd_print_names();
		printf("'\n");
		return EXIT_DONE;
	}
	if (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0)
		return cmd_usage(t, "%s: not bash, zsh or fish", shell);
	if (strcmp(shell, "zsh") == 0)
		printf("autoload -U +X bashcompinit && bashcompinit\n");
	printf("_cloopctl() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]}\n"
	    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W '");
	cmd_print_names();
	printf("' -- \"$cur\"))\n"
	    "\telif [ \"${COMP_WORDS[COMP_CWORD-1]}\" = --on ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W \"$(cloopctl agents 2>/dev/null |\n"
	    "\t\t    awk 'NR > 1 { print $1 }')\" -- \"$cur\"))\n"
	    "\tfi\n}\ncomplete -F _cloopctl cloopctl\n");
	return EXIT_DONE;
}

/* -------------------------------------------------------------------- main */

/* 0, or the exit status of a usage that was printed; -1 after --help. */
static int
cmd_parse_globals(struct tool *t, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "no-color", no_argument, NULL, 'n' },
		{ "utc", no_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int ch;

	while ((ch = getopt_long(argc, argv, "+qs:", options, NULL)) != -1) {
		switch (ch) {
		case 'j':
			t->json = 1;
			break;
		case 'n':
			t->color = 0;
			break;
		case 'u':
			t->utc = 1;
			break;
		case 'q':
			t->quiet = 1;
			break;
		case 's':
			t->socket = optarg;
			break;
		case 'h':
			cmd_print_usage(stdout);
			return -1;
		default:
			cmd_print_usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return EXIT_DONE;
	cmd_print_usage(stderr);
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	const char *no_color = getenv("NO_COLOR");
	const struct cmd *cmd;
	struct tool t;
	int status;

	tool_init(&t, "cloopctl", EXIT_NOHUB);
	t.socket = PATH_CONTROL_SOCKET;
	t.on_aside = cmd_keep_result;
	t.color = isatty(STDOUT_FILENO) &&
	    (no_color == NULL || no_color[0] == '\0');
	/* A reader that went away is seen as a failed write. */
	signal(SIGPIPE, SIG_IGN);
	if ((status = cmd_parse_globals(&t, argc, argv)) != EXIT_DONE)
		return status == -1 ? EXIT_DONE : status;
	argc -= optind;
	argv += optind;
	optind = 0;	/* commands have options of their own */
	t.command = argv[0];
	if ((cmd = cmd_find(argv[0])) == NULL) {
		(void)tool_fail(&t, "usage", "cloopctl --help",
		    "no such command");
		return EXIT_USAGE;
	}
	return tool_end(&t, cmd->run(&t, argc, argv));
}
