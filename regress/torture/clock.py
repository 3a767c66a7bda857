#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Somebody sets the wall clock, of the hub or of a device, by hours while
both run.  usage: clock.py BUILD; prints "ok TEXT" or "no TEXT".

Deadlines are lengths of time and stay what they were; dates, of a grant, are
compared with the clock as it is; that two clocks differ is said once a
session.
"""
import os
import re
import signal
import struct
import sys
import time

from torture import Rig, until

HOUR = 3600
# Eleven seconds of output, and then until it may end.
SCRIPT = "i=0; while [ $i -lt 110 ]; do echo \"line $i\"; i=$((i+1)); " \
    "sleep 0.1; done; while [ ! -e go ]; do sleep 0.1; done; exit 7"


class ClockRig(Rig):
    def __init__(self, build):
        super().__init__(build, 1, LD_PRELOAD="{0.build}/wallclock.so")
        self.agent = self.names[0]
        self.clocks = {"hub": self.path("clock.hub"),
                       self.agent: self.path("clock.agent")}
        for name in self.clocks:
            self.set(name, 0)
        self.env["CLOOP_CLOCK"] = self.clocks["hub"]

    def more_conf(self, name):
        return "LeaseTTL 30s\n" if name == "hub" else ""

    def make_agent(self, i, name):
        hub_env = self.env
        self.env = dict(hub_env, CLOOP_CLOCK=self.clocks[name])
        super().make_agent(i, name)
        self.env = hub_env

    def set(self, name, seconds):
        with open(self.clocks[name], "r+b" if os.path.exists(
                self.clocks[name]) else "wb") as file:
            file.write(struct.pack("q", seconds))

    def log_of(self, name):
        with open(self.path(name, "log"), encoding="utf-8",
                  errors="replace") as file:
            return file.read()

    def count(self, name, pattern):
        return len(re.findall(pattern, self.log_of(name)))

    def leases(self):
        """The states of all that are not closed."""
        return [l["state"] for l in self.ask("lease", "ls")["leases"]]


def report(good, text, why=""):
    print("%s %s%s" % ("ok" if good else "no", text,
                       ": %s" % why if why and not good else ""), flush=True)
    return 0 if good else 1


def check(rig):
    failed = 0
    rig.write("value", "TOKEN=top-secret-of-the-clock-test\n")
    rig.ctl("secret", "put", "tok", "--file", rig.path("value"))
    rig.ctl("grant", "add", "tok", "--to", "any", "--ttl", "24h")
    code, out = rig.ctl("--json", "run", "--on", rig.agent, "--detach",
                        "--name", "w", "--workdir", "w", "--secret", "tok",
                        "--", "sh", "-c", SCRIPT)
    if code:
        return report(0, "a workload starts", out)
    for name, hours in (("hub", 6), (rig.agent, -6), ("hub", -6),
                        (rig.agent, 6), ("hub", 0), ("hub", -6)):
        seen = rig.count("hub", "event=clock-jump")
        rig.set(name, hours * HOUR)
        try:                   # the hub notices at its next tick
            until("the word", 60 if name == "hub" else 1.3,
                  lambda: rig.count("hub", "event=clock-jump") > seen)
        except AssertionError:
            if name == "hub":
                failed += report(0, "the hub says that its clock was set",
                                 "%d times" % seen)
    seen = rig.count("hub", "event=clock-jump")
    failed += report(seen == 4, "the hub says that its clock was set",
                     "%d times" % seen)
    skew = "event=clock-skew.*seconds=-?(216|432)\\d\\d "
    try:
        until("the word", 60, lambda: rig.count(rig.agent, skew))
        failed += report(1, "heartbeats go on, and the device says how far "
                         "the clocks are apart")
    except AssertionError as why:
        failed += report(0, "heartbeats and skew", why)
    failed += report(rig.count(rig.agent, skew) == 1, "once a session")
    failed += report(
        rig.count("hub", "event=session-up") == 1 and
        rig.count("hub", "event=session-end") == 0,
        "no session ended by it", rig.log_of("hub")[-600:])
    states = rig.leases()
    failed += report(states == ["live"], "no lease either, after twice the "
                     "janitor's time", states)

    # A new session in the middle of a jump.
    began = time.monotonic()
    for pid in rig.ours("cloopd-net"):
        os.kill(pid, signal.SIGKILL)
    until("the end of the session", 60,
          lambda: rig.count("hub", "event=session-end") >= 1, 0.02)
    rig.set(rig.agent, 30 * HOUR)
    rig.set("hub", 6 * HOUR)
    until("another session", 60,
          lambda: rig.count("hub", "event=session-up") >= 2)
    rig.wait_online(60)
    took = time.monotonic() - began
    failed += report(took < 120, "back-off is seconds, not hours",
                     "%.1f s" % took)

    # A date is a date.
    rig.set("hub", 48 * HOUR)
    try:
        until("the lease's end", 60, lambda: rig.leases() != ["live"])
        failed += report(1, "a grant ends when the new time is past its date")
    except AssertionError as why:
        failed += report(0, "a grant that has passed", why)
    with open(rig.path(rig.agent, "work", "w", "go"), "w",
              encoding="utf-8"):
        pass
    row = until("the end", 60, lambda: (lambda r: r["state"] != "running"
                and r)(rig.handles()["w"]))
    code, out = rig.ctl("logs", "--", row["handle_id"])
    want = "".join("line %d\n" % i for i in range(110)).encode()
    failed += report(
        (row["state"], row["exit_code"], row["gapped"], out) ==
        ("exited", 7, False, want), "the workload saw nothing of it",
        "%s %s %d bytes" % (row["state"], row["error"], len(out)))
    return failed


def main():
    rig = ClockRig(sys.argv[1])
    try:
        rig.make()
        return 1 if check(rig) else 0
    finally:
        rig.clear(os.environ.get("CLOOP_KEEP") == "1")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
