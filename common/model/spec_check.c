/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The rules of a spec in Go's order and those of its siblings; workspace and
 * write-back are in spec_work.c.  Runs on both ends and again on the
 * privileged side; changes nothing.
 */
#include "spec.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"

#define MAX_MOUNTS 16
#define MAX_HOST_MOUNTS 32
#define MAX_DEVICES 16
#define MAX_INTERFACES 8
#define MAX_CIDRS 256
#define MAX_PORTS 64
#define MAX_RESOLVERS 16
#define MAX_DISK_MB 1048576
#define SHOWN "%.*s"			/* a value from outside, cut */
#define SHOW(s) 128, (s) == NULL ? "" : (s)

static int
spec_check_argv(const struct spec *s, char **whyp)
{
	if (s->nargv == 0)
		return rule_fail(whyp, "argv: is empty");
	if (rule_is_blank(s->argv[0]))
		return rule_fail(whyp, "argv[0]: is blank");
	if (s->nargv > MAX_ARGV)
		return rule_fail(whyp, "argv: %zu elements, at most %d",
		    s->nargv, MAX_ARGV);
	return CL_OK;
}

static int
spec_check_timeout(const struct spec *s, char **whyp)
{
	if (s->timeout_minutes < 0)
		return rule_fail(whyp, "timeout_minutes: %lld is negative",
		    (long long)s->timeout_minutes);
	return CL_OK;
}

static int
spec_check_env(const struct spec *s, char **whyp)
{
	size_t i;

	if (s->nenv > MAX_ENV)
		return rule_fail(whyp, "env: %zu elements, at most %d",
		    s->nenv, MAX_ENV);
	/* An entry may hold a secret: name its place, not its text. */
	for (i = 0; i < s->nenv; i++) {
		if (strchr(s->env[i], '=') == NULL)
			return rule_fail(whyp, "env[%zu]: has no '='", i);
	}
	return CL_OK;
}

static int
spec_check_setup(const struct spec *s, char **whyp)
{
	size_t i;

	for (i = 0; i < s->nsetup_commands; i++) {
		if (rule_is_blank(s->setup_commands[i]) ||
		    strpbrk(s->setup_commands[i], "\r\n") != NULL)
			return rule_fail(whyp,
			    "setup_commands[%zu]: is blank or has a line "
			    "break", i);
	}
	return CL_OK;
}

/* A mount target, or a host path: absolute, canonical, no ':' CR LF '\'. */
static int
spec_is_mount_path(const char *path)
{
	return rule_is_abs_path(path) && strpbrk(path, ":\r\n\\") == NULL;
}

static int
spec_check_mounts(const struct spec *s, char **whyp)
{
	const struct spec_mount *m;
	size_t i, k;

	if (s->nmounts > MAX_MOUNTS)
		return rule_fail(whyp, "mounts: %zu entries, at most %d",
		    s->nmounts, MAX_MOUNTS);
	for (i = 0; i < s->nmounts; i++) {
		m = &s->mounts[i];
		if (!rule_is_rel_path(m->source) ||
		    strpbrk(m->source, ":\r\n\\") != NULL)
			return rule_fail(whyp, "mounts[%zu].source: \"" SHOWN
			    "\" is not a clean relative path", i,
			    SHOW(m->source));
		if (!spec_is_mount_path(m->target) || m->target[1] == '\0')
			return rule_fail(whyp, "mounts[%zu].target: \"" SHOWN
			    "\" is not a clean absolute path", i,
			    SHOW(m->target));
		for (k = 0; k < i; k++) {
			if (rule_is_equal(s->mounts[k].target, m->target))
				return rule_fail(whyp, "mounts[%zu].target: \""
				    SHOWN "\" is used twice", i,
				    SHOW(m->target));
		}
	}
	return CL_OK;
}

static int
spec_check_host_mounts(const struct spec *s, char **whyp)
{
	const struct spec_host_mount *m;
	size_t i, k;

	if (s->nhost_mounts > MAX_HOST_MOUNTS)
		return rule_fail(whyp, "host_mounts: %zu entries, at most %d",
		    s->nhost_mounts, MAX_HOST_MOUNTS);
	for (i = 0; i < s->nhost_mounts; i++) {
		m = &s->host_mounts[i];
		if (!spec_is_mount_path(m->source))
			return rule_fail(whyp, "host_mounts[%zu].source: \""
			    SHOWN "\" is not a clean absolute path", i,
			    SHOW(m->source));
		if (!spec_is_mount_path(m->target) || m->target[1] == '\0' ||
		    rule_is_equal(m->target, "/workspace"))
			return rule_fail(whyp, "host_mounts[%zu].target: \""
			    SHOWN "\" cannot be mounted on", i,
			    SHOW(m->target));
		for (k = 0; k < i; k++) {
			if (rule_is_equal(s->host_mounts[k].target, m->target))
				return rule_fail(whyp,
				    "host_mounts[%zu].target: \"" SHOWN
				    "\" is used twice", i, SHOW(m->target));
		}
	}
	return CL_OK;
}

