/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The keyword table of cloopd.conf(5) and the checks that need more than
 * one row.  Runs in the monitor before it serves anybody; reads one file
 * that only root may write.  Children never see it: each gets the few
 * values it needs as a message.
 */
#include "config.h"

#include <netinet/in.h>
#include <arpa/inet.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "common/base/xmem.h"

static const char *const config_levels[] = {
	"fatal", "error", "warn", "info", "debug", NULL
};
static const char *const config_formats[] = { "text", "json", NULL };

static const char *
config_check_listen(const char *value)
{
	struct config_listen l;

	return config_parse_listen(value, &l);
}

static const char *
config_check_penalty(const char *value)
{
	struct config_penalty p;

	return config_parse_penalty(value, &p);
}

static const char *
config_check_retention(const char *value)
{
	struct config_retention r;

	return config_parse_retention(value, &r);
}

static const char *
config_check_workers(const char *value)
{
	const char *why;

	if (strcmp(value, "auto") == 0)
		return NULL;
	strtonum(value, 1, MAX_NET_WORKERS, &why);
	return why == NULL ? NULL : "must be auto or 1 to 16";
}

/* scheme://host[:port], nothing after it but an optional path. */
static const char *
config_check_url(const char *value)
{
	const char *host;

	if (strncasecmp(value, "https://", 8) == 0)
		host = value + 8;
	else if (strncasecmp(value, "http://", 7) == 0)
		host = value + 7;
	else
		return "must begin with https:// or http://";
	if (*host == '\0' || *host == '/' || *host == ':' ||
	    *host == '?' || *host == '#')
		return "has no host";
	if (strchr(host, '@') != NULL)
		return "must not contain user or password";
	if (strpbrk(value, " \t\"'<>\\") != NULL)
		return "contains characters a URL cannot have";
	return NULL;
}

static const char *
config_check_origin(const char *value)
{
	const char *p = strstr(value, "://");

	p = p != NULL ? p + 3 : value;
	if (*p == '\0' || strpbrk(p, "/?#@ \t") != NULL)
		return "must be scheme://host[:port] or host[:port]";
	return NULL;
}

static const char *
config_check_cidr(const char *value)
{
	char addr[INET6_ADDRSTRLEN];
	unsigned char bin[16];
	const char *slash = strchr(value, '/'), *why;
	size_t len = slash != NULL ? (size_t)(slash - value) : strlen(value);
	int v4;

	if (len >= sizeof(addr))
		return "must be an address or address/bits";
	memcpy(addr, value, len);
	addr[len] = '\0';
	v4 = inet_pton(AF_INET, addr, bin) == 1;
	if (!v4 && inet_pton(AF_INET6, addr, bin) != 1)
		return "must be an address or address/bits";
	if (slash == NULL)
		return NULL;
	strtonum(slash + 1, 0, v4 ? 32 : 128, &why);
	return why == NULL ? NULL : "has a bad number of bits";
}

/* Loopback or a path: the status page has no authentication. */
static const char *
config_check_status(const char *value)
{
	struct config_listen l;
	char with[192];
	const char *why;

	if (value[0] == '/')
		return NULL;
	snprintf(with, sizeof(with), "%s plaintext", value);
	if ((why = config_parse_listen(with, &l)) != NULL)
		return why;
	return NULL;
}

#define ROW(keyword, type, member, min, max, def, flags, words, check)         \
	{ keyword, type, offsetof(struct hub_conf, member), min, max, def,     \
	  flags, words, check }

