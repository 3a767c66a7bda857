#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Disks that fail, at each write of hub and device; and the bounds of kept
output.  usage: faults.py BUILD [CASE]; prints "ok TEXT" or "no TEXT".

What holds in each case: nothing that was acknowledged is lost, the operator
sees the fault, and service resumes when it is over (BC-01).
"""
import errno
import json
import mmap
import os
import random
import signal
import struct
import sys
import time

from torture import Rig, until

CASES = []


def case(text):
    def add(function):
        CASES.append((function.__name__, text, function))
        return function
    return add


def eq(got, want, what):
    if got != want:
        raise AssertionError("%s: %.300r, not %.300r" % (what, got, want))


def truth(value, what):
    if not value:
        raise AssertionError(what)


class FaultRig(Rig):
    """A rig whose programs run with faultio.so and small bounds."""

    def __init__(self, build):
        super().__init__(build, 1, LD_PRELOAD="{0.build}/faultio.so",
                         CLOOP_FAULTS="{0.base}/faults")
        with open(self.path("faults"), "wb") as file:
            file.write(bytes(4096))
        with open(self.path("faults"), "r+b") as file:
            self.rules = mmap.mmap(file.fileno(), 4096)
        self.agent = self.names[0]
        self.n = 0

    def more_conf(self, name):
        if name == "hub":
            return "LogLimit 1M\n"
        return "SpoolLimit 1M\nRetainUnacked 1M\nMaxConcurrent 8\n"

    def fault(self, program, op, name="", error=errno.ENOSPC, count=1,
              skip=0, len_=0, half=0):
        raw = struct.pack("16s16s64siiiiii8x", program[:15].encode(),
                          op.encode(), name.encode(), len_, skip, count,
                          error, half, 0)
        self.rules[16:len(raw)] = raw[16:]
        self.rules[0:16] = raw[0:16]

    def fired(self):
        return struct.unpack("i", self.rules[116:120])[0]

    def calm(self):
        self.rules[0:16] = bytes(16)

    def work(self, script, *options, timeout=60):
        """A workload to its end: exit status, output, its name."""
        self.n += 1
        name = "w%d" % self.n
        code, out = self.ctl("run", "--on", self.agent, "--name", name,
                             *options, "--", "sh", "-c", script,
                             timeout=timeout)
        return code, out, name

    def log_of(self, name):
        with open(self.path(name, "log"), encoding="utf-8",
                  errors="replace") as file:
            return file.read()

    def refused(self, *argv):
        self.n += 1
        code, out = self.ctl("--json", "run", "--on", self.agent, "--name",
                             "w%d" % self.n, "--detach", "--", *argv)
        truth(code in (1, 125), "exit status %d" % code)
        return json.loads(out)["error"]

    def check_alive(self):
        """Service has resumed."""
        self.calm()
        self.wait_online()
        code, out, _ = self.work("echo fine; exit 3")
        eq((code, out), (3, b"fine\n"), "a run afterwards")

    def check_clean(self):
        """Nothing is left of a start that failed."""
        until("no shim", 60, lambda: not self.ours("cloop-shim"))
        folder = self.path(self.agent, "state/handles")
        until("no handle directory", 60, lambda: not os.listdir(folder))


LINES = "".join("line %d of the output\n" % i for i in range(20000)).encode()
PRINT = "i=0; while [ $i -lt 20000 ]; do echo \"line $i of the output\"; " \
    "i=$((i+1)); done"
SLOW = "i=0; while [ $i -lt 400 ]; do echo \"line $i of the output\"; " \
    "i=$((i+1)); [ $((i % 40)) != 0 ] || sleep 0.1; done; exit 5"
SLOW_LINES = b"".join(LINES.splitlines(True)[:400])


# ------------------------------------------------------------------- the hub

@case("hub: a commit that fails refuses the run, and nothing is kept")
def hub_commit(rig):
    for op, name in (("sync", "cloop.db"), ("write", "cloop.db")):
        for error in (errno.EIO, errno.ENOSPC, errno.EROFS):
            rig.fault("cloopd", op, name, error=error, count=1000)
            why = rig.refused("true")
            truth("store" in why["message"], why["message"])
            rig.calm()
            eq(sorted(os.listdir(rig.path("hub/state/hub/handles"))),
               sorted(h["handle_id"].encode().hex()
                      for h in rig.handles().values()), "handle directories")
    rig.check_alive()


@case("hub: the end of a workload survives a store that fails at that time")
def hub_commit_end(rig):
    rig.fault("cloopd", "write", "cloop.db", count=1000, skip=1 << 30)
    rig.n += 1
    name = "w%d" % rig.n
    code, _ = rig.ctl("run", "--on", rig.agent, "--name", name, "--detach",
                      "--", "sh", "-c", "sleep 0.5; echo out; exit 9")
    eq(code, 0, "detached run")
    rig.fault("cloopd", "write", "cloop.db", count=1000)
    until("the failed write", 60, rig.fired)
    time.sleep(0.5)
    rig.calm()
    until("the row", 60, lambda: rig.handles()[name]["state"] == "exited")
    until("the saved row", 60, lambda: "event=store" in rig.log_of("hub"))
    time.sleep(1.5)			# a tick of the retry
    rig.hub.signal(signal.SIGKILL)
    row = until("the hub's restart", 60, lambda: rig.handles())[name]
    until("its state", 60, lambda: rig.handles()[name]["state"] == "exited")
    eq(rig.handles()[name]["exit_code"], 9, "exit code")
    truth(row, "no row")
    rig.check_alive()


@case("hub: handle files that cannot be made refuse the run")
def hub_files(rig):
    for op, name in (("mkdir", "/hub/handles/"), ("open", "/log")):
        for error in (errno.ENOSPC, errno.EROFS, errno.EIO):
            rig.fault("cloopd", op, name, error=error)
            why = rig.refused("true")
            truth("output files" in why["message"], why["message"])
            eq(rig.fired(), 1, "faults")
    rig.check_alive()


@case("BC-01: append 7 fails (ENOSPC, EIO, half written): every byte is kept")
def hub_log_append(rig):
    for error in (errno.ENOSPC, errno.EIO):
        for half in (0, 1):
            rig.fault("cloopd-net", "write", error=error, skip=6, half=half,
                      len_=-40)
            code, out, name = rig.work(SLOW)
            eq((code, out), (5, SLOW_LINES), "run")
            eq(rig.fired(), 1, "faults")
            eq(rig.handles()[name]["gapped"], False, "gapped")
    truth("log-write-failed" in rig.log_of("hub"), "nothing in the log")
    rig.check_alive()


@case("hub: a log disk that is full for a while: every byte is kept")
def hub_log_full(rig):
    for len_ in (-40, 40):      # the log; its index
        rig.fault("cloopd-net", "write", error=errno.ENOSPC, skip=2,
                  count=12, len_=len_)
        code, out, _ = rig.work(SLOW)
        eq((code, out), (5, SLOW_LINES), "run")
        truth(rig.fired() > 1, "faults")
    rig.check_alive()


# ---------------------------------------------------------------- the device

@case("device: a handle directory, spool or record that cannot be written "
      "refuses the start")
def device_files(rig):
    for op, name in (("mkdir", ""), ("open", "spool"), ("write", "spool"),
                     ("open", "meta"), ("write", "meta"),
                     ("rename", "meta")):
        for error in (errno.ENOSPC, errno.EIO, errno.EROFS):
            rig.fault("cloop-agentd", op, name, error=error)
            why = rig.refused("true")
            eq(rig.fired(), 1, "faults of %s %s" % (op, name))
            if error == errno.ENOSPC:
                truth("full" in why["message"], why["message"])
            rig.check_clean()
    rig.check_alive()


@case("device: a spool write that fails leaves a gap that is said, and the "
      "workload goes on")
def device_spool(rig):
    for error in (errno.ENOSPC, errno.EIO):
        rig.fault("cloop-shim", "pwrite", error=error, skip=3, count=2)
        code, out, name = rig.work(SLOW)
        eq(code, 5, "exit status")
        eq(rig.fired(), 2, "faults")
        row = rig.handles()[name]
        eq(row["gapped"], True, "gapped")
        code, text = rig.ctl("--json", "logs", "--", row["handle_id"])
        pieces = [json.loads(line) for line in text.splitlines()]
        gaps = [p for p in pieces if "gap" in p]
        truth(gaps, "no gap record")
        at = 0
        for piece in pieces:
            eq(piece["offset"], at, "offset")
            data = piece.get("text", "").encode()
            eq(SLOW_LINES[at:at + len(data)], data, "text at %d" % at)
            at += len(data) or piece["gap"]
        eq(at, len(SLOW_LINES), "length with the gaps")
    truth("spool-full" in rig.log_of(rig.agent), "nothing in the log")
    rig.check_alive()


@case("device: an exit record that cannot be saved at first is saved later")
def device_exit(rig):
    for op, error in (("rename", errno.EIO), ("rename", errno.ENOSPC)):
        rig.fault("cloop-shim", op, "exit", error=error, count=2)
        code, out, _ = rig.work("echo a; exit 6")
        eq((code, out), (6, b"a\n"), "run")
        truth(rig.fired() >= 1, "faults")
        until("no shim", 60, lambda: not rig.ours("cloop-shim"))
    truth("exit-record" in rig.log_of(rig.agent), "nothing in the log")
    rig.check_alive()


# ------------------------------------------------------- bounds of the output

@case("BC-09: past SpoolLimit without a hub the workload runs on; the last "
      "bytes are kept, the others a gap; at it and one below none")
def spool_limit(rig):
    names = {}
    for size in ((1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5000000):
        rig.n += 1
        names[size] = "w%d" % rig.n
        script = "while [ ! -e go ]; do sleep 0.05; done; head -c %d " \
            "/dev/zero | tr '\\0' x; echo done >end; exit 0" % size
        code, _ = rig.ctl("run", "--on", rig.agent, "--name", names[size],
                          "--detach", "--workdir", names[size], "--", "sh",
                          "-c", script)
        eq(code, 0, "run")
    rig.drop(rig.agent, ["input", "output"])
    fetcher = rig.ours("agentd-fetch")
    for pid in fetcher:
        os.kill(pid, signal.SIGKILL)
    until("the link's end", 60, lambda: [p for p in rig.ours("agentd-fetch")
                                         if p not in fetcher])
    trees = [rig.path(rig.agent, "work", name) for name in names.values()]
    for tree in trees:
        with open(os.path.join(tree, "go"), "w"):
            pass
    until("the workloads' end", 60, lambda: all(os.path.exists(
        os.path.join(tree, "end")) for tree in trees))
    until("their shims' end", 60, lambda: not rig.ours("cloop-shim"))
    spools = [os.path.join(root, n) for root, _, names in
              os.walk(rig.path(rig.agent, "state/handles")) for n in names
              if n == "spool"]
    eq(len(spools), len(names), "spools")
    for spool in spools:
        blocks = os.stat(spool).st_blocks * 512
        truth((1 << 20) - 65536 <= blocks <= (1 << 20) + 3 * 65536,
              "%d bytes are allocated for 1 MiB" % blocks)
    rig.heal(rig.agent)
    for size, name in names.items():
        until("the end at the hub", 60, lambda: rig.handles()[name]["state"]
              == "exited", 0.2)
        row = rig.handles()[name]
        lost = max(0, size - (1 << 20))
        eq((row["exit_code"], row["gapped"]), (0, lost > 0), "end")
        code, text = rig.ctl("--json", "logs", "--", row["handle_id"])
        pieces = [json.loads(line) for line in text.splitlines()]
        eq(pieces[0].get("gap", 0), lost, "gap of %d" % size)
        rest = "".join(p.get("text", "") for p in pieces)
        truth(len(rest) <= 1 << 20, "%d bytes are kept" % len(rest))
        eq(len(rest) + sum(p.get("gap", 0) + p.get("cut", 0)
                           for p in pieces), size, "all of it")


@case("LogLimit: the beginning and the end are kept, the middle is said; "
      "the workload sees nothing of it (BC-09)")
def log_limit(rig):
    for size in (1048575, 1048576, 1048577, 5000000):
        code, out, name = rig.work("head -c %d /dev/zero | tr '\\0' y; "
                                   "exit 0" % size)
        eq(code, 0, "exit status of %d bytes" % size)
        row = rig.handles()[name]
        path = rig.path("hub/state/hub/handles",
                        row["handle_id"].encode().hex(), "log")
        eq(os.stat(path).st_size, size, "size of the file")
        blocks = os.stat(path).st_blocks * 512
        truth(blocks <= (1 << 20) + (1 << 18), "%d bytes of %d are on disk"
              % (blocks, size))
        code, text = rig.ctl("--json", "logs", "--", row["handle_id"])
        pieces = [json.loads(line) for line in text.splitlines()]
        cut = sum(p.get("cut", 0) for p in pieces)
        eq(cut + sum(len(p.get("text", "")) for p in pieces), size,
           "text and cut of %d" % size)
        if size <= 1 << 20:
            eq(cut, 0, "cut of %d" % size)


@case("acknowledged output is punched out of the spool while it runs")
def punched(rig):
    rig.n += 1
    name = "w%d" % rig.n
    script = "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr " \
        "'\\0' z; i=$((i+1)); done; while [ ! -e go ]; do sleep 0.05; done"
    code, _ = rig.ctl("run", "--on", rig.agent, "--name", name, "--detach",
                      "--workdir", name, "--", "sh", "-c", script)
    eq(code, 0, "run")
    row = until("its output", 60, lambda: (lambda r: r["log_bytes"] ==
                4000000 and r)(rig.handles()[name]))
    spool = rig.path(rig.agent, "state/handles",
                     row["handle_id"].encode().hex(), "spool")
    eq(os.stat(spool).st_size, 4096 + 4000000, "size")

    # The device punches when the hub's word has come, a moment later.
    until("a small spool", 60,
          lambda: os.stat(spool).st_blocks * 512 <= 4 * 65536)
    with open(rig.path(rig.agent, "work", name, "go"), "w"):
        pass


@case("BC-07: `logs --from N` at 2 000 random N gives what follows, exactly")
def from_offset(rig):
    rng = random.Random(7)
    code, out, name = rig.work(SLOW)
    eq(out, SLOW_LINES, "output")
    handle = rig.handles()[name]["handle_id"]
    ends = [i + 1 for i, c in enumerate(SLOW_LINES) if c == 10]
    for number in range(2000 if os.environ.get("CLOOP_CUTS") else 300):
        at = rng.choice([rng.randint(0, len(SLOW_LINES)), rng.choice(ends),
                         len(SLOW_LINES)])
        code, got = rig.ctl("logs", "--from", "%d" % at, "--", handle)
        eq((code, got), (0, SLOW_LINES[at:]), "from %d" % at)


@case("`logs -f` goes on by itself when the hub is killed and comes back")
def follow(rig):
    import subprocess
    rig.n += 1
    name = "w%d" % rig.n
    code, out = rig.ctl("--json", "run", "--on", rig.agent, "--name", name,
                        "--detach", "--", "sh", "-c",
                        SLOW.replace("sleep 0.1", "sleep 0.4"))
    eq(code, 0, "run")
    handle = json.loads(out.splitlines()[-1])["handle_id"]
    process = subprocess.Popen(
        [os.path.join(rig.build, "cloopctl"), "-s", rig.socket, "logs", "-f",
         "--", handle], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=rig.env)
    for _ in range(2):
        time.sleep(0.7)
        rig.hub.signal(signal.SIGKILL)
        until("the hub", 60, lambda: rig.ask("status"))
    out, _ = process.communicate(timeout=60)
    eq((process.returncode, out), (0, SLOW_LINES), "followed output")
    code, out = rig.ctl("logs", "--tail", "3", "--", handle)
    eq(out, b"".join(SLOW_LINES.splitlines(True)[-3:]), "--tail 3")


# ------------------------------------------------------- devices that restart

@case("a device that was rebooted reports its workloads as failed, with the "
      "reason")
def rebooted(rig):
    rig.n += 1
    name = "w%d" % rig.n
    code, _ = rig.ctl("run", "--on", rig.agent, "--name", name, "--detach",
                      "--", "sleep", "1000")
    eq(code, 0, "run")
    rig.agents[0].not_before = time.monotonic() + 3600
    rig.agents[0].signal(signal.SIGKILL)
    rig.agents[0].process.wait()
    for pid in rig.ours("cloop-shim"):
        os.kill(pid, signal.SIGKILL)
    until("no shim", 60, lambda: not rig.ours("cloop-shim"))
    # Another boot: the record names one that is not this.
    folder = rig.path(rig.agent, "state/handles")
    meta = os.path.join(folder, os.listdir(folder)[0], "meta")
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip().encode()
    with open(meta, "rb") as file:
        data = file.read()
    with open(meta, "wb") as file:
        file.write(data.replace(boot, boot[::-1]))
    eq(boot in data, True, "the boot id is in the record")
    rig.agents[0].not_before = 0
    row = until("the end", 60, lambda: (lambda r: r["state"] == "failed"
                and r)(rig.handles()[name]))
    truth("restarted" in row["error"], row["error"])
    rig.check_clean()


@case("an answer to a start that is lost with its session: the run is "
      "refused, the device's offer too, the workload is stopped")
def late_started(rig):
    import subprocess
    rig.n += 1
    name = "w%d" % rig.n
    tree = rig.path(rig.agent, "work", name)
    # What the device says is lost from now on, the start still comes.
    rig.nft(rig.agent, "add table inet cut",
            "add chain inet cut output { type filter hook output priority "
            "0 ; }", "add rule inet cut output meta length > 100 drop")
    process = subprocess.Popen(
        [os.path.join(rig.build, "cloopctl"), "-s", rig.socket, "--json",
         "run", "--on", rig.agent, "--detach", "--name", name, "--workdir",
         name, "--", "sh", "-c", "echo x >>starts; sleep 1000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=rig.env)
    until("its start", 60, lambda: os.path.exists(tree + "/starts"))
    for pid in rig.ours("cloopd-net"):
        os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    truth(process.returncode not in (0, 124), "%d %r" % (process.returncode,
                                                         out))
    eq(json.loads(out.splitlines()[-1])["error"]["code"], "session_closed",
       "code")
    eq(name in rig.handles(), False, "there is a row")
    eq(len(rig.ours("cloop-shim")), 1, "it runs meanwhile")
    rig.heal(rig.agent)
    rig.check_clean()
    with open(tree + "/starts", encoding="utf-8") as file:
        eq(file.read(), "x\n", "starts")
    eq(name in rig.handles(), False, "there is a row")
    rig.check_alive()


# -------------------------------------------------------------- enrolment

@case("a credential that cannot be stored says so, leaves nothing, and a new "
      "token repairs it")
def credential(rig):
    import subprocess
    name = "c" + rig.agent
    for part in ("", "/run", "/work", "/state"):
        os.makedirs(rig.path(name + part), mode=0o755)
    rig.write(name + "/conf", """\
