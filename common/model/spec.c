/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of a start payload, see spec.h; the rules are in
 * spec_check.c and spec_work.c.  Runs in every process a start passes.
 * Bounds here keep memory in proportion to the message; they are wider than
 * the rules so that a rule, not the decoder, reports what it forbids.
 */
#include "spec.h"

#include <bsd/stdlib.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/msg/buf.h"

#define O FIELD_OMIT
#define STR_MAX MAX_SPEC_LEN	/* the message bounds them all */
#define FEW_MAX 1024		/* mounts, devices, ...: rules say 8 to 256 */
#define MANY_MAX 65536		/* argv, env: rules say MAX_ARGV, MAX_ENV */

static const struct field spec_limits_table_rows[] = {
	F_INT64(struct spec_limits, cpu_millis, "cpu_millis", O),
	F_INT64(struct spec_limits, memory_mb, "memory_mb", O),
	F_INT64(struct spec_limits, disk_mb, "disk_mb", O),
	F_INT64(struct spec_limits, pids, "pids", O),
};
F_TABLE(spec_limits_table, struct spec_limits);

static const struct field spec_mount_table_rows[] = {
	F_STR(struct spec_mount, source, "source", 0, STR_MAX),
	F_STR(struct spec_mount, target, "target", 0, STR_MAX),
	F_BOOL(struct spec_mount, read_only, "read_only", O),
};
F_TABLE(spec_mount_table, struct spec_mount);

static const struct field spec_host_mount_table_rows[] = {
	F_STR(struct spec_host_mount, name, "name", O, STR_MAX),
	F_STR(struct spec_host_mount, source, "source", 0, STR_MAX),
	F_STR(struct spec_host_mount, target, "target", 0, STR_MAX),
	F_BOOL(struct spec_host_mount, read_only, "read_only", O),
};
F_TABLE(spec_host_mount_table, struct spec_host_mount);

static const struct field spec_device_table_rows[] = {
	F_STR(struct spec_device, name, "name", 0, STR_MAX),
	F_STR(struct spec_device, source, "source", 0, STR_MAX),
	F_STR(struct spec_device, target, "target", O, STR_MAX),
	F_STR(struct spec_device, permissions, "permissions", O, STR_MAX),
	F_STR(struct spec_device, lease_id, "lease_id", O, STR_MAX),
	F_STR(struct spec_device, kubernetes_resource, "kubernetes_resource",
	    O, STR_MAX),
};
F_TABLE(spec_device_table, struct spec_device);

static const struct field spec_interface_table_rows[] = {
	F_STR(struct spec_interface, name, "name", 0, STR_MAX),
	F_STR(struct spec_interface, source, "source", 0, STR_MAX),
	F_STR(struct spec_interface, target, "target", O, STR_MAX),
	F_STR(struct spec_interface, address, "address", O, STR_MAX),
	F_STR(struct spec_interface, gateway, "gateway", O, STR_MAX),
	F_INT64(struct spec_interface, mtu, "mtu", O),
	F_STR(struct spec_interface, lease_id, "lease_id", O, STR_MAX),
};
F_TABLE(spec_interface_table, struct spec_interface);

static const struct field spec_firewall_table_rows[] = {
	F_BOOL(struct spec_firewall, allow_public_internet,
	    "allow_public_internet", O),
	F_STRS(struct spec_firewall, allow_cidrs, "allow_cidrs", O, FEW_MAX,
	    STR_MAX),
	F_STRS(struct spec_firewall, deny_cidrs, "deny_cidrs", O, FEW_MAX,
	    STR_MAX),
	F_INTS(struct spec_firewall, allow_ports, "allow_ports", O, FEW_MAX,
	    INT64_MIN, INT64_MAX),
	F_STRS(struct spec_firewall, resolvers, "resolvers", O, FEW_MAX,
	    STR_MAX),
};
F_TABLE(spec_firewall_table, struct spec_firewall);

