/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/model/caps: cleaning of what a device claims, the hello's message
 * form.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/json/jsonw.h"
#include "common/model/caps.h"
#include "common/msg/buf.h"

/* A valid entry, static strings. */
static void
set_usb(struct caps_usb *u)
{
	memset(u, 0, sizeof(*u));
	u->port = "1-2.3";
	u->bus = 1;
	u->dev = 999;
	u->vendor_id = "0403";
	u->product_id = "6001";
	u->node = "/dev/bus/usb/001/999";
	u->product = "UART \xc2\xb5";
}

static void
test_usb(void)
{
	char text[140];
	struct caps_node nodes[17];
	struct caps_usb u;
	size_t i;

	TEST_START("what makes a USB entry invalid");
	set_usb(&u);
	ASSERT_TRUE(caps_is_usb_valid(&u));
	u.dev = 1000;
	ASSERT_FALSE(caps_is_usb_valid(&u));
	set_usb(&u);
	u.bus = 0;
	ASSERT_FALSE(caps_is_usb_valid(&u));
	set_usb(&u);
	u.node = "/dev/bus/usb/001/998";
	ASSERT_FALSE(caps_is_usb_valid(&u));
	set_usb(&u);
	u.vendor_id = "04AF";
	ASSERT_FALSE(caps_is_usb_valid(&u));
	set_usb(&u);
	u.serial = " x";
	ASSERT_FALSE(caps_is_usb_valid(&u));
	u.serial = "a\tb";
	ASSERT_FALSE(caps_is_usb_valid(&u));
	memset(text, 'a', sizeof(text));
	text[131] = '\0';
	u.serial = text;
	ASSERT_TRUE(caps_is_usb_valid(&u));
	text[131] = 'a';
	text[132] = '\0';
	ASSERT_FALSE(caps_is_usb_valid(&u));
	set_usb(&u);
	for (i = 0; i < 17; i++) {
		nodes[i].path = "/dev/ttyUSB0";
		nodes[i].subsystem = "tty";
	}
	u.nodes = nodes;
	u.nnodes = 16;
	ASSERT_TRUE(caps_is_usb_valid(&u));
	u.nnodes = 17;
	ASSERT_FALSE(caps_is_usb_valid(&u));
	u.nnodes = 1;
	nodes[0].path = "/dev/../etc/passwd";
	ASSERT_FALSE(caps_is_usb_valid(&u));
}

static void
set_usb_owned(struct caps_usb *u)
{
	set_usb(u);
	u->port = strdup(u->port);
	u->vendor_id = strdup(u->vendor_id);
	u->product_id = strdup(u->product_id);
	u->node = strdup(u->node);
	u->product = strdup(u->product);
}

static void
test_clean(void)
{
	struct caps c;
	size_t i, n = MAX_USB_DEVICES + 10;
	char key[300];

	TEST_START("cleaning keeps 128 valid entries and 64 labels");
	caps_init(&c);
	c.usb_devices = calloc(n, sizeof(*c.usb_devices));
	c.nusb_devices = n;
	for (i = 0; i < n; i++) {
		set_usb_owned(&c.usb_devices[i]);
		c.usb_devices[i].bus = i % 20 == 0 ? 2 : 1;
	}
	c.labels = calloc(70, sizeof(*c.labels));
	c.nlabels = 70;
	memset(key, 'k', sizeof(key));
	for (i = 0; i < 70; i++) {
		snprintf(key, 4, "%03zu", i);
		key[3] = 'k';
		key[i == 0 ? MAX_LABEL_LEN + 1 : MAX_LABEL_LEN] = '\0';
		c.labels[i].key = strdup(key);
		c.labels[i].value = strdup("v");
		key[MAX_LABEL_LEN] = 'k';
	}
	c.build_sequence = -1;
	caps_clean(&c);
	ASSERT_SIZE_T_EQ(c.nusb_devices, MAX_USB_DEVICES);
	ASSERT_SIZE_T_EQ(c.nlabels, MAX_LABELS);
	ASSERT_MEM_EQ(c.labels[0].key, "001", 3);
	ASSERT_INT_EQ(c.build_sequence, 0);
	caps_clean(&c);
	ASSERT_SIZE_T_EQ(c.nusb_devices, MAX_USB_DEVICES);
	caps_clear(&c);
}

static void
test_hello(void)
{
	struct hello_blob h, back;
	struct jsonw w;
	struct buf b, in;

	TEST_START("a hello reaches the monitor as it was");
	hello_blob_init(&h);
	h.protocol_version = 26;
	h.agent_id = strdup("a1");
	h.caps.os = strdup("linux");
	h.caps.arch = strdup("amd64");
	h.caps.cpus = 4;
	h.caps.host_kernel = strdup("{\"a\":1}");
	h.offers = calloc(1, sizeof(*h.offers));
	h.noffers = 1;
	h.offers[0].handle_id = strdup("h1");
	h.offers[0].started_at = UTIL_TIME_ZERO;
	h.offers[0].log_offset = 7;
	jsonw_init(&w, MAX_CAPS_LEN, 0);
	caps_format_json(&h.caps, &w);
	h.caps_json = jsonw_take(&w, NULL);
	ASSERT_STRING_EQ(h.caps_json, "{\"os\":\"linux\",\"arch\":\"amd64\","
	    "\"cpus\":4,\"host_kernel\":{\"a\":1}}");
	buf_init(&b, MAX_SPEC_LEN);
	hello_blob_put(&h, &b);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_init_read(&in, b.data, b.len);
	ASSERT_ERR(hello_blob_get(&in, &back), CL_OK);
	ASSERT_ERR(buf_end(&in), CL_OK);
	ASSERT_STRING_EQ(back.caps_json, h.caps_json);
	ASSERT_STRING_EQ(back.caps.host_kernel, h.caps.host_kernel);
	ASSERT_INT_EQ(back.offers[0].log_offset, 7);
	ASSERT_TRUE(back.offers[0].started_at == UTIL_TIME_ZERO);
	hello_blob_clear(&back);
	hello_blob_clear(&h);
	buf_clear(&b);
}

UNIT_MAIN(test_usb, test_clean, test_hello)
