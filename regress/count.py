#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""make count: lines of the files named, by folder, comments and licences
counted, and how long their functions are.

A function is what stands between a brace in the first column that follows its
name, as KNF has it, and the next one that closes there.
"""
import re
import statistics
import sys
from collections import Counter

NAME = re.compile(r"^([a-z_][A-Za-z0-9_]*)\(")


def functions(lines):
    """(lines, name) of each."""
    name = began = None
    for number, line in enumerate(lines, 1):
        match = NAME.match(line)
        if match and began is None:
            name = match.group(1)
        elif line == "{" and name:
            began = number
        elif line.startswith("}"):
            if began is not None:
                yield number - began - 1, name
            name = began = None


def main():
    folders, found = Counter(), []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
        parts = path.split("/")[:-1]
        for depth in range(len(parts) + 1):
            folders["/".join(parts[:depth])] += len(lines)
        found += [(*f, path) for f in functions(lines)]
    for folder in sorted(filter(None, folders)):
        print("%s%-*s %6d" % ("    " * folder.count("/"),
                              24 - 4 * folder.count("/"), folder,
                              folders[folder]))
    print("%-24s %6d" % ("in all", folders[""]))
    length, name, path = max(found)
    print("%d functions: median %d lines, longest %d (%s, %s)" % (
        len(found), statistics.median(f[0] for f in found), length, name,
        path))


if __name__ == "__main__":
    main()
