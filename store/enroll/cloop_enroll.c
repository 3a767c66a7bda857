/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll: enrollment tokens and agents, on the hub; and `join`, on a
 * device.  An administrator's tool.  It asks the running hub through its
 * control socket; while no hub runs it opens the store itself, under the
 * store's lock.  It trusts the hub it connects to as far as the socket's
 * owner; what a hub or a store says about devices is cleaned before it
 * reaches the terminal.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/idgen.h"
#include "common/base/limits.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "enroll.h"

#define CONF(keyword, type, member, max, def)                                  \
	{ keyword, type, offsetof(struct enroll, member), 0, max, def,         \
	  CONF_NONE_OK, NULL, NULL }

static const struct conf_row enroll_conf[] = {
	CONF("ControlSocket", CONF_PATH, socket, 107, PATH_CONTROL_SOCKET),
	CONF("StateDirectory", CONF_PATH, state_dir, MAX_PATH_LEN,
	    PATH_STATE_DIR),
	CONF("KeyDirectory", CONF_PATH, key_dir, MAX_PATH_LEN, PATH_KEY_DIR),
	CONF("ExternalURL", CONF_STRING, external_url, MAX_URL_LEN, NULL),
	CONF("TokenFile", CONF_PATH, token_file, MAX_PATH_LEN,
	    PATH_ENROLL_BUNDLE),
	CONF("CredentialFile", CONF_PATH, credential_file, MAX_PATH_LEN,
	    PATH_STATE_DIR "/agent/agent.json"),
	{ NULL, CONF_BOOL, 0, 0, 0, NULL, 0, NULL, NULL }
};

static const struct enroll_command {
	const char *name;
	enroll_command_fn *fn;
	const char *synopsis;
} enroll_commands[] = {
	{ "mint", enroll_cmd_mint, "mint --name N [--ttl 15m] [--label k=v] "
	    "... [--workdir-root D]\n"
	    "             [--server URL] [--pin P] [--bundle-file F]" },
	{ "list", enroll_cmd_list, "list" },
	{ "agents", enroll_cmd_agents, "agents" },
	{ "show", enroll_cmd_show, "show ID" },
	{ "revoke", enroll_cmd_revoke, "revoke [--reason T] ID" },
	{ "ban", enroll_cmd_ban, "ban [--reason T] NAME | ID" },
	{ "unban", enroll_cmd_unban, "unban NAME" },
	{ "bans", enroll_cmd_bans, "bans" },
	{ "delete", enroll_cmd_delete, "delete [--reason T] ID" },
	{ "join", enroll_cmd_join, "join [--now] [BUNDLE | -]" },
};
#define ENROLL_NCOMMANDS (sizeof(enroll_commands) / sizeof(enroll_commands[0]))

static void
enroll_print_usage(const struct enroll *e)
{
	size_t i;

	fputs("usage: cloop-enroll [-s socket] [-o Keyword=value] ... "
	    "[--json] command\n", stderr);
	for (i = 0; i < ENROLL_NCOMMANDS; i++)
		if (e->t.command == NULL ||
		    strcmp(e->t.command, enroll_commands[i].name) == 0)
			fprintf(stderr, "       %s\n",
			    enroll_commands[i].synopsis);
}

int
enroll_usage(struct enroll *e, const char *fmt, ...)
{
	struct ctl_error err = { .code = "usage" };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.message, sizeof(err.message), fmt, ap);
	va_end(ap);
	(void)tool_print_error(&e->t, &err);
	enroll_print_usage(e);
	return EXIT_USAGE;
}

static const struct enroll_option *
enroll_find_option(const struct enroll_option *o, const char *name,
    size_t len)
{
	for (; o != NULL && o->name != NULL; o++)
		if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

/* One "--name[=value]" at argv[*ip]; moves *ip past a separate value. */
static int
enroll_set_option(struct enroll *e, const struct enroll_option *options,
    void *arg, int argc, char **argv, int *ip)
{
	const char *name = argv[*ip] + 2, *equals = strchr(name, '=');
	const struct enroll_option *o;
	const char *value = NULL;
	size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);

	if (argv[*ip][1] != '-')
		return enroll_usage(e, "unknown option %s",
		    tool_clean(argv[*ip]));
	if (len == 4 && memcmp(name, "json", 4) == 0 && equals == NULL) {
		e->t.json = 1;
		return 0;
	}
	if ((o = enroll_find_option(options, name, len)) == NULL)
		return enroll_usage(e, "unknown option %s",
		    tool_clean(argv[*ip]));
	if (o->flagp != NULL) {
		if (equals != NULL)
			return enroll_usage(e, "--%s takes no value",
			    o->name);
		*o->flagp = 1;
		return 0;
	}
	if (equals != NULL)
		value = equals + 1;
	else if (*ip + 1 < argc)
		value = argv[++*ip];
	else
		return enroll_usage(e, "--%s needs a value", o->name);
	if (o->on != NULL)
		return o->on(arg, value);
	if (*o->valuep != NULL)
		return enroll_usage(e, "--%s is given twice", o->name);
	*o->valuep = value;
	return 0;
}

