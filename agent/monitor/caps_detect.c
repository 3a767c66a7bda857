/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What this device tells the hub about itself.  Runs in the device monitor;
 * looks at its own machine only.  A capability whose feature this build does
 * not have is false with an issue text, whatever the machine could do: the
 * hub dispatches by what is said here.
 *
 * KVM: there are machines whose /dev/kvm opens and answers its version, and
 * whose guests never run; a report of "virtualization" would send work to its
 * death.  So a child process without descriptors or privileges of its own
 * runs a guest of two instructions, and the monitor waits for it for at most
 * a second.
 *
 * USB, from sysfs: the strings come out of the firmware of whatever was
 * plugged in: cut, stripped of control characters here at the source, and an
 * entry that breaks a rule is left out by itself.  Everything is bounded:
 * devices, strings, interface nodes, depth.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include <linux/kvm.h>

#include "caps_detect.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/caps.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"
#include "work.h"

/* -------------------------------------------------------------- the machine */

/* Go's spelling of what we were built for. */
#if defined(__x86_64__)
#define CAPS_ARCH "amd64"
#elif defined(__aarch64__)
#define CAPS_ARCH "arm64"
#elif defined(__arm__)
#define CAPS_ARCH "arm"
#elif defined(__i386__)
#define CAPS_ARCH "386"
#elif defined(__riscv)
#define CAPS_ARCH "riscv64"
#else
#error "name this architecture in Go's spelling"
#endif

/* MemTotal in MiB; 0 when it cannot be read. */
static int64_t
caps_load_memory(void)
{
	static const char key[] = "MemTotal:";
	char line[256];
	int64_t kb = 0;
	FILE *fp;

	if ((fp = fopen("/proc/meminfo", "re")) == NULL)
		return 0;
	while (kb == 0 && fgets(line, sizeof(line), fp) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoll(line + strlen(key), NULL, 10);
	fclose(fp);
	return kb > 0 ? kb / 1024 : 0;
}

static void
caps_detect_host(struct caps *c)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	c->os = xstrdup("linux");
	c->arch = xstrdup(CAPS_ARCH);
	c->cpus = n > 0 ? n : 1;
	c->memory_mb = caps_load_memory();
}

/* ------------------------------------------------------------------ a guest */

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

/* ---------------------------------------------------------------------- USB */

#define USB_MAX_STRING 128	/* characters of one string */
#define USB_MAX_NODES 16
#define USB_MAX_DEPTH 6
#define USB_MAX_ENTRIES 4096	/* names looked at per device: a fixture or a
				 * broken tree does not hold us up */

/* 1-2, 1-2.3, … */
static int
caps_usb_is_port(const char *s)
{
	size_t n = strspn(s, "0123456789");

	if (n == 0 || s[n] != '-')
		return 0;
	for (s += n + 1;; s += n + 1) {
		if ((n = strspn(s, "0123456789")) == 0)
			return 0;
		if (s[n] == '\0')
			return 1;
		if (s[n] != '.')
			return 0;
	}
}

/* One attribute, first line, cleaned; NULL when absent or empty. */
static char *
caps_usb_load(int dir_fd, const char *name)
{
	char text[4 * USB_MAX_STRING + 1], *end, *p, *o;
	ssize_t n;
	int fd;

	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return NULL;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	if ((end = strchr(text, '\n')) != NULL)
		*end = '\0';
	for (p = o = text; *p != '\0'; p++)
		if ((unsigned char)*p >= ' ' && *p != 0x7f)
			*o++ = *p;
	*o = '\0';
	if (o - text > USB_MAX_STRING)
		text[utf8_cut(text, USB_MAX_STRING)] = '\0';
	for (o = text + strlen(text); o > text && o[-1] == ' '; )
		*--o = '\0';
	p = text + strspn(text, " ");
	if (*p == '\0' || !utf8_is_valid(p, strlen(p)))
		return NULL;
	return xstrdup(p);
}

static int64_t
caps_usb_load_number(int dir_fd, const char *name)
{
	char *text = caps_usb_load(dir_fd, name);
	const char *why;
	int64_t v = 0;

	if (text != NULL)
		v = strtonum(text, 1, 999, &why);
	free(text);
	return v;
}

/* The device node and who may open it. */
static void
caps_usb_load_node(struct caps_usb *u, const char *dev)
{
	struct group *gr;
	struct stat st;
	char *path;

	xasprintf(&path, "%s/bus/usb/%03d/%03d", dev, (int)u->bus,
	    (int)u->dev);
	if (stat(path, &st) == 0) {
		xasprintf(&u->mode, "%04o", (unsigned int)(st.st_mode & 0777));
		u->uid.v = st.st_uid;
		u->gid.v = st.st_gid;
		u->uid.set = u->gid.set = 1;
		if ((gr = getgrgid(st.st_gid)) != NULL)
			u->group = xstrdup(gr->gr_name);
	}
	xasprintf(&u->node, "/dev/bus/usb/%03d/%03d", (int)u->bus,
	    (int)u->dev);
	free(path);
}