static const char *
spec_device_target(const struct spec_device *d)
{
	return rule_is_empty(d->target) ? d->source : d->target;
}

static int
spec_check_device(const struct spec_device *d, size_t i, char **whyp)
{
	static const char denied[] = "/dev/mem /dev/kmem /dev/port /dev/kcore "
	    "/dev/msr /dev/cpu /dev/sda /dev/nvme0n1 /dev/vda";

	if (!rule_is_device_name(d->name))
		return rule_fail(whyp, "devices[%zu].name: \"" SHOWN
		    "\" is not a device name", i, SHOW(d->name));
	if (!rule_is_dev_path(d->source) || rule_is_one_of(d->source, denied))
		return rule_fail(whyp, "devices[%zu].source: \"" SHOWN
		    "\" is not a device that may be given", i,
		    SHOW(d->source));
	if (!rule_is_dev_path(spec_device_target(d)))
		return rule_fail(whyp, "devices[%zu].target: \"" SHOWN
		    "\" is not a path below /dev", i, SHOW(d->target));
	if (!rule_is_empty(d->permissions) &&
	    !rule_is_one_of(d->permissions, "r rw rwm"))
		return rule_fail(whyp, "devices[%zu].permissions: \"" SHOWN
		    "\" is not r, rw or rwm", i, SHOW(d->permissions));
	if (!rule_is_empty(d->kubernetes_resource) &&
	    !rule_is_charset(d->kubernetes_resource,
	    strlen(d->kubernetes_resource), "./_-", 253))
		return rule_fail(whyp, "devices[%zu].kubernetes_resource: \""
		    SHOWN "\" is not a resource name", i,
		    SHOW(d->kubernetes_resource));
	return CL_OK;
}

static int
spec_check_devices(const struct spec *s, char **whyp)
{
	const struct spec_device *d = s->devices;
	size_t i, k;
	int r;

	if (s->ndevices > MAX_DEVICES)
		return rule_fail(whyp, "devices: %zu entries, at most %d",
		    s->ndevices, MAX_DEVICES);
	for (i = 0; i < s->ndevices; i++) {
		if ((r = spec_check_device(&d[i], i, whyp)) != 0)
			return r;
		for (k = 0; k < i; k++) {
			if (rule_is_equal(d[k].name, d[i].name) ||
			    rule_is_equal(spec_device_target(&d[k]),
			    spec_device_target(&d[i])))
				return rule_fail(whyp, "devices[%zu]: \"" SHOWN
				    "\" repeats a name or target", i,
				    SHOW(d[i].name));
		}
	}
	return CL_OK;
}

static int
spec_check_address(const char *field, const struct spec_interface *in,
    char **whyp)
{
	const char *addr = in->address == NULL ? "" : in->address;
	const char *slash = strchr(addr, '/');
	size_t n = slash == NULL ? 0 : (size_t)(slash - addr);
	int bits;

	if (*addr != '\0' && (slash == NULL ||
	    !rule_is_prefix(addr, strlen(addr), &bits) ||
	    strncmp(addr, "0.0.0.0/", 8) == 0 ||
	    strncmp(addr, "::/", 3) == 0))
		return rule_fail(whyp, "%s.address: \"" SHOWN
		    "\" is not an address with a prefix length", field,
		    SHOW(addr));
	if (rule_is_empty(in->gateway))
		return CL_OK;
	if (*addr == '\0' || rule_ip_family(in->gateway,
	    strlen(in->gateway)) != rule_ip_family(addr, n))
		return rule_fail(whyp, "%s.gateway: \"" SHOWN
		    "\" does not go with the address", field,
		    SHOW(in->gateway));
	return CL_OK;
}

