#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""MaxPending, MaxPerSource, PerSourcePenalty and the descriptor reserve, at
the bound and one past it, from several addresses of both families.

usage: limits.py bounds|crash|reserve|nft
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time

from client import (TMP, Device, Hub, Wire, connect, load_tokens, note,
                    point, readable, request, until)

NET4, NET6 = os.environ["NET4"], os.environ["NET6"]
BAD = request("clac1." + "A" * 16 + "." + "B" * 43 + "." + "0" * 32)
NFT_AUTH_S = 6
# As the scripts configure it.
PENDING, EACH, AUTH_S, PROTOCOL_S, CRASH_S, MAX_S = 12, 4, 3, 5, 5, 6


def four(n):
    return "%s.%d" % (NET4, n)


def six(net, n):
    return "%s:%d::%d" % (NET6, net, n)


def ended(socks, seconds=0.4):
    """How many were closed; wrong if any is, so it cannot wait for long."""
    return len(readable(socks, seconds))


def ends(one):
    """It must be closed, and a busy hub may need time for it."""
    return ended([one], 15) == 1


def comes_in(address):
    """A connection that stays: the hub must have seen others end."""
    def attempt():
        s = connect(address)
        if ended([s]) == 0:
            kept.append(s)
        return kept
    kept = []
    until(attempt, 15)
    return kept


def shut(socks):
    for s in socks:
        s.close()
    time.sleep(0.2)         # the hub must have seen it


def ask(here, data=BAD):
    """The status of one request, or "closed"."""
    try:
        w = Wire(here, 10)
    except OSError:
        return "closed"
    try:
        w.put(data)
        return w.head()[0]
    except (OSError, EOFError):
        return "closed"
    finally:
        w.close()


def is_heard(here):
    """Is a request judged, not turned away?"""
    return ask(here) == 401


def per_source(name, addresses, other):
    socks = [connect(addresses[i % len(addresses)]) for i in range(EACH)]
    point(ended(socks) == 0, "%s: MaxPerSource connections are open" % name)
    socks.append(connect(addresses[-1]))
    point(ends(socks[-1]) and ended(socks) == 1,
          "%s: one more is closed" % name)
    beside = connect(other)
    point(ended([beside]) == 0, "%s: another source is not" % name)
    socks.pop().close()
    socks.pop().close()
    more = comes_in(addresses[0])
    socks += more
    point(more and ended(socks) == 0,
          "%s: where one ends, another may come" % name)
    shut(socks + [beside])


