/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen: makes, shows and uses the hub's keys.  An administrator's
 * tool, usually root; it touches KeyDirectory and the files it is given, and
 * never overwrites one.  Bytes from outside reach it in two places: a
 * certificate served elsewhere (keygen_probe.c reads it in an unprivileged
 * child) and the files to verify, which are only hashed.  It does not ask
 * unless it needs a passphrase.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "keygen.h"

static const struct conf_row keygen_conf[] = {
	{ "KeyDirectory", CONF_PATH, offsetof(struct keygen, key_dir), 1,
	  MAX_PATH_LEN, PATH_KEY_DIR, 0, NULL, NULL },
	{ "StateDirectory", CONF_PATH, offsetof(struct keygen, state_dir), 1,
	  MAX_PATH_LEN, PATH_STATE_DIR, 0, NULL, NULL },
	{ NULL, CONF_BOOL, 0, 0, 0, NULL, 0, NULL, NULL }
};

int
keygen_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("cloop-keygen: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return KEYGEN_FAILED;
}

static int
keygen_usage(const char *why, const char *what)
{
	if (why != NULL)
		fprintf(stderr, "cloop-keygen: %s%s%s\n", why,
		    what != NULL ? ": " : "", what != NULL ? what : "");
	fputs("usage: cloop-keygen -A [-n host] ... [-d days]\n"
	    "       cloop-keygen -t tls [-R] [-n host] ... [-d days] "
	    "[-f file]\n"
	    "       cloop-keygen -t mac | kek | receipt | release [-f file]\n"
	    "       cloop-keygen -l [-f file | host:port]\n"
	    "       cloop-keygen -Y sign -f key file ...\n"
	    "       cloop-keygen -Y verify -f pub [-s sig] file ...\n"
	    "       cloop-keygen -p -f file\n"
	    "       cloop-keygen -r kek\n"
	    "Each form takes -o KeyDirectory=dir and -o "
	    "StateDirectory=dir.\n", stderr);
	return KEYGEN_USAGE;
}

int
keygen_format_path(const struct keygen *kg, const char *name, char *dst,
    size_t dstlen)
{
	int n;

	if (kg->file != NULL)
		n = snprintf(dst, dstlen, "%s", kg->file);
	else {
		if (util_make_dirs(kg->key_dir, 0700, (uid_t)-1,
		    (gid_t)-1) != 0)
			return keygen_fail("%s: %s", kg->key_dir,
			    cl_strerror(CL_SYSTEM));
		n = snprintf(dst, dstlen, "%s/%s", kg->key_dir, name);
	}
	if (n < 0 || (size_t)n >= dstlen)
		return keygen_fail("%s: path too long", name);
	return KEYGEN_DONE;
}

struct keygen_args {
	int mode;		/* A t l Y p r, or 0 */
	const char *type;	/* of -t, -r */
	const char *verb;	/* of -Y */
};

static int
keygen_make(const struct keygen *kg, const char *type, int nargs)
{
	static const struct {
		const char *type;
		const char *name;
		int (*make)(const struct keygen *, const char *);
	} types[] = {
		{ "mac", KEYFILE_MAC, keygen_make_raw },
		{ "kek", KEYFILE_KEK, keygen_make_raw },
		{ "receipt", KEYFILE_RECEIPT, keygen_make_ed25519 },
		{ "release", KEYFILE_RELEASE, keygen_make_ed25519 },
	};
	size_t i;

	if (nargs != 0)
		return keygen_usage("-t takes no operand", NULL);
	if (strcmp(type, "tls") == 0)
		return keygen_make_tls(kg);
	if (kg->csr || kg->nhosts > 0 || kg->days != 0)
		return keygen_usage("-R, -n and -d belong to -t tls", NULL);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(type, types[i].type) == 0)
			return types[i].make(kg, types[i].name);
	return keygen_usage("unknown key type", type);
}

