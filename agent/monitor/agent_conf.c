/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Configuration of the device monitor: the keyword table, the command line
 * and the defaults that depend on who runs us.  Runs at the start, as root
 * or as the service user, on files of the administrator; nothing in it came
 * over the network.  Nobody else reads the file: children get the values
 * they need as messages.
 */
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "agent_conf.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/xmem.h"

static const char *const agent_conf_host_modes[] = {
	"confined", "plain", "off", NULL };
static const char *const agent_conf_engines[] = {
	"auto", "podman", "docker", "none", NULL };
static const char *const agent_conf_features[] = { "auto", "no", NULL };
static const char *const agent_conf_channels[] = {
	"stable", "edge", "none", NULL };
static const char *const agent_conf_levels[] = {
	"fatal", "error", "warn", "info", "debug", NULL };
static const char *const agent_conf_formats[] = { "text", "json", NULL };

static const char *
agent_conf_check_concurrent(const char *value)
{
	const char *why;

	if (strcmp(value, "auto") == 0)
		return NULL;
	(void)strtonum(value, 0, MAX_CONCURRENT, &why);
	return why == NULL ? NULL : "must be auto or a number up to 1024";
}

static const char *
agent_conf_check_label(const char *value)
{
	const char *eq = strchr(value, '=');

	if (eq == NULL || strspn(value, " \t") == (size_t)(eq - value))
		return "must be key=value";
	if (eq - value > MAX_LABEL_LEN || strlen(eq + 1) > MAX_LABEL_LEN)
		return "is too long";
	return NULL;
}

#define OFF(m) offsetof(struct agent_conf, m)
#define PATH_ROW(keyword, m, def)                                              \
	{ keyword, CONF_PATH, OFF(m), 0, MAX_PATH_LEN, def, CONF_NONE_OK,      \
	    NULL, NULL }
#define ENUM_ROW(keyword, m, def, flags, words)                                \
	{ keyword, CONF_ENUM, OFF(m), 0, 0, def, flags, words, NULL }

const struct conf_row agent_conf_rows[] = {
	{ "Server", CONF_STRING, OFF(server), 0, MAX_URL_LEN, NULL,
	    CONF_NONE_OK, NULL, NULL },
	{ "Pin", CONF_WORDS, OFF(pin), 0, 1024, NULL, CONF_NONE_OK, NULL,
	    NULL },
	PATH_ROW("CAFile", ca_file, NULL),
	PATH_ROW("TokenFile", token_file, PATH_ENROLL_BUNDLE),
	PATH_ROW("CredentialFile", credential_file, NULL),
	PATH_ROW("StateDirectory", state_dir, NULL),
	PATH_ROW("RuntimeDirectory", runtime_dir, NULL),
	{ "ShimSocket", CONF_PATH, OFF(shim_socket), 1, 107, NULL,
	    CONF_NONE_OK, NULL, NULL },		/* sun_path */
	PATH_ROW("WorkDirRoot", workdir_root, NULL),
	{ "MaxConcurrent", CONF_STRING, OFF(max_concurrent), 0, 16, "auto", 0,
	    NULL, agent_conf_check_concurrent },
	{ "Label", CONF_LIST, OFF(labels), 0, MAX_LABELS, NULL,
	    CONF_RELOAD | CONF_NONE_OK, NULL, agent_conf_check_label },
	{ "WorkloadUser", CONF_STRING, OFF(workload_user), 0, 32, USER_WORK,
	    0, NULL, NULL },
	ENUM_ROW("HostMode", host_mode, "confined", 0, agent_conf_host_modes),
	ENUM_ROW("Engine", engine, "auto", 0, agent_conf_engines),
	ENUM_ROW("PacketFilter", packet_filter, "auto", 0,
	    agent_conf_features),
	ENUM_ROW("ForwardUSB", forward_usb, "auto", 0, agent_conf_features),
	ENUM_ROW("ForwardL2", forward_l2, "auto", 0, agent_conf_features),
	{ "SpoolLimit", CONF_SIZE, OFF(spool_limit), 65536, 1ULL << 40,
	    "256M", 0, NULL, NULL },
	{ "RetainUnacked", CONF_SIZE, OFF(retain_unacked), 65536, 1ULL << 40,
	    "8M", 0, NULL, NULL },
	ENUM_ROW("UpdateChannel", update_channel, "stable", 0,
	    agent_conf_channels),
	{ "ReleaseKey", CONF_LIST, OFF(release_keys), 0, 8, NULL,
	    CONF_NONE_OK, NULL, NULL },
	{ "ReleaseURL", CONF_STRING, OFF(release_url), 0, MAX_URL_LEN, NULL,
	    CONF_NONE_OK, NULL, NULL },
	{ "AcceptProjectSeed", CONF_BOOL, OFF(accept_project_seed), 0, 0,
	    "no", 0, NULL, NULL },
	{ "HarnessInstall", CONF_BOOL, OFF(harness_install), 0, 0, "yes", 0,
	    NULL, NULL },
	{ "MaxProtocol", CONF_UINT, OFF(max_protocol), PROTO_MIN, PROTO_MAX,
	    "26", 0, NULL, NULL },
	ENUM_ROW("LogLevel", log_level, "info", CONF_RELOAD,
	    agent_conf_levels),
	ENUM_ROW("LogFormat", log_format, "text", CONF_RELOAD,
	    agent_conf_formats),
	{ .keyword = NULL }
};

