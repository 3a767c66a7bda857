#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""How long it is from a line of one log to a line of another.

watch.py LOG FROM LOG TO: says "ready", waits for a new line of the first
that matches FROM, then for a new one of the second that matches TO, looking
a thousand times a second.  Prints the seconds between.
"""

import os
import re
import sys
import time

limit = time.monotonic() + 120


def until(log, pattern):
    rest = ""
    while time.monotonic() < limit:
        rest += log.read()
        if re.search(pattern, rest):
            return time.monotonic()
        time.sleep(0.001)
    sys.exit("no line matches " + pattern)


with open(sys.argv[1], encoding="utf-8", errors="replace") as first, \
        open(sys.argv[3], encoding="utf-8", errors="replace") as second:
    first.seek(0, os.SEEK_END)
    second.seek(0, os.SEEK_END)
    print("ready", flush=True)
    start = until(first, sys.argv[2])
    print("%.6f" % (until(second, sys.argv[4]) - start))