const struct conf_row config_rows[] = {
	ROW("ListenAgents", CONF_LIST, listen_agents, 1, MAX_LISTENERS,
	    "[::]:7443", 0, NULL, config_check_listen),
	ROW("ListenStatus", CONF_STRING, listen_status, 1, 128,
	    "127.0.0.1:7481", CONF_NONE_OK, NULL, config_check_status),
	ROW("ControlSocket", CONF_PATH, control_socket, 1, 107,
	    PATH_CONTROL_SOCKET, 0, NULL, NULL),
	ROW("StateDirectory", CONF_PATH, state_dir, 1, MAX_PATH_LEN,
	    PATH_STATE_DIR, 0, NULL, NULL),
	ROW("RuntimeDirectory", CONF_PATH, runtime_dir, 1, MAX_PATH_LEN,
	    PATH_RUN_DIR, 0, NULL, NULL),
	ROW("KeyDirectory", CONF_PATH, key_dir, 1, MAX_PATH_LEN,
	    PATH_KEY_DIR, 0, NULL, NULL),
	ROW("ExternalURL", CONF_STRING, external_url, 1, MAX_URL_LEN, NULL,
	    CONF_RELOAD | CONF_NONE_OK, NULL, config_check_url),
	ROW("AllowedOrigin", CONF_LIST, allowed_origins, 0, MAX_ORIGINS, NULL,
	    CONF_RELOAD | CONF_NONE_OK, NULL, config_check_origin),
	ROW("TrustedProxy", CONF_LIST, trusted_proxies, 0, MAX_PROXIES, NULL,
	    CONF_RELOAD | CONF_NONE_OK, NULL, config_check_cidr),
	ROW("NetWorkers", CONF_STRING, net_workers, 1, 8, "auto", 0, NULL,
	    config_check_workers),
	ROW("MaxAgents", CONF_UINT, max_agents, 1, 1000000, "20000", 0, NULL,
	    NULL),
	ROW("MaxPending", CONF_UINT, max_pending, 1, 100000, "1000", 0, NULL,
	    NULL),
	ROW("MaxPerSource", CONF_UINT, max_per_source, 1, 1000000, "64", 0,
	    NULL, NULL),
	ROW("PerSourcePenalty", CONF_WORDS, penalty, 1, 256,
	    "auth:10s protocol:30s crash:90s max:10m", CONF_RELOAD, NULL,
	    config_check_penalty),
	ROW("OperatorGroup", CONF_STRING, operator_group, 1, 64,
	    GROUP_OPERATOR, CONF_NONE_OK, NULL, NULL),
	ROW("ViewerGroup", CONF_STRING, viewer_group, 1, 64, GROUP_VIEWER,
	    CONF_NONE_OK, NULL, NULL),
	ROW("LeaseTTL", CONF_TIME, lease_ttl, 10, 86400, "15m", CONF_RELOAD,
	    NULL, NULL),
	ROW("LeaseMaxTTL", CONF_TIME, lease_max_ttl, 10, 86400, "15m",
	    CONF_RELOAD, NULL, NULL),
	ROW("GrantTTL", CONF_TIME, grant_ttl, 60, 366 * 86400, "24h",
	    CONF_RELOAD, NULL, NULL),
	ROW("HandleRetention", CONF_WORDS, retention, 1, 64,
	    "256 per agent, 14d", CONF_RELOAD, NULL, config_check_retention),
	ROW("WriteBackBudget", CONF_SIZE, write_back_budget, 1 << 20,
	    UINT64_C(64) << 30, "256M", CONF_RELOAD, NULL, NULL),
	ROW("WriteBackTotal", CONF_SIZE, write_back_total, 1 << 20,
	    UINT64_C(64) << 30, "1G", CONF_RELOAD, NULL, NULL),
	ROW("LogLimit", CONF_SIZE, log_limit, 65536, UINT64_C(1) << 40,
	    "64M", CONF_RELOAD, NULL, NULL),
	ROW("AuditSyslog", CONF_BOOL, audit_syslog, 0, 0, "no", CONF_RELOAD,
	    NULL, NULL),
	ROW("LogLevel", CONF_ENUM, log_level, 0, 0, "info", CONF_RELOAD,
	    config_levels, NULL),
	ROW("LogFormat", CONF_ENUM, log_format, 0, 0, "text", CONF_RELOAD,
	    config_formats, NULL),
	{ NULL, CONF_BOOL, 0, 0, 0, NULL, 0, NULL, NULL }
};

void
config_clear(struct hub_conf *c)
{
	conf_clear(config_rows, c, sizeof(*c));
}

/* What no single row can see. */
static int
config_check(const struct hub_conf *c, const char *file, char *err,
    size_t errlen)
{
	struct config_listen a, b;
	size_t i, j;

	for (i = 0; i < c->listen_agents.n; i++) {
		(void)config_parse_listen(c->listen_agents.v[i], &a);
		for (j = 0; j < i; j++) {
			(void)config_parse_listen(c->listen_agents.v[j], &b);
			if (strcmp(a.text, b.text) != 0)
				continue;
			snprintf(err, errlen, "%s: ListenAgents %s: "
			    "given twice", file, a.text);
			return CL_FORMAT;
		}
	}
	return CL_OK;
}

