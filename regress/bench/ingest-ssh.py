#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Sends a text through many ssh connections at once.

usage: ingest-ssh.py COUNT TEXT OUT SSHD_PID MEASURE SSH...

All connections stand before the clock starts.  Prints "SECONDS CPU": until
the last has ended, and the CPU time of sshd and all below it meanwhile.
"""
import os
import subprocess
import sys
import time

count, text, out, sshd, measure, *ssh = sys.argv[1:]
count = int(count)


def cpu():
    done = subprocess.run([measure, "cputree", sshd], check=True,
                          capture_output=True)
    return float(done.stdout)


def connect(number):
    """An ssh whose input is a pipe, once the other side has answered."""
    there, here = os.pipe()
    process = subprocess.Popen(
        ssh + ["echo up; exec cat >%s/%d" % (out, number)], stdin=there,
        stdout=subprocess.PIPE)
    os.close(there)
    if process.stdout.readline() != b"up\n":
        sys.exit("connection %d does not come up" % number)
    return process, here


links = [connect(i) for i in range(count)]
before, start = cpu(), time.monotonic()
for _, pipe in links:
    with open(text, "rb") as file:
        subprocess.Popen(["cat"], stdin=file, stdout=pipe)
    os.close(pipe)
if any([process.wait() for process, _ in links]):
    sys.exit("an ssh connection failed")
seconds = time.monotonic() - start
print("%.6f %.6f" % (seconds, cpu() - before))
