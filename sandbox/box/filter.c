/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Seccomp for workloads and for the init of their pid namespace: compiled in
 * the monitor, loaded in the workload's process between set-up and exec
 * (bpf.h).  One row per call, a reason beside it.  On x86-64 the 32-bit and
 * x32 entries are filtered too: they would be a way round otherwise.
 */
#include "filter.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>

#include "common/base/err.h"
#include "sandbox/self/bpf_export.h"
#include "sandbox/self/self.h"

#define INT32 0xffffffffULL
#define NEW_FLAGS(X)                                                           \
	X(CLONE_NEWNS) X(CLONE_NEWCGROUP) X(CLONE_NEWUTS) X(CLONE_NEWIPC)      \
	X(CLONE_NEWUSER) X(CLONE_NEWPID) X(CLONE_NEWNET) X(0x80)
/* 0x80 is CLONE_NEWTIME; for clone(2) those bits are the exit signal, where
 * 0x80 is no signal either. */

struct filter_row {
	int nr;
	int error;
	int arg;		/* -1: always */
	unsigned long long mask, value;
	const char *reason;
};

#define ALWAYS -1, 0, 0

static const struct filter_row filter_rows[] = {
	/* mounts: the view it was given is the view it keeps */
	{ SCMP_SYS(mount), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(umount), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(umount2), EPERM, ALWAYS, "uncovers hidden files" },
	{ SCMP_SYS(pivot_root), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(chroot), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(open_tree), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(move_mount), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(fsopen), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(fsconfig), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(fsmount), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(fspick), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(mount_setattr), EPERM, ALWAYS, "mount" },
	{ SCMP_SYS(open_by_handle_at), EPERM, ALWAYS, "goes round paths" },
	/* namespaces: each is kernel surface and a fresh capability set */
	{ SCMP_SYS(setns), EPERM, ALWAYS, "namespaces" },
	{ SCMP_SYS(clone3), ENOSYS, ALWAYS,
	    "its flags cannot be seen; libc falls back to clone" },
#define X(flag) { SCMP_SYS(unshare), EPERM, 0, (flag), (flag), "namespaces" },
	NEW_FLAGS(X)
#undef X
#define X(flag) { SCMP_SYS(clone), EPERM, 0, (flag), (flag), "namespaces" },
	NEW_FLAGS(X)
#undef X
	/* other processes */
	{ SCMP_SYS(ptrace), EPERM, ALWAYS, "other processes" },
	{ SCMP_SYS(process_vm_readv), EPERM, ALWAYS, "other processes" },
	{ SCMP_SYS(process_vm_writev), EPERM, ALWAYS, "other processes" },
	{ SCMP_SYS(pidfd_getfd), EPERM, ALWAYS, "other processes" },
	{ SCMP_SYS(kcmp), EPERM, ALWAYS, "kernel pointers" },
	{ SCMP_SYS(keyctl), EPERM, ALWAYS, "keyrings are per uid" },
	{ SCMP_SYS(add_key), EPERM, ALWAYS, "keyrings are per uid" },
	{ SCMP_SYS(request_key), EPERM, ALWAYS, "keyrings are per uid" },
	/* kernel surface without a use in a build */
	{ SCMP_SYS(bpf), EPERM, ALWAYS, "kernel code" },
	{ SCMP_SYS(perf_event_open), EPERM, ALWAYS, "other processes" },
	{ SCMP_SYS(userfaultfd), EPERM, ALWAYS, "exploit aid" },
	{ SCMP_SYS(io_uring_setup), ENOSYS, ALWAYS, "goes round this filter" },
	{ SCMP_SYS(io_uring_enter), ENOSYS, ALWAYS, "goes round this filter" },
	{ SCMP_SYS(io_uring_register), ENOSYS, ALWAYS,
	    "goes round this filter" },
	{ SCMP_SYS(init_module), EPERM, ALWAYS, "kernel code" },
	{ SCMP_SYS(finit_module), EPERM, ALWAYS, "kernel code" },
	{ SCMP_SYS(delete_module), EPERM, ALWAYS, "kernel code" },
	{ SCMP_SYS(kexec_load), EPERM, ALWAYS, "kernel code" },
	{ SCMP_SYS(kexec_file_load), EPERM, ALWAYS, "kernel code" },
	{ SCMP_SYS(lookup_dcookie), EPERM, ALWAYS, "old profiler" },
	{ SCMP_SYS(uselib), EPERM, ALWAYS, "a.out" },
	{ SCMP_SYS(modify_ldt), EPERM, ALWAYS, "exploit aid" },
	{ SCMP_SYS(vm86), EPERM, ALWAYS, "exploit aid" },
	{ SCMP_SYS(vm86old), EPERM, ALWAYS, "exploit aid" },
	{ SCMP_SYS(socket), EAFNOSUPPORT, 0, INT32, AF_VSOCK,
	    "the hypervisor" },
	{ SCMP_SYS(socket), EAFNOSUPPORT, 0, INT32, AF_ALG,
	    "kernel surface" },
	{ SCMP_SYS(socket), EAFNOSUPPORT, 0, INT32, AF_PACKET,
	    "raw frames" },
	/* the machine */
	{ SCMP_SYS(reboot), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(swapon), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(swapoff), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(acct), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(quotactl), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(quotactl_fd), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(syslog), EPERM, ALWAYS, "kernel log" },
	{ SCMP_SYS(settimeofday), EPERM, ALWAYS, "the clock" },
	{ SCMP_SYS(clock_settime), EPERM, ALWAYS, "the clock" },
	{ SCMP_SYS(stime), EPERM, ALWAYS, "the clock" },
	{ SCMP_SYS(sethostname), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(setdomainname), EPERM, ALWAYS, "the machine" },
	{ SCMP_SYS(iopl), EPERM, ALWAYS, "ports" },
	{ SCMP_SYS(ioperm), EPERM, ALWAYS, "ports" },
	{ SCMP_SYS(vhangup), EPERM, ALWAYS, "terminals" },
	{ SCMP_SYS(nfsservctl), EPERM, ALWAYS, "the machine" },
	/* typing into somebody else's terminal */
	{ SCMP_SYS(ioctl), EPERM, 1, INT32, TIOCSTI, "terminal input" },
	{ SCMP_SYS(ioctl), EPERM, 1, INT32, 0x541c, "TIOCLINUX: paste" },
	/* personality: bit 31 is set only in the query 0xffffffff */
	{ SCMP_SYS(personality), EPERM, 0, 0x80000000ULL | READ_IMPLIES_EXEC,
	    READ_IMPLIES_EXEC, "undoes no-execute" },
	{ SCMP_SYS(personality), EPERM, 0, 0x80000000ULL | MMAP_PAGE_ZERO,
	    MMAP_PAGE_ZERO, "null pointers become pages" },
	{ SCMP_SYS(personality), EPERM, 0,
	    0x80000000ULL | ADDR_COMPAT_LAYOUT, ADDR_COMPAT_LAYOUT,
	    "weaker layout" },
};

