/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a device says it can do, and the whole of its hello as cloopd-net
 * hands it to the monitor.  Field tables; no JSON is read here.  All of it is
 * the device's own claim.
 */
#ifndef CLOOP_CAPS_H
#define CLOOP_CAPS_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/field.h"

struct buf;
struct jsonw;

struct caps_node {
	char *path;
	char *subsystem;
};

struct caps_usb {
	char *port;
	int64_t bus;
	int64_t dev;
	char *vendor_id;
	char *product_id;
	char *manufacturer;
	char *product;
	char *serial;
	char *class;
	char *speed;
	char *node;
	struct caps_node *nodes;
	size_t nnodes;
	char *mode;
	struct field_optint uid;
	struct field_optint gid;
	char *group;
};

struct caps {
	char *os;
	char *arch;
	int64_t cpus;
	int64_t memory_mb;
	char **container_runtimes;
	size_t ncontainer_runtimes;
	char **harnesses;
	size_t nharnesses;
	char *workdir_root;
	int workspace_provisioning;
	int write_back;
	int branch_bundles;
	int64_t max_concurrent;
	int virtualization;
	struct caps_usb *usb_devices;
	size_t nusb_devices;
	int packet_filter;
	char *packet_filter_issue;
	int denial_log;
	char *denial_log_issue;
	int forwarded_usb;
	char *forwarded_usb_issue;
	int forwarded_l2;
	char *forwarded_l2_issue;
	char **oci_runtimes;
	size_t noci_runtimes;
	struct field_pair *labels;
	size_t nlabels;
	char *update_channel;
	int remote_upgrade;
	char *remote_upgrade_issue;
	int64_t build_sequence;
	char *host_kernel;		/* opaque JSON text, or NULL */
};

extern const struct field_table caps_table;

void caps_init(struct caps *c);
void caps_clear(struct caps *c);
void caps_put(const struct caps *c, struct buf *b);
int caps_get(struct buf *b, struct caps *c);
/* The capabilities object in Go's form. */
void caps_format_json(const struct caps *c, struct jsonw *w);
/*
 * What a hub does on receipt: drop each invalid USB entry, keep at most
 * MAX_USB_DEVICES, make an unreasonable build_sequence 0.  Idempotent.
 */
void caps_clean(struct caps *c);
/* 1 when caps_clean() keeps the entry. */
int caps_is_usb_valid(const struct caps_usb *u);

/* hello.resume[] */
struct caps_offer {
	char *handle_id;
	int64_t started_at;		/* wall ns, UTIL_TIME_ZERO */
	int64_t log_offset;
};

extern const struct field_table caps_offer_table;

/* MSG_HELLO's memfd (msgcat.h): the decoded hello of one session. */
struct hello_blob {
	int64_t protocol_version;
	char *agent_id;
	char *name;
	char *agent_version;
	struct caps caps;
	struct caps_offer *offers;
	size_t noffers;
	char *caps_json;		/* caps_format_json's text */
};

extern const struct field_table hello_blob_table;

void hello_blob_init(struct hello_blob *h);
void hello_blob_clear(struct hello_blob *h);
void hello_blob_put(const struct hello_blob *h, struct buf *b);
int hello_blob_get(struct buf *b, struct hello_blob *h);

/* MSG_CAPS's memfd: new capabilities of a session (inventory). */
struct caps_blob {
	struct caps caps;
	char *caps_json;
};

extern const struct field_table caps_blob_table;

#endif