/* The name of the directory a `subsystem` link points to. */
static char *
caps_usb_load_subsystem(int dir_fd)
{
	char target[1024], *slash;
	ssize_t n;

	n = readlinkat(dir_fd, "subsystem", target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return xstrdup(slash == NULL ? target : slash + 1);
}

static void
caps_usb_put_node(struct caps_usb *u, int dir_fd)
{
	char text[4096], *p, *name;
	ssize_t n;
	int fd;

	fd = openat(dir_fd, "uevent", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (p = text; (name = strsep(&p, "\n")) != NULL; )
		if (strncmp(name, "DEVNAME=", 8) == 0)
			break;
	/* The device's own node is reported as `node`. */
	if (name == NULL || strncmp(name + 8, "bus/usb/", 8) == 0 ||
	    u->nnodes == USB_MAX_NODES ||
	    name[8 + strspn(name + 8, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.:-")] != '\0' ||
	    strstr(name, "..") != NULL)
		return;
	u->nodes = xreallocarray(u->nodes, u->nnodes + 1, sizeof(*u->nodes));
	xasprintf(&u->nodes[u->nnodes].path, "/dev/%s", name + 8);
	u->nodes[u->nnodes++].subsystem = caps_usb_load_subsystem(dir_fd);
}

/* Directories below the device, links not followed. */
static void
caps_usb_walk(struct caps_usb *u, int dir_fd, int depth, int *leftp)
{
	struct dirent *e;
	DIR *d;
	int fd;

	if ((fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC)) == -1)
		return;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL && (*leftp)-- > 0) {
		/* A hub's children are devices of their own. */
		if (*e->d_name == '.' || caps_usb_is_port(e->d_name))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY |
		    O_NOFOLLOW | O_CLOEXEC);
		if (fd == -1)
			continue;
		caps_usb_put_node(u, fd);
		if (depth < USB_MAX_DEPTH)
			caps_usb_walk(u, fd, depth + 1, leftp);
		close(fd);
	}
	closedir(d);
}

static void
caps_usb_load_device(struct caps_usb *u, int dir_fd, const char *port,
    const char *dev)
{
	int left = USB_MAX_ENTRIES;

	u->port = xstrdup(port);
	u->bus = caps_usb_load_number(dir_fd, "busnum");
	u->dev = caps_usb_load_number(dir_fd, "devnum");
	u->vendor_id = caps_usb_load(dir_fd, "idVendor");
	u->product_id = caps_usb_load(dir_fd, "idProduct");
	u->manufacturer = caps_usb_load(dir_fd, "manufacturer");
	u->product = caps_usb_load(dir_fd, "product");
	u->serial = caps_usb_load(dir_fd, "serial");
	u->class = caps_usb_load(dir_fd, "bDeviceClass");
	u->speed = caps_usb_load(dir_fd, "speed");
	caps_usb_load_node(u, dev);
	caps_usb_walk(u, dir_fd, 1, &left);
}

static int
caps_usb_compare(const void *a, const void *b)
{
	const struct caps_usb *x = a, *y = b;

	return strcmp(x->port, y->port);
}

void
caps_detect_usb(struct caps *c, const char *sysfs, const char *dev)
{
	struct dirent *e;
	char *path;
	DIR *d;
	int fd;

	xasprintf(&path, "%s/bus/usb/devices", sysfs);
	d = opendir(path);
	free(path);
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL &&
	    c->nusb_devices < MAX_USB_DEVICES) {
		if (!caps_usb_is_port(e->d_name))
			continue;
		/* An entry of this directory is a link to the device. */
		fd = openat(dirfd(d), e->d_name,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd == -1)
			continue;
		c->usb_devices = xreallocarray(c->usb_devices,
		    c->nusb_devices + 1, sizeof(*c->usb_devices));
		memset(&c->usb_devices[c->nusb_devices], 0,
		    sizeof(*c->usb_devices));
		caps_usb_load_device(&c->usb_devices[c->nusb_devices++], fd,
		    e->d_name, dev);
		close(fd);
	}
	closedir(d);
	if (c->nusb_devices > 1)
		qsort(c->usb_devices, c->nusb_devices,
		    sizeof(*c->usb_devices), caps_usb_compare);
	caps_clean(c);
}

/* --------------------------------------------------------------- the report */

#define CAPS_KVM_KEEP_MS (10 * 60 * 1000)

static const char *const caps_harness_names[] = {
	"claude", "codex", "gemini", "cloop", NULL
};

