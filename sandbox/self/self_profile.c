/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What each of our processes may still ask of the kernel once it is
 * confined: one table, a row per system call, a column of processes, a
 * reason.  What has no row kills the process (the resolver and the fence, which
 * run other people's code, get EPERM instead).  Arguments are compared
 * masked to 32 bits where the kernel takes an int: the upper half of the
 * register is not part of the value.
 */
#include <linux/bpf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <unistd.h>

#include "common/base/err.h"
#include "bpf_export.h"
#include "self_int.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SELF_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SELF_ASAN 1
#endif

#define P(p) (1U << (p))
#define P_NET P(SELF_NET)
#define P_KEY P(SELF_KEY)
#define P_CTL P(SELF_CTL)
#define P_FETCH P(SELF_FETCH)
#define P_RES P(SELF_RESOLVER)
#define P_SHIM (P(SELF_SHIM) | P(SELF_SHIM_SCAN))
#define P_SCAN P(SELF_SHIM_SCAN)
#define P_FENCE P(SELF_FENCE)
#define P_SOFT (P_RES | P_FENCE)	/* EPERM, not death: others' code */
#define P_SOCK (P_NET | P_CTL | P_FETCH | P_RES)
#define P_ALL (P_NET | P_KEY | P_CTL | P_FETCH | P_RES | P_SHIM | \
	P_FENCE)

#define INT32 0xffffffffULL

/* (argument arg & mask) == value; arg -1: none. */
struct self_cond {
	int arg;
	uint64_t mask;
	uint64_t value;
};
#define ANY { { -1, 0, 0 }, { -1, 0, 0 } }
#define IF(a, m, v) { { (a), (m), (v) }, { -1, 0, 0 } }
#define IF2(a, m, v, a2, m2, v2) { { (a), (m), (v) }, { (a2), (m2), (v2) } }

struct self_rule {
	unsigned int who;
	int nr;
	struct self_cond cond[2];
	const char *reason;
};

