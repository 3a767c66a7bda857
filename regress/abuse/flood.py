#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Too many, too fast, beside 200 honest agents."""
import json
import os
import select
import subprocess
import threading
import time

from client import (TMP, Device, Siege, Sources, Wire, connect,
                    frame, newcomer, note, point, request, source)

MANY = os.environ.get("ABUSE") == "many"
HELD = 10000 if MANY else 1500
SECONDS = 10 if MANY else 1
MAX_PENDING, MAX_PER_SOURCE = 1000, 64      # cloopd.conf(5), the defaults


def storm(siege, where):
    """Connect and close, as fast as one process can."""
    end, n, failed = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        try:
            connect(where(), 1).close()
        except OSError:
            failed += 1
        n += 1
        if n % 256 == 0:
            siege.look()
    note("%d connections a second, %d got no answer" % (n / SECONDS, failed))


def storm_one(siege):
    here = source()
    storm(siege, lambda: here)


def storm_many(siege):
    storm(siege, Sources(4))


def count_open(socks):
    """How many are still open: no end has come."""
    poll, n = select.poll(), len(socks)
    for s in socks:
        poll.register(s, select.POLLIN | select.POLLRDHUP)
    return n - len(poll.poll(0))


def hold(siege, where, bound, name):
    socks, lost = [], 0
    for i in range(HELD):
        try:
            socks.append(connect(where(), 2))
        except OSError:
            lost += 1
        if i % 256 == 0:
            siege.look()
    siege.hold(0.5)
    left = count_open(socks)
    # Rounded up for each of two processes.
    point(0 < left <= bound + 2, "%s: of %d connections %d are kept" % (
        name, HELD, left), "the bound is %d" % bound)
    siege.hold(0.7)
    newcomer(name)
    for s in socks:
        s.close()


def hold_one(siege):
    here = source()
    hold(siege, lambda: here, MAX_PER_SOURCE, "from one address")


def hold_many(siege):
    hold(siege, Sources(5), MAX_PENDING, "from many addresses")


def guess(siege):
    """Well-formed credentials that nobody has, from ten addresses."""
    bearer = "clac1." + "A" * 16 + "." + "B" * 43 + "." + "0" * 32
    said = []

    def one(here):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                w = Wire(here, 3)
                w.put(request(bearer))
                said.append(w.head()[0])
                w.close()
            except (OSError, EOFError):
                said.append("closed")
    threads = [threading.Thread(target=one, args=(source(),))
               for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # The first one of each address, and then it is penalised: by all
    # processes, but what one has taken in meanwhile is judged still.
    seen = said.count(401)
    point(10 <= seen <= 20 and len(said) > 2 * seen,
          "%d guesses from ten addresses: %d were looked at" % (
              len(said), seen))


def flood_log(siege):
    """Output as fast as it goes, of a workload that may."""
    device = Device()
    w = device.session()
    job = subprocess.Popen(
        ["cloopctl", "-s", TMP + "/run/cloopd.sock", "run", "--on",
         device.agent_id, "--detach", "--", "true"],
        stdout=subprocess.DEVNULL)
    start = w.say("start")
    handle = start["payload"]["handle_id"]
    w.put(frame(json.dumps({
        "v": 26, "type": "started", "id": start["id"], "handle": handle,
        "payload": {"handle_id": handle, "pid": 1,
                    "started_at": "2026-01-02T03:04:06Z"}})))
    job.wait(20)
    text, offset = "line of output\n" * 2184, 0
    end = time.monotonic() + SECONDS
    w.sock.settimeout(2)
    began = time.monotonic()
    while time.monotonic() < end:
        if not w.put(frame(json.dumps({
                "v": 26, "type": "log_chunk", "handle": handle,
                "payload": {"stream": "combined", "offset": offset,
                            "text": text}}))):
            break
        offset += len(text)
        if offset % (64 * len(text)) == 0:
            siege.look()
    siege.look()
    note("output: %.0f MiB/s were offered" % (
        offset / (1 << 20) / (time.monotonic() - began)))
    w.close()
    kept = 0
    for top, _, names in os.walk(TMP + "/hub/hub/handles"):
        kept += sum(os.stat(top + "/" + n).st_blocks * 512 for n in names)
    point(kept <= 12 << 20, "LogLimit 8M: %d KiB are on the disk" % (
        kept >> 10))


def main():
    siege = Siege()
    siege.attack("connect and close, one address", storm_one)
    siege.attack("connect and close, many addresses", storm_many)
    siege.attack("held, one address", hold_one)
    siege.attack("held, many addresses", hold_many)
    siege.attack("guesses", guess)
    siege.attack("output", flood_log)
    siege.peace()


if __name__ == "__main__":
    main()