enum {
	FLAG_SERVER = 256, FLAG_TOKEN, FLAG_TOKEN_FILE, FLAG_BUNDLE,
	FLAG_CREDENTIAL, FLAG_WORKDIR_ROOT, FLAG_MAX_CONCURRENT, FLAG_LABEL,
	FLAG_PIN, FLAG_CA_FILE, FLAG_INSECURE
};

static const struct option agent_conf_options[] = {
	{ "server", required_argument, NULL, FLAG_SERVER },
	{ "token", required_argument, NULL, FLAG_TOKEN },
	{ "token-file", required_argument, NULL, FLAG_TOKEN_FILE },
	{ "bundle", required_argument, NULL, FLAG_BUNDLE },
	{ "credential", required_argument, NULL, FLAG_CREDENTIAL },
	{ "workdir-root", required_argument, NULL, FLAG_WORKDIR_ROOT },
	{ "max-concurrent", required_argument, NULL, FLAG_MAX_CONCURRENT },
	{ "label", required_argument, NULL, FLAG_LABEL },
	{ "pin", required_argument, NULL, FLAG_PIN },
	{ "ca-file", required_argument, NULL, FLAG_CA_FILE },
	{ "insecure-transport", no_argument, NULL, FLAG_INSECURE },
	{ NULL, 0, NULL, 0 }
};

/* Command line under way: values that win over the file. */
struct agent_conf_args {
	struct agent_conf over;		/* strings borrowed */
	const char *labels[MAX_LABELS];
	size_t nlabels;
	const char *options[64];	/* -o */
	size_t noptions;
};

/* Copy a secret argument and overwrite it where ps(1) shows it. */
static char *
agent_conf_take_secret(char *arg)
{
	char *copy = xstrdup(arg);

	memset(arg, 'x', strlen(arg));
	return copy;
}

static int
agent_conf_put_list(const char **list, size_t max, size_t *np,
    const char *value)
{
	if (*np == max)
		return -1;
	list[(*np)++] = value;
	return 0;
}

static int
agent_conf_parse_flag(int flag, char *arg, struct agent_conf_args *a,
    struct agent_flags *f)
{
	switch (flag) {
	case FLAG_SERVER:
		a->over.server = arg;
		return 0;
	case FLAG_TOKEN:
		freezero(f->token, f->token == NULL ? 0 : strlen(f->token));
		f->token = agent_conf_take_secret(arg);
		return 0;
	case FLAG_BUNDLE:
		freezero(f->bundle, f->bundle == NULL ? 0 :
		    strlen(f->bundle));
		f->bundle = agent_conf_take_secret(arg);
		return 0;
	case FLAG_TOKEN_FILE:
		a->over.token_file = arg;
		return 0;
	case FLAG_CREDENTIAL:
		a->over.credential_file = arg;
		return 0;
	case FLAG_WORKDIR_ROOT:
		a->over.workdir_root = arg;
		return 0;
	case FLAG_MAX_CONCURRENT:
		a->over.max_concurrent = arg;
		return 0;
	case FLAG_LABEL:
		return agent_conf_put_list(a->labels, MAX_LABELS,
		    &a->nlabels, arg);
	case FLAG_PIN:
		a->over.pin = arg;
		return 0;
	case FLAG_CA_FILE:
		a->over.ca_file = arg;
		return 0;
	case FLAG_INSECURE:
		f->insecure = 1;
		return 0;
	default:
		return -1;
	}
}