static const struct field spec_proxy_table_rows[] = {
	F_STR(struct spec_proxy, host, "host", 0, STR_MAX),
	F_INT64(struct spec_proxy, port, "port", 0),
	F_BOOL(struct spec_proxy, gateway, "gateway", O),
};
F_TABLE(spec_proxy_table, struct spec_proxy);

static const struct field spec_git_ca_table_rows[] = {
	F_STR(struct spec_git_ca, pem, "pem", 0, STR_MAX),
	F_STRS(struct spec_git_ca, urls, "urls", 0, FEW_MAX, STR_MAX),
	F_STR(struct spec_git_ca, node, "node", O, STR_MAX),
};
F_TABLE(spec_git_ca_table, struct spec_git_ca);

static const struct field spec_secret_table_rows[] = {
	F_STR(struct spec_secret, lease_id, "lease_id", 0, STR_MAX),
	F_STR(struct spec_secret, grant_id, "grant_id", O, STR_MAX),
	F_STR(struct spec_secret, secret_name, "secret_name", O, STR_MAX),
	F_STR(struct spec_secret, kind, "kind", O, STR_MAX),
	F_STRS(struct spec_secret, env_keys, "env_keys", O, FEW_MAX, STR_MAX),
	F_STRS(struct spec_secret, files, "files", O, FEW_MAX, STR_MAX),
	F_STR(struct spec_secret, dir, "dir", O, STR_MAX),
	F_BOOL(struct spec_secret, egress, "egress", O),
	F_TIME(struct spec_secret, expires_at, "expires_at", O),
};
F_TABLE(spec_secret_table, struct spec_secret);

static const struct field spec_bundle_table_rows[] = {
	F_STR(struct spec_bundle, branch, "branch", 0, STR_MAX),
	F_STR(struct spec_bundle, head, "head", 0, STR_MAX),
	F_INT64(struct spec_bundle, bytes, "bytes", O),
	F_STR(struct spec_bundle, sha256, "sha256", O, STR_MAX),
	F_STRS(struct spec_bundle, shallow, "shallow", O, FEW_MAX, STR_MAX),
};
F_TABLE(spec_bundle_table, struct spec_bundle);

static const struct field spec_workspace_table_rows[] = {
	F_STR(struct spec_workspace, kind, "kind", O, STR_MAX),
	F_STR(struct spec_workspace, repo, "repo", O, STR_MAX),
	F_STR(struct spec_workspace, ref, "ref", O, STR_MAX),
	F_INT64(struct spec_workspace, depth, "depth", O),
	F_STR(struct spec_workspace, credential_grant, "credential_grant", O,
	    STR_MAX),
	F_INT64(struct spec_workspace, size_limit_mb, "size_limit_mb", O),
	F_STR(struct spec_workspace, upstream, "upstream", O, STR_MAX),
	F_PTR(struct spec_workspace, branch_bundle, "branch_bundle", O,
	    &spec_bundle_table),
};
F_TABLE(spec_workspace_table, struct spec_workspace);

static const struct field spec_write_back_table_rows[] = {
	F_STR(struct spec_write_back, mode, "mode", O, STR_MAX),
	F_STR(struct spec_write_back, branch, "branch", O, STR_MAX),
	F_STR(struct spec_write_back, message, "message", O, STR_MAX),
	F_INT64(struct spec_write_back, max_bundle_bytes,
	    "max_bundle_bytes", O),
};
F_TABLE(spec_write_back_table, struct spec_write_back);

static const struct field spec_credential_table_rows[] = {
	F_STR(struct spec_credential, username, "username", O, STR_MAX),
	F_SECRET(struct spec_credential, password, "password", 0, STR_MAX),
	F_TIME(struct spec_credential, expires_at, "expires_at", O),
	F_STR(struct spec_credential, host, "host", O, STR_MAX),
};
F_TABLE(spec_credential_table, struct spec_credential);