static int
keygen_run_mode(const struct keygen *kg, const struct keygen_args *a,
    int argc, char **argv)
{
	switch (a->mode) {
	case 'A':
		if (argc != 0 || kg->file != NULL || kg->csr)
			return keygen_usage("-A takes neither -f nor -R nor "
			    "operands", NULL);
		return keygen_make_all(kg);
	case 't':
		return keygen_make(kg, a->type, argc);
	case 'l':
		if (argc > 1 || (argc == 1 && kg->file != NULL))
			return keygen_usage("-l takes -f file or host:port",
			    NULL);
		return argc == 1 ? keygen_show_host(argv[0]) :
		    keygen_show(kg);
	case 'Y':
		if (kg->file == NULL || argc == 0)
			return keygen_usage("-Y needs -f and a file", NULL);
		if (strcmp(a->verb, "sign") == 0 && kg->sig == NULL)
			return keygen_sign(kg, argc, argv);
		if (strcmp(a->verb, "verify") == 0 &&
		    (kg->sig == NULL || argc == 1))
			return keygen_verify(kg, argc, argv);
		return keygen_usage("-Y is sign, or verify with -s for one "
		    "file", NULL);
	case 'p':
		if (kg->file == NULL || argc != 0)
			return keygen_usage("-p needs -f and nothing else",
			    NULL);
		return keygen_change_pass(kg);
	case 'r':
		if (strcmp(a->type, "kek") != 0 || argc != 0 ||
		    kg->file != NULL)
			return keygen_usage("-r rotates kek, the one of "
			    "KeyDirectory", NULL);
		return keygen_rotate(kg);
	default:
		return keygen_usage(NULL, NULL);
	}
}

/* Options that are not a mode.  0, or the usage status. */
static int
keygen_set_option(struct keygen *kg, int c, char *arg)
{
	char err[512];
	const char *bad = NULL;

	switch (c) {
	case 'f':
		kg->file = arg;
		break;
	case 's':
		kg->sig = arg;
		break;
	case 'R':
		kg->csr = 1;
		break;
	case 'n':
		if (kg->nhosts == KEYGEN_MAX_HOSTS)
			return keygen_usage("too many -n", arg);
		kg->hosts[kg->nhosts++] = arg;
		break;
	case 'd':
		kg->days = (unsigned int)strtonum(arg, 1, KEYGEN_MAX_DAYS,
		    &bad);
		if (bad != NULL)
			return keygen_usage("-d is a number of days, 1 to "
			    "3650", arg);
		break;
	case 'o':
		if (conf_parse_option(keygen_conf, kg, arg, err,
		    sizeof(err)) != 0)
			return keygen_usage(err, NULL);
		break;
	default:
		return keygen_usage(NULL, NULL);
	}
	return 0;
}

static int
keygen_parse_args(int argc, char **argv, struct keygen *kg,
    struct keygen_args *a)
{
	int c, r;

	while ((c = getopt(argc, argv, "At:lY:pr:f:s:n:d:Ro:")) != -1) {
		if (strchr("AtlYpr", c) == NULL) {
			if ((r = keygen_set_option(kg, c, optarg)) != 0)
				return r;
			continue;
		}
		if (a->mode != 0)
			return keygen_usage("one of -A -t -l -Y -p -r", NULL);
		a->mode = c;
		if (c == 't' || c == 'r')
			a->type = optarg;
		if (c == 'Y')
			a->verb = optarg;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct keygen kg = { 0 };
	struct keygen_args a = { 0 };
	char err[512];
	int r;

	/* Keys are made with their modes; the umask is for the directory. */
	umask(077);
	if ((r = keygen_parse_args(argc, argv, &kg, &a)) != 0)
		return r;
	if (conf_set_defaults(keygen_conf, &kg, err, sizeof(err)) != 0)
		return keygen_fail("%s", err);
	r = keygen_run_mode(&kg, &a, argc - optind, argv + optind);
	if (fflush(stdout) != 0 && r == KEYGEN_DONE)
		r = keygen_fail("standard output: %s",
		    cl_strerror(CL_SYSTEM));
	free(kg.key_dir);
	free(kg.state_dir);
	return r;
}
