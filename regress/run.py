#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Runs the tests of both build trees and sums them up in one line.

usage: run.py [-v] [-b TREE]... [-j JOBS] [-o TEXT]...
	[unit] [fuzz] [regress] [peer]

Every test speaks TAP; a file gets one line here, a failed point its
diagnostics, a skipped one its reason before the closing line.  Areas and
exceptions of the peer suite stand in regress/peer-areas.

Most tests wait more than they compute, so JOBS of them (one per core) run
side by side, each with a /dev/shm of its own; never the same one of both
trees.  A script with the line `alone=yes` measures or fills the machine and
has it for itself.

A script with the line `expected="CAUSE"` shows a fault that stands: its points
fail and count as skipped, for that cause; `expected_2="CAUSE"` says so of its
second point only.  One that passes is a failure: the line has to go; so is a
script that ends before its time.
"""
import argparse
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
LIMITS = {"unit": 120, "fuzz": 300, "regress": 600, "peer": 1800}
if "CLOOP_CUTS" in os.environ:          # the slow tier
    LIMITS["regress"] = 7200
# Lease directories lie in /dev/shm: each test sees only its own.
OWN_SHM = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
           'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"', "sh"]
POINT = re.compile(r"(not )?ok \d+(?: - (.*?))?(?: # SKIP (.*))?$")
LIVE = set()                            # processes of running tests
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(code, text):
    return "\033[%sm%s\033[0m" % (code, text) if COLOUR else text


class Result:
    """What one file, or all of them, came to."""

    def __init__(self):
        self.passed = self.failed = self.skipped = self.seen = 0
        self.reasons, self.trouble, self.notes = Counter(), [], []

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += other.reasons

    def fail(self, text, details=()):
        self.failed += 1
        self.trouble.append([text, *details])

    def skip(self, reason):
        self.skipped += 1
        self.reasons[reason] += 1

    def line(self):
        return "%d passed, %d failed, %d skipped" % (
            self.passed, self.failed, self.skipped)


class Exceptions:
    """Points that are known to fail, each with the reason."""

    def __init__(self, by_text=(), by_number=None):
        self.by_text, self.by_number = by_text, by_number or {}

    def __bool__(self):
        return bool(self.by_text or self.by_number)

    def find(self, number, text):
        """The reason, or None."""
        for part, reason in self.by_text:
            if part in text:
                return reason
        return self.by_number.get(number) or self.by_number.get(0)

    @classmethod
    def of_script(cls, path):
        """The lines `expected="CAUSE"` and `expected_N="CAUSE"`."""
        with open(path, encoding="utf-8") as file:
            lines = re.findall(r'^expected(?:_(\d+))?="(.*)"$', file.read(),
                               re.MULTILINE)
        return cls(by_number={int(n or 0): "known to fail: " + cause
                              for n, cause in lines})


def read_tap(text, exceptions=Exceptions()):
    """The Result of a TAP text; points that never ran are failures."""
    result, plan, open_point = Result(), None, None
    for line in text.splitlines():
        match = POINT.match(line)
        if match:
            result.seen += 1
            open_point = read_point(result, match, exceptions)
        elif re.match(r"1\.\.\d+", line):
            plan = int(line[3:].split()[0])
        elif line.startswith("Bail out!") and exceptions.by_number:
            result.fail("it shows nothing: " + line[10:])
        elif line.startswith("#") and open_point is not None:
            open_point.append(line)
    if plan is None:
        result.fail("ended early, after %d points" % result.seen,
                    last_words(text))
    elif result.seen < plan:
        result.fail("%d planned points did not run" % (plan - result.seen))
    return result


def last_words(text):
    """What a program that died had to say; a sanitizer says it first."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "ERROR: " in line or "runtime error" in line:
            return lines[max(0, number - 1):number + 14]
    return lines[-12:]


