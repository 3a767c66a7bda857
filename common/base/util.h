/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Small things everybody needs: clocks, safe opens (open first, then fstat
 * the descriptor), whole reads and writes, sealed memfds, numbers.
 */
#ifndef CLOOP_UTIL_H
#define CLOOP_UTIL_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Monotonic milliseconds: every deadline uses it. */
int64_t util_now_ms(void);
/* Wall clock, nanoseconds since 1970: for records and the wire only. */
int64_t util_wall_ns(void);
/* Wall clock minus the time since boot, suspended time included: it moves
 * when somebody sets the clock, and else hardly. */
int64_t util_wall_offset_ns(void);

/*
 * RFC 3339 as Go prints it in UTC: fraction without trailing zeros.
 * UTIL_TIME_ZERO is Go's zero time, printed "0001-01-01T00:00:00Z".
 */
#define UTIL_TIME_ZERO INT64_MIN
#define UTIL_TIME_MAX 40
void util_format_time(int64_t wall_ns, char dst[UTIL_TIME_MAX]);
/* RFC 3339, any offset; CL_FORMAT.  What int64 ns cannot hold is
 * clamped except the zero time, which gives UTIL_TIME_ZERO. */
int util_parse_time(const char *text, size_t len, int64_t *wall_nsp);

#define UTIL_OPEN_PRIVATE 0x01	/* refuse group/other permission bits */
#define UTIL_OPEN_OWNED 0x02	/* owner must be root or us */
#define UTIL_OPEN_NOWRITE 0x04	/* refuse group/other write bits */
/* Open a regular file read-only, O_NOFOLLOW|O_CLOEXEC|O_NONBLOCK, then check
 * the descriptor.  CL_SYSTEM, CL_DENIED, CL_FORMAT (not a regular file). */
int util_open_file(const char *path, int flags, int *fdp, mode_t *modep);
/* Read at most max bytes; *datap owned, NUL-terminated.  CL_TOOBIG. */
int util_load_fd(int fd, size_t max, uint8_t **datap, size_t *lenp);
/*
 * Write a file atomically: PATH.tmp created O_EXCL (a stale one is removed
 * first), written, fsynced, renamed, directory fsynced.  On error nothing
 * remains.  CL_SYSTEM.
 */
int util_save_file(const char *path, mode_t mode, const void *data,
    size_t len);
/* To a blocking descriptor. */
int util_write_all(int fd, const void *data, size_t len);
/* mkdir -p; existing ones are left alone.  The last gets mode and owner
 * ((uid_t)-1: leave). */
int util_make_dirs(const char *path, mode_t mode, uid_t uid, gid_t gid);

/* A memfd with this content, sealed against write, shrink and grow. */
int util_make_memfd(const void *data, size_t len, int *fdp);
/* Check the seals and the length, then read it whole.  CL_DENIED when not
 * sealed, CL_TOOBIG, CL_FORMAT when fstat's size is not len. */
int util_load_memfd(int fd, size_t len, size_t max, uint8_t **datap);

/* Lowercase hex, NUL-terminated: dst holds 2 * len + 1. */
void util_format_hex(const void *data, size_t len, char *dst);
int util_parse_hex(const char *text, uint8_t *dst, size_t len);

/* 1 when text is not empty and only of these characters. */
int util_is_word(const char *text, const char *allowed);
/* A handle, agent or correlation id that may be used: 1..128 bytes without
 * control characters. */
int util_is_id(const char *text);
/* Path component for an id from the wire: hex of its bytes. */
int util_format_id_path(const char *id, char *dst, size_t dstlen);

int util_set_nonblock(int fd);
/* TCP finds a dead peer by itself (LINK_PROBE_S and so on); a listener hands
 * it on to what it accepts.  Not worth failing for. */
void util_set_probes(int fd);

/* sd_notify(3) datagram of our own; 0 also when NOTIFY_SOCKET is unset. */
int util_notify(const char *state);

#endif