/* The names of the list that are programs on the agent's PATH. */
static void
caps_detect_programs(const struct environment *env, const char *const *names,
    char ***vp, size_t *np)
{
	char path[4096];
	size_t i;

	for (i = 0; names[i] != NULL; i++) {
		if (!environment_find_program(env, names[i], path,
		    sizeof(path)))
			continue;
		*vp = xreallocarray(*vp, *np + 1, sizeof(**vp));
		(*vp)[(*np)++] = xstrdup(names[i]);
	}
}

static void
caps_put_label(struct caps *c, const char *label)
{
	const char *eq = strchr(label, '='), *end;
	struct field_pair *pair;
	char *key, *value;
	size_t i;

	if (eq == NULL)
		return;		/* the configuration takes none such */
	/* Both sides are trimmed; a later one wins. */
	label += strspn(label, " \t");
	for (end = eq; end > label && strchr(" \t", end[-1]) != NULL; end--)
		;
	key = xstrndup(label, (size_t)(end - label));
	eq += 1 + strspn(eq + 1, " \t");
	for (end = eq + strlen(eq); end > eq && strchr(" \t", end[-1]) != NULL;
	    end--)
		;
	value = xstrndup(eq, (size_t)(end - eq));
	for (i = 0; i < c->nlabels; i++)
		if (strcmp(c->labels[i].key, key) == 0)
			break;
	if (i == c->nlabels) {
		c->labels = xreallocarray(c->labels, i + 1,
		    sizeof(*c->labels));
		c->nlabels++;
	} else {
		free(c->labels[i].key);
		free(c->labels[i].value);
	}
	pair = &c->labels[i];
	pair->key = key;
	pair->value = value;
}

static void
caps_detect_labels(const struct agentd *a, struct caps *c)
{
	size_t i;

	for (i = 0; i < a->conf.labels.n; i++)
		caps_put_label(c, a->conf.labels.v[i]);
	if (c->nlabels > 0)
		field_sort_map(c->labels, c->nlabels);
}

/*
 * Features that this build does not have.  Engines and OCI runtimes are not
 * listed either: container starts are refused (start_check_support).
 */
static void
caps_put_missing(const struct agentd *a, struct caps *c)
{
	c->packet_filter_issue = xstrdup(
	    a->conf.packet_filter == FEATURE_NO ?
	    "switched off on the device (PacketFilter no)" :
	    "this agent has no packet filter support yet");
	c->denial_log_issue = xstrdup("it needs the packet filter");
	c->forwarded_usb_issue = xstrdup(a->conf.forward_usb == FEATURE_NO ?
	    "switched off on the device (ForwardUSB no)" :
	    "this agent cannot attach forwarded USB devices yet");
	c->forwarded_l2_issue = xstrdup(a->conf.forward_l2 == FEATURE_NO ?
	    "switched off on the device (ForwardL2 no)" :
	    "this agent cannot hand over forwarded interfaces yet");
	c->remote_upgrade_issue = xstrdup(
	    a->conf.update_channel == CHANNEL_NONE ?
	    "switched off on the device (UpdateChannel none)" :
	    "this agent cannot upgrade itself yet: upgrade its package");
}

/*
 * Not at every question: a machine on which the probe runs into its deadline
 * would let the hub stop us for a second as often as it likes to ask.
 */
static int
caps_has_kvm(struct agentd *a)
{
	int64_t now = util_now_ms();

	if (a->kvm_at == 0 || now - a->kvm_at > CAPS_KVM_KEEP_MS) {
		a->has_kvm = caps_detect_kvm("/dev/kvm");
		a->kvm_at = now;
	}
	return a->has_kvm;
}

void
caps_detect(struct agentd *a, struct caps *c)
{
	char git[MAX_PATH_LEN + 1], helper[MAX_PATH_LEN + 1];
	struct environment env;

	caps_init(c);
	environment_init(&env, getenv("PATH"), a->work_home);
	caps_detect_host(c);
	caps_detect_programs(&env, caps_harness_names, &c->harnesses,
	    &c->nharnesses);
	c->workdir_root = xstrdup(a->root.path);
	c->max_concurrent = a->max_concurrent;
	c->virtualization = caps_has_kvm(a);
	caps_detect_usb(c, "/sys", "/dev");
	/* All three are git; the helper that runs it comes with us. */
	c->workspace_provisioning = c->write_back = c->branch_bundles =
	    work_find_git(a, git, sizeof(git)) &&
	    spawn_find_program("cloop-git", helper, sizeof(helper)) == 0;
	caps_detect_labels(a, c);
	c->update_channel = xstrdup(a->conf.update_channel == CHANNEL_EDGE ?
	    "edge" : "stable");
	caps_put_missing(a, c);
	environment_clear(&env);
}
