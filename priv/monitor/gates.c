/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The gates, one function and one table row each, in the table's order.
 * Runs in the monitor.  The spec is the operator's, the capabilities are
 * the device's claim: a device that lies about them only harms itself,
 * since it checks every start again.
 */
#include "gates.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/json/jsonw.h"
#include "common/model/caps.h"
#include "common/model/spec.h"
#include "refuse.h"

/* Room for the credential and the envelope in a start frame. */
#define GATE_RESERVE_LEN 8192

typedef int gate_fn(const struct gate_input *, struct refusal *);

static int
gate_is_set(const char *s)
{
	return s != NULL && s[0] != '\0';
}

static int
gate_is_container(const struct spec *s)
{
	return gate_is_set(s->sandbox.mode) &&
	    strcmp(s->sandbox.mode, "container") == 0;
}

/* Refuse a session below `want`; the text names both versions. */
static int
gate_need(const struct gate_input *in, unsigned int want, const char *code,
    const char *what, struct refusal *r)
{
	if (in->protocol >= want)
		return 0;
	refuse_set(r, code, "%s speaks protocol %u with this hub (%u): %s "
	    "needs %u", in->agent, in->protocol, in->hub_protocol, what,
	    want);
	return 1;
}

static int
gate_spec(const struct gate_input *in, struct refusal *r)
{
	char *why = NULL;
	int rc;

	rc = spec_check(in->spec, &why);
	if (rc == CL_OK)
		rc = spec_check_siblings(in->spec, &why);
	if (rc == CL_OK)
		return 0;
	if (rc == CL_FORMAT)
		refuse_set(r, "invalid_spec", "%s", why != NULL ? why :
		    "the workload description is not valid");
	else
		refuse_set(r, "internal", "%s", cl_strerror(rc));
	free(why);
	return 1;
}

static int
gate_session(const struct gate_input *in, struct refusal *r)
{
	if (in->protocol != 0)
		return 0;
	refuse_set(r, "agent_unreachable", "%s has no live session; nothing "
	    "was queued", in->agent);
	return 1;
}

static int
gate_revocation(const struct gate_input *in, struct refusal *r)
{
	size_t i;
	int is_revocable = in->nsecrets > 0;

	for (i = 0; i < in->spec->nsecrets; i++)
		if (spec_is_revocable(&in->spec->secrets[i]))
			is_revocable = 1;
	return !is_revocable ? 0 : gate_need(in, 2, "revocation_unsupported",
	    "lending revocable secrets", r);
}

static int
gate_workspace(const struct gate_input *in, struct refusal *r)
{
	const char *kind = in->spec->workspace.kind;

	if (kind == NULL || strcmp(kind, "git") != 0)
		return 0;
	if (gate_need(in, 3, "workspace_unsupported", "a git workspace", r))
		return 1;
	if (in->caps->workspace_provisioning)
		return 0;
	refuse_set(r, "workspace_unsupported", "%s says it cannot provision "
	    "a git workspace", in->agent);
	return 1;
}

static int
gate_write_back(const struct gate_input *in, struct refusal *r)
{
	if (!gate_is_set(in->spec->write_back.mode))
		return 0;
	if (gate_need(in, 4, "write_back_unsupported", "returning work", r))
		return 1;
	if (in->caps->write_back)
		return 0;
	refuse_set(r, "write_back_unsupported", "%s says it cannot return "
	    "work", in->agent);
	return 1;
}

static int
gate_secret_files(const struct gate_input *in, struct refusal *r)
{
	return in->spec->nsecret_files == 0 && in->nfiles == 0 ? 0 :
	    gate_need(in, 6, "secret_files_unsupported", "secret files", r);
}

static int
gate_seed(const struct gate_input *in, struct refusal *r)
{
	return in->spec->project_seed == NULL ? 0 :
	    gate_need(in, 10, "project_seed_unsupported", "a project seed",
	    r);
}

static int
gate_branch(const struct gate_input *in, struct refusal *r)
{
	if (in->spec->workspace.branch_bundle == NULL)
		return 0;
	if (gate_need(in, 16, "workspace_unsupported", "a shipped branch", r))
		return 1;
	if (in->caps->branch_bundles)
		return 0;
	refuse_set(r, "workspace_unsupported", "%s says it cannot build a "
	    "tree from a shipped branch", in->agent);
	return 1;
}

