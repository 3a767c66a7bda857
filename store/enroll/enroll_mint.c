/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll mint: the one moment in which a token is seen.  It goes to
 * standard output and into the bundle file, nowhere else, and every copy in
 * memory is wiped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/pin.h"
#include "common/base/util.h"
#include "common/model/bundle.h"
#include "enroll.h"

#define MINT_PLACEHOLDER "wss://HUB.EXAMPLE/api/executors/connect"
#define MINT_SPACE " \t\r\n\v\f"

struct mint {
	struct enroll *e;
	struct ctl_mint m;
	const char *name, *ttl, *root, *server, *pin, *bundle_file;
	char *bundle;			/* text; NULL: no server known */
	char *command;
};

static char *
mint_copy_trimmed(const char *s, size_t len)
{
	while (len > 0 && strchr(MINT_SPACE, *s) != NULL) {
		s++;
		len--;
	}
	while (len > 0 && strchr(MINT_SPACE, s[len - 1]) != NULL)
		len--;
	return strndup(s, len);
}

/* --label key=value; a key given again gets the new value. */
static int
mint_on_label(void *arg, const char *value)
{
	struct mint *mt = arg;
	struct ctl_mint *m = &mt->m;
	const char *equals = strchr(value, '=');
	struct field_pair *v, pair;
	size_t i;

	if (equals == NULL)
		return enroll_usage(mt->e, "--label %s: not key=value",
		    tool_clean(value));
	pair.key = mint_copy_trimmed(value, (size_t)(equals - value));
	pair.value = mint_copy_trimmed(equals + 1, strlen(equals + 1));
	if (pair.key == NULL || pair.value == NULL || *pair.key == '\0' ||
	    m->nlabels == MAX_LABELS) {
		free(pair.key);
		free(pair.value);
		return enroll_usage(mt->e, "--label %s: %s",
		    tool_clean(value), m->nlabels == MAX_LABELS ?
		    "too many labels" : "the key is blank");
	}
	for (i = 0; i < m->nlabels; i++) {
		if (strcmp(m->labels[i].key, pair.key) != 0)
			continue;
		free(m->labels[i].value);
		m->labels[i].value = pair.value;
		free(pair.key);
		return 0;
	}
	v = recallocarray(m->labels, m->nlabels, m->nlabels + 1, sizeof(*v));
	if (v == NULL) {
		free(pair.key);
		free(pair.value);
		return enroll_usage(mt->e, "out of memory");
	}
	m->labels = v;
	m->labels[m->nlabels++] = pair;
	return 0;
}

/* 15m, 1h30m, 90, 0.5h is not ours: whole numbers with units, added. */
static int
mint_parse_ttl(const char *text, int64_t *secondsp)
{
	static const char units[] = "smhd";
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	const char *p = text, *unit;
	int64_t total = 0, n;
	size_t len;
	char number[16];

	while (*p != '\0') {
		len = strspn(p, "0123456789");
		if (len == 0 || len > 9)
			return CL_FORMAT;
		strlcpy(number, p, len + 1);
		n = strtoll(number, NULL, 10);
		p += len;
		if (*p == '\0' && p - len == text)
			unit = units;		/* a bare number: seconds */
		else if (*p == '\0' || (unit = strchr(units, *p++)) == NULL)
			return CL_FORMAT;
		total += n * seconds[unit - units];
	}
	*secondsp = total;
	return text == p ? CL_FORMAT : CL_OK;
}

static int
mint_check_server(struct mint *mt)
{
	const char *s = mt->server;

	if (s == NULL)
		return 0;
	if ((strncmp(s, "wss://", 6) != 0 && strncmp(s, "ws://", 5) != 0) ||
	    s[strcspn(s, " \t\r\n\"'\\")] != '\0' ||
	    strlen(s) > MAX_URL_LEN || s[strcspn(s, ":") + 3] == '\0')
		return enroll_usage(mt->e, "--server %s: not a ws:// or "
		    "wss:// URL", tool_clean(s));
	return 0;
}

static int
mint_check_pin(struct mint *mt)
{
	struct pin pins[MAX_PINS];
	const char *why = "";
	size_t n;

	if (mt->pin == NULL)
		return 0;
	if (pin_parse_list(mt->pin, pins, MAX_PINS, &n, &why) != 0)
		return enroll_usage(mt->e, "--pin %s: %s",
		    tool_clean(mt->pin), why);
	return 0;
}

static int
mint_set(char **dst, const char *value)
{
	return (*dst = strdup(value == NULL ? "" : value)) == NULL ?
	    CL_NOMEM : CL_OK;
}

