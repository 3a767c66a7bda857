/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Log lines of every process, one write(2) each, so that lines of several
 * processes on one pipe do not mix.  What is logged may come from an
 * attacker: log_q() leaves only printable ASCII.  Under the journal a line
 * starts with its <N> priority; elsewhere with the time, the program and
 * the level, since nobody else adds them.  Safe after confinement: the only
 * system call is write.
 */
#include "log.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define LOG_LINE_MAX 4000	/* below PIPE_BUF: one write is one line */
#define LOG_NBUFS 8

static const struct log_level_row {
	const char *name;
	int priority;		/* of syslog(3), for the journal */
} log_levels[] = {
	[LOGL_FATAL] = { "fatal", 2 },
	[LOGL_ERROR] = { "error", 3 },
	[LOGL_WARN] = { "warn", 4 },
	[LOGL_INFO] = { "info", 6 },
	[LOGL_DEBUG] = { "debug", 7 },
};
#define LOG_NLEVELS ((int)(sizeof(log_levels) / sizeof(log_levels[0])))

static struct {
	const char *prog;
	enum log_level level;
	enum log_format format;
	int has_journal;
} log_state = { "cloop", LOGL_INFO, LOGF_TEXT, 0 };

struct log_line {
	char text[LOG_LINE_MAX + 2];
	size_t len;
};

void
log_init(const char *prog, enum log_level level, enum log_format format)
{
	struct stat st;
	const char *stream = getenv("JOURNAL_STREAM");

	log_state.prog = prog;
	log_state.level = level;
	log_state.format = format;
	/* The journal gives services a socket; children inherit it without
	 * the variable. */
	log_state.has_journal = (stream != NULL && *stream != '\0') ||
	    (fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode));
}

enum log_level
log_get_level(void)
{
	return log_state.level;
}

int
log_parse_level(const char *name)
{
	int i;

	for (i = 0; i < LOG_NLEVELS; i++)
		if (strcmp(name, log_levels[i].name) == 0)
			return i;
	return -1;
}