static int
gate_egress_proxy(const struct gate_input *in, struct refusal *r)
{
	if (in->spec->egress_proxy == NULL || in->spec->egress_rules == NULL)
		return 0;
	return gate_need(in, 18, "egress_proxy_unsupported",
	    "an egress proxy behind a firewall", r);
}

static int
gate_git_ca(const struct gate_input *in, struct refusal *r)
{
	return in->spec->git_ca == NULL ? 0 :
	    gate_need(in, 21, "git_ca_unsupported", "a git proxy's CA", r);
}

static int
gate_node_ca(const struct gate_input *in, struct refusal *r)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	const char *p;

	if (in->spec->git_ca == NULL || !gate_is_set(in->spec->git_ca->node))
		return 0;
	if (gate_need(in, 23, "node_ca_unsupported", "a CA for Node.js", r))
		return 1;
	if ((p = strstr(in->spec->git_ca->node, begin)) != NULL &&
	    strstr(p + 1, begin) != NULL)
		return gate_need(in, 25, "node_ca_bundle_unsupported",
		    "two CAs for Node.js", r);
	return 0;
}

static int
gate_forwarded(const struct gate_input *in, struct refusal *r)
{
	if (in->spec->nforwarded_devices == 0)
		return 0;
	if (gate_need(in, 22, "forwarded_devices_unsupported",
	    "a forwarded device", r))
		return 1;
	if (gate_is_container(in->spec) &&
	    (in->caps->forwarded_usb || in->caps->forwarded_l2))
		return 0;
	refuse_set(r, "forwarded_devices_unsupported", "%s cannot attach "
	    "forwarded devices to this workload", in->agent);
	return 1;
}

static int
gate_no_filter(const struct gate_input *in, const char *code,
    struct refusal *r)
{
	if (in->caps->packet_filter)
		return 0;
	refuse_set(r, code, "%s cannot filter packets: %s", in->agent,
	    gate_is_set(in->caps->packet_filter_issue) ?
	    in->caps->packet_filter_issue : "it gives no reason");
	return 1;
}

static int
gate_virtual(const struct gate_input *in, struct refusal *r)
{
	const struct spec_virtual *v = in->spec->virtual;

	if (v == NULL || (v->firewall == NULL && v->ndevices == 0))
		return 0;
	if (gate_need(in, 14, "virtual_executor_unsupported",
	    "a virtual executor's firewall or devices", r))
		return 1;
	return v->firewall == NULL ? 0 :
	    gate_no_filter(in, "virtual_executor_unsupported", r);
}

static int
gate_egress(const struct gate_input *in, struct refusal *r)
{
	if (in->spec->egress_rules == NULL && in->spec->egress_bound == NULL)
		return 0;
	if (gate_need(in, 15, "egress_rules_unsupported", "egress rules", r))
		return 1;
	if (!gate_is_container(in->spec)) {
		refuse_set(r, "egress_rules_unsupported", "egress rules hold "
		    "in a container sandbox only, and this run on %s is in "
		    "host mode", in->agent);
		return 1;
	}
	return gate_no_filter(in, "egress_rules_unsupported", r);
}

static int
gate_container(const struct gate_input *in, struct refusal *r)
{
	return !gate_is_container(in->spec) ? 0 :
	    gate_need(in, 8, "sandbox_mode_unsupported",
	    "a container sandbox", r);
}

static int
gate_disk(const struct gate_input *in, struct refusal *r)
{
	if (in->spec->resource_limits.disk_mb == 0)
		return 0;
	if (gate_is_container(in->spec))
		return gate_need(in, 20, "disk_limit_unsupported",
		    "a disk limit", r);
	refuse_set(r, "disk_limit_unsupported", "a disk limit holds in a "
	    "container sandbox only, and this run on %s is in host mode",
	    in->agent);
	return 1;
}

