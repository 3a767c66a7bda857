# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""What the abuse scripts are made of: a WebSocket client that may lie, 200
honest agents beside it, and a look at the hub from outside.

Environment: PORT, HUB (pid of the monitor), TMP (hub.log and tokens are
there).  `python3 client.py honest N` is the honest side, a process of its
own, so that what it measures is the hub and not this program.
"""
import asyncio
import json
import os
import re
import resource
import select
import socket
import ssl
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
sys.dont_write_bytecode = True
import daemons                          # noqa: E402

HOST = os.environ.get("ABUSE_HOST", "127.0.0.1")
PORT = int(os.environ.get("PORT", "0"))
TMP = os.environ.get("TMP", "/tmp")
PATH = "/api/executors/connect"
CAPS = {"os": "linux", "arch": "amd64", "cpus": 1, "max_concurrent": 1}
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def point(holds, text, detail=""):
    print(("pass " if holds else "fail ") + text + (
        "" if holds or detail == "" else ": " + str(detail)), flush=True)


def note(text):
    print("note " + text, flush=True)


def until(check, seconds):
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def tls():
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    return ctx


TLS = tls()


def frame(payload, op=TEXT, fin=1, mask=b"\0\0\0\0", rsv=0, length=None):
    """One frame; mask None: unmasked; length: what the head claims."""
    if isinstance(payload, str):
        payload = payload.encode()
    n = len(payload) if length is None else length
    head = bytes([fin << 7 | rsv << 4 | op])
    bit = 0 if mask is None else 0x80
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    return head + (mask or b"") + payload      # a zero mask changes nothing


def beat(seq):
    return json.dumps({"v": 26, "type": "heartbeat", "id": "b%d" % seq,
                       "payload": {"seq": seq}})


def hello(agent_id=""):
    return json.dumps({"v": 1, "type": "hello", "id": "hello", "payload": {
        "protocol_version": 26, "agent_id": agent_id, "capabilities": CAPS}})


def request(token, extra=""):
    return ("GET %s HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Authorization: Bearer %s\r\n%s\r\n" % (PATH, token, extra)
            ).encode()


class Sources:
    """A fresh address on loopback for whoever wants one."""

    def __init__(self, net):
        self.net, self.n = net, 0

    def __call__(self):
        self.n += 1
        return "127.%d.%d.%d" % (self.net, self.n // 250, self.n % 250 + 1)


source = Sources(3)


def connect(address=None, timeout=10):
    is_six = ":" in (address or "")
    s = socket.socket(socket.AF_INET6 if is_six else socket.AF_INET)
    s.settimeout(timeout)
    if address:
        s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        s.bind((address, 0))
    s.connect((os.environ["ABUSE_HOST6"] if is_six else HOST, PORT))
    return s


class Wire:
    """One connection, blocking."""

    def __init__(self, address=None, timeout=10):
        self.sock = TLS.wrap_socket(connect(address or source(), timeout))
        self.data = b""

    def put(self, data):
        """Send; False when the hub has ended it meanwhile."""
        try:
            self.sock.sendall(data)
            return True
        except OSError:
            return False

    def get(self, n):
        while len(self.data) < n:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError
            self.data += more
        out, self.data = self.data[:n], self.data[n:]
        return out

    def head(self):
        """Status and text of the answer's head."""
        while b"\r\n\r\n" not in self.data:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError
            self.data += more
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), head.decode()

    def frame(self):
        a, b = self.get(2)
        n = b & 127
        if n == 126:
            n = struct.unpack(">H", self.get(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.get(8))[0]
        return a & 15, self.get(n)

    def say(self, kind):
        """The next frame of this type."""
        while True:
            op, data = self.frame()
            if op == TEXT and json.loads(data)["type"] == kind:
                return json.loads(data)
            if op == CLOSE:
                raise EOFError

    def end(self, seconds=5):
        """How it ends: a close code, "eof", or "open"."""
        self.sock.settimeout(seconds)
        try:
            while True:
                op, data = self.frame()
                if op == CLOSE:
                    return struct.unpack(">H", data[:2])[0] if data else 0
        except (EOFError, ConnectionError, ssl.SSLError, BrokenPipeError):
            return "eof"
        except (TimeoutError, OSError):
            return "open"

    def outcome(self, seconds=5):
        """What becomes of it: "lives", when it still answers a beat, or
        how it ends."""
        self.sock.settimeout(seconds)
        self.put(frame(beat(777)))
        try:
            while True:
                op, data = self.frame()
                if op == CLOSE:
                    return struct.unpack(">H", data[:2])[0] if data else 0
                if op == TEXT and b'"seq":777' in data:
                    return "lives"
        except (EOFError, ConnectionError, ssl.SSLError):
            return "eof"
        except OSError:
            return "open"

    def is_alive(self):
        return self.outcome() == "lives"

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass


class Device:
    """An enrolled identity; `session` is a live connection of it."""
    tokens = []

    def __init__(self):
        self.token, self.agent_id = Device.tokens.pop(), ""

    def session(self, address=None, extra=""):
        w = Wire(address)
        w.put(request(self.token, extra))
        status, self.answer = w.head()
        if status != 101:
            raise OSError("HTTP %d" % status)
        w.put(frame(hello(self.agent_id)))
        welcome = w.say("welcome")["payload"]
        self.agent_id = welcome["executor_id"]
        self.token = welcome.get("credential", self.token)
        return w

    def persist(self, address, is_needed=True):
        """A session, or None; a worker that hangs up is not the only one."""
        seen = set()
        for _ in range(15):
            try:
                return self.session(address)
            except (OSError, EOFError) as why:
                seen.add(str(why)[:60])
                time.sleep(0.2)
        note("%s %s" % (address, sorted(seen)))
        if is_needed:
            raise SystemExit("no session to begin with")
        return None


def load_tokens(skip=0):
    with open(TMP + "/tokens") as file:
        Device.tokens = file.read().split()[skip:]


# ------------------------------------------------------------ the honest side

class HonestAgent:
    def __init__(self, fleet, number, token):
        self.fleet, self.number, self.token = fleet, number, token
        self.up = False

    async def run(self):
        here = "127.2.%d.%d" % (self.number // 250, self.number % 250 + 1)
        self.r, self.w = await asyncio.open_connection(
            HOST, PORT, ssl=TLS, local_addr=(here, 0))
        self.w.write(request(self.token))
        await self.r.readuntil(b"\r\n\r\n")
        self.w.write(frame(hello()))
        await self.next("welcome")
        self.up = True
        self.fleet.nup += 1
        seq = 0
        try:
            await asyncio.sleep(self.number % 50 * 0.01)
            while True:
                seq += 1
                began = time.monotonic()
                self.w.write(frame(beat(seq)))
                await self.next("heartbeat_ack")
                self.fleet.took.append(time.monotonic() - began)
                await asyncio.sleep(0.5)
        finally:
            self.fleet.nup -= 1

    async def next(self, kind):
        while True:
            head = await self.r.readexactly(2)
            n = head[1]
            if n == 126:
                n = struct.unpack(">H", await self.r.readexactly(2))[0]
            data = await self.r.readexactly(n)
            if b'"type":"%s"' % kind.encode() in data:
                return


class HonestFleet:
    def __init__(self):
        self.took, self.nup, self.ended = [], 0, ""

    async def one(self, number, token):
        try:
            await HonestAgent(self, number, token).run()
        except Exception as why:        # any end is the finding
            self.ended = "%s: %s" % (number, repr(why))

    async def main(self, n):
        with open(TMP + "/tokens") as file:
            tokens = file.read().split()[:n]
        loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        tasks = []
        for i, token in enumerate(tokens):
            tasks.append(asyncio.create_task(self.one(i, token)))
            await asyncio.sleep(0.002)
        while await lines.readline():
            took, self.took = sorted(self.took) or [0.0], []
            print(json.dumps({
                "up": self.nup, "n": len(took), "ended": self.ended,
                "p50": took[len(took) // 2],
                "p99": took[min(len(took) - 1, len(took) * 99 // 100)],
                "max": took[-1]}), flush=True)


class Honest:
    """The honest side as the attacker's process sees it."""

    def __init__(self, n):
        self.n = n
        self.process = subprocess.Popen(
            [sys.executable, __file__, "honest", str(n)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not until(lambda: self.mark()["up"] == n, 90):
            raise SystemExit("the honest agents do not get in: %s\n%s" % (
                self.mark(), "\n".join(daemons.why(TMP + "/hub.log",
                                                   int(os.environ["HUB"])))))

    def mark(self):
        """What was measured since the last mark."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


# ------------------------------------------------------- the hub from outside

class Hub:
    def __init__(self):
        self.pid = int(os.environ["HUB"])
        self.log = TMP + "/hub.log"

    def pids(self):
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as f:
            return [self.pid] + [int(p) for p in f.read().split()]

    def pss(self):
        """KiB of all its processes."""
        total = 0
        for pid in self.pids():
            with open("/proc/%d/smaps_rollup" % pid) as file:
                total += int(re.search(r"^Pss: +(\d+)", file.read(),
                                       re.M).group(1))
        return total

    def fds(self):
        return {pid: len(os.listdir("/proc/%d/fd" % pid))
                for pid in self.pids()}

    def log_size(self):
        return os.stat(self.log).st_size

    def lines(self, start):
        with open(self.log, "rb") as file:
            file.seek(start)
            return file.read().decode("utf-8", "replace").splitlines()


def raise_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Siege:
    """The hub with honest agents, in peace first; then one attack a time."""

    # Seconds: a busy machine is not a slow hub; the slow tier has it quiet.
    FLOOR = 0.02 if os.environ.get("ABUSE") == "many" else 1
    GROWTH = 64 * 1024      # KiB of PSS while attacked
    SLACK = 16 * 1024       # KiB kept afterwards: arenas, caches
    LINES = 150             # log lines of one attack

    def __init__(self, n=200):
        raise_limit()
        load_tokens(n)
        self.hub, self.honest = Hub(), Honest(n)
        os.nice(19)         # an attacker brings processors of its own
        self.pids = self.hub.pids()
        time.sleep(1)
        self.honest.mark()
        time.sleep(2)
        self.quiet = self.honest.mark()
        self.pss, self.fds = self.hub.pss(), self.hub.fds()
        note("in peace: %s, PSS %d KiB" % (self.text(self.quiet), self.pss))

    @staticmethod
    def text(m):
        return "%d beats, p50 %.1f ms, p99 %.1f ms, max %.1f ms" % (
            m["n"], m["p50"] * 1e3, m["p99"] * 1e3, m["max"] * 1e3)

    def attack(self, name, run, lines=None):
        """Run it; what the others felt, and what it cost, are points."""
        start = self.hub.log_size()
        self.honest.mark()
        self.peak = self.hub.pss()
        run(self)
        felt = self.honest.mark()
        self.look()
        said = len(self.hub.lines(start))
        bound = max(2 * self.quiet["p99"], self.FLOOR)
        point(felt["up"] == self.honest.n, "%s: nobody honest is lost" % name,
              felt)
        if felt["n"] >= 50:
            point(felt["p99"] <= bound,
                  "%s: the others' beats: %s (%.1f x)" % (
                      name, self.text(felt), felt["p99"] /
                      max(self.quiet["p99"], 1e-6)),
                  "more than %.0f ms" % (bound * 1e3))
        point(self.peak - self.pss <= self.GROWTH,
              "%s: PSS %+d KiB at most" % (name, self.peak - self.pss))
        point(said <= (lines or self.LINES),
              "%s: %d log lines" % (name, said))

    def look(self):
        self.peak = max(self.peak, self.hub.pss())

    def hold(self, seconds):
        """Let time pass with an eye on the hub."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.2)

    def peace(self, seconds=15):
        """Afterwards: same processes, same descriptors, same memory."""
        is_same = until(lambda: self.hub.fds() == self.fds, seconds)
        point(self.hub.pids() == self.pids, "the same processes run",
              "%s, were %s" % (self.hub.pids(), self.pids))
        point(is_same, "no descriptor is left",
              "%s, were %s" % (self.hub.fds(), self.fds))
        is_back = until(lambda: self.hub.pss() <= self.pss + self.SLACK, 10)
        point(is_back, "the memory is given back: PSS %+d KiB" % (
            self.hub.pss() - self.pss))
        self.honest.close()


def readable(socks, seconds):
    """Which of them have news (an end is news) within the time."""
    end, left, out = time.monotonic() + seconds, set(socks), set()
    poll = select.epoll()
    by_fd = {s.fileno(): s for s in socks}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    while left:
        for fd, _ in poll.poll(0.05):
            out.add(by_fd[fd])
            left.discard(by_fd[fd])
            poll.unregister(fd)
        if time.monotonic() >= end:
            break
    poll.close()
    return out


def newcomer(name):
    """A genuine agent comes in meanwhile."""
    began = time.monotonic()
    try:
        Device().session().close()
        took = time.monotonic() - began
    except OSError as why:
        took = repr(why)
    point(isinstance(took, float) and took < 3,
          "%s: a genuine agent gets in within %s s" % (
              name, took if isinstance(took, str) else "%.2f" % took))


if __name__ == "__main__" and sys.argv[1:2] == ["honest"]:
    asyncio.run(HonestFleet().main(int(sys.argv[2])))