int
spec_check_interface(const char *field, const struct spec_interface *in,
    int source_optional, char **whyp)
{
	static const char denied[] = "lo docker0 podman0 cni-podman0 virbr0";
	int no_source = source_optional && rule_is_empty(in->source);

	if (!rule_is_device_name(in->name))
		return rule_fail(whyp, "%s.name: \"" SHOWN
		    "\" is not an interface handle", field, SHOW(in->name));
	if (!no_source && (!rule_is_netdev(in->source) ||
	    rule_is_one_of(in->source, denied) ||
	    strncmp(in->source, "br-", 3) == 0))
		return rule_fail(whyp, "%s.source: \"" SHOWN
		    "\" is not an interface that may be given", field,
		    SHOW(in->source));
	if (!rule_is_empty(in->target) && (!rule_is_netdev(in->target) ||
	    rule_is_equal(in->target, "lo")))
		return rule_fail(whyp, "%s.target: \"" SHOWN
		    "\" is not an interface name", field, SHOW(in->target));
	if (in->mtu != 0 && (in->mtu < 68 || in->mtu > 65536))
		return rule_fail(whyp, "%s.mtu: %lld is not 68 to 65536",
		    field, (long long)in->mtu);
	return spec_check_address(field, in, whyp);
}

static const char *
spec_interface_target(const struct spec_interface *in)
{
	return rule_is_empty(in->target) ? in->source : in->target;
}

static int
spec_check_interfaces(const struct spec *s, char **whyp)
{
	const struct spec_interface *in = s->interfaces;
	char field[32] = "interfaces[0]";
	size_t i, k;
	int r;

	if (s->ninterfaces > MAX_INTERFACES)
		return rule_fail(whyp, "interfaces: %zu entries, at most %d",
		    s->ninterfaces, MAX_INTERFACES);
	for (i = 0; i < s->ninterfaces; i++) {
		field[11] = (char)('0' + i);
		r = spec_check_interface(field, &in[i], 0, whyp);
		if (r != 0)
			return r;
		for (k = 0; k < i; k++) {
			if (rule_is_equal(in[k].name, in[i].name) ||
			    rule_is_equal(in[k].source, in[i].source) ||
			    rule_is_equal(spec_interface_target(&in[k]),
			    spec_interface_target(&in[i])))
				return rule_fail(whyp, "%s: \"" SHOWN
				    "\" repeats a name, source or target",
				    field, SHOW(in[i].name));
		}
	}
	if (s->disable_network && s->ninterfaces > 0)
		return rule_fail(whyp,
		    "interfaces: not together with disable_network");
	return CL_OK;
}

static int
spec_check_scope(const struct spec *s, char **whyp)
{
	if (!rule_is_empty(s->egress_scope) &&
	    !rule_is_one_of(s->egress_scope, "public none"))
		return rule_fail(whyp, "egress_scope: \"" SHOWN
		    "\" is not public or none", SHOW(s->egress_scope));
	return CL_OK;
}

static int
spec_check_cidrs(const char *field, const char *list, char *const *cidrs,
    size_t n, int allow_all, char **whyp)
{
	const char *p;
	size_t i, len;
	int bits;

	if (n > MAX_CIDRS)
		return rule_fail(whyp, "%s.%s: %zu entries, at most %d",
		    field, list, n, MAX_CIDRS);
	for (i = 0; i < n; i++) {
		p = rule_trim(cidrs[i], &len);
		if (len == 0)
			continue;
		if (!rule_is_prefix(p, len, &bits))
			return rule_fail(whyp, "%s.%s[%zu]: \"" SHOWN
			    "\" is not an address or prefix", field, list, i,
			    SHOW(cidrs[i]));
		if (bits == 0 && !allow_all)
			return rule_fail(whyp, "%s.%s[%zu]: \"" SHOWN
			    "\" allows everything", field, list, i,
			    SHOW(cidrs[i]));
	}
	return CL_OK;
}

static int
spec_check_resolvers(const char *field, const struct spec_firewall *fw,
    char **whyp)
{
	const char *p;
	size_t i, len;

	if (fw->nresolvers > MAX_RESOLVERS)
		return rule_fail(whyp, "%s.resolvers: %zu entries, at most %d",
		    field, fw->nresolvers, MAX_RESOLVERS);
	for (i = 0; i < fw->nresolvers; i++) {
		p = rule_trim(fw->resolvers[i], &len);
		if (len > 0 && !rule_is_resolver(p, len))
			return rule_fail(whyp, "%s.resolvers[%zu]: \"" SHOWN
			    "\" is not an address", field, i,
			    SHOW(fw->resolvers[i]));
	}
	return CL_OK;
}

