/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The USB inventory from sysfs.  The strings come out of the firmware of
 * whatever was plugged in: cut, stripped of control characters here at the
 * source, and an entry that breaks a rule is left out by itself.  Everything
 * is bounded: devices, strings, interface nodes, depth.
 */
#include <sys/stat.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/limits.h"
#include "common/base/utf8.h"
#include "common/base/xmem.h"
#include "common/model/caps.h"
#include "caps_detect.h"

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
