/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Capability detection, on fixtures where the machine has nothing.
 */
#include <sys/stat.h>

#include <ftw.h>
#include <unistd.h>

#include "agent/monitor/agentd.h"
#include "agent/monitor/caps_detect.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/model/caps.h"
#include "common/msg/buf.h"
#include "regress/unit/unit.h"

static char dir[] = "/tmp/cloop-unit-XXXXXX";

static void
give(const char *sub, const char *name, const char *text)
{
	char path[512];
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	if (util_make_dirs(path, 0755, (uid_t)-1, (gid_t)-1) != 0)
		UNIT_FAIL("mkdir %s", path);
	if (name == NULL)
		return;
	snprintf(path, sizeof(path), "%s/%s/%s", dir, sub, name);
	if ((fp = fopen(path, "w")) == NULL)
		UNIT_FAIL("open %s", path);
	fputs(text, fp);
	fclose(fp);
}

static void
give_usb(const char *port, const char *vendor)
{
	char sub[128];

	snprintf(sub, sizeof(sub), "sys/bus/usb/devices/%s", port);
	give(sub, "idVendor", vendor);
	give(sub, "idProduct", "6001\n");
	give(sub, "busnum", "1\n");
	give(sub, "devnum", "5\n");
}

static void
test_usb(void)
{
	char sys[128], dev[128];
	struct caps c;

	TEST_START("USB devices come from sysfs, sorted");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(sys, sizeof(sys), "%s/sys", dir);
	snprintf(dev, sizeof(dev), "%s/dev", dir);
	give_usb("1-2", "0403\n");
	give("sys/bus/usb/devices/1-2", "product", " Serial\x01 Port \n");
	give("sys/bus/usb/devices/1-2", "serial", "");
	give("sys/bus/usb/devices/1-2/1-2:1.0/ttyUSB0/tty/ttyUSB0", "uevent",
	    "MAJOR=188\nDEVNAME=ttyUSB0\n");
	give("dev/bus/usb/001", "005", "");
	give_usb("1-1.4", "1d6b\n");
	caps_init(&c);
	caps_detect_usb(&c, sys, dev);
	ASSERT_SIZE_T_EQ(c.nusb_devices, 2);
	ASSERT_STRING_EQ(c.usb_devices[0].port, "1-1.4");
	ASSERT_STRING_EQ(c.usb_devices[1].port, "1-2");
	ASSERT_STRING_EQ(c.usb_devices[1].vendor_id, "0403");
	ASSERT_STRING_EQ(c.usb_devices[1].node, "/dev/bus/usb/001/005");
	ASSERT_TRUE(c.usb_devices[1].uid.set);
	TEST_START("firmware's strings are cleaned");
	ASSERT_STRING_EQ(c.usb_devices[1].product, "Serial Port");
	ASSERT_PTR_EQ(c.usb_devices[1].serial, NULL);
	TEST_START("nodes of interfaces are found below");
	ASSERT_SIZE_T_EQ(c.usb_devices[1].nnodes, 1);
	ASSERT_STRING_EQ(c.usb_devices[1].nodes[0].path, "/dev/ttyUSB0");
	caps_clear(&c);
}

static void
test_usb_bad(void)
{
	char sys[128], port[16];
	struct caps c;
	size_t i;

	TEST_START("bad entries go one by one");
	snprintf(sys, sizeof(sys), "%s/sys", dir);
	give_usb("usb1", "1d6b\n");
	give_usb("1-2:1.0", "1d6b\n");
	give_usb("1-", "1d6b\n");
	give_usb("1-9", "zzzz\n");
	give_usb("1-8", "1d6b\n");
	give("sys/bus/usb/devices/1-8", "devnum", "1000\n");
	caps_init(&c);
	caps_detect_usb(&c, sys, "/nonexistent");
	ASSERT_SIZE_T_EQ(c.nusb_devices, 2);
	ASSERT_FALSE(c.usb_devices[0].uid.set);
	caps_clear(&c);
	TEST_START("at most 128 devices (limits.h)");
	for (i = 0; i < MAX_USB_DEVICES + 3; i++) {
		snprintf(port, sizeof(port), "2-%zu", i + 1);
		give_usb(port, "1d6b\n");
	}
	caps_init(&c);
	caps_detect_usb(&c, sys, "/nonexistent");
	ASSERT_TRUE(c.nusb_devices <= MAX_USB_DEVICES);
	caps_clear(&c);
	TEST_START("no bus, no devices");
	caps_init(&c);
	caps_detect_usb(&c, "/nonexistent", "/dev");
	ASSERT_SIZE_T_EQ(c.nusb_devices, 0);
	caps_clear(&c);
}

static void
test_kvm(void)
{
	int64_t at = util_now_ms();

	TEST_START("a file that opens is no virtual machine");
	ASSERT_INT_EQ(caps_detect_kvm("/dev/null"), 0);
	ASSERT_INT_EQ(caps_detect_kvm("/nonexistent"), 0);
	TEST_START("the real probe answers in time");
	(void)caps_detect_kvm("/dev/kvm");
	ASSERT_TRUE(util_now_ms() - at < 5000);
}

static void
test_all(void)
{
	char *labels[] = { " b = 2 ", "a=1", "b=3", "e=" };
	struct agentd a;
	struct caps c;
	struct buf b;

	TEST_START("the whole report");
	memset(&a, 0, sizeof(a));
	a.conf.labels.v = labels;
	a.conf.labels.n = 4;
	a.root.path = dir;
	a.max_concurrent = 4;
	caps_detect(&a, &c);
	ASSERT_STRING_EQ(c.os, "linux");
	ASSERT_TRUE(c.cpus >= 1);
	ASSERT_TRUE(c.memory_mb > 0);
	ASSERT_STRING_EQ(c.workdir_root, dir);
	ASSERT_INT_EQ(c.max_concurrent, 4);
	TEST_START("labels are trimmed, sorted, the last one wins");
	ASSERT_SIZE_T_EQ(c.nlabels, 3);
	ASSERT_STRING_EQ(c.labels[0].key, "a");
	ASSERT_STRING_EQ(c.labels[1].value, "3");
	ASSERT_STRING_EQ(c.labels[2].value, "");
	TEST_START("what this build lacks is off, with a reason");
	ASSERT_FALSE(c.packet_filter || c.denial_log || c.forwarded_usb ||
	    c.forwarded_l2 || c.remote_upgrade);
	TEST_START("git work needs git and cloop-git, all three or none");
	ASSERT_INT_EQ(c.workspace_provisioning, access("/usr/bin/git", X_OK) ==
	    0 && getenv("CLOOP_LIBEXEC") != NULL);
	ASSERT_INT_EQ(c.write_back, c.workspace_provisioning);
	ASSERT_INT_EQ(c.branch_bundles, c.workspace_provisioning);
	ASSERT_TRUE(*c.packet_filter_issue && *c.denial_log_issue &&
	    *c.forwarded_usb_issue && *c.forwarded_l2_issue &&
	    *c.remote_upgrade_issue);
	TEST_START("and it fits its message");
	buf_init(&b, MAX_CAPS_LEN);
	caps_put(&c, &b);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_clear(&b);
	caps_clear(&c);
}

static int
remove_entry(const char *name, const struct stat *st, int type,
    struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(name);
}

static void
test_end(void)
{
	TEST_START("the test's own directory is removed");
	ASSERT_INT_EQ(nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

UNIT_MAIN(test_usb, test_usb_bad, test_kvm, test_all, test_end)
