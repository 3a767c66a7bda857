#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Half-open links, in each direction (BC-16): both sides must call the
link dead within 2.5 beats of 15 s, and a workload goes on.

usage: halfopen.py BUILD; prints "ok TEXT" or "no TEXT".
"""
import signal
import sys
import time

from torture import Rig, until

LIMIT = 2.5 * 15


def log_size(path):
    with open(path, "rb") as file:
        return file.seek(0, 2)


def said_since(path, start, needles):
    with open(path, "rb") as file:
        file.seek(start)
        text = file.read().decode("utf-8", "replace")
    return any(all(n in line for n in needles)
               for line in text.splitlines())


def main():
    rig = Rig(sys.argv[1], 2)
    failed = 0
    try:
        rig.make()
        time.sleep(1)
        # One agent for each direction, so that both are tried at once.
        ways = dict(zip(rig.names, ("input", "output")))
        marks, seen = {}, {}
        for name, hook in ways.items():
            code, _ = rig.ctl("run", "--on", name, "--name", "w-" + name,
                              "--detach", "--", "sleep", "1000")
            if code:
                raise AssertionError("run ended with %d" % code)
            marks[name] = (log_size(rig.path("hub/log")),
                           log_size(rig.path(name, "log")))
        for name, hook in ways.items():
            rig.drop(name, [hook])
        began = time.monotonic()
        while time.monotonic() - began < LIMIT and len(seen) < 4:
            time.sleep(0.1)
            for name, hook in ways.items():
                hub, agent = marks[name]
                if ("hub", name) not in seen and said_since(
                        rig.path("hub/log"), hub, ["agent-status",
                                                   "name=\"%s\"" % name,
                                                   "from=online"]):
                    seen["hub", name] = time.monotonic() - began
                if ("agent", name) not in seen and said_since(
                        rig.path(name, "log"), agent, ["link-down"]):
                    seen["agent", name] = time.monotonic() - began
        for name, hook in ways.items():
            for side in ("hub", "agent"):
                at = seen.get((side, name))
                failed |= at is None
                print("%s packets to the agent's %s are dropped: the %s "
                      "notices within 2.5 beats%s" % (
                          "no" if at is None else "ok", hook, side,
                          "" if at is None else " (after %.0f s)" % at))
            rig.heal(name)
        rig.wait_online(160)
        for name in ways:
            state = rig.handles()["w-" + name]["state"]
            failed |= state != "running"
            print("%s the workload behind it is %s afterwards" % (
                "ok" if state == "running" else "no", state))
            rig.ctl("kill", "--", rig.handles()["w-" + name]["handle_id"])
        until("their end", 60, lambda: all(
            rig.handles()["w-" + name]["state"] == "killed"
            for name in ways))
    finally:
        rig.clear(False)
    return failed


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