static int
mint_check_args(struct mint *mt)
{
	int r;

	if (mt->name == NULL)
		return enroll_usage(mt->e, "--name is missing");
	if (mt->ttl != NULL && (mint_parse_ttl(mt->ttl, &mt->m.ttl_s) != 0 ||
	    mt->m.ttl_s == 0))
		return enroll_usage(mt->e, "--ttl %s: not a duration such as "
		    "15m or 1h30m", tool_clean(mt->ttl));
	if (mt->bundle_file != NULL && *mt->bundle_file == '\0')
		return enroll_usage(mt->e, "--bundle-file needs a path");
	if ((r = mint_check_server(mt)) != 0 || (r = mint_check_pin(mt)) != 0)
		return r;
	if (mint_set(&mt->m.name, mt->name) != 0 ||
	    mint_set(&mt->m.workdir_root, mt->root) != 0 ||
	    mint_set(&mt->m.server, mt->server) != 0 ||
	    mint_set(&mt->m.pin, mt->pin) != 0)
		return tool_fail(&mt->e->t, "internal", "", "out of memory");
	return 0;
}

/* A bundle file was asked for: is there a server to put in, before a token
 * is spent on it? */
static int
mint_check_bundle_server(struct mint *mt)
{
	char *server = NULL;
	int r;

	if (mt->bundle_file == NULL || mt->server != NULL)
		return EXIT_DONE;
	if ((r = mt->e->ops->server(mt->e, &server)) != EXIT_DONE)
		return r;
	if (server == NULL || *server == '\0')
		r = tool_fail(&mt->e->t, "usage", "set ExternalURL in "
		    "cloopd.conf, or give --server", "no server URL is known "
		    "to put into the bundle");
	free(server);
	return r;
}

