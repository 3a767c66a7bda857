#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# What a device does with what it is lent: python3 secret-device.py SCENARIO,
# with BUILD and TMP in the environment.  Plays a hub for one cloop-agentd on
# loopback and looks for marked secrets where they must not be.  Prints
# "pass TEXT" and "fail TEXT" for the script that runs it.
import asyncio
import base64
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

import websockets

sys.dont_write_bytecode = True
import daemons                          # noqa: E402

BUILD, TMP = os.environ["BUILD"], os.environ["TMP"]
TOKEN = ("clet1.AAECAwQFBgcICQoL.ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8"
         ".e57ff68ef8872e73df024eef4475a64b")
DIR = "/run/cloop/cloop-lease-t"
MARK = "marker-%d-" % os.getpid()
FILE, ENV, NEW = MARK + "file-0123456789", MARK + "env-0123456789", \
    MARK + "new-0123456789"
IGNORING = ("import os,signal,time\n"
            "signal.signal(signal.SIGTERM,signal.SIG_IGN)\n"
            "if os.fork()==0:\n os.setsid()\n if os.fork()==0: time.sleep(99)\n"
            "time.sleep(99)\n")


def point(holds, text, detail=""):
    print(("pass " if holds else "fail ") + text +
          ("" if holds else ": " + str(detail)), flush=True)


def until(check, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.02)
    return False


class Hub:
    """One session at a time; frames of the device by id, output joined."""

    def __init__(self):
        self.socket, self.up = None, threading.Event()
        self.answers, self.output, self.ended = queue.Queue(), {}, {}
        self.loop, self.port, ready = None, 0, threading.Event()

        async def main():
            self.loop = asyncio.get_running_loop()
            server = await websockets.serve(
                self.serve, "127.0.0.1", 0, max_size=None, compression=None)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await asyncio.Future()
        threading.Thread(target=lambda: asyncio.run(main()),
                         daemon=True).start()
        ready.wait(10)

    async def serve(self, socket, *_):
        try:
            async for text in socket:
                await self.on_frame(socket, json.loads(text))
        except websockets.ConnectionClosed:
            pass
        if self.socket is socket:
            self.up.clear()

    async def on_frame(self, socket, frame):
        kind, handle = frame["type"], frame.get("handle", "")
        payload = frame.get("payload", {})
        if kind == "hello":
            accepted = [{"handle_id": o["handle_id"], "from_offset": 0}
                        for o in payload.get("resume") or []]
            for one in accepted:
                self.output[one["handle_id"]] = ""
            welcome = {"protocol_version": 26,
                       "executor_id": "AAECAwQFBgcICQoL",
                       "heartbeat_seconds": 15, "resume_accepted": accepted}
            if not os.path.exists(TMP + "/state/agent.json"):
                welcome["credential"] = TOKEN.replace("clet1", "clac1")
            await self.put(socket, "welcome", welcome, frame.get("id", ""))
            self.socket = socket
            self.up.set()
        elif kind == "heartbeat":
            await self.put(socket, "heartbeat_ack", {"seq": payload["seq"]},
                           frame.get("id", ""))
        elif kind == "log_chunk":
            self.output[handle] = self.output.get(handle, "") + \
                payload["text"]
        elif kind == "status" and not frame.get("id"):
            self.ended[handle] = payload["status"] if "status" in payload \
                else payload
        else:
            self.answers.put(frame)

    async def put(self, socket, kind, payload, id="", handle=""):
        frame = {"v": 26, "type": kind}
        for key, value in (("id", id), ("handle", handle)):
            if value:
                frame[key] = value
        await socket.send(json.dumps(dict(frame, payload=payload)))

    def ask(self, kind, payload, handle="", seconds=60):
        self.up.wait(60)
        self.serial = getattr(self, "serial", 0) + 1
        asyncio.run_coroutine_threadsafe(self.put(
            self.socket, kind, payload, "q%d" % self.serial, handle),
            self.loop).result(10)
        while True:
            frame = self.answers.get(timeout=seconds)
            if frame.get("id") == "q%d" % self.serial:
                return frame["payload"]


