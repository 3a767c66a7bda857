#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Runs rows of the bench and writes what they measured to results.md.

usage: run.py [-b TREE] [-r ROUNDS] [-v] [ROW...]

A row is regress/bench/ROW.sh; README says what it may call.  Only the parts
of the rows that ran are replaced in results.md.
"""
import argparse
import datetime
import os
import platform
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
RESULTS = os.path.join(HERE, "results.md")
LIMIT = 1800                    # seconds a row may take
ORDER = ["base", "idle", "heartbeat", "ingest", "parse", "handshake", "storm",
         "enroll", "dispatch", "resume", "sandbox"]


class Metric:
    def __init__(self, name, unit, better, text):
        if better not in ("higher", "lower"):
            raise ValueError("metric %s is neither higher nor lower" % name)
        self.name, self.unit, self.text = name, unit, text
        self.higher = better == "higher"
        self.samples = {}       # side -> [value], in order of appearance
        self.goals = {}         # side -> ratio
        self.bound = None

    def ratio(self, side):
        """Ours against a side: above 1 is better than it."""
        ours, other = (statistics.median(self.samples[s])
                       for s in ("ours", side))
        over, under = (ours, other) if self.higher else (other, ours)
        return over / under if under else float("inf")

    def verdict(self, side):
        """'met', 'missed', 'no samples', or None without a goal."""
        if side == "ours":
            if self.bound is None:
                return None
            if not self.samples.get("ours"):
                return "no samples"
            ours = statistics.median(self.samples["ours"])
            good = ours >= self.bound if self.higher else ours <= self.bound
            return "met" if good else "missed"
        if side not in self.goals:
            return None
        if not (self.samples.get(side) and self.samples.get("ours")):
            return "no samples"
        return "met" if self.ratio(side) >= self.goals[side] else "missed"

    def sides(self):
        known = [s for s in self.samples if s not in ("ours", "limit")]
        known += [s for s in self.goals if s not in known
                  and s not in ("ours", "limit")]
        return ["ours"] + known + [
            "limit"] * ("limit" in self.samples or "limit" in self.goals)

    def lines(self):
        """Cells: what, side, median, spread, rounds, ratio, goal."""
        for side in self.sides():
            values = self.samples.get(side, [])
            cells = ["", side, "-", "-", str(len(values)), "", ""]
            if side == "ours":
                cells[0] = "%s: %s, %s" % (self.name, self.text, self.unit)
            if values:
                cells[2] = number(statistics.median(values))
                cells[3] = "%s – %s" % (number(min(values)),
                                        number(max(values)))
            if side != "ours" and values and self.samples.get("ours"):
                cells[5] = "%s ×" % number(self.ratio(side))
            verdict = self.verdict(side)
            if verdict and side == "ours":
                cells[6] = "%s %s: %s" % ("≥" if self.higher else "≤",
                                          number(self.bound), verdict)
            elif verdict:
                cells[6] = "≥ %s ×: %s" % (number(self.goals[side]), verdict)
            yield cells


def number(value):
    if value == 0 or abs(value) >= 1000:
        return "%.0f" % value
    return ("%.3g" if abs(value) < 100 else "%.4g") % value


class Row:
    def __init__(self, name):
        self.name = name
        self.metrics, self.notes, self.versions = {}, [], {}
        self.skipped = None

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, *fields = line.rstrip("\n").split("\t")
                self.take(kind, fields)

    def take(self, kind, fields):
        if kind == "metric":
            self.metrics[fields[0]] = Metric(*fields)
        elif kind == "sample":
            name, side, value = fields
            self.metric(name).samples.setdefault(side, []).append(float(value))
        elif kind == "goal":
            self.metric(fields[0]).goals[fields[1]] = float(fields[2])
        elif kind == "goal_value":
            self.metric(fields[0]).bound = float(fields[1])
        elif kind == "say":
            if fields[0] not in self.notes:
                self.notes.append(fields[0])
        elif kind == "version":
            self.versions[fields[0]] = fields[1]
        elif kind == "skip":
            self.skipped = fields[0]

    def metric(self, name):
        if name not in self.metrics:
            sys.exit("%s: sample or goal of an unknown metric %s"
                     % (self.name, name))
        return self.metrics[name]

    def verdicts(self):
        return [v for m in self.metrics.values() for s in m.sides()
                for v in [m.verdict(s)] if v]

    def table(self):
        head = ["metric", "side", "median", "min – max", "rounds", "ours is",
                "goal"]
        return [head] + [c for m in self.metrics.values() for c in m.lines()]

    def text(self):
        """For a terminal: columns padded."""
        rows = self.table()
        wide = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        out = ["  ".join(c.ljust(w) for c, w in zip(r, wide)).rstrip()
               for r in rows]
        return "\n".join("  " + line for line in out + self.remarks())

    def remarks(self):
        return self.notes + ["%s %s" % v for v in self.versions.items()]

    def markdown(self, stamp):
        out = ["## %s" % self.name, "", stamp, ""]
        for at, cells in enumerate(self.table()):
            out.append("| %s |" % " | ".join(c.replace("|", "\\|")
                                             for c in cells))
            if at == 0:
                out.append("|" + " --- |" * len(cells))
        out += [""] + ["- " + r for r in self.remarks()]
        return "\n".join(out).rstrip() + "\n"


def environment(options, out):
    tree = os.path.abspath(options.build)
    return dict(os.environ, BUILD=tree, SRC=TOP, CLOOP_LIBEXEC=tree,
                ROUNDS=str(options.rounds), BENCH_OUT=out, LC_ALL="C.UTF-8")


def run_row(name, options):
    """The Row, and whether its script ended well."""
    row = Row(name)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        open(out, "w", encoding="utf-8").close()
        process = subprocess.Popen(
            ["/bin/sh", os.path.join(TOP, "regress", "test-exec.sh"),
             os.path.join(HERE, name + ".sh")],
            env=environment(options, out), cwd=TOP, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        try:
            text = listen(process, options.verbose)
        finally:
            # After an interrupt the script still takes its daemons away.
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
                process.wait(60)
        row.read(out)
    good = process.returncode == 0
    if not good and not options.verbose:
        print(text.rstrip())
    return row, good


def listen(process, verbose):
    def late(*_):
        print("no end after %d s" % LIMIT)
        os.kill(process.pid, signal.SIGTERM)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    text = ""
    for line in process.stdout:
        text += line
        if verbose:
            print("    " + line, end="", flush=True)
    process.wait()
    signal.alarm(0)
    return text


def first_line(argv):
    try:
        out = subprocess.run(argv, cwd=TOP, capture_output=True, text=True,
                             check=False)
    except OSError:
        return ""
    return ((out.stdout + out.stderr).splitlines() or [""])[0].strip()


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found.group(1) if found else platform.machine()


def machine():
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) / 2**20
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return "\n".join([
        "# What the bench measured", "",
        "Written by `make bench`; README says what the columns mean.  Each "
        "row names the commit it was measured on.", "",
        "- machine: %d × %s, %.0f GiB, at most %d open files a process"
        % (os.cpu_count(), cpu_model(), memory, files),
        "- kernel: %s; libc: %s; compiler: %s" % (
            platform.release(), " ".join(platform.libc_ver()),
            first_line(["gcc", "--version"])),
        "- %s" % first_line(["openssl", "version"])]) + "\n"


def read_results():
    """Row name -> its part of results.md."""
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, encoding="utf-8") as file:
        parts = re.split(r"^(?=## )", file.read(), flags=re.M)[1:]
    return {p.split("\n", 1)[0][3:].strip(): p.rstrip() + "\n" for p in parts}


def position(name):
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def write_results(name, part):
    parts = read_results()
    parts[name] = part
    text = "\n".join([machine()] + [parts[n] for n in
                                    sorted(parts, key=position)])
    with open(RESULTS + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(RESULTS + ".new", RESULTS)


def stamp(options):
    commit = first_line(["git", "rev-parse", "--short=12", "HEAD"])
    if first_line(["git", "status", "--porcelain", "-uno"]):
        commit += " with changes"
    day = datetime.datetime.now(datetime.timezone.utc)
    return "%s UTC, commit %s, %d rounds." % (
        day.strftime("%Y-%m-%d %H:%M"), commit, options.rounds)


def arguments():
    known = sorted((n[:-3] for n in os.listdir(HERE)
                    if n.endswith(".sh") and n != "lib.sh"), key=position)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-b", "--build", default="build", metavar="TREE")
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-v", "--verbose", action="store_true",
                        help="what the rows say while they run")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    options = parser.parse_args()
    options.rows = options.rows or known
    for row in options.rows:
        if row not in known:
            parser.error("no row %s; there are %s" % (row, " ".join(known)))
    if options.rounds < 1:
        parser.error("at least one round")
    return options


def main():
    options = arguments()
    # As an exception, so that the row ends its daemons.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    broken, verdicts = [], []
    for name in options.rows:
        print("%s" % name, flush=True)
        row, good = run_row(name, options)
        if row.skipped:
            print("  skipped: " + row.skipped, flush=True)
            continue
        if row.metrics:
            print(row.text(), flush=True)
        if not good:
            broken.append(name)
            continue
        verdicts += row.verdicts()
        write_results(name, row.markdown(stamp(options)))
    print("goals: %d met, %d missed, %d without samples%s" % (
        verdicts.count("met"), verdicts.count("missed"),
        verdicts.count("no samples"),
        "; failed rows: " + " ".join(broken) if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
