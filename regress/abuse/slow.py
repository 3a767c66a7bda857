#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Who takes its time, beside 200 honest agents (BC-25, BC-34).
A phase has one deadline that progress does not move."""
import os
import threading
import time

from client import (Device, Siege, Wire, beat, connect, frame, newcomer, note,
                    point, readable, request, source, until)

MANY = os.environ.get("ABUSE") == "many"
EACH = 300 if MANY else 60
HEAD_S, HELLO_S, SILENCE_S, STALL_S = 10, 15, 45, 20


class Slow:
    """Sockets that get a byte or a line now and then."""

    def __init__(self, name, socks, drip):
        self.name, self.socks, self.drip, self.n = name, socks, drip, 0

    def tick(self):
        for s in self.socks:
            if self.drip:
                try:
                    s.send(self.drip(self.n))
                except OSError:
                    pass
        self.n += 1


def tls_bytes(n):
    # The head of a ClientHello record of 512 bytes, and on.
    return (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600
            )[n:n + 1]


def header(n):
    return b"GET / HTTP/1.1\r\n" if n == 0 else b"X-%d: y\r\n" % n


def crowd(n, make):
    """n sockets, eight to an address."""
    out, here = [], None
    for i in range(n):
        if i % 8 == 0:
            here = source()
        out.append(make(here))
    return out


def take_time(siege):
    began = time.monotonic()
    wires = crowd(EACH, Wire)
    slow = [Slow("silent", crowd(EACH, connect), None),
            Slow("a TLS byte a second", crowd(EACH, connect), tls_bytes),
            Slow("a header a second", [w.sock for w in wires], header)]
    slept = [Device() for _ in range(8)]
    hellos = []
    for d in slept:
        w = Wire()
        w.put(request(d.token))
        if w.head()[0] == 101:
            hellos.append(w)
    made = time.monotonic()
    newcomer("slow handshakes")
    while time.monotonic() - made < HEAD_S - 1:
        for s in slow:
            s.tick()
        siege.hold(1)
    # Nobody is thrown out before its time, everybody soon after.
    for s in slow:
        gone = readable(s.socks, HEAD_S + 3 - (time.monotonic() - made))
        point(len(gone) == len(s.socks),
              "%d connections, %s: all are closed %.1f s after the last "
              "came" % (len(s.socks), s.name, time.monotonic() - made),
              "only %d" % len(gone))
    if MANY:
        gone = [w.end(HELLO_S + 3 - (time.monotonic() - made))
                for w in hellos]
        point("open" not in gone, "without a hello: closed after %.0f s" % (
            time.monotonic() - began), gone)
    for s in slow:
        for one in s.socks:
            one.close()
    for w in hellos + wires:
        w.close()


def fall_silent(siege):
    """Authenticated, then nothing: half a frame is nothing, too."""
    live = [Device().session() for _ in range(10)]
    for w in live[5:]:
        w.put(frame(beat(1))[:5])
    began = time.monotonic()
    siege.hold(1)
    if not MANY:
        for w in live:
            w.close()
        return
    ends = [w.end(SILENCE_S + 10 - (time.monotonic() - began)) for w in live]
    point("open" not in ends, "silent agents: closed after %.0f s" % (
        time.monotonic() - began), ends)


def never_read(siege):
    """Beats without reading one answer: the hub stops reading, too."""
    live = [Device().session() for _ in range(8)]
    for w in live:
        w.sock.settimeout(0.2)
    end, sent = time.monotonic() + 4, 0
    block = frame(beat(1)) * 512
    while time.monotonic() < end:
        for w in live:
            sent += len(block) if w.put(block) else 0
        siege.look()
    note("never reading: %d KiB were taken from 8 agents" % (sent >> 10))
    if MANY:
        began = time.monotonic()
        point(until(lambda: siege.hub.fds() == siege.fds, STALL_S + 12),
              "they are closed after %.0f s" % (time.monotonic() - began))
    for w in live:
        w.close()


def all_at_once(siege):
    """Mostly they wait; in make check together."""
    threads = [threading.Thread(target=f, args=(siege,))
               for f in (take_time, never_read)]
    for t in threads:
        t.start()
    fall_silent(siege)
    for t in threads:
        t.join()


def main():
    siege = Siege()
    if MANY:
        siege.attack("slow handshakes", take_time, 300)
        siege.attack("silence", fall_silent, 300)
        siege.attack("never reading", never_read, 300)
    else:
        siege.attack("slow, silent and deaf", all_at_once, 300)
    siege.peace()


if __name__ == "__main__":
    main()