def secret(content, name="cfg"):
    return {"lease_id": "lease-1", "grant_id": "grant-1", "dir": DIR,
            "name": name, "mode": 384,
            "content": base64.b64encode(content.encode()).decode()}


class Device:
    def __init__(self, hub):
        self.hub, self.daemon = hub, None
        self.before, self.shims = set(leases()), set()
        for name in ("state", "run", "work"):
            os.makedirs(TMP + "/" + name, exist_ok=True)
        with open(TMP + "/token", "w") as file:
            file.write(TOKEN)
        os.chmod(TMP + "/token", 0o600)
        with open(TMP + "/conf", "w") as file:
            file.write("Server ws://127.0.0.1:%d/api/executors/connect\n"
                       "TokenFile %s/token\nStateDirectory %s/state\n"
                       "RuntimeDirectory %s/run\nWorkDirRoot %s/work\n"
                       "LogLevel debug\n" % (hub.port, TMP, TMP, TMP, TMP))
        os.chmod(TMP + "/conf", 0o600)
        self.start()

    def start(self):
        self.hub.up.clear()
        self.daemon = subprocess.Popen(
            [BUILD + "/cloop-agentd", "-d", "-f", TMP + "/conf"],
            stderr=open(TMP + "/log", "ab"), env={
                "PATH": os.environ["PATH"], "CLOOP_LIBEXEC": BUILD})
        if not self.hub.up.wait(60):
            for line in daemons.why(TMP + "/log", self.daemon.pid,
                                    self.daemon.poll()):
                print("note " + line)
            raise SystemExit("fail the device did not connect")

    def run(self, script, handle, work="w", env=()):
        answer = self.hub.ask("start", {
            "handle_id": handle, "sandbox": {}, "secret_files": [
                secret(FILE)],
            "spec": {"work_dir": work, "argv": ["/bin/sh", "-c", script],
                     "env": ["CFG=" + DIR + "/cfg", "TOKEN=" + ENV,
                             "CLOOP_REDACT_ENV=TOKEN",
                             "PATH=" + os.environ["PATH"]] + list(env),
                     "resource_limits": {}, "workspace": {},
                     "write_back": {}, "secrets": [{
                         "lease_id": "lease-1", "grant_id": "grant-1",
                         "env_keys": ["TOKEN"], "files": [DIR + "/cfg"],
                         "dir": DIR, "expires_at": "0001-01-01T00:00:00Z"}]}},
            handle)
        if answer.get("error"):
            raise SystemExit("fail start: " + answer["error"])
        until(lambda: "\n" in self.hub.output.get(handle, ""))
        self.shims |= {int(p) for p, c in self.ours().items()
                       if c == "cloop-shim"}
        return self.hub.output[handle].split("\n")[0]

    def end(self):
        """Whatever happened: nothing of it stays (a shim takes all along)."""
        self.daemon.kill()
        for pid in self.shims:
            try:
                with open("/proc/%d/comm" % pid) as file:
                    if file.read().strip() == "cloop-shim":
                        os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def go(self, work="w"):
        open("%s/work/%s/go" % (TMP, work), "w").close()

    def ours(self):
        """Processes of the product for this device, by their ancestry."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/comm" % pid) as file:
                    comm = file.read().strip()
                with open("/proc/%s/stat" % pid) as file:
                    parent = file.read().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
            found[pid] = (comm, parent)
        me, mine = str(self.daemon.pid), {str(self.daemon.pid)}
        for _ in range(4):
            mine |= {p for p, (_, parent) in found.items() if parent in mine}
        return {p: found[p][0] for p in mine if p in found and
                found[p][0] in ("cloop-agentd", "agentd-fetch", "cloop-shim",
                                "cloop-init")} or {me: "?"}


WAIT = "while [ ! -e go ]; do sleep 0.02; done"
MARKS = [m.encode() for m in (FILE, ENV, NEW)] + \
    [base64.b64encode(m.encode()).rstrip(b"=")[:-2] for m in (FILE, NEW)]


def has_mark(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return any(mark in data for mark in MARKS)


def search_files(*roots):
    hits = []
    for root in roots:
        for top, _, names in os.walk(root):
            hits += [top + "/" + n for n in names if has_mark(top + "/" + n)]
    return hits


def search_processes(device):
    hits = []
    for pid, comm in device.ours().items():
        base = "/proc/%s/" % pid
        hits += [comm + " " + n for n in ("environ", "cmdline")
                 if has_mark(base + n)]
        for fd in os.listdir(base + "fd"):
            try:
                target = os.readlink(base + "fd/" + fd)
            except OSError:
                continue
            if target.startswith("/memfd:") and has_mark(base + "fd/" + fd):
                hits.append("%s memfd %s" % (comm, fd))
    return hits


def search_memory(device, name):
    """Writable memory of the named processes."""
    hits = []
    for pid, comm in device.ours().items():
        if comm != name:
            continue
        with open("/proc/%s/maps" % pid) as maps, \
                open("/proc/%s/mem" % pid, "rb", 0) as mem:
            for line in maps:
                begin, end, mode = re.match(
                    r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
                size = int(end, 16) - int(begin, 16)
                # A sanitizer's shadow is a map of terabytes, not of data.
                if not mode.startswith("rw") or "[v" in line \
                        or size > 1 << 30:
                    continue
                try:
                    mem.seek(int(begin, 16))
                    data = mem.read(size)
                except (OSError, ValueError, OverflowError):
                    continue
                hits += [line.split()[-1] for mark in MARKS[:3]
                         if mark in data]
    return hits


def leases():
    return [n for base in ("/dev/shm", TMP + "/run/lease")
            if os.path.isdir(base) for n in os.listdir(base)
            if n.startswith("cloop-lease-")]


def nowhere(hub, device):
    path = device.run('echo "$CFG"; cat "$CFG"; echo "<$TOKEN>"; ' + WAIT +
                      '; cat "$CFG"; echo "$TOKEN"', "h1")
    point(os.path.exists(path) and has_mark(path), "the file is lent", path)
    point(until(lambda: "<[redacted]>" in hub.output["h1"]),
          "output is redacted", hub.output["h1"])
    hits = search_files(TMP + "/state", TMP + "/run") + \
        search_processes(device) + ([TMP + "/log"] * has_mark(TMP + "/log"))
    point(not hits, "during the run: spools, records, logs, environments, "
          "command lines and memfds hold no marker", hits)
    hits = search_memory(device, "cloop-agentd") + \
        search_memory(device, "agentd-fetch")
    point(not hits, "nor does the memory of monitor and fetcher", hits)
    point(search_memory(device, "cloop-shim"),
          "the shim, which redacts, is where the search finds it")
    device.run('echo "$CFG"; test -e %s && echo reached; '
               'test -e "$CFG" && echo own' % path, "h2", "w2")
    point(until(lambda: "h2" in hub.ended) and "own" in hub.output["h2"] and
          "reached" not in hub.output["h2"],
          "another workload reaches its own directory only",
          hub.output["h2"])
    answer = hub.ask("secret_refresh", {"lease_id": "lease-1",
                                        "files": [secret(NEW)]})
    point(answer.get("files_rewritten") == 1, "a refresh is carried out",
          answer)
    hits = search_memory(device, "cloop-agentd")
    point(not hits, "the new value is not left in the monitor", hits)
    device.go()
    point(until(lambda: "h1" in hub.ended), "the run ends")
    point(MARK not in hub.output["h1"], "nothing of it reached the hub",
          hub.output["h1"])
    point(until(lambda: not os.path.exists(os.path.dirname(path)), 30),
          "the directory is gone", path)
    hits = search_files(TMP, "/dev/shm") + search_processes(device)
    point(not hits, "afterwards the marker is nowhere", hits)


def crash(hub, device):
    path = device.run('echo "$CFG"; echo $$ > pid; ' + WAIT +
                      '; cat "$CFG"; echo .', "h1")
    shims = [int(p) for p, c in device.ours().items() if c == "cloop-shim"]
    device.daemon.send_signal(signal.SIGKILL)
    device.daemon.wait()
    device.start()
    point(os.path.exists(path), "a living workload keeps its file over a "
          "crash of the agent", path)
    answer = hub.ask("secret_refresh", {"lease_id": "lease-1",
                                        "files": [secret(NEW)]})
    point((answer.get("known"), answer.get("files_rewritten"),
           answer.get("handles")) == (True, 1, ["h1"]),
          "the next agent can refresh it", answer)
    point(open(path).read() == NEW, "the new content is there")
    device.go()
    point(until(lambda: "h1" in hub.ended), "the workload ends")
    point("[redacted]." in hub.output["h1"] and
          MARK not in hub.output["h1"], "its output stays redacted",
          hub.output["h1"])
    point(until(lambda: set(leases()) <= device.before, 30),
          "and its directory is gone", leases())
    path = device.run('echo "$CFG"; sleep 99', "h2", "w2")
    shims = [int(p) for p, c in device.ours().items() if c == "cloop-shim"]
    device.daemon.send_signal(signal.SIGKILL)
    device.daemon.wait()
    for pid in shims:
        os.kill(pid, signal.SIGKILL)
    point(os.path.exists(path), "agent and workload killed: the file is "
          "still there")
    device.start()
    point(until(lambda: not os.path.exists(os.path.dirname(path)), 30),
          "the next start wipes it", path)
    hits = search_files(TMP, "/dev/shm")
    point(not hits, "no plaintext is left", hits)
    path = device.run('echo "$CFG"; sleep 99', "h3", "w3")
    device.daemon.send_signal(signal.SIGKILL)
    device.daemon.wait()
    device.start()
    answer = hub.ask("revoke", {"lease_id": "lease-1", "action": "kill"})
    point(answer.get("killed") == ["h3"] and not answer.get("error"),
          "an adopted workload can be revoked and killed", answer)
    point(not os.path.exists(path), "its file is gone with the report", path)


def alive(word):
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                count += word.encode() in file.read()
        except OSError:
            pass
    return count


def kill(hub, device):
    word = "WORD=%s%s" % (MARK, os.urandom(4).hex())
    path = device.run('echo "$CFG"; exec 5<"$CFG"; exec python3 -c "$CODE"',
                      "h1", env=[word, "CODE=" + IGNORING])
    point(until(lambda: alive(word) >= 2), "it ignores TERM and forked away",
          alive(word))
    began = time.monotonic()
    answer = hub.ask("revoke", {"lease_id": "lease-1", "action": "kill"})
    took, left = time.monotonic() - began, alive(word)
    point(4 < took < 12, "the report comes after the escalation", took)
    point(left == 0, "no process is left when the report comes", left)
    point(not os.path.exists(path), "nor is the file", path)
    point(answer.get("killed") == ["h1"] and answer.get("known") and
          answer.get("files_removed") == 1 and
          not answer.get("env_scrubbed") and not answer.get("error"),
          "the report says what was done", answer)
    point(until(lambda: "h1" in hub.ended) and
          hub.ended["h1"]["state"] == "killed", "its end is reported",
          hub.ended)
    answer = hub.ask("revoke", {"lease_id": "lease-1", "action": "kill"})
    point(answer.get("known") is False, "a second time it is unknown",
          answer)


def main():
    hub = Hub()
    device = Device(hub)
    try:
        {"nowhere": nowhere, "crash": crash, "kill": kill}[sys.argv[1]](
            hub, device)
        device.daemon.terminate()
        point(device.daemon.wait(30) == 0, "the agent stops", "")
        point(set(leases()) <= device.before, "no lease directory is left",
              leases())
    finally:
        device.end()


main()