static const struct self_rule self_rules[] = {
	/* channels, connections, the log, files somebody else opened */
	{ P_ALL, SCMP_SYS(read), ANY, "descriptors it was given" },
	{ P_ALL, SCMP_SYS(write), ANY, "log line, eventfd" },
	{ P_ALL, SCMP_SYS(readv), ANY, "evbuffer_read" },
	{ P_ALL, SCMP_SYS(writev), ANY, "evbuffer_write" },
	{ P_ALL, SCMP_SYS(recvmsg), ANY, "imsg_read" },
	{ P_ALL, SCMP_SYS(sendmsg), ANY, "imsg_write" },
	{ P_SOCK, SCMP_SYS(recvfrom), ANY, "recv on a connection" },
	{ P_SOCK, SCMP_SYS(sendto), ANY, "send on a connection" },
	{ P_ALL, SCMP_SYS(close), ANY, "descriptors it was given" },
	{ P_ALL, SCMP_SYS(fstat), ANY, "checks of passed descriptors" },
	{ P_ALL, SCMP_SYS(newfstatat), IF(3, INT32, AT_EMPTY_PATH),
	    "fstat as glibc spells it" },
	{ P_ALL, SCMP_SYS(lseek), ANY, "reading a passed memfd" },
	{ P_ALL, SCMP_SYS(pread64), ANY, "memfds, spools, log files" },
	{ P_ALL, SCMP_SYS(fcntl), IF(1, INT32, F_GETFL), "non-blocking" },
	{ P_ALL, SCMP_SYS(fcntl), IF(1, INT32, F_SETFL), "non-blocking" },
	{ P_ALL, SCMP_SYS(fcntl), IF(1, INT32, F_GETFD), "close-on-exec" },
	{ P_ALL, SCMP_SYS(fcntl), IF(1, INT32, F_SETFD), "close-on-exec" },
	{ P_ALL, SCMP_SYS(fcntl), IF(1, INT32, F_GET_SEALS), "memfd check" },
	{ P_SOCK, SCMP_SYS(fcntl), IF(1, INT32, F_ADD_SEALS), "own memfds" },
	{ P_ALL, SCMP_SYS(fcntl), IF(1, INT32, F_DUPFD_CLOEXEC),
	    "imsg_read: is a number free for what comes" },
	{ P_ALL, SCMP_SYS(ioctl), IF(1, INT32, FIONREAD), "evbuffer_read" },
	{ P_NET | P_CTL | P_FETCH, SCMP_SYS(memfd_create), ANY,
	    "bulk towards the monitor" },
	{ P_NET | P_CTL | P_FETCH, SCMP_SYS(ftruncate), ANY,
	    "memfds; cutting a torn log tail" },
	{ P_NET | P_FETCH | P_SHIM, SCMP_SYS(pwrite64), ANY,
	    "log file, spool, shipped branch" },
	{ P_NET, SCMP_SYS(fsync), ANY, "log file" },
	{ P_NET, SCMP_SYS(fdatasync), ANY, "log file" },
	/* A file grows by what is written only. */
	{ P_NET | P_SHIM, SCMP_SYS(fallocate), IF(1, INT32,
	    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE), "spool holes" },
	/* waiting */
	{ P_ALL, SCMP_SYS(poll), ANY, "the small loops" },
	{ P_ALL, SCMP_SYS(ppoll), ANY, "the small loops" },
	{ P_ALL, SCMP_SYS(epoll_wait), ANY, "libevent" },
	{ P_ALL, SCMP_SYS(epoll_pwait), ANY, "libevent" },
	{ P_ALL, SCMP_SYS(epoll_pwait2), ANY, "libevent" },
	{ P_ALL, SCMP_SYS(epoll_ctl), ANY, "libevent" },
	{ P_ALL, SCMP_SYS(clock_nanosleep), ANY, "retry pauses" },
	{ P_ALL, SCMP_SYS(nanosleep), ANY, "retry pauses" },
	{ P_ALL, SCMP_SYS(restart_syscall), ANY, "the kernel, after a stop" },
	/* time, randomness, identity: nothing to gain */
	{ P_ALL, SCMP_SYS(clock_gettime), ANY, "time without a vDSO" },
	{ P_ALL, SCMP_SYS(clock_getres), ANY, "libevent" },
	{ P_ALL, SCMP_SYS(gettimeofday), ANY, "time without a vDSO" },
	{ P_ALL, SCMP_SYS(time), ANY, "time without a vDSO" },
	{ P_ALL, SCMP_SYS(getrandom), ANY, "ids, TLS, hash seeds" },
	{ P_ALL, SCMP_SYS(getpid), ANY, "OpenSSL fork check, abort" },
	{ P_ALL, SCMP_SYS(gettid), ANY, "abort" },
	{ P_ALL, SCMP_SYS(getppid), ANY, "is the monitor alive" },
	{ P_ALL, SCMP_SYS(getuid), ANY, "libraries asking: set-id?" },
	{ P_ALL, SCMP_SYS(geteuid), ANY, "libraries asking: set-id?" },
	{ P_ALL, SCMP_SYS(getgid), ANY, "libraries asking: set-id?" },
	{ P_ALL, SCMP_SYS(getegid), ANY, "libraries asking: set-id?" },
	{ P_ALL, SCMP_SYS(getrusage), ANY, "state dump" },
	{ P_ALL, SCMP_SYS(sysinfo), ANY, "qsort asks for memory size" },
	{ P_ALL, SCMP_SYS(sched_yield), ANY, "spin locks of libraries" },
	{ P_ALL, SCMP_SYS(sched_getaffinity), ANY, "malloc arenas" },
	/* memory: never executable */
	{ P_ALL, SCMP_SYS(brk), ANY, "malloc" },
	{ P_ALL, SCMP_SYS(mmap), IF(2, PROT_EXEC, 0), "malloc, memfds" },
	{ P_ALL, SCMP_SYS(mprotect), IF(2, PROT_EXEC, 0), "malloc arenas" },
	{ P_ALL, SCMP_SYS(munmap), ANY, "malloc, memfds" },
	{ P_ALL, SCMP_SYS(mremap), ANY, "realloc" },
	{ P_ALL, SCMP_SYS(madvise), ANY, "free" },
	{ P_ALL, SCMP_SYS(futex), ANY, "locks of libraries" },
	{ P_ALL, SCMP_SYS(membarrier), ANY, "locks of libraries" },
	/* signals and the end */
	{ P_ALL, SCMP_SYS(rt_sigaction), ANY, "event_free of a signal" },
	{ P_ALL, SCMP_SYS(rt_sigprocmask), ANY, "abort, libevent" },
	{ P_ALL, SCMP_SYS(rt_sigreturn), ANY, "end of a handler" },
	{ P_ALL, SCMP_SYS(sigaltstack), ANY, "sanitizer exit" },
	{ P_ALL, SCMP_SYS(exit), ANY, "the end" },
	{ P_ALL, SCMP_SYS(exit_group), ANY, "the end" },
	/* sockets */
	{ P_NET | P_CTL | P_SHIM, SCMP_SYS(accept4), ANY,
	    "connections on a listener it was given" },
	{ P_SOCK | P_SHIM, SCMP_SYS(getsockopt), ANY,
	    "SO_ERROR, peer credentials" },
	{ P_SOCK, SCMP_SYS(setsockopt), ANY, "TCP_NODELAY, keep-alive" },
	{ P_SOCK, SCMP_SYS(getsockname), ANY, "which listener" },
	{ P_SOCK, SCMP_SYS(getpeername), ANY, "who" },
	{ P_SOCK, SCMP_SYS(shutdown), ANY, "orderly close" },
	{ P_FETCH | P_RES, SCMP_SYS(socket),
	    IF2(0, INT32, AF_INET, 1, 0xf, SOCK_STREAM), "dial the hub" },
	{ P_FETCH | P_RES, SCMP_SYS(socket),
	    IF2(0, INT32, AF_INET6, 1, 0xf, SOCK_STREAM), "dial the hub" },
	{ P_FETCH | P_RES, SCMP_SYS(connect), ANY, "dial the hub" },
	/* the resolver: getaddrinfo with any NSS configuration */
	{ P_RES, SCMP_SYS(socket), IF2(0, INT32, AF_INET, 1, 0xf, SOCK_DGRAM),
	    "name servers; address selection" },
	{ P_RES, SCMP_SYS(socket), IF2(0, INT32, AF_INET6, 1, 0xf,
	    SOCK_DGRAM), "name servers; address selection" },
	{ P_RES, SCMP_SYS(socket), IF(0, INT32, AF_UNIX),
	    "nscd, systemd-resolved" },
	{ P_RES, SCMP_SYS(socket), IF(0, INT32, AF_NETLINK),
	    "which address families are there" },
	{ P_RES, SCMP_SYS(bind), ANY, "netlink" },
	{ P_RES, SCMP_SYS(sendmmsg), ANY, "A and AAAA in one call" },
	{ P_RES, SCMP_SYS(ioctl), IF(1, INT32, FIONBIO), "resolver" },
	{ P_RES, SCMP_SYS(openat), IF(2, O_ACCMODE | O_CREAT | O_TRUNC,
	    O_RDONLY), "resolv.conf, hosts, NSS modules" },
	{ P_RES, SCMP_SYS(newfstatat), ANY, "is resolv.conf new" },
	{ P_RES, SCMP_SYS(stat), ANY, "is resolv.conf new" },
	{ P_RES, SCMP_SYS(access), ANY, "NSS modules" },
	{ P_RES, SCMP_SYS(readlink), ANY, "NSS modules" },
	{ P_RES, SCMP_SYS(getdents64), ANY, "NSS modules" },
	{ P_RES, SCMP_SYS(uname), ANY, "own host name" },
	{ P_RES, SCMP_SYS(mmap), ANY, "dlopen of NSS modules" },
	{ P_RES, SCMP_SYS(mprotect), ANY, "dlopen of NSS modules" },
	{ P_RES, SCMP_SYS(epoll_create1), ANY, "its loop" },
	/* the shim: reap, kill, leave the exit record */
	{ P_SHIM, SCMP_SYS(wait4), ANY, "reap the workload" },
	{ P_SHIM, SCMP_SYS(waitid), ANY, "see the leader's end" },
	{ P_SHIM, SCMP_SYS(kill), ANY, "signals to the workload" },
	{ P_SHIM, SCMP_SYS(renameat), ANY, "exit record" },
	{ P_SHIM, SCMP_SYS(renameat2), IF(4, INT32, 0), "exit record" },
	{ P_SHIM, SCMP_SYS(unlinkat), ANY, "own socket, own cgroup" },
	{ P_SCAN, SCMP_SYS(openat), IF(2, O_ACCMODE | O_CREAT | O_TRUNC,
	    O_RDONLY), "/proc, to find what to kill" },
	{ P_SCAN, SCMP_SYS(getdents64), ANY, "/proc" },
	/* the fence: start nft and see its end */
	{ P_FENCE, SCMP_SYS(clone), ANY, "fork" },
	{ P_FENCE, SCMP_SYS(execve), ANY, "nft; Landlock says where" },
	{ P_FENCE, SCMP_SYS(wait4), ANY, "its status" },
	{ P_FENCE, SCMP_SYS(pidfd_open), ANY, "its deadline" },
	{ P_FENCE, SCMP_SYS(kill), ANY, "its deadline" },
	{ P_FENCE, SCMP_SYS(pipe2), ANY, "its stdin and stderr" },
	{ P_FENCE, SCMP_SYS(dup2), ANY, "its descriptors" },
	{ P_FENCE, SCMP_SYS(close_range), ANY, "its descriptors" },
	/* and what nft itself does, which inherits all of this */
	{ P_FENCE, SCMP_SYS(openat), IF(2, O_CREAT | O_TRUNC, 0),
	    "libraries, /dev/null; Landlock says which" },
	{ P_FENCE, SCMP_SYS(newfstatat), ANY, "dynamic linker" },
	{ P_FENCE, SCMP_SYS(access), ANY, "dynamic linker" },
	{ P_FENCE, SCMP_SYS(mmap), ANY, "dynamic linker" },
	{ P_FENCE, SCMP_SYS(mprotect), ANY, "dynamic linker" },
	{ P_FENCE, SCMP_SYS(arch_prctl), ANY, "libc start" },
	{ P_FENCE, SCMP_SYS(set_tid_address), ANY, "libc start" },
	{ P_FENCE, SCMP_SYS(set_robust_list), ANY, "libc start" },
	{ P_FENCE, SCMP_SYS(rseq), ANY, "libc start" },
	{ P_FENCE, SCMP_SYS(prlimit64), ANY, "libc start" },
	{ P_FENCE, SCMP_SYS(socket), IF(0, INT32, AF_NETLINK), "netfilter" },
	{ P_FENCE, SCMP_SYS(bind), ANY, "netlink" },
	{ P_FENCE, SCMP_SYS(sendto), ANY, "netlink" },
	{ P_FENCE, SCMP_SYS(recvfrom), ANY, "netlink" },
	{ P_FENCE, SCMP_SYS(getsockname), ANY, "netlink" },
	{ P_FENCE, SCMP_SYS(setsockopt), ANY, "netlink buffers" },
	{ P_FENCE, SCMP_SYS(getsockopt), ANY, "netlink buffers" },
	{ P_FENCE, SCMP_SYS(pselect6), ANY, "netlink" },
	{ P_FENCE, SCMP_SYS(select), ANY, "netlink" },
};