/*
 * Ids may begin with "-" or "--".  What is as long as an id and made of its
 * characters, and no option of this command, is one.
 */
static int
enroll_is_option(const char *arg, const struct enroll_option *options)
{
	if (arg[0] != '-' || arg[1] == '\0')
		return 0;
	return strlen(arg) != IDGEN_HANDLE_LEN || !util_is_word(arg,
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789-_") || enroll_find_option(options, arg + 2,
	    IDGEN_HANDLE_LEN - 2) != NULL;
}

int
enroll_parse_options(struct enroll *e, int argc, char **argv,
    const struct enroll_option *options, void *arg, const char **operands,
    int max, int *noperandsp)
{
	int ended = 0, i, n = 0, r;

	*noperandsp = 0;
	for (i = 1; i < argc; i++) {
		if (!ended && strcmp(argv[i], "--") == 0) {
			ended = 1;
			continue;
		}
		if (!ended && enroll_is_option(argv[i], options)) {
			if ((r = enroll_set_option(e, options, arg, argc,
			    argv, &i)) != 0)
				return r;
			continue;
		}
		if (n == max)
			return enroll_usage(e, "%s is one operand too many",
			    tool_clean(argv[i]));
		operands[n++] = argv[i];
	}
	*noperandsp = n;
	return 0;
}

static int
enroll_set_conf(struct enroll *e, const char *option)
{
	char err[512];

	if (strncasecmp(option, "StateDirectory=", 15) == 0)
		e->own_state = 1;
	if (conf_parse_option(enroll_conf, e, option, err, sizeof(err)) != 0)
		return enroll_usage(e, "-o %s", err);
	return 0;
}

/* Options before the command; *np is the index of the command. */
static int
enroll_parse_globals(struct enroll *e, int argc, char **argv, int *np)
{
	char option[256];
	int i, r;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		r = 0;
		if (strcmp(argv[i], "--json") == 0)
			e->t.json = 1;
		else if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		} else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
			snprintf(option, sizeof(option), "ControlSocket=%s",
			    argv[++i]);
			e->own_socket = 1;
			r = enroll_set_conf(e, option);
		} else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
			r = enroll_set_conf(e, argv[++i]);
		else
			r = enroll_usage(e, "unknown option %s",
			    tool_clean(argv[i]));
		if (r != 0)
			return r;
	}
	*np = i;
	return 0;
}

static int
enroll_run(struct enroll *e, int argc, char **argv)
{
	size_t i;

	if (argc == 0)
		return enroll_usage(e, "a command is missing");
	for (i = 0; i < ENROLL_NCOMMANDS; i++) {
		if (strcmp(argv[0], enroll_commands[i].name) != 0)
			continue;
		e->t.command = enroll_commands[i].name;
		return enroll_commands[i].fn(e, argc, argv);
	}
	return enroll_usage(e, "unknown command %s", tool_clean(argv[0]));
}

/* --json counts wherever it stands, also for errors found before it. */
static int
enroll_has_json(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return 1;
	return 0;
}

int
main(int argc, char **argv)
{
	struct enroll e = { .ops = NULL };
	char err[512];
	int first = 0, r;

	umask(077);
	tool_init(&e.t, "cloop-enroll", EXIT_REFUSED);
	e.t.json = enroll_has_json(argc, argv);
	e.t.nearest = 1;
	if ((r = enroll_parse_globals(&e, argc, argv, &first)) != 0)
		goto out;
	if (conf_set_defaults(enroll_conf, &e, err, sizeof(err)) != 0) {
		r = enroll_usage(&e, "%s", err);
		goto out;
	}
	e.t.socket = e.socket;
	r = enroll_run(&e, argc - first, argv + first);
	if (e.ops != NULL)
		e.ops->close(&e);
 out:
	r = tool_end(&e.t, r);
	free(e.socket);
	free(e.state_dir);
	free(e.key_dir);
	free(e.external_url);
	free(e.token_file);
	free(e.credential_file);
	return r;
}