static const struct field spec_secret_file_table_rows[] = {
	F_STR(struct spec_secret_file, lease_id, "lease_id", O, STR_MAX),
	F_STR(struct spec_secret_file, grant_id, "grant_id", O, STR_MAX),
	F_STR(struct spec_secret_file, dir, "dir", 0, STR_MAX),
	F_STR(struct spec_secret_file, name, "name", 0, STR_MAX),
	F_UINT(struct spec_secret_file, mode, "mode", O, UINT32_MAX),
	F_SBYTES(struct spec_secret_file, content, "content", 0,
	    MAX_SECRET_FILE_LEN),
};
F_TABLE(spec_secret_file_table, struct spec_secret_file);

static const struct field spec_sandbox_table_rows[] = {
	F_STR(struct spec_sandbox, mode, "mode", O, STR_MAX),
	F_STR(struct spec_sandbox, engine, "engine", O, STR_MAX),
	F_STR(struct spec_sandbox, runtime, "runtime", O, STR_MAX),
	F_STR(struct spec_sandbox, image, "image", O, STR_MAX),
	F_STR(struct spec_sandbox, network, "network", O, STR_MAX),
};
F_TABLE(spec_sandbox_table, struct spec_sandbox);

static const struct field spec_usb_table_rows[] = {
	F_STR(struct spec_usb, vendor_id, "vendor_id", 0, STR_MAX),
	F_STR(struct spec_usb, product_id, "product_id", 0, STR_MAX),
	F_STR(struct spec_usb, serial, "serial", O, STR_MAX),
	F_STR(struct spec_usb, port, "port", O, STR_MAX),
};
F_TABLE(spec_usb_table, struct spec_usb);

static const struct field spec_selector_table_rows[] = {
	F_STR(struct spec_selector, name, "name", 0, STR_MAX),
	F_PTR(struct spec_selector, usb, "usb", O, &spec_usb_table),
	F_STR(struct spec_selector, path, "path", O, STR_MAX),
	F_STR(struct spec_selector, permissions, "permissions", O, STR_MAX),
	F_STR(struct spec_selector, group, "group", O, STR_MAX),
	F_BOOL(struct spec_selector, skip_interface_nodes,
	    "skip_interface_nodes", O),
};
F_TABLE(spec_selector_table, struct spec_selector);

static const struct field spec_virtual_table_rows[] = {
	F_STR(struct spec_virtual, id, "id", 0, STR_MAX),
	F_STR(struct spec_virtual, name, "name", O, STR_MAX),
	F_PTR(struct spec_virtual, firewall, "firewall", O,
	    &spec_firewall_table),
	F_LIST(struct spec_virtual, devices, "devices", O, FEW_MAX,
	    &spec_selector_table),
};
F_TABLE(spec_virtual_table, struct spec_virtual);