/* Asked by libc, harmless to refuse: not worth dying for. */
static const struct self_soft {
	int nr;
	int error;
	const char *reason;
} self_soft[] = {
	{ SCMP_SYS(prlimit64), EPERM, "sysconf" },
	{ SCMP_SYS(ioctl), ENOTTY, "isatty of stdio" },
	{ SCMP_SYS(uname), EPERM, "library probes" },
	{ SCMP_SYS(set_robust_list), ENOSYS, "libc" },
	{ SCMP_SYS(rseq), ENOSYS, "libc" },
#ifdef SELF_ASAN
	/* A report must reach the log: its symbolizer, maps file and thread
	 * probes fail instead of killing the process before it is written. */
	{ SCMP_SYS(open), ENOENT, "sanitizer report" },
	{ SCMP_SYS(openat), ENOENT, "sanitizer report" },
	{ SCMP_SYS(readlink), ENOENT, "sanitizer report" },
	{ SCMP_SYS(stat), ENOENT, "sanitizer report" },
	{ SCMP_SYS(newfstatat), ENOENT, "sanitizer report" },
	{ SCMP_SYS(clone), EPERM, "sanitizer symbolizer" },
	{ SCMP_SYS(clone3), ENOSYS, "sanitizer symbolizer" },
	{ SCMP_SYS(pipe), EPERM, "sanitizer symbolizer" },
	{ SCMP_SYS(pipe2), EPERM, "sanitizer symbolizer" },
	{ SCMP_SYS(getrlimit), EPERM, "sanitizer start" },
	{ SCMP_SYS(prctl), EPERM, "sanitizer report" },
#endif
};