int
config_load(const struct config_args *a, struct hub_conf *c, char *err,
    size_t errlen)
{
	size_t i;
	int r = CL_OK;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < a->noptions && r == CL_OK; i++)
		r = conf_parse_option(config_rows, c, a->options[i], err,
		    errlen);
	if (r == CL_OK)
		r = conf_load_file(config_rows, c, a->file, err, errlen);
	if (r == CL_OK)
		r = conf_set_defaults(config_rows, c, err, errlen);
	if (r == CL_OK)
		r = config_check(c, a->file, err, errlen);
	if (r != CL_OK)
		config_clear(c);
	return r;
}

void
config_set_reloadable(struct hub_conf *c, struct hub_conf *next,
    const char **fixedp)
{
	const struct conf_row *row;
	unsigned char tmp[sizeof(struct conf_list)], *a, *b;
	size_t len;

	*fixedp = NULL;
	for (row = config_rows; row->keyword != NULL; row++) {
		if (!conf_is_changed(row, c, next))
			continue;
		if (!(row->flags & CONF_RELOAD)) {
			if (*fixedp == NULL)
				*fixedp = row->keyword;
			continue;
		}
		switch (row->type) {
		case CONF_LIST:
			len = sizeof(struct conf_list);
			break;
		case CONF_SIZE:
			len = sizeof(uint64_t);
			break;
		case CONF_BOOL:
		case CONF_ENUM:
		case CONF_UINT:
		case CONF_TIME:
			len = sizeof(int);
			break;
		default:
			len = sizeof(char *);
		}
		/* Swap, so that each struct still owns what it holds. */
		a = (unsigned char *)c + row->offset;
		b = (unsigned char *)next + row->offset;
		memcpy(tmp, a, len);
		memcpy(a, b, len);
		memcpy(b, tmp, len);
	}
}

static const char *
config_parse_port(const char *text, in_port_t *portp)
{
	const char *why;
	long long n;

	n = strtonum(text, 1, 65535, &why);
	if (why != NULL)
		return "has a bad port";
	*portp = htons((in_port_t)n);
	return NULL;
}

static int
config_is_loopback(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET)
		return (ntohl(((const struct sockaddr_in *)ss)->sin_addr.s_addr)
		    >> 24) == 127;
	return IN6_IS_ADDR_LOOPBACK(
	    &((const struct sockaddr_in6 *)ss)->sin6_addr);
}

/* host is cut out of "host:port" already. */
static const char *
config_parse_addr(const char *host, const char *port, struct config_listen *l)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&l->addr;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&l->addr;
	const char *why;
	size_t len = strlen(host);
	char bare[INET6_ADDRSTRLEN];

	if (inet_pton(AF_INET, host, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		l->addr_len = sizeof(*sin);
		why = config_parse_port(port, &sin->sin_port);
	} else if (len > 2 && host[0] == '[' && host[len - 1] == ']' &&
	    len - 2 < sizeof(bare)) {
		memcpy(bare, host + 1, len - 2);
		bare[len - 2] = '\0';
		if (inet_pton(AF_INET6, bare, &sin6->sin6_addr) != 1)
			return "is not an address";
		sin6->sin6_family = AF_INET6;
		l->addr_len = sizeof(*sin6);
		why = config_parse_port(port, &sin6->sin6_port);
	} else
		return "must be address:port or [address]:port";
	return why;
}

const char *
config_parse_listen(const char *value, struct config_listen *l)
{
	char addr[128], *colon;
	const char *why;
	size_t len = strcspn(value, " \t");

	memset(l, 0, sizeof(*l));
	if (len == 0 || len >= sizeof(addr))
		return "must be address:port or [address]:port";
	memcpy(addr, value, len);
	addr[len] = '\0';
	value += len;
	value += strspn(value, " \t");
	if (strcmp(value, "plaintext") == 0)
		l->plaintext = 1;
	else if (*value != '\0')
		return "only the word plaintext may follow the address";
	if ((colon = strrchr(addr, ':')) == NULL)
		return "has no port";
	strlcpy(l->text, addr, sizeof(l->text));
	*colon = '\0';
	if ((why = config_parse_addr(addr, colon + 1, l)) != NULL)
		return why;
	if (l->plaintext && !config_is_loopback(&l->addr))
		return "plaintext is for loopback addresses only";
	return NULL;
}

