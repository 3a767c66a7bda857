/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Named places where the tests may end a process.  Nothing at all but in
 * the tree of objects build/hooks, which is only made for regress/torture;
 * there see regress/hooks/crash.c.
 */
#ifndef CLOOP_CRASH_H
#define CLOOP_CRASH_H

#ifdef CLOOP_TEST_HOOKS
void crash_point(const char *name);
#define CRASH_POINT(name) crash_point(name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