/* What a monitor and whatever it starts never needs (EPERM). */
static const struct self_denied {
	int nr;
	const char *reason;
} self_denied[] = {
	{ SCMP_SYS(ptrace), "reading other processes" },
	{ SCMP_SYS(process_vm_readv), "reading other processes" },
	{ SCMP_SYS(process_vm_writev), "writing other processes" },
	{ SCMP_SYS(pidfd_getfd), "stealing descriptors" },
	{ SCMP_SYS(kcmp), "kernel pointers" },
	{ SCMP_SYS(init_module), "kernel code" },
	{ SCMP_SYS(finit_module), "kernel code" },
	{ SCMP_SYS(delete_module), "kernel code" },
	{ SCMP_SYS(kexec_load), "kernel code" },
	{ SCMP_SYS(kexec_file_load), "kernel code" },
	{ SCMP_SYS(bpf), "kernel code" },	/* but see self_deny */
	{ SCMP_SYS(perf_event_open), "reading other processes" },
	{ SCMP_SYS(userfaultfd), "exploit aid" },
	{ SCMP_SYS(io_uring_setup), "goes round this filter" },
	{ SCMP_SYS(io_uring_enter), "goes round this filter" },
	{ SCMP_SYS(io_uring_register), "goes round this filter" },
	{ SCMP_SYS(keyctl), "keyrings of others" },
	{ SCMP_SYS(add_key), "keyrings of others" },
	{ SCMP_SYS(request_key), "keyrings of others" },
	{ SCMP_SYS(reboot), "the machine" },
	{ SCMP_SYS(swapon), "the machine" },
	{ SCMP_SYS(swapoff), "the machine" },
	{ SCMP_SYS(acct), "the machine" },
	{ SCMP_SYS(quotactl), "the machine" },
	{ SCMP_SYS(syslog), "kernel log" },
	{ SCMP_SYS(settimeofday), "the clock" },
	{ SCMP_SYS(clock_settime), "the clock" },
	{ SCMP_SYS(iopl), "ports" },
	{ SCMP_SYS(ioperm), "ports" },
	{ SCMP_SYS(open_by_handle_at), "files outside a mount" },
	{ SCMP_SYS(vhangup), "terminals" },
};

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

