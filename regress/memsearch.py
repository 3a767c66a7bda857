#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""usage: memsearch.py TEXT PID...

Where TEXT is in the writable memory or the memfds of these processes, a line
each.  Exit status 2 when a process cannot be read."""
import os
import re
import sys


def search_memory(pid, text):
    with open("/proc/%s/maps" % pid) as maps, \
            open("/proc/%s/mem" % pid, "rb", 0) as mem:
        for line in maps:
            begin, end, mode = re.match(
                r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            size = int(end, 16) - int(begin, 16)
            # A sanitizer's shadow is a map of terabytes, not of data.
            if not mode.startswith("rw") or "[v" in line or size > 1 << 30:
                continue
            try:
                mem.seek(int(begin, 16))
                data = mem.read(size)
            except (OSError, ValueError, OverflowError):
                continue
            if text in data:
                yield "memory " + line.split()[-1]


def search_memfds(pid, text):
    for fd in os.listdir("/proc/%s/fd" % pid):
        path = "/proc/%s/fd/%s" % (pid, fd)
        try:
            if os.readlink(path).startswith("/memfd:"):
                with open(path, "rb") as file:
                    if text in file.read():
                        yield "memfd " + fd
        except OSError:
            continue


def main():
    text = sys.argv[1].encode()
    try:
        for pid in sys.argv[2:]:
            with open("/proc/%s/comm" % pid) as file:
                comm = file.read().strip()
            for search in search_memory, search_memfds:
                for hit in search(pid, text):
                    print(comm, pid, hit)
    except OSError as error:
        print(error)
        sys.exit(2)


main()