int
spec_check_firewall(const char *field, const struct spec_firewall *fw,
    char **whyp)
{
	size_t i;
	int r;

	r = spec_check_cidrs(field, "allow_cidrs", fw->allow_cidrs,
	    fw->nallow_cidrs, 0, whyp);
	if (r == 0)
		r = spec_check_cidrs(field, "deny_cidrs", fw->deny_cidrs,
		    fw->ndeny_cidrs, 1, whyp);
	if (r != 0)
		return r;
	if (fw->nallow_ports > MAX_PORTS)
		return rule_fail(whyp,
		    "%s.allow_ports: %zu entries, at most %d", field,
		    fw->nallow_ports, MAX_PORTS);
	for (i = 0; i < fw->nallow_ports; i++) {
		if (fw->allow_ports[i] < 1 || fw->allow_ports[i] > 65535)
			return rule_fail(whyp,
			    "%s.allow_ports[%zu]: %lld is not 1 to 65535",
			    field, i, (long long)fw->allow_ports[i]);
	}
	return spec_check_resolvers(field, fw, whyp);
}

static int
spec_check_egress(const struct spec *s, char **whyp)
{
	int r = CL_OK;

	if (s->egress_bound != NULL && s->egress_rules == NULL)
		return rule_fail(whyp,
		    "egress_bound: not without egress_rules");
	if (s->egress_rules != NULL && s->ninterfaces > 0)
		return rule_fail(whyp,
		    "egress_rules: not together with interfaces");
	if (s->egress_rules != NULL)
		r = spec_check_firewall("egress_rules", s->egress_rules, whyp);
	if (r == 0 && s->egress_bound != NULL)
		r = spec_check_firewall("egress_bound", s->egress_bound, whyp);
	return r;
}

static int
spec_check_proxy(const struct spec *s, char **whyp)
{
	const struct spec_proxy *p = s->egress_proxy;
	int is_ip;

	if (p == NULL)
		return CL_OK;
	is_ip = !rule_is_empty(p->host) &&
	    rule_ip_family(p->host, strlen(p->host)) != 0;
	if (!is_ip && !rule_is_host_name(p->host))
		return rule_fail(whyp, "egress_proxy.host: \"" SHOWN
		    "\" is not an address or host name", SHOW(p->host));
	if (p->port < 1 || p->port > 65535)
		return rule_fail(whyp,
		    "egress_proxy.port: %lld is not 1 to 65535",
		    (long long)p->port);
	if (p->gateway && is_ip)
		return rule_fail(whyp, "egress_proxy.gateway: \"" SHOWN
		    "\" is an address, not a name", SHOW(p->host));
	return CL_OK;
}

static int
spec_check_limits(const struct spec *s, char **whyp)
{
	const struct spec_limits *l = &s->resource_limits;

	if (l->cpu_millis < 0 || l->memory_mb < 0 || l->pids < 0 ||
	    l->disk_mb < 0 || l->disk_mb > MAX_DISK_MB)
		return rule_fail(whyp, "resource_limits: negative or too "
		    "large (cpu_millis %lld, memory_mb %lld, disk_mb %lld, "
		    "pids %lld)", (long long)l->cpu_millis,
		    (long long)l->memory_mb, (long long)l->disk_mb,
		    (long long)l->pids);
	return CL_OK;
}

/* Ours, after Go's: what bounds our own tables. */
static int
spec_check_labels(const struct spec *s, char **whyp)
{
	size_t i;

	if (s->nlabels > MAX_LABELS)
		return rule_fail(whyp, "labels: %zu entries, at most %d",
		    s->nlabels, MAX_LABELS);
	for (i = 0; i < s->nlabels; i++) {
		if (strlen(s->labels[i].key) > MAX_LABEL_LEN ||
		    strlen(s->labels[i].value) > MAX_LABEL_LEN)
			return rule_fail(whyp, "labels: \"" SHOWN
			    "\" is longer than %d bytes",
			    SHOW(s->labels[i].key), MAX_LABEL_LEN);
	}
	return CL_OK;
}

static int
spec_check_files(const struct spec *s, char **whyp)
{
	return spec_check_secret_files(s->secret_files, s->nsecret_files,
	    whyp);
}

int
spec_check(const struct spec *s, char **whyp)
{
	static int (*const rules[])(const struct spec *, char **) = {
		spec_check_argv, spec_check_timeout, spec_check_env,
		spec_check_setup, spec_check_mounts, spec_check_host_mounts,
		spec_check_devices, spec_check_interfaces, spec_check_scope,
		spec_check_egress, spec_check_proxy, spec_check_files,
		spec_check_seed, spec_check_workspace, spec_check_write_back,
		spec_check_limits, spec_check_labels
	};
	size_t i;
	int r = CL_OK;

	*whyp = NULL;
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]) && r == 0; i++)
		r = rules[i](s, whyp);
	return r;
}
