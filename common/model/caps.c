/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A device's capabilities and its hello, see caps.h, and the cleaning a hub
 * does on receipt.  Runs in cloopd-net, the monitor and on
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

#define DEF_FILE "common/model/caps.def"
#include "common/msg/def_table.h"

#define MAX_NODES 16
#define USB_CLEAN_LEN 131
#define MAX_BUILD_SEQUENCE 1000000000	/* above: nonsense, unknown */

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