static void log_put(struct log_line *l, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
static void log_put_va(struct log_line *l, const char *fmt, va_list ap)
    __attribute__((__format__(__printf__, 2, 0)));
static void log_put_json(struct log_line *l, enum log_level level,
    const char *event, const char *fmt, va_list ap)
    __attribute__((__format__(__printf__, 4, 0)));
static void log_put_text(struct log_line *l, enum log_level level,
    const char *event, const char *fmt, va_list ap)
    __attribute__((__format__(__printf__, 4, 0)));
static void log_write(enum log_level level, const char *event,
    const char *fmt, va_list ap)
    __attribute__((__format__(__printf__, 3, 0)));

static void
log_put_va(struct log_line *l, const char *fmt, va_list ap)
{
	size_t room = LOG_LINE_MAX - l->len;
	int n;

	n = vsnprintf(l->text + l->len, room + 1, fmt, ap);
	if (n > 0)
		l->len += (size_t)n > room ? room : (size_t)n;
}

static void
log_put(struct log_line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put_va(l, fmt, ap);
	va_end(ap);
}

/* One byte of a JSON string. */
static void
log_put_json_byte(struct log_line *l, unsigned char c)
{
	if (c == '"' || c == '\\')
		log_put(l, "\\%c", c);
	else if (c < 0x20 || c >= 0x7f)
		log_put(l, "\\u%04x", c);
	else
		log_put(l, "%c", c);
}

static int
log_parse_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What log_q() escaped, one character at *sp. */
static unsigned char
log_parse_escaped(const char **sp)
{
	const char *s = *sp;
	int hi, lo;

	if (s[0] != '\\' || s[1] == '\0') {
		*sp = s + 1;
		return (unsigned char)s[0];
	}
	if (s[1] == 'x' && (hi = log_parse_hex_digit(s[2])) >= 0 &&
	    (lo = log_parse_hex_digit(s[3])) >= 0) {
		*sp = s + 4;
		return (unsigned char)(hi << 4 | lo);
	}
	*sp = s + 2;
	return (unsigned char)s[1];
}

/* A bare value that is a number may stand as one in JSON. */
static int
log_is_number(const char *s, size_t len)
{
	size_t i = len > 1 && s[0] == '-' ? 1 : 0;

	if (len == i || len - i > 15 || (s[i] == '0' && len - i > 1))
		return 0;
	for (; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return 0;
	return 1;
}

static void
log_put_json_string(struct log_line *l, const char *s, size_t len)
{
	const char *end = s + len;

	log_put(l, "\"");
	while (s < end)
		log_put_json_byte(l, (unsigned char)*s++);
	log_put(l, "\"");
}

/* `key=value key="value"` as JSON members. */
static void
log_put_json_pairs(struct log_line *l, const char *s)
{
	size_t len;

	while (*(s += strspn(s, " ")) != '\0') {
		len = strcspn(s, "= ");
		log_put(l, ",");
		if (s[len] != '=') {		/* a word without a value */
			log_put_json_string(l, s, len);
			log_put(l, ":true");
			s += len;
			continue;
		}
		log_put_json_string(l, s, len);
		log_put(l, ":");
		s += len + 1;
		if (*s == '"') {
			log_put(l, "\"");
			for (s++; *s != '\0' && *s != '"';)
				log_put_json_byte(l, log_parse_escaped(&s));
			log_put(l, "\"");
			s += *s == '"';
			continue;
		}
		len = strcspn(s, " ");
		if (log_is_number(s, len))
			log_put(l, "%.*s", (int)len, s);
		else
			log_put_json_string(l, s, len);
		s += len;
	}
}

static void
log_put_json(struct log_line *l, enum log_level level, const char *event,
    const char *fmt, va_list ap)
{
	struct log_line pairs = { .len = 0 };
	char now[UTIL_TIME_MAX];
	size_t start;

	log_put_va(&pairs, fmt, ap);
	pairs.text[pairs.len] = '\0';
	util_format_time(util_wall_ns(), now);
	log_put(l, "{\"time\":\"%s\",\"level\":\"%s\",\"prog\":\"%s\","
	    "\"event\":", now, log_levels[level].name, log_state.prog);
	log_put_json_string(l, event, strlen(event));
	start = l->len;
	log_put_json_pairs(l, pairs.text);
	if (l->len >= LOG_LINE_MAX - 1) {
		/* A line cut anywhere would not be JSON. */
		l->len = start;
		log_put(l, ",\"truncated\":true");
	}
	log_put(l, "}");
}

static void
log_put_text(struct log_line *l, enum log_level level, const char *event,
    const char *fmt, va_list ap)
{
	char now[UTIL_TIME_MAX];

	if (!log_state.has_journal) {
		util_format_time(util_wall_ns(), now);
		/* 2026-01-02T03:04:05.678: the fraction may be short. */
		log_put(l, "%.8s %s %s ", now + 11, log_state.prog,
		    log_levels[level].name);
	}
	log_put(l, "event=%s ", event);
	log_put_va(l, fmt, ap);
	while (l->len > 0 && l->text[l->len - 1] == ' ')
		l->len--;
}

static void
log_write(enum log_level level, const char *event, const char *fmt,
    va_list ap)
{
	struct log_line l = { .len = 0 };
	int saved = errno;
	size_t i;
	ssize_t n;

	if (log_state.has_journal)
		log_put(&l, "<%d>", log_levels[level].priority);
	if (log_state.format == LOGF_JSON)
		log_put_json(&l, level, event, fmt, ap);
	else
		log_put_text(&l, level, event, fmt, ap);
	/* A newline inside would forge a second line. */
	for (i = 0; i < l.len; i++)
		if (l.text[i] == '\n' || l.text[i] == '\r')
			l.text[i] = ' ';
	l.text[l.len++] = '\n';
	do
		n = write(STDERR_FILENO, l.text, l.len);
	while (n == -1 && errno == EINTR);
	errno = saved;
}

#define LOG_BODY(lvl)                                                        \
	va_list ap;                                                            \
	if (log_state.level < (lvl))                                         \
		return;                                                        \
	va_start(ap, fmt);                                                     \
	log_write(lvl, event, fmt, ap);                                        \
	va_end(ap)

void
log_error(const char *event, const char *fmt, ...)
{
	LOG_BODY(LOGL_ERROR);
}

void
log_warn(const char *event, const char *fmt, ...)
{
	LOG_BODY(LOGL_WARN);
}

void
log_info(const char *event, const char *fmt, ...)
{
	LOG_BODY(LOGL_INFO);
}

void
log_debug(const char *event, const char *fmt, ...)
{
	LOG_BODY(LOGL_DEBUG);
}

void
fatal(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(LOGL_FATAL, event, fmt, ap);
	va_end(ap);
	_exit(1);
}

const char *
log_q(const char *value)
{
	return value == NULL ? "-" : log_qn(value, strlen(value));
}

const char *
log_qn(const char *value, size_t len)
{
	static char bufs[LOG_NBUFS][4 * LOG_VALUE_MAX + 8];
	static unsigned int next;
	static const char hex[] = "0123456789abcdef";
	char *start, *p;
	size_t i, n = len > LOG_VALUE_MAX ? LOG_VALUE_MAX : len;
	unsigned char c;

	if (value == NULL)
		return "-";
	start = p = bufs[next++ % LOG_NBUFS];
	*p++ = '"';
	for (i = 0; i < n; i++) {
		c = (unsigned char)value[i];
		if (c == '"' || c == '\\') {
			*p++ = '\\';
			*p++ = (char)c;
		} else if (c < 0x20 || c >= 0x7f) {
			*p++ = '\\';
			*p++ = 'x';
			*p++ = hex[c >> 4];
			*p++ = hex[c & 15];
		} else
			*p++ = (char)c;
	}
	if (len > n)
		for (i = 0; i < 3; i++)
			*p++ = '.';
	*p++ = '"';
	*p = '\0';
	return start;
}

int
log_ratelimit(struct log_ratelimit *rl, unsigned int burst,
    unsigned int per_s, unsigned int *suppressedp)
{
	long long now = util_now_ms();

	if (suppressedp != NULL)
		*suppressedp = 0;
	if (rl->count == 0 || now - rl->window_at >= 1000LL * per_s) {
		rl->window_at = now;
		rl->count = 0;
	}
	if (rl->count >= burst) {
		if (rl->suppressed < UINT32_MAX)
			rl->suppressed++;
		return 0;
	}
	rl->count++;
	if (suppressedp != NULL)
		*suppressedp = rl->suppressed;
	rl->suppressed = 0;
	return 1;
}
