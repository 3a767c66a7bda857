#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Runs a command once for each line of standard input, {} replaced by it, and
prints the median and the 99th percentile of what they took, in ms."""
import subprocess
import sys
import time

took = []
for line in sys.stdin:
    argv = [a.replace("{}", line.strip()) for a in sys.argv[1:]]
    began = time.monotonic()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    took.append((time.monotonic() - began) * 1e3)
    if done.returncode != 0:
        sys.exit("%s: status %d: %s" % (argv, done.returncode, done.stdout))
took.sort()
print("%.3f %.3f" % (took[len(took) // 2], took[-1 - len(took) // 100]))