/* For a shell: bare, or in single quotes; owned by the caller. */
static char *
mint_format_quoted(const char *value)
{
	const char *p;
	char *dst, *q;

	if (util_is_word(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789-_.:/@+="))
		return strdup(value);
	/* Each quote becomes four characters; two around it all. */
	if ((dst = q = calloc(4, strlen(value) + 1)) == NULL)
		return NULL;
	*q++ = '\'';
	for (p = value; *p != '\0'; p++) {
		if (*p == '\'') {
			memcpy(q, "'\\''", 4);
			q += 4;
		} else
			*q++ = *p;
	}
	*q = '\'';
	return dst;
}

/* The command to run on the device.  The token needs no quotes. */
static int
mint_format_command(struct mint *mt, const struct ctl_minted *row)
{
	const char *server = row->server != NULL && *row->server != '\0' ?
	    row->server : MINT_PLACEHOLDER;
	char *quoted, *pin = NULL;
	const char *token = (const char *)row->token.data;
	size_t n;
	int r = CL_NOMEM;

	if ((quoted = mint_format_quoted(server)) == NULL)
		return CL_NOMEM;
	if (row->pin != NULL && *row->pin != '\0' &&
	    (pin = mint_format_quoted(row->pin)) == NULL)
		goto out;
	n = strlen(quoted) + row->token.len +
	    (pin != NULL ? strlen(pin) : 0) + 64;
	if ((mt->command = malloc(n)) == NULL)
		goto out;
	snprintf(mt->command, n, "cloop-agentd --server %s --token %s%s%s",
	    quoted, token, pin != NULL ? " --pin " : "",
	    pin != NULL ? pin : "");
	r = CL_OK;
 out:
	free(quoted);
	free(pin);
	return r;
}

static int
mint_format_bundle(struct mint *mt, const struct ctl_minted *row)
{
	char expires[UTIL_TIME_MAX];
	const struct bundle b = { .server = row->server,
		.token = (char *)row->token.data, .pin = row->pin,
		.enrollment_id = row->enrollment_id, .name = row->name,
		.workdir_root = row->workdir_root, .expires_at = expires };

	if (row->server == NULL || *row->server == '\0')
		return CL_OK;
	util_format_time(row->expires_at, expires);
	return bundle_format(&b, &mt->bundle);
}

static int
mint_save_bundle(struct mint *mt)
{
	size_t len = strlen(mt->bundle);
	char *text;
	int r;

	if ((text = calloc(1, len + 2)) == NULL)
		return CL_NOMEM;
	memcpy(text, mt->bundle, len);
	text[len] = '\n';
	r = util_save_file(mt->bundle_file, 0600, text, len + 1);
	freezero(text, len + 2);
	return r;
}

static int
mint_print_json(struct mint *mt, const struct ctl_minted *row)
{
	struct tool *t = &mt->e->t;

	tool_open_doc(t);
	tool_put_str(&t->doc, "enrollment_id", row->enrollment_id);
	tool_put_str(&t->doc, "name", row->name);
	tool_put_str(&t->doc, "token", (const char *)row->token.data);
	tool_put_str(&t->doc, "bundle", mt->bundle);
	tool_put_str(&t->doc, "server", row->server);
	tool_put_str(&t->doc, "pin", row->pin);
	tool_put_time(&t->doc, "expires_at", row->expires_at);
	tool_put_str(&t->doc, "command", mt->command);
	return tool_close_doc(t, EXIT_DONE);
}

static int
mint_print_text(struct mint *mt, const struct ctl_minted *row)
{
	char expires[UTIL_TIME_MAX];
	int pinned = row->pin != NULL && *row->pin != '\0';

	util_format_time(row->expires_at - row->expires_at % 1000000000,
	    expires);
	printf("id       %s\n", tool_clean(row->enrollment_id));
	printf("name     %s\n", tool_clean(row->name));
	printf("expires  %s (%s)\n", expires,
	    tool_format_when(&mt->e->t, row->expires_at));
	if (row->workdir_root != NULL && *row->workdir_root != '\0')
		printf("root     %s\n", tool_clean(row->workdir_root));
	printf("pin      %s\n", pinned ? tool_clean(row->pin) : "none");
	if (mt->bundle_file != NULL)
		printf("bundle   in %s\n", tool_clean(mt->bundle_file));
	if (mt->bundle != NULL)
		printf("\nOn the device, as root:\n\n"
		    "    cloop-enroll join %s\n\nor start it by hand:\n\n"
		    "    %s\n", mt->bundle, mt->command);
	else
		printf("\nOn the device, with the hub's address put in:\n\n"
		    "    %s\n", mt->command);
	printf("\nThe token is shown this once and works once.  To take it "
	    "back:\n\n    cloop-enroll revoke -- %s\n",
	    tool_clean(row->enrollment_id));
	fflush(stdout);
	if (!pinned)
		fprintf(stderr, "cloop-enroll: warning: no pin: the device "
		    "relies on its system's certificate authorities alone\n");
	return EXIT_DONE;
}

/* A token nobody got must not stay valid. */
static int
mint_take_back(struct mint *mt, const struct ctl_minted *row, int error)
{
	struct ctl_revoked rv;
	char id[MAX_ID_LEN + 1];
	int taken;

	strlcpy(id, row->enrollment_id, sizeof(id));
	taken = mt->e->ops->revoke(mt->e, id, "the bundle could not be "
	    "written", 0, &rv) == EXIT_DONE;
	if (taken)
		field_clear(&ctl_revoked_table, &rv);
	errno = error;
	return tool_fail(&mt->e->t, "internal", "", "%s: %s; the token %s was "
	    "%srevoked", mt->bundle_file != NULL ?
	    tool_clean(mt->bundle_file) : "bundle", cl_strerror(CL_SYSTEM),
	    id, taken ? "" : "NOT ");
}

static int
mint_run(struct mint *mt)
{
	struct ctl_minted row;
	int r;

	if ((r = enroll_open(mt->e)) != EXIT_DONE ||
	    (r = mint_check_bundle_server(mt)) != EXIT_DONE)
		return r;
	if ((r = mt->e->ops->mint(mt->e, &mt->m, &row)) != EXIT_DONE)
		return r;
	/* Nothing to pin on a plaintext link: the agent would refuse it. */
	if (mt->pin == NULL && row.server != NULL && row.pin != NULL &&
	    strncmp(row.server, "ws://", 5) == 0)
		*row.pin = '\0';
	if (mint_format_command(mt, &row) != CL_OK ||
	    mint_format_bundle(mt, &row) != CL_OK) {
		errno = ENOMEM;
		r = mint_take_back(mt, &row, errno);
	} else if (mt->bundle_file != NULL && mint_save_bundle(mt) != CL_OK)
		r = mint_take_back(mt, &row, errno);
	else
		r = mt->e->t.json ? mint_print_json(mt, &row) :
		    mint_print_text(mt, &row);
	field_clear(&ctl_minted_table, &row);
	return r;
}

int
enroll_cmd_mint(struct enroll *e, int argc, char **argv)
{
	struct mint mt = { .e = e };
	const struct enroll_option options[] = {
		{ "name", &mt.name, NULL, NULL },
		{ "ttl", &mt.ttl, NULL, NULL },
		{ "workdir-root", &mt.root, NULL, NULL },
		{ "server", &mt.server, NULL, NULL },
		{ "pin", &mt.pin, NULL, NULL },
		{ "label", NULL, NULL, mint_on_label },
		{ "bundle-file", &mt.bundle_file, NULL, NULL },
		{ NULL, NULL, NULL, NULL }
	};
	int n, r;

	field_init(&ctl_mint_table, &mt.m);
	if ((r = enroll_parse_options(e, argc, argv, options, &mt, NULL, 0,
	    &n)) == 0 && (r = mint_check_args(&mt)) == 0)
		r = mint_run(&mt);
	field_clear(&ctl_mint_table, &mt.m);
	if (mt.bundle != NULL)
		freezero(mt.bundle, strlen(mt.bundle));
	if (mt.command != NULL)
		freezero(mt.command, strlen(mt.command));
	return r;
}