int
gates_is_kata(const char *runtime)
{
	if (!gate_is_set(runtime))
		return 0;
	return strcmp(runtime, "kata") == 0 ||
	    strcmp(runtime, "katacontainers") == 0 ||
	    strncmp(runtime, "kata-", 5) == 0 ||
	    strncmp(runtime, "kata.", 5) == 0 ||
	    strcmp(runtime, "io.containerd.kata.v2") == 0;
}

static int
gate_virtualization(const struct gate_input *in, struct refusal *r)
{
	/* Below 9 nobody could ask: the configured runtime is believed. */
	if (!gate_is_container(in->spec) || in->protocol < 9 ||
	    !gates_is_kata(in->spec->sandbox.runtime) ||
	    in->caps->virtualization)
		return 0;
	refuse_set(r, "virtualization_unavailable", "%s has no usable "
	    "/dev/kvm, which runtime %s needs", in->agent,
	    in->spec->sandbox.runtime);
	return 1;
}

static int
gate_harness(const struct gate_input *in, struct refusal *r)
{
	size_t i;

	/* An empty list means "unknown". */
	if (!gate_is_set(in->spec->harness) || gate_is_container(in->spec) ||
	    in->caps->nharnesses == 0)
		return 0;
	for (i = 0; i < in->caps->nharnesses; i++)
		if (strcmp(in->caps->harnesses[i], in->spec->harness) == 0)
			return 0;
	refuse_set(r, "harness_unavailable", "%s does not have %s",
	    in->agent, in->spec->harness);
	return 1;
}

/* The member that fills most of the frame, for the text. */
static const char *
gate_find_largest(const struct spec *s)
{
	size_t i, env = 0, argv = 0, files = 0;
	size_t seed = s->project_seed_len / 3 * 4;

	for (i = 0; i < s->nenv; i++)
		env += strlen(s->env[i]);
	for (i = 0; i < s->nargv; i++)
		argv += strlen(s->argv[i]);
	for (i = 0; i < s->nsecret_files; i++)
		files += s->secret_files[i].content.len / 3 * 4;
	if (seed >= env && seed >= argv && seed >= files && seed > 0)
		return "project seed";
	if (files >= env && files >= argv && files > 0)
		return "secret files";
	return env >= argv ? "environment" : "command line";
}

static int
gate_size(const struct gate_input *in, struct refusal *r)
{
	struct jsonw w;
	int rc;

	jsonw_init(&w, MAX_FRAME_LEN - GATE_RESERVE_LEN, 0);
	spec_format_json(in->spec, &w);
	rc = jsonw_error(&w);
	jsonw_clear(&w);
	if (rc == CL_OK)
		return 0;
	if (rc == CL_TOOBIG)
		refuse_set(r, "usage", "the workload description is over "
		    "%d bytes as a frame; the largest part is the %s",
		    MAX_FRAME_LEN - GATE_RESERVE_LEN,
		    gate_find_largest(in->spec));
	else
		refuse_set(r, "internal", "%s", cl_strerror(rc));
	return 1;
}

static const struct gate {
	const char *name;
	gate_fn *check;
} gates[] = {
	{ "spec", gate_spec },
	{ "session", gate_session },
	{ "revocation", gate_revocation },
	{ "workspace", gate_workspace },
	{ "write-back", gate_write_back },
	{ "secret-files", gate_secret_files },
	{ "seed", gate_seed },
	{ "branch", gate_branch },
	{ "egress-proxy", gate_egress_proxy },
	{ "git-ca", gate_git_ca },
	{ "node-ca", gate_node_ca },
	{ "forwarded", gate_forwarded },
	{ "virtual", gate_virtual },
	{ "egress", gate_egress },
	{ "container", gate_container },
	{ "disk", gate_disk },
	{ "virtualization", gate_virtualization },
	{ "harness", gate_harness },
	{ "size", gate_size },
};
#define NGATES (sizeof(gates) / sizeof(gates[0]))

int
gates_check(const struct gate_input *in, struct refusal *r)
{
	size_t i;

	r->code = NULL;
	for (i = 0; i < NGATES; i++)
		if (gates[i].check(in, r))
			return 1;
	return 0;
}

const char *const *
gates_get_names(size_t *np)
{
	static const char *names[NGATES];
	size_t i;

	for (i = 0; i < NGATES; i++)
		names[i] = gates[i].name;
	*np = NGATES;
	return names;
}