static int
agent_conf_parse_letter(int flag, char *arg, struct agent_conf_args *a,
    struct agent_flags *f)
{
	switch (flag) {
	case 'd':
		f->ndebug++;
		return 0;
	case 't':
		f->check = 1;
		return 0;
	case 'T':
		f->dump = 1;
		return 0;
	case 'q':
		f->quiet = 1;
		return 0;
	case 'f':
		f->conf_path = arg;
		return 0;
	case 'o':
		return agent_conf_put_list(a->options,
		    sizeof(a->options) / sizeof(a->options[0]), &a->noptions,
		    arg);
	default:
		return agent_conf_parse_flag(flag, arg, a, f);
	}
}

static int
agent_conf_parse_argv(int argc, char **argv, struct agent_conf_args *a,
    struct agent_flags *f, char *err)
{
	int flag;

	optind = 0;	/* start anew: reload parses again */
	while ((flag = getopt_long(argc, argv, "dtTqf:o:",
	    agent_conf_options, NULL)) != -1)
		if (agent_conf_parse_letter(flag, optarg, a, f) != 0)
			break;
	if (flag == -1 && optind == argc)
		return 0;
	if (flag == -1)
		snprintf(err, AGENT_CONF_ERR_MAX, "unexpected argument %s",
		    log_q(argv[optind]));
	else
		snprintf(err, AGENT_CONF_ERR_MAX, "usage: cloop-agentd "
		    "[-dtTq] [-f file] [-o Keyword=value]... "
		    "[--server URL] [--token T | --token-file F | "
		    "--bundle B] [--credential F] [--workdir-root D] "
		    "[--max-concurrent N] [--label k=v]... [--pin P] "
		    "[--ca-file F] [--insecure-transport]");
	return -1;
}

static void
agent_conf_set_string(char **dst, const char *value)
{
	if (value == NULL)
		return;
	free(*dst);
	*dst = xstrdup(value);
}

/* A path from the command line may be relative: make it absolute. */
static int
agent_conf_set_path(char **dst, const char *value, const char *flag,
    char *err)
{
	char *cwd, *path;

	if (value == NULL)
		return CL_OK;
	if (*value == '\0') {
		snprintf(err, AGENT_CONF_ERR_MAX, "%s: the path is empty",
		    flag);
		return CL_FORMAT;
	}
	if (*value == '/')
		path = xstrdup(value);
	else {
		if ((cwd = getcwd(NULL, 0)) == NULL) {
			snprintf(err, AGENT_CONF_ERR_MAX, "%s %s: no current "
			    "directory", flag, log_q(value));
			return CL_SYSTEM;
		}
		xasprintf(&path, "%s/%s", cwd, value);
		free(cwd);
	}
	free(*dst);
	*dst = path;
	return CL_OK;
}

static int
agent_conf_add_label(struct agent_conf *c, const char *label, char *err)
{
	const char *why = agent_conf_check_label(label);

	if (why == NULL && c->labels.n >= MAX_LABELS)
		why = "is one label too many";
	if (why != NULL) {
		snprintf(err, AGENT_CONF_ERR_MAX, "--label %s %s",
		    log_q(label), why);
		return CL_FORMAT;
	}
	c->labels.v = xreallocarray(c->labels.v, c->labels.n + 1,
	    sizeof(*c->labels.v));
	c->labels.v[c->labels.n++] = xstrdup(label);
	return CL_OK;
}

/* The flags win over the file; labels of both count. */
static int
agent_conf_apply_args(struct agent_conf *c, const struct agent_conf_args *a,
    char *err)
{
	const char *why, *n = a->over.max_concurrent;
	size_t i;
	int r;

	agent_conf_set_string(&c->server, a->over.server);
	agent_conf_set_string(&c->pin, a->over.pin);
	if (n != NULL) {
		/* Values below 1 mean the default. */
		if (strtonum(n, INT32_MIN, MAX_CONCURRENT, &why) < 1)
			n = why == NULL ? "auto" : n;
		if ((why = agent_conf_check_concurrent(n)) != NULL) {
			snprintf(err, AGENT_CONF_ERR_MAX,
			    "--max-concurrent %s %s", log_q(n), why);
			return CL_FORMAT;
		}
		agent_conf_set_string(&c->max_concurrent, n);
	}
	if ((r = agent_conf_set_path(&c->token_file, a->over.token_file,
	    "--token-file", err)) != 0 ||
	    (r = agent_conf_set_path(&c->credential_file,
	    a->over.credential_file, "--credential", err)) != 0 ||
	    (r = agent_conf_set_path(&c->workdir_root, a->over.workdir_root,
	    "--workdir-root", err)) != 0 ||
	    (r = agent_conf_set_path(&c->ca_file, a->over.ca_file,
	    "--ca-file", err)) != 0)
		return r;
	for (i = 0; i < a->nlabels; i++)
		if ((r = agent_conf_add_label(c, a->labels[i], err)) != 0)
			return r;
	return CL_OK;
}

