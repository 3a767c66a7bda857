/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The description of one workload: the payload of a start frame as a struct,
 * declared in spec.def, and its rules.  Hub and device both check it; the
 * privileged side checks it again from its message form.  Lists of the spec
 * are bounded here by what a frame can carry; the smaller bounds of the
 * protocol are rules (spec_check), because their violation is answered
 * differently from a malformed frame.
 */
#ifndef CLOOP_SPEC_H
#define CLOOP_SPEC_H

struct buf;
struct jsonw;

#define SPEC_STR_MAX MAX_SPEC_LEN	/* the message bounds them all */
#define SPEC_FEW_MAX 1024	/* mounts, devices, ...: rules say 8 to 256 */
#define SPEC_MANY_MAX 65536	/* argv, env: rules say MAX_ARGV, MAX_ENV */

#define DEF_FILE "common/model/spec.def"
#include "common/msg/def_struct.h"

void spec_init(struct spec *s);
void spec_clear(struct spec *s);	/* wipes */
/* The message form, of at most MAX_SPEC_LEN bytes: buf_init(&b, that). */
void spec_put(const struct spec *s, struct buf *b);
int spec_get(struct buf *b, struct spec *s);	/* then buf_end() */
/* The payload of a start frame. */
void spec_format_json(const struct spec *s, struct jsonw *w);

/*
 * The rules of start.spec in Go's order, the first failure wins: CL_FORMAT
 * and *whyp an owned text naming the field and its value.  Secret files and
 * seed are among them.  CL_NOMEM.
 */
int spec_check(const struct spec *s, char **whyp);
/*
 * The siblings alone (secret files, seed, sandbox, virtual); the device
 * answers a failure with error{protocol}.  The frame decoder has done it
 * already; the privileged side does it again.
 */
int spec_check_siblings(const struct spec *s, char **whyp);
int spec_check_secret_files(const struct spec_secret_file *files, size_t n,
    char **whyp);
int spec_check_sandbox(const struct spec_sandbox *sb, char **whyp);
int spec_check_firewall(const char *field, const struct spec_firewall *fw,
    char **whyp);
int spec_check_virtual(const struct spec_virtual *v,
    const struct spec_sandbox *sb, char **whyp);
/* Parts of spec_check, in spec_work.c. */
int spec_check_seed(const struct spec *s, char **whyp);
int spec_check_workspace(const struct spec *s, char **whyp);
int spec_check_write_back(const struct spec *s, char **whyp);
/* A device_open may leave `source` empty. */
int spec_check_interface(const char *field, const struct spec_interface *i,
    int source_optional, char **whyp);
/* Normalise: trim all five; a mode that is not container empties the other
 * four.  After the check. */
void spec_trim_sandbox(struct spec_sandbox *sb);
/* 1 when a binding makes its lease revocable. */
int spec_is_revocable(const struct spec_secret *b);

#endif