StateDirectory {0}/state
RuntimeDirectory {0}/run
CredentialFile {0}/state/agent.json
TokenFile {0}/bundle
CAFile {1}/tls.crt
WorkDirRoot {0}/work
""".format(rig.path(name), rig.path("keys")))

    def mint():
        subprocess.run(
            [os.path.join(rig.build, "cloop-enroll"), "-s", rig.socket,
             "mint", "--name", name, "--server", "wss://%s:%d" %
             (rig.address(0), rig.port), "--bundle-file",
             rig.path(name, "bundle.new")], check=True, env=rig.env,
            capture_output=True)
        os.replace(rig.path(name, "bundle.new"), rig.path(name, "bundle"))

    def start():
        """It must end by itself."""
        with open(rig.path(name, "log"), "wb+") as log:
            process = subprocess.Popen(
                [os.path.join(rig.build, "cloop-agentd"), "-d", "-f",
                 rig.path(name, "conf")], env=rig.env, stdout=log,
                stderr=log)
            try:
                code = process.wait(60)
            except subprocess.TimeoutExpired:
                code = None
                process.terminate()
                process.wait(60)
            log.seek(0)
            return code, log.read().decode("utf-8", "replace")

    words = {errno.ENOSPC: "No space", errno.EIO: "Input/output",
             errno.EROFS: "Read-only"}
    for op, file, error in (
            ("open", "agent.json.tmp", errno.EROFS),
            ("write", "agent.json.tmp", errno.ENOSPC),
            ("write", "agent.json.tmp", errno.EIO),
            ("write", "agent.json.tmp", errno.EROFS),
            ("sync", "agent.json.tmp", errno.EIO),
            ("rename", "agent.json", errno.ENOSPC)):
        mint()
        rig.fault("cloop-agentd", op, file, error=error)
        code, text = start()
        eq(rig.fired(), 1, "faults of %s" % op)
        rig.calm()
        eq((code, code != 1 and text[-900:]), (1, False),
           "exit status after %s" % op)
        truth(words[error] in text and "agent.json" in text and
              "mint a new one" in text, text[-600:])
        eq([n for n in os.listdir(rig.path(name, "state"))
            if n.startswith("agent.json")], [], "left over")
        truth(os.path.exists(rig.path(name, "bundle")), "no token file")
    # The token is spent: the device goes on trying, and says what to do.
    log = rig.path(name, "log")
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [os.path.join(rig.build, "cloop-agentd"), "-d", "-f",
             rig.path(name, "conf")], env=rig.env, stdout=file, stderr=file)
    try:
        until("the remedy", 60, lambda: "enroll again" in rig.log_of(name))
    finally:
        process.terminate()
        process.wait(60)
    truth(os.path.exists(rig.path(name, "bundle")), "no token file")
    mint()
    process = subprocess.Popen(
        [os.path.join(rig.build, "cloop-agentd"), "-d", "-f",
         rig.path(name, "conf")], env=rig.env, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        until("it online", 60, lambda: [a for a in rig.ask("agents")["agents"]
                                        if a["name"].startswith(name) and
                                        a["status"] == "online"])
        truth(os.path.exists(rig.path(name, "state/agent.json")), "no file")
    finally:
        process.terminate()
        process.wait(60)


def main():
    rig = FaultRig(sys.argv[1])
    only = sys.argv[2:]
    failed = 0
    try:
        rig.make()
        for name, text, function in CASES:
            if only and name not in only:
                continue
            began = time.monotonic()
            try:
                rig.wait_online(60)
                function(rig)
                print("ok " + text)
            except Exception as why:
                failed = 1
                print("no %s: %s: %s" % (text, type(why).__name__, why))
            finally:
                rig.calm()
                rig.heal(rig.agent)
                rig.agents[0].not_before = 0
            if only:
                print("# %.1f s" % (time.monotonic() - began))
            sys.stdout.flush()
    finally:
        rig.clear(os.environ.get("CLOOP_KEEP") == "1")
    return failed


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