/* Home of the user we run as; never NULL. */
static const char *
agent_conf_find_home(void)
{
	const char *home = getenv("HOME");
	struct passwd *pw;

	if (home != NULL && *home == '/')
		return home;
	pw = getpwuid(geteuid());
	return pw != NULL && pw->pw_dir != NULL ? pw->pw_dir : "/";
}

/*
 * Directories that depend on who runs us: the system's for root, those of the
 * reference agent for everybody else.
 */
static void
agent_conf_set_dirs(struct agent_conf *c)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	if (c->state_dir == NULL) {
		if (geteuid() == 0)
			c->state_dir = xstrdup(PATH_STATE_DIR "/agent");
		else
			xasprintf(&c->state_dir, "%s/.cloop",
			    agent_conf_find_home());
	}
	if (c->runtime_dir == NULL) {
		if (geteuid() == 0)
			c->runtime_dir = xstrdup(PATH_RUN_DIR);
		else if (run != NULL && *run == '/')
			xasprintf(&c->runtime_dir, "%s/cloop", run);
		else
			xasprintf(&c->runtime_dir, "%s/run", c->state_dir);
	}
	if (c->credential_file == NULL)
		xasprintf(&c->credential_file, "%s/agent.json", c->state_dir);
}

static int
agent_conf_load_file(struct agent_conf *c, const char *path, char *err)
{
	if (path == NULL) {
		path = PATH_AGENTD_CONF;
		if (access(path, F_OK) == -1)
			return CL_OK;	/* a bundle may be all there is */
	}
	return conf_load_file(agent_conf_rows, c, path, err,
	    AGENT_CONF_ERR_MAX);
}

static int
agent_conf_check_meaning(const struct agent_conf *c, char *err)
{
	if (c->retain_unacked > c->spool_limit) {
		snprintf(err, AGENT_CONF_ERR_MAX, "RetainUnacked %llu is "
		    "larger than SpoolLimit %llu",
		    (unsigned long long)c->retain_unacked,
		    (unsigned long long)c->spool_limit);
		return CL_FORMAT;
	}
	return CL_OK;
}

int
agent_conf_load(int argc, char **argv, struct agent_conf *c,
    struct agent_flags *f, char err[AGENT_CONF_ERR_MAX])
{
	struct agent_conf_args a;
	size_t i;
	int r;

	memset(c, 0, sizeof(*c));
	memset(f, 0, sizeof(*f));
	memset(&a, 0, sizeof(a));
	*err = '\0';
	if (agent_conf_parse_argv(argc, argv, &a, f, err) != 0)
		return -1;
	for (i = 0; i < a.noptions; i++)
		if ((r = conf_parse_option(agent_conf_rows, c, a.options[i],
		    err, AGENT_CONF_ERR_MAX)) != 0)
			return r;
	if ((r = agent_conf_load_file(c, f->conf_path, err)) != 0 ||
	    (r = conf_set_defaults(agent_conf_rows, c, err,
	    AGENT_CONF_ERR_MAX)) != 0 ||
	    (r = agent_conf_apply_args(c, &a, err)) != 0)
		return r;
	agent_conf_set_dirs(c);
	return agent_conf_check_meaning(c, err);
}

int
agent_conf_reload(int argc, char **argv, struct agent_conf *c,
    char err[AGENT_CONF_ERR_MAX])
{
	struct agent_flags f;
	int r;

	r = agent_conf_load(argc, argv, c, &f, err);
	agent_flags_clear(&f);
	return r;
}

int
agent_conf_format(const struct agent_conf *c, char **textp)
{
	return conf_format(agent_conf_rows, c, textp);
}

void
agent_conf_clear(struct agent_conf *c)
{
	conf_clear(agent_conf_rows, c, sizeof(*c));
}

void
agent_flags_clear(struct agent_flags *f)
{
	if (f->token != NULL)
		freezero(f->token, strlen(f->token));
	if (f->bundle != NULL)
		freezero(f->bundle, strlen(f->bundle));
	f->token = f->bundle = NULL;
}

unsigned int
agent_conf_max_concurrent(const struct agent_conf *c)
{
	const char *why;
	long long n = 0;
	long ncpus;

	if (c->max_concurrent != NULL)
		n = strtonum(c->max_concurrent, 1, MAX_CONCURRENT, &why);
	if (n >= 1)
		return (unsigned int)n;
	ncpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (ncpus < 1)
		return 1;
	return ncpus > MAX_CONCURRENT ? MAX_CONCURRENT : (unsigned int)ncpus;
}