#define FILTER_NROWS (sizeof(filter_rows) / sizeof(filter_rows[0]))

static int
filter_err(int rc)
{
	errno = -rc;
	return rc == -ENOMEM ? CL_NOMEM : CL_SYSTEM;
}

static int
filter_row_add(scmp_filter_ctx ctx, const struct filter_row *row)
{
	uint32_t act = SCMP_ACT_ERRNO((uint32_t)row->error);
	struct scmp_arg_cmp cmp = { .op = SCMP_CMP_MASKED_EQ };
	int rc;

	cmp.arg = row->arg == -1 ? 0 : (unsigned int)row->arg;
	cmp.datum_a = row->mask;
	cmp.datum_b = row->value;
	rc = seccomp_rule_add_array(ctx, act, row->nr,
	    row->arg == -1 ? 0 : 1, &cmp);
	/* EDOM: the call does not exist on one of the architectures. */
	return rc == -EEXIST || rc == -EDOM ? 0 : rc;
}

static int
filter_set_attrs(scmp_filter_ctx ctx)
{
	int rc;

	/* An entry this filter cannot read is refused, not fatal. */
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_ERRNO(ENOSYS));
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
#ifdef __x86_64__
	if (rc == 0)
		rc = seccomp_arch_add(ctx, SCMP_ARCH_X86);
	if (rc == -EEXIST)
		rc = 0;
#endif
	return rc;
}

/* The program, or why there is none; the context is used up. */
static int
filter_finish(scmp_filter_ctx ctx, int rc, struct sock_fprog *p)
{
	int r = rc == 0 ? bpf_export(ctx, p) : filter_err(rc);

	seccomp_release(ctx);
	return r;
}

int
filter_make_workload(struct sock_fprog *p)
{
	scmp_filter_ctx ctx;
	size_t i;
	int rc;

	if ((ctx = seccomp_init(SCMP_ACT_ALLOW)) == NULL)
		return CL_NOMEM;
	rc = filter_set_attrs(ctx);
	for (i = 0; i < FILTER_NROWS && rc == 0; i++)
		rc = filter_row_add(ctx, &filter_rows[i]);
	return filter_finish(ctx, rc, p);
}

int
filter_make_init(struct sock_fprog *p)
{
	static const int allowed[] = {
		SCMP_SYS(pause), SCMP_SYS(ppoll), SCMP_SYS(poll),
		SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigreturn),
		SCMP_SYS(exit_group), SCMP_SYS(exit),
	};
	scmp_filter_ctx ctx;
	size_t i;
	int rc = 0;

	if ((ctx = seccomp_init(SCMP_ACT_KILL_PROCESS)) == NULL)
		return CL_NOMEM;
	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	return filter_finish(ctx, rc, p);
}

/* ------------------------------------------------- all that a shim is given */

int
bpf_set_make(struct bpf_set *s)
{
	int r;

#ifdef CLOOP_VALGRIND
	/* It does not know seccomp(2), by which the library asks what the
	 * kernel can, and loads. */
	(void)seccomp_api_set(5);
#endif
	memset(s, 0, sizeof(*s));
	if ((r = filter_make_workload(&s->prog[BPF_WORKLOAD])) == CL_OK &&
	    (r = filter_make_init(&s->prog[BPF_INIT])) == CL_OK &&
	    (r = self_profile_make(SELF_SHIM, &s->prog[BPF_SHIM])) == CL_OK)
		r = self_profile_make(SELF_SHIM_SCAN,
		    &s->prog[BPF_SHIM_SCAN]);
	if (r != CL_OK)
		bpf_set_clear(s);
#ifdef CLOOP_VALGRIND
	(void)seccomp_api_set(1);
#endif
	return r;
}
