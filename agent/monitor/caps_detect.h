/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Capability detection, fresh for every hello and inventory.  Bounded in time
 * and never fatal: what cannot be found out is reported as absent.
 * Advertised is what works in this build, not what the machine would have.
 */
#ifndef CLOOP_CAPS_DETECT_H
#define CLOOP_CAPS_DETECT_H

struct agentd;
struct caps;

/* Fill in all of *c; the caller clears it. */
void caps_detect(struct agentd *a, struct caps *c);

/*
 * 1 when a guest really runs: /dev/kvm opens, speaks the API,
 * makes a machine, and a guest of two instructions halts within a second.
 */
int caps_detect_kvm(const char *device);
/* The USB inventory, from these two directories. */
void caps_detect_usb(struct caps *c, const char *sysfs, const char *dev);

#endif
