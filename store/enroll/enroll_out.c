/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll: how things look.  Errors in words or as a JSON document,
 * times, quoting for a shell.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "enroll.h"

int
enroll_print_error(struct enroll *e, const struct ctl_error *err)
{
	struct jsonw w;

	if (e->json) {
		jsonw_init(&w, ENROLL_JSON_MAX, JSONW_NO_HTML);
		jsonw_open_object(&w);
		jsonw_put_key(&w, "error");
		jsonw_open_object(&w);
		jsonw_put_key(&w, "code");
		jsonw_put_str(&w, err->code);
		jsonw_put_key(&w, "message");
		jsonw_put_text(&w, err->message, strlen(err->message));
		enroll_put_str(&w, "remedy", err->remedy);
		jsonw_close_object(&w);
		jsonw_close_object(&w);
		(void)enroll_print_json(e, &w);
	}
	fflush(stdout);
	fprintf(stderr, "cloop-enroll: %s%s%s\n",
	    e->command != NULL ? e->command : "",
	    e->command != NULL ? ": " : "", enroll_clean(err->message));
	if (err->remedy[0] != '\0')
		fprintf(stderr, "  try: %s\n", enroll_clean(err->remedy));
	return ENROLL_REFUSED;
}

int
enroll_fail(struct enroll *e, const char *code, const char *remedy,
    const char *fmt, ...)
{
	struct ctl_error err = { .code = "" };
	va_list ap;

	strlcpy(err.code, code, sizeof(err.code));
	strlcpy(err.remedy, remedy, sizeof(err.remedy));
	va_start(ap, fmt);
	vsnprintf(err.message, sizeof(err.message), fmt, ap);
	va_end(ap);
	return enroll_print_error(e, &err);
}

int
enroll_print_json(struct enroll *e, struct jsonw *w)
{
	int r = jsonw_error(w);

	(void)e;
	if (r == CL_OK && (fwrite(w->data, 1, w->len, stdout) != w->len ||
	    putchar('\n') == EOF || fflush(stdout) != 0))
		r = CL_SYSTEM;
	jsonw_clear(w);
	if (r == CL_OK)
		return ENROLL_DONE;
	fprintf(stderr, "cloop-enroll: standard output: %s\n",
	    cl_strerror(r));
	return ENROLL_REFUSED;
}

void
enroll_put_str(struct jsonw *w, const char *key, const char *s)
{
	jsonw_put_key(w, key);
	if (s == NULL || *s == '\0')
		jsonw_put_null(w);
	else
		jsonw_put_text(w, s, strlen(s));
}

void
enroll_put_time(struct jsonw *w, const char *key, int64_t t)
{
	jsonw_put_key(w, key);
	if (t == UTIL_TIME_ZERO)
		jsonw_put_null(w);
	else
		jsonw_put_time(w, t);
}

void
enroll_put_labels(struct jsonw *w, const struct field_pair *v, size_t n)
{
	size_t i;

	jsonw_put_key(w, "labels");
	jsonw_open_object(w);
	for (i = 0; i < n; i++) {
		jsonw_put_key(w, v[i].key);
		jsonw_put_str(w, v[i].value);
	}
	jsonw_close_object(w);
}

void
enroll_format_when(int64_t t, char dst[ENROLL_TIME_LEN])
{
	static const struct {
		int64_t s, below;
		char unit;
	} units[] = {
		{ 1, 120, 's' }, { 60, 7200, 'm' }, { 3600, 172800, 'h' },
		{ 86400, INT64_MAX, 'd' },
	};
	int64_t s, abs_s;
	size_t i = 0;

	if (t == UTIL_TIME_ZERO) {
		strlcpy(dst, "-", ENROLL_TIME_LEN);
		return;
	}
	s = (t - util_wall_ns()) / 1000000000;
	abs_s = s < 0 ? -s : s;
	while (abs_s >= units[i].below)
		i++;
	/* To the nearest: what was minted for 15 minutes says so. */
	snprintf(dst, ENROLL_TIME_LEN, "%s%lld%c%s", s > 0 ? "in " : "",
	    (long long)((abs_s + units[i].s / 2) / units[i].s), units[i].unit,
	    s > 0 ? "" : " ago");
}

const char *
enroll_clean(const char *s)
{
	static char text[4][4096];
	static unsigned int turn;
	char *dst = text[turn++ % 4], *p;

	strlcpy(dst, s == NULL ? "" : s, sizeof(text[0]));
	for (p = dst; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return dst;
}

char *
enroll_format_quoted(const char *value)
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
