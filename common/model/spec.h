/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The description of one workload: the payload of a start frame as a struct,
 * its field tables, and its rules.  Hub and device both check it; the
 * privileged side checks it again from its message form.  Lists of the spec
 * are bounded here by what a frame can carry; the smaller bounds of the
 * protocol are rules (spec_check), because their violation is answered
 * differently from a malformed frame.
 */
#ifndef CLOOP_SPEC_H
#define CLOOP_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"
#include "common/msg/field.h"

struct buf;
struct jsonw;

struct spec_limits {			/* 0: not requested */
	int64_t cpu_millis;
	int64_t memory_mb;
	int64_t disk_mb;
	int64_t pids;
};

struct spec_mount {
	char *source;
	char *target;
	int read_only;
};

struct spec_host_mount {
	char *name;
	char *source;
	char *target;
	int read_only;
};

struct spec_device {
	char *name;
	char *source;
	char *target;
	char *permissions;
	char *lease_id;
	char *kubernetes_resource;
};

struct spec_interface {
	char *name;
	char *source;
	char *target;
	char *address;
	char *gateway;
	int64_t mtu;
	char *lease_id;
};

struct spec_firewall {			/* empty: reach nothing */
	int allow_public_internet;
	char **allow_cidrs;
	size_t nallow_cidrs;
	char **deny_cidrs;
	size_t ndeny_cidrs;
	int64_t *allow_ports;
	size_t nallow_ports;
	char **resolvers;
	size_t nresolvers;
};

struct spec_proxy {
	char *host;
	int64_t port;
	int gateway;
};

struct spec_git_ca {			/* our dialect */
	char *pem;
	char **urls;
	size_t nurls;
	char *node;
};

struct spec_secret {			/* attribution only */
	char *lease_id;
	char *grant_id;
	char *secret_name;
	char *kind;
	char **env_keys;
	size_t nenv_keys;
	char **files;
	size_t nfiles;
	char *dir;
	int egress;
	int64_t expires_at;
};

struct spec_bundle {
	char *branch;
	char *head;
	int64_t bytes;
	char *sha256;
	char **shallow;
	size_t nshallow;
};

struct spec_workspace {
	char *kind;
	char *repo;
	char *ref;
	int64_t depth;
	char *credential_grant;
	int64_t size_limit_mb;
	char *upstream;
	struct spec_bundle *branch_bundle;
};

struct spec_write_back {
	char *mode;
	char *branch;
	char *message;
	int64_t max_bundle_bytes;
};

struct spec_credential {
	char *username;
	struct secret password;
	int64_t expires_at;
	char *host;
};

struct spec_secret_file {
	char *lease_id;
	char *grant_id;
	char *dir;
	char *name;
	uint64_t mode;			/* 0: 0600 */
	struct secret content;		/* data NULL: nil */
};

struct spec_sandbox {
	char *mode;
	char *engine;
	char *runtime;
	char *image;
	char *network;
};

struct spec_usb {
	char *vendor_id;
	char *product_id;
	char *serial;
	char *port;
};

struct spec_selector {
	char *name;
	struct spec_usb *usb;
	char *path;
	char *permissions;
	char *group;
	int skip_interface_nodes;
};

struct spec_virtual {
	char *id;
	char *name;
	struct spec_firewall *firewall;
	struct spec_selector *devices;
	size_t ndevices;
};

struct spec {
	/* start.spec */
	char *work_dir;
	char **argv;
	size_t nargv;
	char **env;			/* NULL or none: inherit */
	size_t nenv;
	struct field_pair *labels;
	size_t nlabels;
	struct spec_limits resource_limits;
	int64_t timeout_minutes;
	char *harness;
	char *image;
	char **setup_commands;
	size_t nsetup_commands;
	struct spec_mount *mounts;
	size_t nmounts;
	struct spec_host_mount *host_mounts;
	size_t nhost_mounts;
	struct spec_device *devices;
	size_t ndevices;
	struct spec_interface *interfaces;
	size_t ninterfaces;
	char *egress_scope;
	int disable_network;
	struct spec_firewall *egress_rules;
	struct spec_firewall *egress_bound;
	struct spec_proxy *egress_proxy;
	struct spec_git_ca *git_ca;
	char *sandbox_hash;
	struct spec_secret *secrets;
	size_t nsecrets;
	struct spec_workspace workspace;
	struct spec_write_back write_back;
	/* the siblings of start.spec */
	char *handle_id;
	struct spec_credential *workspace_credential;
	struct spec_secret_file *secret_files;
	size_t nsecret_files;
	uint8_t *project_seed;
	size_t project_seed_len;
	struct spec_sandbox sandbox;
	struct spec_virtual *virtual;
	char **forwarded_devices;
	size_t nforwarded_devices;
	/*
	 * Not on the wire.  Set by the frame decoder when the spec held a
	 * member that the device must honour and cannot (a git CA): the start
	 * is refused with started.error = this text.
	 */
	char *refusal;
};

extern const struct field_table spec_start_table;	/* all of it */
extern const struct field_table spec_table;	/* the object start.spec */
extern const struct field_table spec_firewall_table;
extern const struct field_table spec_interface_table;
extern const struct field_table spec_sandbox_table;
extern const struct field_table spec_secret_file_table;

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