static const char *
config_parse_penalty_word(const char *word, struct config_penalty *p)
{
	uint64_t s;
	uint32_t *dst;
	const char *colon = strchr(word, ':');
	size_t len = colon != NULL ? (size_t)(colon - word) : 0;

	if (len == 4 && strncmp(word, "auth", 4) == 0)
		dst = &p->auth_ms;
	else if (len == 8 && strncmp(word, "protocol", 8) == 0)
		dst = &p->protocol_ms;
	else if (len == 5 && strncmp(word, "crash", 5) == 0)
		dst = &p->crash_ms;
	else if (len == 3 && strncmp(word, "max", 3) == 0)
		dst = &p->max_ms;
	else
		return "must be no, or auth: protocol: crash: max: with "
		    "times, and enforce nft";
	if (conf_parse_time(colon + 1, &s) != CL_OK || s > 86400)
		return "has a bad time (at most 24h)";
	*dst = (uint32_t)(s * 1000);
	return NULL;
}

const char *
config_parse_penalty(const char *value, struct config_penalty *p)
{
	char word[64];
	const char *why;
	size_t len;

	memset(p, 0, sizeof(*p));
	if (strcmp(value, "no") == 0)
		return NULL;
	*p = (struct config_penalty){ 1, 0, 10000, 30000, 90000, 600000 };
	if (strcmp(value, "yes") == 0)
		return NULL;
	for (value += strspn(value, " \t"); *value != '\0';
	    value += strspn(value, " \t")) {
		len = strcspn(value, " \t");
		if (len >= sizeof(word))
			return "has a word that is too long";
		memcpy(word, value, len);
		word[len] = '\0';
		value += len;
		if (strcmp(word, "enforce") == 0) {
			value += strspn(value, " \t");
			len = strcspn(value, " \t");
			if (len != 3 || strncmp(value, "nft", 3) != 0)
				return "enforce must be followed by nft";
			p->enforce = 1;
			value += len;
		} else if ((why = config_parse_penalty_word(word, p)) != NULL)
			return why;
	}
	return NULL;
}

const char *
config_parse_retention(const char *value, struct config_retention *r)
{
	static const char usage[] = "must be like: 256 per agent, 14d";
	char num[16];
	const char *why;
	size_t len = strcspn(value, " \t");

	memset(r, 0, sizeof(*r));
	if (len == 0 || len >= sizeof(num))
		return usage;
	memcpy(num, value, len);
	num[len] = '\0';
	r->per_agent = (unsigned int)strtonum(num, 1, 100000, &why);
	if (why != NULL)
		return "the number must be 1 to 100000";
	value += len;
	value += strspn(value, " \t");
	if (strncmp(value, "per agent", 9) != 0)
		return usage;
	value += 9;
	value += strspn(value, " \t");
	if (*value == '\0') {
		r->age_s = 14 * 86400;
		return NULL;
	}
	if (*value++ != ',')
		return usage;
	value += strspn(value, " \t");
	if (conf_parse_time(value, &r->age_s) != CL_OK || r->age_s == 0)
		return "has a bad age";
	return NULL;
}

unsigned int
config_find_workers(const struct hub_conf *c)
{
	long n;

	if (strcmp(c->net_workers, "auto") != 0)
		return (unsigned int)strtonum(c->net_workers, 1,
		    MAX_NET_WORKERS, NULL);
	n = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1)
		return 1;
	return n > MAX_NET_WORKERS ? MAX_NET_WORKERS : (unsigned int)n;
}

int
config_log_level(const struct hub_conf *c)
{
	return log_parse_level(config_levels[c->log_level]);
}

void
config_format_origin(const struct hub_conf *c, char *dst, size_t len)
{
	const char *host;
	size_t n;

	*dst = '\0';
	if (c->external_url == NULL)
		return;
	host = strstr(c->external_url, "://") + 3;
	n = (size_t)(host - c->external_url) + strcspn(host, "/?#");
	if (n < len) {
		memcpy(dst, c->external_url, n);
		dst[n] = '\0';
	}
}

int
config_format_server(const struct hub_conf *c, char *dst, size_t len)
{
	const char *host;
	int n;

	*dst = '\0';
	if (c->external_url == NULL)
		return CL_NOTFOUND;
	host = strstr(c->external_url, "://") + 3;
	n = snprintf(dst, len, "%s://%.*s/api/executors/connect",
	    strncasecmp(c->external_url, "https", 5) == 0 ? "wss" : "ws",
	    (int)strcspn(host, "/?#"), host);
	if (n < 0 || (size_t)n >= len) {
		*dst = '\0';
		return CL_TOOBIG;
	}
	return CL_OK;
}