def pending():
    began = time.monotonic()
    socks = [connect(four(20 + i // EACH)) for i in range(PENDING)]
    more = connect(four(30))
    is_quick = time.monotonic() - began < 0.9
    kept = ended(socks, 0.3)
    if is_quick:
        point(kept == 0 and ends(more),
              "MaxPending connections are open, one more is closed",
              "%d of them ended" % kept)
    else:
        note("too slow a machine to fill MaxPending within a second")
    more.close()
    time.sleep(1.2)
    more = connect(four(31))
    until(lambda: readable(socks, 0), 15)
    gone = readable(socks, 0.4)
    point(ended([more], 0) == 0 and list(gone) == socks[:1],
          "after a second a newcomer takes the place of the oldest",
          "%d gave way" % len(gone))
    shut(socks + [more])


def penalties(name, a, b, other):
    """a and b are one source."""
    point(ask(a) == 401, "%s: a bad credential is looked at" % name)
    began = time.monotonic()
    point(ask(b) == 429, "%s: then the source is told to wait" % name)
    point(ask(b) == "closed", "%s: and then not even that" % name)
    point(is_heard(other), "%s: another source is heard" % name)
    until(lambda: time.monotonic() > began + AUTH_S, 10)
    point(until(lambda: is_heard(a), 15),
          "%s: after the penalty it is heard again" % name)


def protocol():
    here = four(50)
    point(ask(here, b"BAD\r\n\r\n") == 400, "a malformed request is a 400")
    began = time.monotonic()
    time.sleep(AUTH_S + 0.4)
    point(not is_heard(here) and time.monotonic() - began < PROTOCOL_S,
          "its penalty is the one for protocol errors")
    point(until(lambda: is_heard(here), 15), "and ends")


def add_up():
    here = four(51)
    wires = [Wire(here, 8) for _ in range(EACH)]
    began = time.monotonic()
    for w in wires:
        w.put(BAD)
    for w in wires:
        w.head()
        w.close()
    time.sleep(max(0, began + AUTH_S + 1 - time.monotonic()))
    point(not is_heard(here), "%d penalties of %d s: still refused after "
          "%d s" % (EACH, AUTH_S, AUTH_S + 1))
    is_over = until(lambda: is_heard(here), 15)
    took = time.monotonic() - began
    point(is_over and took < EACH * AUTH_S, "they end with max:%ds" % MAX_S,
          "%.1f s" % took)


def proxy():
    here = four(9)          # TrustedProxy
    socks = [connect(here) for _ in range(EACH + 3)]
    point(ended(socks) == 0,
          "a trusted proxy may have more than MaxPerSource open")
    shut(socks)
    point([ask(here) for _ in range(3)] == [401] * 3,
          "its bad credentials are not held against it")


def at_once(*calls):
    """Mostly they wait."""
    threads = [threading.Thread(target=c[0], args=c[1:]) for c in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def bounds():
    per_source("IPv4", [four(10)], four(11))
    per_source("IPv6, two addresses of a /64", [six(2, 1), six(2, 2)],
               six(3, 1))
    pending()
    proxy()
    at_once((penalties, "IPv4", four(40), four(40), four(41)),
            (penalties, "IPv6, two addresses of a /64", six(4, 1), six(4, 2),
             six(5, 1)), (protocol,), (add_up,))


def workers(hub):
    return [p for p in hub.pids()
            if open("/proc/%d/comm" % p).read() == "cloopd-net\n"]


def crash():
    """Whoever was in its handshake when a worker crashed is held off, by
    the others and by the one that follows; and the others live on."""
    load_tokens()
    hub, here = Hub(), four(60)
    w = Wire(here)
    w.put(request(Device().token))
    point(w.head()[0] == 101, "a session waits for its hello")
    nets, log = workers(hub), hub.log_size()
    mine = [p for p in nets if serves(p, w)]
    point(len(mine) == 1, "one worker has it", nets)
    os.kill(mine[0], signal.SIGSEGV)
    began = time.monotonic()
    until(lambda: len(workers(hub)) == len(nets) and
          mine[0] not in workers(hub) and
          any("event=serving" in l for l in hub.lines(log)), 60)
    point(all(p in workers(hub) for p in nets if p != mine[0]),
          "the other workers live on", "%s, were %s" % (workers(hub), nets))
    heard = [is_heard(here) for _ in range(8)
             if time.monotonic() - began < CRASH_S]
    point(heard and not any(heard),
          "its source is held off by %d of %d workers" % (
              len(nets), len(nets)), heard)
    point(is_heard(four(61)), "another source is heard")
    point(until(lambda: is_heard(here), CRASH_S + 15), "and it ends")


def serves(pid, w):
    """Is this connection one of the process's?"""
    port = "%04X" % w.sock.getsockname()[1]
    with open("/proc/%d/net/tcp6" % pid) as file:
        inodes = [l.split()[9] for l in file
                  if l.split()[2].endswith(":" + port)]
    return any("socket:[%s]" % i == os.readlink("/proc/%d/fd/%s" % (pid, fd))
               for i in inodes for fd in os.listdir("/proc/%d/fd" % pid))


def reserve():
    load_tokens()
    hub, device = Hub(), Device()
    w = device.session(four(1))
    start, fds = hub.log_size(), hub.fds()
    net = workers(hub)[0]
    with open("/proc/%d/limits" % net) as file:
        most = int(re.search(r"Max open files +(\d+)", file.read()).group(1))
    socks = [connect(four(70 + i % 8)) for i in range(most)]
    until(lambda: any("accept-paused" in l for l in hub.lines(start)), 30)
    used = len(os.listdir("/proc/%d/fd" % net))
    point(most // 2 < used <= most - 32,
          "%d strangers: %d of %d descriptors are used" % (
              len(socks), used, most))
    said = [l for l in hub.lines(start) if "accept-paused" in l]
    point(len(said) == 1, "the log says so once", said)
    job = subprocess.Popen(
        ["cloopctl", "-s", TMP + "/run/cloopd.sock", "run", "--on",
         device.agent_id, "--detach", "--", "true"],
        stdout=subprocess.DEVNULL)
    why = ""
    try:
        w.say("start")
    except (OSError, EOFError) as end:
        why = repr(end)
    point(why == "", "a workload still has room for its files", why)
    job.kill()
    job.wait()
    for s in socks:
        s.close()
    point(until(lambda: is_heard(four(80)), 30),
          "when they are gone, new ones are heard")
    point(until(lambda: hub.fds()[net] <= fds[net] + 3, 30),
          "no descriptor is left", (hub.fds(), fds))
    w.close()


def reaches(here, seconds=0.7):
    """Does the kernel let a connection through?"""
    try:
        connect(here, seconds).close()
        return True
    except OSError:
        return False


def in_set(text):
    out = subprocess.run(
        ["nsenter", "--net=/proc/%s/ns/net" % os.environ["HUB"], "nft",
         "list", "table", "inet", "cloopd"], stdout=subprocess.PIPE,
        text=True, check=True).stdout
    return re.search(re.escape(text) + r" timeout \d+", out) is not None


def nft_one(name, bad, same, other, element):
    live = Device().session(bad) if name == "IPv4" else None
    began = time.monotonic()
    point(ask(bad) == 401, name + ": a bad credential")
    point(until(lambda: in_set(element), 5),
          name + ": its source is in the set, with a timeout")
    point(not reaches(same), name + ": its packets are dropped")
    point(reaches(other), name + ": another source's are not")
    if live:
        point(live.is_alive(), "a session from there goes on")
    point(until(lambda: reaches(same, 0.3), 15) and not in_set(element),
          name + ": after its time it may connect again")
    took = time.monotonic() - began
    point(took > NFT_AUTH_S, name + ": not before that", "%.1f s" % took)


def nft():
    load_tokens()
    at_once((nft_one, "IPv4", four(10), four(10), four(11), four(10)),
            (nft_one, "IPv6", six(1, 1), six(1, 2), six(2, 1),
             NET6 + ":1::"))


if __name__ == "__main__":
    {"bounds": bounds, "crash": crash, "reserve": reserve,
     "nft": nft}[sys.argv[1]]()
