/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Does a virtual machine really start here?  There are machines whose
 * /dev/kvm opens and answers its version, and whose guests never run; a
 * report of "virtualization" would send work to its death.  So a child
 * process without descriptors or privileges of its own runs a guest of two
 * instructions, and the monitor waits for it for at most a second.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/kvm.h>

#include "common/base/util.h"
#include "caps_detect.h"

#define KVM_PROBE_MS 1000
#define KVM_GUEST_LEN 4096
#define KVM_API 12		/* the only version since 2.6.22 */

#if defined(__x86_64__)
/* Real mode: out %al,$0x10; hlt. */
static const unsigned char caps_kvm_guest[] = { 0xe6, 0x10, 0xf4 };

static int
caps_kvm_set_registers(int vcpu_fd)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs;

	if (ioctl(vcpu_fd, KVM_GET_SREGS, &sregs) == -1)
		return -1;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	memset(&regs, 0, sizeof(regs));
	regs.rflags = 2;	/* the bit that is always set */
	if (ioctl(vcpu_fd, KVM_SET_SREGS, &sregs) == -1)
		return -1;
	return ioctl(vcpu_fd, KVM_SET_REGS, &regs);
}

/* 0 when the guest wrote to the port and then halted. */
static int
caps_kvm_run(int kvm_fd, int vm_fd)
{
	struct kvm_userspace_memory_region region;
	struct kvm_run *run;
	void *mem;
	int vcpu_fd, len;

	mem = mmap(NULL, KVM_GUEST_LEN, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -1;
	memcpy(mem, caps_kvm_guest, sizeof(caps_kvm_guest));
	memset(&region, 0, sizeof(region));
	region.memory_size = KVM_GUEST_LEN;
	region.userspace_addr = (uintptr_t)mem;
	if (ioctl(vm_fd, KVM_SET_USER_MEMORY_REGION, &region) == -1 ||
	    (vcpu_fd = ioctl(vm_fd, KVM_CREATE_VCPU, 0)) == -1 ||
	    (len = ioctl(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0)) <= 0 ||
	    caps_kvm_set_registers(vcpu_fd) == -1)
		return -1;
	run = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_SHARED,
	    vcpu_fd, 0);
	if (run == MAP_FAILED)
		return -1;
	if (ioctl(vcpu_fd, KVM_RUN, 0) == -1 ||
	    run->exit_reason != KVM_EXIT_IO || run->io.port != 0x10)
		return -1;
	if (ioctl(vcpu_fd, KVM_RUN, 0) == -1 ||
	    run->exit_reason != KVM_EXIT_HLT)
		return -1;
	return 0;
}
#else
/* No guest code for this architecture yet: that a machine can be made has
 * to do. */
static int
caps_kvm_run(int kvm_fd, int vm_fd)
{
	(void)vm_fd;
	return ioctl(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0) > 0 ? 0 : -1;
}
#endif

/* In the child.  It shares nothing with us but its exit status. */
static int
caps_kvm_probe(int kvm_fd)
{
	int vm_fd;

	if (ioctl(kvm_fd, KVM_GET_API_VERSION, 0) != KVM_API ||
	    (vm_fd = ioctl(kvm_fd, KVM_CREATE_VM, 0)) == -1)
		return 1;
	return caps_kvm_run(kvm_fd, vm_fd) == 0 ? 0 : 1;
}

/* Wait for the child until the deadline, then end it. */
static int
caps_kvm_wait(pid_t pid)
{
	struct pollfd pfd = { .events = POLLIN };
	int status = 1, n = 0;

	pfd.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pfd.fd != -1) {
		do
			n = poll(&pfd, 1, KVM_PROBE_MS);
		while (n == -1 && errno == EINTR);
		close(pfd.fd);
	}
	if (n != 1)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int
caps_detect_kvm(const char *device)
{
	pid_t pid;
	int fd, works = 0;

	/* Opened, never stat'ed: the usual failure is a permission one. */
	if ((fd = open(device, O_RDWR | O_CLOEXEC | O_NONBLOCK)) == -1)
		return 0;
	if ((pid = fork()) == 0)
		_exit(caps_kvm_probe(fd));
	if (pid > 0)
		works = caps_kvm_wait(pid);
	close(fd);
	return works;
}