def read_point(result, match, exceptions):
    failed, text, reason = match.groups()
    excused = exceptions.find(result.seen, text or "")
    if failed and excused:
        result.skip(excused)
    elif failed:
        result.fail("not ok - %s" % text)
        return result.trouble[-1]
    elif reason is not None:
        result.skip(reason or "no reason given")
    elif excused and exceptions.by_number:
        result.fail("passes now, remove expected=: %s" % text)
    else:
        result.passed += 1
        if excused:
            result.notes.append("passes now, no exception needed: " + text)
    return None


def run_command(argv, env, limit, exceptions=Exceptions()):
    """Run one test in its own process group under a deadline."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, env=env, cwd=TOP, stdout=out,
                                   stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        late = False
        LIVE.add(process)
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        LIVE.discard(process)
        out.seek(0)
        text = out.read().decode(errors="replace")
    result = read_tap(text, exceptions)
    if late:
        result.fail("no end after %d s" % limit)
    elif process.returncode != 0 and not result.failed \
            and not (exceptions and result.skipped):
        result.fail("exit status %d" % process.returncode, last_words(text))
    return result, text


def end_all():
    """After an interrupt: each test cleans up behind itself."""
    for process in list(LIVE):
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass


class Runner:
    def __init__(self, options):
        self.options = options
        self.total = Result()
        self.lock = threading.Lock()
        self.pool = ThreadPoolExecutor(options.jobs)
        self.running, self.later = [], []
        self.own_shm = OWN_SHM if can_run(OWN_SHM + ["true"]) else []

    def wanted(self, name):
        return not self.options.only or any(
            o in name for o in self.options.only)

    def environment(self, tree):
        return dict(
            os.environ, BUILD=os.path.abspath(tree), LC_ALL="C.UTF-8",
            SRC=TOP, CLOOP_BUILD=os.path.abspath(tree),
            CLOOP_LIBEXEC=os.path.abspath(tree),
            ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1",
            UBSAN_OPTIONS="print_stacktrace=1")

    def run(self, name, tree, argv, kind, exceptions=Exceptions(),
            alone=False):
        """Queue one test."""
        if not self.wanted(name):
            return
        if kind in ("regress", "peer"):
            argv = self.own_shm + argv
        job = (name, argv, self.environment(tree), kind, exceptions)
        if alone:
            self.later.append(job)
        else:
            self.running.append(self.pool.submit(self.run_one, *job))

    def finish(self):
        """Wait for what is queued; then those that want to be alone."""
        try:
            for future in self.running:
                future.result()
            for job in self.later:
                self.run_one(*job)
        except BaseException:
            self.pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise
        self.running, self.later = [], []

    def run_one(self, name, argv, env, kind, exceptions):
        began = time.monotonic()
        result, text = run_command(argv, env, LIMITS[kind], exceptions)
        with self.lock:
            self.report(name, result, time.monotonic() - began)
            if self.options.verbose:
                print("    " + text.rstrip().replace("\n", "\n    "))
            self.total.add(result)

    def report(self, name, result, seconds):
        count = result.passed + result.failed + result.skipped
        if result.failed:
            verdict = paint("31;1", "FAILED %d of %d" % (result.failed, count))
        elif not result.passed:
            verdict = paint("33", "skipped")
        elif result.skipped:
            verdict = paint("32", "ok %4d" % result.passed) + \
                paint("33", ", %d skipped" % result.skipped)
        else:
            verdict = paint("32", "ok %4d" % result.passed)
        timing = "  (%.1f s)" % seconds if seconds >= 1 else ""
        print("  %s %s%s" % ((name + " ").ljust(44, "."), verdict, timing),
              flush=True)
        for block in result.trouble:
            print("      " + "\n      ".join(block), flush=True)
        for note in result.notes:
            print("      " + note, flush=True)

    def unit(self, tree):
        for name in programs(os.path.join(tree, "unit")):
            self.run("unit/" + name[5:], tree,
                     [os.path.join(tree, "unit", name)], "unit")

    def fuzz(self, tree):
        for name in programs(os.path.join(tree, "replay")):
            corpus = os.path.join(HERE, "corpus", name[5:])
            self.run("fuzz-replay/" + name[5:], tree,
                     [os.path.join(tree, "replay", name), corpus], "fuzz")

    def regress(self, tree):
        first = tree == self.options.build[0]
        for path in scripts():
            if not first and says(path, "trees=one"):
                continue
            self.run(os.path.relpath(path, TOP)[:-3], tree,
                     ["/bin/sh", os.path.join(HERE, "test-exec.sh"), path],
                     "regress", Exceptions.of_script(path),
                     says(path, "alone=yes"))

    def peer(self, tree):
        """The black-box suite: the areas that must pass so far."""
        suite = find_peer()
        for area, exceptions in peer_areas():
            if not suite:
                result = Result()
                result.skip("peer suite not found (../shared/peer, CLOOP_PEER)")
                self.report("peer/" + area, result, 0)
                self.total.add(result)
                continue
            argv = [os.path.join(suite, "run"), "-v", "--only", area + ".py"]
            if area == "interop":       # the same against the real Go stack
                argv = [os.path.join(suite, "..", "peer-go", "interop")]
            self.run("peer/" + area, tree, argv, "peer", exceptions)


def can_run(argv):
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def programs(folder):
    if not os.path.isdir(folder):
        return []
    return sorted(n for n in os.listdir(folder)
                  if os.access(os.path.join(folder, n), os.X_OK))


def scripts():
    """Those of this directory and of attacks/."""
    return [path for folder in (HERE, os.path.join(HERE, "attacks"))
            for path in sorted(glob.glob(folder + "/*.sh"))
            if os.path.basename(path) not in (
                "test-exec.sh", "e2e-lib.sh", "demo.sh")]


def says(path, text):
    """Whether a script has that line, such as trees=one."""
    with open(path, encoding="utf-8") as file:
        return any(line.startswith(text) for line in file)


def find_peer():
    for folder in (os.environ.get("CLOOP_PEER"),
                   os.path.join(TOP, "..", "shared", "peer")):
        if folder and os.path.exists(os.path.join(folder, "run")):
            return os.path.abspath(folder)
    return None


def peer_areas():
    """[(area, Exceptions)] of regress/peer-areas."""
    areas = {}
    with open(os.path.join(HERE, "peer-areas"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            area, _, rest = line.partition(":")
            points = areas.setdefault(area, [])
            if not rest:
                continue
            text, *reason = re.split(" (?:--|—) ", rest.strip(), maxsplit=1)
            if not reason:
                sys.exit("peer-areas:%d: an exception needs ' -- reason'"
                         % number)
            points.append((text, reason[0]))
    return [(area, Exceptions(points)) for area, points in areas.items()]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-b", "--build", action="append", default=[],
                        metavar="TREE", help="build tree (many)")
    parser.add_argument("-o", "--only", action="append", default=[],
                        metavar="TEXT", help="names that contain TEXT")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1,
                        help="tests at a time")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("kinds", nargs="*",
                        choices=["unit", "fuzz", "regress", "peer", []])
    return parser.parse_args()


def main():
    options = arguments()
    options.build = options.build or ["build"]
    options.only = [o for text in options.only for o in text.split()]
    runner = Runner(options)
    for tree in options.build:
        print(paint("1", tree), flush=True)
        for kind in options.kinds or ["unit", "fuzz", "regress", "peer"]:
            # The suite's own clocks are too tight for the sanitizers.
            if kind == "peer" and tree != options.build[0] \
                    and not os.environ.get("CLOOP_PEER_ALL"):
                continue
            getattr(runner, kind)(tree)
        runner.finish()
    total = runner.total
    for reason, number in sorted(total.reasons.items()):
        print("skipped %d: %s" % (number, reason))
    print(paint("31;1" if total.failed else "32;1", total.line()))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