static int
self_rule_add(scmp_filter_ctx ctx, const struct self_rule *rule)
{
	struct scmp_arg_cmp cmp[2];
	unsigned int n;

	for (n = 0; n < 2 && rule->cond[n].arg != -1; n++) {
		cmp[n] = (struct scmp_arg_cmp){
			.arg = (unsigned int)rule->cond[n].arg,
			.op = SCMP_CMP_MASKED_EQ,
			.datum_a = rule->cond[n].mask,
			.datum_b = rule->cond[n].value & rule->cond[n].mask,
		};
	}
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, rule->nr, n, cmp);
}

/* libseccomp returns -errno; -EEXIST is a row said twice: no harm. */
static int
self_seccomp_err(int rc)
{
	if (rc == 0 || rc == -EEXIST)
		return CL_OK;
	errno = -rc;
	return rc == -ENOMEM ? CL_NOMEM : CL_SYSTEM;
}

/* Does a rule without conditions allow this call to the process? */
static int
self_rule_is_free(unsigned int who, int nr)
{
	size_t i;

	for (i = 0; i < NELEM(self_rules); i++)
		if ((self_rules[i].who & who) != 0 && self_rules[i].nr == nr &&
		    self_rules[i].cond[0].arg == -1)
			return 1;
	return 0;
}

static int
self_rule_has(unsigned int who, int nr)
{
	size_t i;

	for (i = 0; i < NELEM(self_rules); i++)
		if ((self_rules[i].who & who) != 0 && self_rules[i].nr == nr)
			return 1;
	return 0;
}

/*
 * abort() signals the own process; anything else is nobody's business.
 */
static int
self_rule_add_abort(scmp_filter_ctx ctx, uint32_t pid)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
	    SCMP_A0_64(SCMP_CMP_MASKED_EQ, INT32, pid));
}

/*
 * A soft row gives way to any allowing row of the same call: libseccomp
 * would let the unconditional one win.  ioctl is the exception that needs
 * both; there the condition is negated instead.
 */
static int
self_soft_add(scmp_filter_ctx ctx, unsigned int who,
    const struct self_soft *soft)
{
	if (soft->nr == SCMP_SYS(ioctl))
		return seccomp_rule_add(ctx,
		    SCMP_ACT_ERRNO((uint32_t)soft->error), soft->nr, 1,
		    SCMP_A1_64(SCMP_CMP_MASKED_EQ, INT32, TCGETS));
	if (self_rule_has(who, soft->nr))
		return 0;
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)soft->error),
	    soft->nr, 0);
}

