#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Fuzzes by processor time: make fuzz CPU=600 [LTESTS=name].

usage: soak.py [-j N] [-s SLICE] -c SECONDS -d DIR TARGET...

Each target runs until it has used so many CPU seconds, in slices, so that
all of them have had their share whenever one stops.  What DIR holds is
continued: NAME/ the inputs found, NAME.stat the CPU seconds, runs and last
figures, crash-NAME-* what broke.  A target that broke is left alone until
its crash file is gone.  Exit code 1: something broke.
"""
import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TICK = os.sysconf("SC_CLK_TCK")
STATUS = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)")
RUNS = re.compile(r"stat::number_of_executed_units: +(\d+)")
# Wall time means nothing here: the machine may be busy, and who measures
# stops us.  One input that takes this long hangs all the same.
TARGET_FLAGS = ["-timeout=900", "-report_slow_units=900",
                "-rss_limit_mb=2048", "-print_final_stats=1"]


def cpu_seconds(pid):
    """User and system time of a process; None when it is gone."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return (int(fields[11]) + int(fields[12])) / TICK


class Target:
    """One target: its share so far, and how to give it another slice."""

    def __init__(self, path, directory):
        self.path = path
        self.name = os.path.basename(path).removeprefix("fuzz_")
        self.dir = directory
        self.corpus = os.path.join(directory, self.name)
        self.cpu, self.runs, self.line = 0.0, 0, "-"
        os.makedirs(self.corpus, exist_ok=True)
        try:
            with open(self.stat(), encoding="ascii") as f:
                cpu, runs, self.line = f.read().strip().split(" ", 2)
                self.cpu, self.runs = float(cpu), int(runs)
        except (OSError, ValueError):
            pass

    def stat(self):
        return os.path.join(self.dir, self.name + ".stat")

    def crashes(self):
        # A slow unit may be one that slept with us (SIGSTOP).
        prefix = "crash-%s-" % self.name
        return [n for n in os.listdir(self.dir)
                if n.startswith(prefix) and "-slow-unit-" not in n]

    def start(self, log):
        seeds = os.path.join(TOP, "regress", "corpus", self.name)
        artifact = os.path.join(self.dir, "crash-%s-" % self.name)
        argv = [self.path, "-artifact_prefix=" + artifact,
                *TARGET_FLAGS, self.corpus]
        if os.path.isdir(seeds):
            argv.append(seeds)
        dictionary = os.path.join(TOP, "regress", "fuzz", "dict", self.name)
        if os.path.exists(dictionary):
            argv.insert(1, "-dict=" + dictionary)
        return subprocess.Popen(argv, stdout=log, stderr=log,
                                stdin=subprocess.DEVNULL)

    def run_slice(self, seconds):
        """Let it use so many more CPU seconds; False when it broke."""
        path = os.path.join(self.dir, self.name + ".log")
        used = 0.0
        with open(path, "wb") as log:
            proc = self.start(log)
            while True:
                now = cpu_seconds(proc.pid)
                if now is None:
                    break
                used = now
                if used >= seconds:
                    # The first one ends it with its final figures.
                    proc.send_signal(signal.SIGINT)
                    try:
                        proc.wait(60)
                    except subprocess.TimeoutExpired:
                        proc.kill()
                    break
                time.sleep(min(1.0, max(0.1, seconds - used)))
            proc.wait()
        self.read_log(path, used)
        return not self.crashes()

    def read_log(self, path, used):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        found = STATUS.findall(text)
        if found:
            self.line = "cov %s ft %s corpus %s/%s" % found[-1]
        done = RUNS.search(text)
        self.cpu += used
        self.runs += int(done.group(1)) if done else 0
        with open(self.stat(), "w", encoding="ascii") as f:
            f.write("%.1f %d %s\n" % (self.cpu, self.runs, self.line))

    def report(self):
        print("  FUZZ    %-16s %6.1f CPU s, %d runs, %s" %
              (self.name, self.cpu, self.runs, self.line), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-j", type=int, default=2)
    p.add_argument("-s", type=float, default=100)
    p.add_argument("-c", type=float, required=True)
    p.add_argument("-d", required=True)
    p.add_argument("targets", nargs="+")
    args = p.parse_args()
    os.makedirs(args.d, exist_ok=True)
    targets = [Target(t, args.d) for t in args.targets]
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        while True:
            todo = [t for t in targets
                    if t.cpu < args.c and not t.crashes()]
            if not todo:
                break
            list(pool.map(lambda t: t.run_slice(
                min(args.s, args.c - t.cpu + 0.1)), todo))
            print("  ROUND   %d left, at %s" % (len(todo),
                  time.strftime("%H:%M:%S")), flush=True)
    broken = 0
    for t in targets:
        t.report()
        for name in t.crashes():
            broken = 1
            print("  BROKE   %s" % os.path.join(args.d, name))
    return broken


if __name__ == "__main__":
    sys.exit(main())
