/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Logging: one line per event, `event=NAME key=value ...`, to descriptor 2
 * with the journal's <N> priority prefix when stderr is not a terminal and
 * LOG_PREFIX was asked for.  Only daemons and mains log; common/, store/,
 * sandbox/ and the codecs stay silent above debug.
 */
#ifndef CLOOP_LOG_H
#define CLOOP_LOG_H

#include <stddef.h>

enum log_level { LOGL_FATAL, LOGL_ERROR, LOGL_WARN, LOGL_INFO, LOGL_DEBUG };
enum log_format { LOGF_TEXT, LOGF_JSON };

/* Bytes of an outside value that a log line shows before it is cut. */
#define LOG_VALUE_MAX 128

/* Set program name (borrowed), level and format.  Callable again. */
void log_init(const char *prog, enum log_level level, enum log_format format);
enum log_level log_get_level(void);

/* "fatal".."debug" <-> level; log_parse_level returns -1 when unknown. */
int log_parse_level(const char *name);

/*
 * Log one event.  `event` is a constant name (lower case, hyphens); `fmt`
 * yields the rest of the line, `key=value key=value`.  Values that came
 * from outside go through log_q().  errno is preserved.
 */
void log_error(const char *event, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
void log_warn(const char *event, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
void log_info(const char *event, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
void log_debug(const char *event, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* Log at level fatal and _exit(1). */
void fatal(const char *event, const char *fmt, ...)
    __attribute__((__noreturn__, __format__(__printf__, 2, 3)));

/*
 * A value from outside, quoted, vis-escaped, cut at LOG_VALUE_MAX bytes.
 * Returns one of eight rotating static buffers: use it inside one log call.
 * NULL gives "-".
 */
const char *log_q(const char *value);
const char *log_qn(const char *value, size_t len);

/*
 * Rate limit for lines an outsider can cause: at most `burst` lines per
 * `per_s` seconds for each limiter.  Returns 1 when the line may be written;
 * *suppressedp (may be NULL) gets the number swallowed since the last one.
 */
struct log_ratelimit {
	long long window_at;	/* monotonic ms at which the window began */
	unsigned int count;
	unsigned int suppressed;
};
int log_ratelimit(struct log_ratelimit *rl, unsigned int burst,
    unsigned int per_s, unsigned int *suppressedp);

#endif