/* start.spec: the first members of struct spec. */
static const struct field spec_table_rows[] = {
	F_STR(struct spec, work_dir, "work_dir", 0, STR_MAX),
	F_STRS(struct spec, argv, "argv", 0, MANY_MAX, STR_MAX),
	F_STRS(struct spec, env, "env", O, MANY_MAX, STR_MAX),
	F_MAP(struct spec, labels, "labels", O, FEW_MAX, STR_MAX),
	F_OBJ(struct spec, resource_limits, "resource_limits", O,
	    &spec_limits_table),
	F_INT64(struct spec, timeout_minutes, "timeout_minutes", O),
	F_STR(struct spec, harness, "harness", O, STR_MAX),
	F_STR(struct spec, image, "image", O, STR_MAX),
	F_STRS(struct spec, setup_commands, "setup_commands", O, FEW_MAX,
	    STR_MAX),
	F_LIST(struct spec, mounts, "mounts", O, FEW_MAX, &spec_mount_table),
	F_LIST(struct spec, host_mounts, "host_mounts", O, FEW_MAX,
	    &spec_host_mount_table),
	F_LIST(struct spec, devices, "devices", O, FEW_MAX,
	    &spec_device_table),
	F_LIST(struct spec, interfaces, "interfaces", O, FEW_MAX,
	    &spec_interface_table),
	F_STR(struct spec, egress_scope, "egress_scope", O, STR_MAX),
	F_BOOL(struct spec, disable_network, "disable_network", O),
	F_PTR(struct spec, egress_rules, "egress_rules", O,
	    &spec_firewall_table),
	F_PTR(struct spec, egress_bound, "egress_bound", O,
	    &spec_firewall_table),
	F_PTR(struct spec, egress_proxy, "egress_proxy", O,
	    &spec_proxy_table),
	F_PTR(struct spec, git_ca, "git_ca", O | FIELD_FOREIGN,
	    &spec_git_ca_table),
	F_STR(struct spec, sandbox_hash, "sandbox_hash", O, STR_MAX),
	F_LIST(struct spec, secrets, "secrets", O, FEW_MAX,
	    &spec_secret_table),
	F_OBJ(struct spec, workspace, "workspace", O, &spec_workspace_table),
	F_OBJ(struct spec, write_back, "write_back", O,
	    &spec_write_back_table),
};
F_TABLE(spec_table, struct spec);

_Static_assert(offsetof(struct spec, work_dir) == 0,
    "start.spec and start share a struct");

/* The whole payload. */
static const struct field spec_start_table_rows[] = {
	F_OBJ(struct spec, work_dir, "spec", 0, &spec_table),
	F_STR(struct spec, handle_id, "handle_id", 0, STR_MAX),
	F_PTR(struct spec, workspace_credential, "workspace_credential", O,
	    &spec_credential_table),
	F_LIST(struct spec, secret_files, "secret_files", O, FEW_MAX,
	    &spec_secret_file_table),
	F_BYTES(struct spec, project_seed, "project_seed", O, MAX_SEED_LEN),
	F_OBJ(struct spec, sandbox, "sandbox", O, &spec_sandbox_table),
	F_PTR(struct spec, virtual, "virtual", O, &spec_virtual_table),
	F_STRS(struct spec, forwarded_devices, "forwarded_devices", O,
	    FEW_MAX, STR_MAX),
	F_STR(struct spec, refusal, "refusal", FIELD_HIDDEN, STR_MAX),
};
F_TABLE(spec_start_table, struct spec);

void
spec_init(struct spec *s)
{
	field_init(&spec_start_table, s);
}

void
spec_clear(struct spec *s)
{
	field_clear(&spec_start_table, s);
}

void
spec_put(const struct spec *s, struct buf *b)
{
	field_put(&spec_start_table, s, b);
}

int
spec_get(struct buf *b, struct spec *s)
{
	return field_get(&spec_start_table, b, s);
}

void
spec_format_json(const struct spec *s, struct jsonw *w)
{
	field_format_json(&spec_start_table, s, w);
}

static void
spec_free_str(char **sp)
{
	free(*sp);
	*sp = NULL;
}

void
spec_trim_sandbox(struct spec_sandbox *sb)
{
	char **members[] = { &sb->mode, &sb->engine, &sb->runtime, &sb->image,
		&sb->network };
	const char *p;
	size_t i, len;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (*members[i] == NULL)
			continue;
		p = rule_trim(*members[i], &len);
		if (len == 0) {
			spec_free_str(members[i]);
			continue;
		}
		memmove(*members[i], p, len);
		(*members[i])[len] = '\0';
	}
	if (rule_is_equal(sb->mode, "container"))
		return;
	for (i = 1; i < sizeof(members) / sizeof(members[0]); i++)
		spec_free_str(members[i]);
}

int
spec_is_revocable(const struct spec_secret *b)
{
	return !rule_is_blank(b->lease_id) &&
	    (b->nenv_keys > 0 || b->nfiles > 0 || b->egress);
}
