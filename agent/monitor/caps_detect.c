/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What this device tells the hub about itself.  Runs in the device monitor;
 * looks at its own machine only.  A capability whose feature this build does
 * not have is false with an issue text, whatever the machine could do: the
 * hub dispatches by what is said here.
 */
#include <stdlib.h>
#include <string.h>

#include "caps_detect.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/caps.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"
#include "work.h"

#define CAPS_KVM_KEEP_MS (10 * 60 * 1000)

static const char *const caps_harness_names[] = {
	"claude", "codex", "gemini", "cloop", NULL
};

/* The names of the list that are programs on the agent's PATH. */
static void
caps_detect_programs(const struct environment *env, const char *const *names,
    char ***vp, size_t *np)
{
	char path[4096];
	size_t i;

	for (i = 0; names[i] != NULL; i++) {
		if (!environment_find_program(env, names[i], path,
		    sizeof(path)))
			continue;
		*vp = xreallocarray(*vp, *np + 1, sizeof(**vp));
		(*vp)[(*np)++] = xstrdup(names[i]);
	}
}

static void
caps_put_label(struct caps *c, const char *label)
{
	const char *eq = strchr(label, '='), *end;
	struct field_pair *pair;
	char *key, *value;
	size_t i;

	if (eq == NULL)
		return;		/* the configuration takes none such */
	/* Both sides are trimmed; a later one wins. */
	label += strspn(label, " \t");
	for (end = eq; end > label && strchr(" \t", end[-1]) != NULL; end--)
		;
	key = xstrndup(label, (size_t)(end - label));
	eq += 1 + strspn(eq + 1, " \t");
	for (end = eq + strlen(eq); end > eq && strchr(" \t", end[-1]) != NULL;
	    end--)
		;
	value = xstrndup(eq, (size_t)(end - eq));
	for (i = 0; i < c->nlabels; i++)
		if (strcmp(c->labels[i].key, key) == 0)
			break;
	if (i == c->nlabels) {
		c->labels = xreallocarray(c->labels, i + 1,
		    sizeof(*c->labels));
		c->nlabels++;
	} else {
		free(c->labels[i].key);
		free(c->labels[i].value);
	}
	pair = &c->labels[i];
	pair->key = key;
	pair->value = value;
}

static void
caps_detect_labels(const struct agentd *a, struct caps *c)
{
	size_t i;

	for (i = 0; i < a->conf.labels.n; i++)
		caps_put_label(c, a->conf.labels.v[i]);
	if (c->nlabels > 0)
		field_sort_map(c->labels, c->nlabels);
}

/*
 * Features that this build does not have.  Engines and OCI runtimes are not
 * listed either: container starts are refused (start_check_support).
 */
static void
caps_put_missing(const struct agentd *a, struct caps *c)
{
	c->packet_filter_issue = xstrdup(
	    a->conf.packet_filter == FEATURE_NO ?
	    "switched off on the device (PacketFilter no)" :
	    "this agent has no packet filter support yet");
	c->denial_log_issue = xstrdup("it needs the packet filter");
	c->forwarded_usb_issue = xstrdup(a->conf.forward_usb == FEATURE_NO ?
	    "switched off on the device (ForwardUSB no)" :
	    "this agent cannot attach forwarded USB devices yet");
	c->forwarded_l2_issue = xstrdup(a->conf.forward_l2 == FEATURE_NO ?
	    "switched off on the device (ForwardL2 no)" :
	    "this agent cannot hand over forwarded interfaces yet");
	c->remote_upgrade_issue = xstrdup(
	    a->conf.update_channel == CHANNEL_NONE ?
	    "switched off on the device (UpdateChannel none)" :
	    "this agent cannot upgrade itself yet: upgrade its package");
}

/*
 * Not at every question: a machine on which the probe runs into its deadline
 * would let the hub stop us for a second as often as it likes to ask.
 */
static int
caps_has_kvm(struct agentd *a)
{
	int64_t now = util_now_ms();

	if (a->kvm_at == 0 || now - a->kvm_at > CAPS_KVM_KEEP_MS) {
		a->has_kvm = caps_detect_kvm("/dev/kvm");
		a->kvm_at = now;
	}
	return a->has_kvm;
}

void
caps_detect(struct agentd *a, struct caps *c)
{
	char git[MAX_PATH_LEN + 1], helper[MAX_PATH_LEN + 1];
	struct environment env;

	caps_init(c);
	environment_init(&env, getenv("PATH"), a->work_home);
	caps_detect_host(c);
	caps_detect_programs(&env, caps_harness_names, &c->harnesses,
	    &c->nharnesses);
	c->workdir_root = xstrdup(a->root.path);
	c->max_concurrent = a->max_concurrent;
	c->virtualization = caps_has_kvm(a);
	caps_detect_usb(c, "/sys", "/dev");
	/* All three are git; the helper that runs it comes with us. */
	c->workspace_provisioning = c->write_back = c->branch_bundles =
	    work_find_git(a, git, sizeof(git)) &&
	    spawn_find_program("cloop-git", helper, sizeof(helper)) == 0;
	caps_detect_labels(a, c);
	c->update_channel = xstrdup(a->conf.update_channel == CHANNEL_EDGE ?
	    "edge" : "stable");
	caps_put_missing(a, c);
	environment_clear(&env);
}
