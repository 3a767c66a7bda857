/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The text rules of the protocol as predicates: names, paths, URLs,
 * addresses.  No effect, no memory but for the texts of rule_fail.  A NULL
 * string counts as the empty one everywhere.
 */
#ifndef CLOOP_RULE_H
#define CLOOP_RULE_H

#include <stddef.h>
#include <stdint.h>

/*
 * A failed rule: *whyp (may be NULL) gets the owned text, unless it has one.
 * Returns CL_FORMAT, or CL_NOMEM.
 */
int rule_fail(char **whyp, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* Go's strings.TrimSpace: the trimmed part of s, *lenp its length. */
const char *rule_trim(const char *s, size_t *lenp);
int rule_is_blank(const char *s);
int rule_is_empty(const char *s);	/* NULL or "" */
int rule_is_equal(const char *a, const char *b);
/* 1 when s is one of the space-separated words. */
int rule_is_one_of(const char *s, const char *words);
/* 1..max bytes of [A-Za-z0-9] and the extra characters. */
int rule_is_charset(const char *s, size_t len, const char *extra, size_t max);
int rule_has_control(const char *s);	/* C0 or DEL */

/* Exactly n lowercase hex digits. */
int rule_is_hex(const char *s, size_t n);
/* ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ */
int rule_is_device_name(const char *s);
/* ^[0-9]{1,3}-[0-9]{1,3}(\.[0-9]{1,3}){0,6}$ */
int rule_is_usb_port(const char *s);

/* Canonical as path.Clean leaves it, without "..": the same for a relative
 * path, which is not "." either. */
int rule_is_abs_path(const char *s);
int rule_is_rel_path(const char *s);
/* Canonical, below /dev, at most 256 bytes, no ':' CR LF. */
int rule_is_dev_path(const char *s);

/* git: a ref name, a cloop/ branch name, a repository URL. */
int rule_is_ref(const char *s);
int rule_is_branch(const char *s);
int rule_is_repo_url(const char *s);

/* Family (AF_INET, AF_INET6) of an address literal without a zone, or 0. */
int rule_ip_family(const char *s, size_t len);
/*
 * A prefix, or a bare address as its full length: 1, and *bitsp gets its
 * length after an IPv4-mapped one became IPv4.
 */
int rule_is_prefix(const char *s, size_t len, int *bitsp);
/* addr, addr:port, [v6]:port; the port is not 0. */
int rule_is_resolver(const char *s, size_t len);
/* RFC 1123 host name, one trailing dot tolerated. */
int rule_is_host_name(const char *s);
/* Linux interface name as a sandbox may get it. */
int rule_is_netdev(const char *s);

#endif
