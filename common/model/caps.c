/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Field tables of a device's capabilities and of a hello, see caps.h, and
 * the cleaning a hub does on receipt.  Runs in cloopd-net, the monitor and on
 * the device; believes nothing the device says.
 */
#include "caps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/utf8.h"
#include "common/msg/buf.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_WORD_LEN 256		/* os, arch, names of programs */
#define MAX_WORDS 256			/* programs on a device */
#define MAX_ISSUE_LEN 512
#define MAX_USB_STR_LEN 1024		/* cleaned to 131 */
#define MAX_USB_IN 4096			/* entries read, before cleaning */
#define MAX_NODES 16
#define MAX_KERNEL_LEN 16384		/* opaque, kept as it came */
#define MAX_VERSION_LEN 256
#define MAX_LABELS_IN 1024
#define USB_CLEAN_LEN 131
#define MAX_BUILD_SEQUENCE 1000000000	/* above: nonsense, unknown */

static const struct field caps_node_table_rows[] = {
	F_STR(struct caps_node, path, "path", 0, MAX_PATH_LEN),
	F_STR(struct caps_node, subsystem, "subsystem", 0, MAX_USB_STR_LEN),
};
F_TABLE(caps_node_table, struct caps_node);

#define USB_STR(m, flags)                                                      \
	F_STR(struct caps_usb, m, #m, flags, MAX_USB_STR_LEN)

static const struct field caps_usb_table_rows[] = {
	USB_STR(port, 0),
	F_INT64(struct caps_usb, bus, "bus", 0),
	F_INT64(struct caps_usb, dev, "dev", 0),
	USB_STR(vendor_id, 0),
	USB_STR(product_id, 0),
	USB_STR(manufacturer, O),
	USB_STR(product, O),
	USB_STR(serial, O),
	USB_STR(class, O),
	USB_STR(speed, O),
	USB_STR(node, 0),
	F_LIST(struct caps_usb, nodes, "nodes", O, MAX_WORDS,
	    &caps_node_table),
	USB_STR(mode, O),
	F_OPTINT(struct caps_usb, uid, "uid", O, INT64_MIN, INT64_MAX),
	F_OPTINT(struct caps_usb, gid, "gid", O, INT64_MIN, INT64_MAX),
	USB_STR(group, O),
};
F_TABLE(caps_usb_table, struct caps_usb);

#define CAPS_STR(m, flags, max) F_STR(struct caps, m, #m, flags, max)
#define CAPS_BOOL(m) F_BOOL(struct caps, m, #m, O)
#define CAPS_WORDS(m)                                                          \
	F_STRS(struct caps, m, #m, O, MAX_WORDS, MAX_WORD_LEN)

static const struct field caps_table_rows[] = {
	CAPS_STR(os, 0, MAX_WORD_LEN),
	CAPS_STR(arch, 0, MAX_WORD_LEN),
	F_INT64(struct caps, cpus, "cpus", O),
	F_INT64(struct caps, memory_mb, "memory_mb", O),
	CAPS_WORDS(container_runtimes),
	CAPS_WORDS(harnesses),
	CAPS_STR(workdir_root, O, MAX_PATH_LEN),
	CAPS_BOOL(workspace_provisioning),
	CAPS_BOOL(write_back),
	CAPS_BOOL(branch_bundles),
	F_INT64(struct caps, max_concurrent, "max_concurrent", O),
	CAPS_BOOL(virtualization),
	F_LIST(struct caps, usb_devices, "usb_devices", O | FIELD_LAX,
	    MAX_USB_IN, &caps_usb_table),
	CAPS_BOOL(packet_filter),
	CAPS_STR(packet_filter_issue, PROSE, MAX_ISSUE_LEN),
	CAPS_BOOL(denial_log),
	CAPS_STR(denial_log_issue, PROSE, MAX_ISSUE_LEN),
	CAPS_BOOL(forwarded_usb),
	CAPS_STR(forwarded_usb_issue, PROSE, MAX_ISSUE_LEN),
	CAPS_BOOL(forwarded_l2),
	CAPS_STR(forwarded_l2_issue, PROSE, MAX_ISSUE_LEN),
	CAPS_WORDS(oci_runtimes),
	F_MAP(struct caps, labels, "labels", O, MAX_LABELS_IN, MAX_PATH_LEN),
	CAPS_STR(update_channel, O, MAX_WORD_LEN),
	CAPS_BOOL(remote_upgrade),
	CAPS_STR(remote_upgrade_issue, PROSE, MAX_ISSUE_LEN),
	F_INT64(struct caps, build_sequence, "build_sequence", O),
	F_RAW(struct caps, host_kernel, "host_kernel", O, MAX_KERNEL_LEN),
};
F_TABLE(caps_table, struct caps);

static const struct field caps_offer_table_rows[] = {
	F_STR(struct caps_offer, handle_id, "handle_id", 0, MAX_ID_LEN),
	F_TIME(struct caps_offer, started_at, "started_at", 0),
	F_INT64(struct caps_offer, log_offset, "log_offset", 0),
};
F_TABLE(caps_offer_table, struct caps_offer);

static const struct field hello_blob_table_rows[] = {
	F_INT64(struct hello_blob, protocol_version, "protocol_version", 0),
	F_STR(struct hello_blob, agent_id, "agent_id", 0, MAX_ID_LEN),
	F_STR(struct hello_blob, name, "name", 0, MAX_NAME_LEN),
	F_STR(struct hello_blob, agent_version, "agent_version", 0,
	    MAX_VERSION_LEN),
	F_OBJ(struct hello_blob, caps, "capabilities", 0, &caps_table),
	F_LIST(struct hello_blob, offers, "resume", O, MAX_RESUME_OFFERS,
	    &caps_offer_table),
	F_STR(struct hello_blob, caps_json, "caps_json", FIELD_HIDDEN,
	    MAX_CAPS_LEN),
};
F_TABLE(hello_blob_table, struct hello_blob);

static const struct field caps_blob_table_rows[] = {
	F_OBJ(struct caps_blob, caps, "capabilities", 0, &caps_table),
	F_STR(struct caps_blob, caps_json, "caps_json", FIELD_HIDDEN,
	    MAX_CAPS_LEN),
};
F_TABLE(caps_blob_table, struct caps_blob);

void
caps_init(struct caps *c)
{
	field_init(&caps_table, c);
}

void
caps_clear(struct caps *c)
{
	field_clear(&caps_table, c);
}

void
caps_put(const struct caps *c, struct buf *b)
{
	field_put(&caps_table, c, b);
}

int
caps_get(struct buf *b, struct caps *c)
{
	return field_get(&caps_table, b, c);
}

void
caps_format_json(const struct caps *c, struct jsonw *w)
{
	field_format_json(&caps_table, c, w);
}

void
hello_blob_init(struct hello_blob *h)
{
	field_init(&hello_blob_table, h);
}

void
hello_blob_clear(struct hello_blob *h)
{
	field_clear(&hello_blob_table, h);
}

void
hello_blob_put(const struct hello_blob *h, struct buf *b)
{
	field_put(&hello_blob_table, h, b);
}

int
hello_blob_get(struct buf *b, struct hello_blob *h)
{
	return field_get(&hello_blob_table, b, h);
}

/* A string that is its own sanitised form. */
static int
caps_is_sane(const char *s)
{
	size_t len;

	if (rule_is_empty(s))
		return 1;
	rule_trim(s, &len);
	return len == strlen(s) && len <= USB_CLEAN_LEN &&
	    !rule_has_control(s) && utf8_is_valid(s, len);
}

/* Canonical, under /dev, at most 256 bytes, no ':'. */
static int
caps_has_good_nodes(const struct caps_usb *u)
{
	size_t i;

	if (u->nnodes > MAX_NODES)
		return 0;
	for (i = 0; i < u->nnodes; i++) {
		if (!rule_is_dev_path(u->nodes[i].path) ||
		    !caps_is_sane(u->nodes[i].subsystem))
			return 0;
	}
	return 1;
}

int
caps_is_usb_valid(const struct caps_usb *u)
{
	const char *const texts[] = { u->manufacturer, u->product, u->serial,
		u->class, u->speed, u->mode, u->group };
	char node[32];
	size_t i;

	if (u->bus < 1 || u->bus > 999 || u->dev < 1 || u->dev > 999)
		return 0;
	snprintf(node, sizeof(node), "/dev/bus/usb/%03d/%03d", (int)u->bus,
	    (int)u->dev);
	if (!rule_is_usb_port(u->port) || !rule_is_hex(u->vendor_id, 4) ||
	    !rule_is_hex(u->product_id, 4) || !rule_is_equal(u->node, node))
		return 0;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!caps_is_sane(texts[i]))
			return 0;
	}
	return caps_has_good_nodes(u);
}

static void
caps_clean_labels(struct caps *c)
{
	struct field_pair *p = c->labels;
	size_t i, n = 0;

	for (i = 0; i < c->nlabels; i++) {
		if (n < MAX_LABELS && strlen(p[i].key) <= MAX_LABEL_LEN &&
		    strlen(p[i].value) <= MAX_LABEL_LEN) {
			p[n++] = p[i];
			continue;
		}
		free(p[i].key);
		free(p[i].value);
	}
	c->nlabels = n;
}

void
caps_clean(struct caps *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->nusb_devices; i++) {
		if (n < MAX_USB_DEVICES &&
		    caps_is_usb_valid(&c->usb_devices[i]))
			c->usb_devices[n++] = c->usb_devices[i];
		else
			field_clear(&caps_usb_table, &c->usb_devices[i]);
	}
	c->nusb_devices = n;
	caps_clean_labels(c);
	if (c->build_sequence < 0 || c->build_sequence > MAX_BUILD_SEQUENCE)
		c->build_sequence = 0;
}