static int
self_rules_add(scmp_filter_ctx ctx, unsigned int who, uint32_t pid)
{
	const struct self_rule *rule;
	size_t i;
	int rc;

	for (i = 0; i < NELEM(self_rules); i++) {
		rule = &self_rules[i];
		if ((rule->who & who) == 0)
			continue;
		/* A free row of the same call makes a conditional one moot,
		 * and libseccomp would refuse the pair. */
		if (rule->cond[0].arg != -1 &&
		    self_rule_is_free(who, rule->nr))
			continue;
		rc = self_rule_add(ctx, rule);
		if (rc != 0 && rc != -EEXIST)
			return rc;
	}
	if ((rc = self_rule_add_abort(ctx, pid)) != 0)
		return rc;
	if ((who & P_SOFT) != 0)
		return 0;	/* EPERM is its default already */
	for (i = 0; i < NELEM(self_soft); i++) {
		rc = self_soft_add(ctx, who, &self_soft[i]);
		if (rc != 0 && rc != -EEXIST)
			return rc;
	}
	return 0;
}

static scmp_filter_ctx
self_profile_new(enum self_profile p, uint32_t pid, int *rcp)
{
	scmp_filter_ctx ctx;
	uint32_t act;
	int rc;

	act = (1U << p & P_SOFT) != 0 ? SCMP_ACT_ERRNO(EPERM) :
	    SCMP_ACT_KILL_PROCESS;
	if ((ctx = seccomp_init(act)) == NULL) {
		*rcp = -ENOMEM;
		return NULL;
	}
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = self_rules_add(ctx, 1U << p, pid);
	*rcp = rc;
	return ctx;
}

int
self_profile_start(enum self_profile p)
{
	scmp_filter_ctx ctx;
	int rc;

	ctx = self_profile_new(p, (uint32_t)getpid(), &rc);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return self_seccomp_err(rc);
}

int
self_profile_make(enum self_profile p, struct sock_fprog *prog)
{
	scmp_filter_ctx ctx;
	int r, rc;

	ctx = self_profile_new(p, BPF_OWN_PID, &rc);
	r = rc == 0 ? bpf_export(ctx, prog) : self_seccomp_err(rc);
	seccomp_release(ctx);
	return r;
}

/*
 * A device's shims, which inherit this, put a packet filter on the cgroup of
 * a git job (cgroup_net.c): that takes these two calls of bpf(2).
 */
static int
self_deny_bpf(scmp_filter_ctx ctx)
{
	static const struct scmp_arg_cmp others[] = {
		{ 0, SCMP_CMP_LT, BPF_PROG_LOAD, 0 },
		{ 0, SCMP_CMP_EQ, BPF_OBJ_PIN, 0 },
		{ 0, SCMP_CMP_EQ, BPF_OBJ_GET, 0 },
		{ 0, SCMP_CMP_GT, BPF_PROG_ATTACH, 0 },
	};
	const uint32_t action = SCMP_ACT_ERRNO(EPERM);
	size_t i;
	int rc = 0;

	for (i = 0; i < NELEM(others) && rc == 0; i++)
		rc = seccomp_rule_add_array(ctx, action, SCMP_SYS(bpf), 1,
		    &others[i]);
	return rc;
}

static int
self_deny(scmp_filter_ctx ctx, int nr, enum self_monitor which)
{
	if (nr == SCMP_SYS(bpf) && (which == SELF_MONITOR_DEVICE_SHIMS ||
	    which == SELF_MONITOR_SHIMS))
		return self_deny_bpf(ctx);
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), nr, 0);
}

/*
 * A hub's children hold files of others: what fills the disk by one call is
 * not theirs, whoever they have become.  A device's run workloads.
 */
static int
self_deny_growth(scmp_filter_ctx ctx, enum self_monitor which)
{
	if (which != SELF_MONITOR_HUB)
		return 0;
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM),
	    SCMP_SYS(fallocate), 1, SCMP_A1(SCMP_CMP_NE,
	    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0));
}

int
self_profile_start_monitor(enum self_monitor which)
{
	scmp_filter_ctx ctx;
	size_t i;
	int rc = 0;

	if ((ctx = seccomp_init(SCMP_ACT_ALLOW)) == NULL)
		return CL_NOMEM;
	for (i = 0; i < NELEM(self_denied) && rc == 0; i++)
		rc = self_deny(ctx, self_denied[i].nr, which);
	if (rc == 0)
		rc = self_deny_growth(ctx, which);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	/* Children and workloads inherit this: a 32-bit program must still
	 * run, its dangerous calls are refused by the workload's filter. */
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
		    SCMP_ACT_ALLOW);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return self_seccomp_err(rc);
}
