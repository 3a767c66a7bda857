/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a device says it can do, and the whole of its hello as cloopd-net
 * hands it to the monitor (caps.def).  No JSON is read here.  All of it is the
 * device's own claim.
 */
#ifndef CLOOP_CAPS_H
#define CLOOP_CAPS_H

struct buf;
struct jsonw;

#define CAPS_WORD_MAX 256	/* os, arch, versions, names of programs */
#define CAPS_WORDS_MAX 256	/* programs on a device */
#define CAPS_ISSUE_MAX 512
#define CAPS_USB_STR_MAX 1024	/* cleaned to 131 */
#define CAPS_USB_MAX 4096	/* entries read, before cleaning */
#define CAPS_KERNEL_MAX 16384	/* opaque, kept as it came */
#define CAPS_LABELS_MAX 1024

#define DEF_FILE "common/model/caps.def"
#include "common/msg/def_struct.h"

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

void hello_blob_init(struct hello_blob *h);
void hello_blob_clear(struct hello_blob *h);
void hello_blob_put(const struct hello_blob *h, struct buf *b);
int hello_blob_get(struct buf *b, struct hello_blob *h);

#endif
