#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Cuts everything that can be cut and looks whether anything was lost.

usage: torture.py [--cuts N] [--seed S] [--agents N] [--only KIND] BUILD

A real hub, real agents in network namespaces, workloads whose output is
known in advance and that count their own starts.  In each round every agent
gets a workload and some cuts happen: links are dropped, delayed, half
opened, reset; processes die at a random moment or at a named point (BUILD
is the tree with -DCLOOP_TEST_HOOKS).  Then all is left alone until it ends,
and must be whole: output, exactly one start, the right final state, nothing
left over.  The same seed makes the same cuts.
"""
import argparse
import json
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
sys.dont_write_bytecode = True
import daemons                          # noqa: E402

PER_ROUND = 8
LINES, PAD = 1500, "the quick brown fox jumps over the lazy dog " * 2
# Points where the hub or the device may have to give a start up; after any
# other cut a start that was reported must end as its workload says.
POINTS = {
    "dispatch.files": 1, "dispatch.row": 1, "dispatch.queued": 1,
    "dispatch.answer": 1, "commit.before": 9, "commit.after": 9,
    "commit.released": 9, "start.net": 1, "start.heard": 1,
    "start.asked": 1, "start.files": 1, "start.record": 1, "start.go": 1,
    "start.started": 1, "start.answered": 1, "started.net": 1,
    "log.written": 30, "log.indexed": 9, "log.told": 3, "ack.hub": 3,
    "ack.fetch": 3, "ack.half": 3, "ack.marked": 3, "ack.done": 3,
    "spool.sent": 9, "spool.chunk": 30, "status.net": 1,
    "status.applied": 1, "status.recorded": 1, "status.sent": 1,
    "end.told": 1, "end.passed": 1, "end.confirmed": 1, "end.acked": 1,
    "end.delivered": 1, "end.forgetting": 1, "end.forgotten": 1,
}
# These end the shim, and its workload with it.
SHIM_POINTS = {"start.shim": 1, "start.shim-ran": 1, "spool.written": 30,
               "spool.counted": 30, "spool.dropped": 9, "end.saved": 1}
KINDS = ["link"] * 6 + ["kill"] * 6 + ["point"] * 9 + ["term"] * 1 + \
    ["shim"] * 1


def run(*argv, check=True):
    done = subprocess.run(argv, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(argv), done.stderr.strip()))
    return done.stdout


def until(what, seconds, function, every=0.05):
    deadline = time.monotonic() + seconds
    while True:
        value = function()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("%s: not in %d s" % (what, seconds))
        time.sleep(every)


def is_free_net(number):
    """No address of 10.number is this machine's."""
    return " 10.%d." % number not in run("ip", "-o", "-4", "addr")


def processes():
    """{pid: (program, parent, environment, command line)}"""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as file:
                stat = file.read()
            with open("/proc/%s/environ" % name, "rb") as file:
                environ = file.read()
            with open("/proc/%s/cmdline" % name, "rb") as file:
                command = file.read()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        if fields[0] != "Z":
            found[int(name)] = (stat.split("(", 1)[1].rpartition(")")[0],
                                int(fields[1]), environ, command)
    return found


class Daemon:
    """One of our two programs; started again whenever it is not there."""

    def __init__(self, argv, log, env):
        self.argv, self.log, self.env = argv, log, env
        self.process = None
        self.not_before = 0

    def tend(self):
        if self.process is not None and self.process.poll() is None:
            return
        if time.monotonic() < self.not_before:
            return
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self.env, start_new_session=True)
        self.not_before = time.monotonic() + 0.15

    def signal(self, number):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Rig:
    def __init__(self, build, nagents, **env):
        self.build = os.path.abspath(build)
        self.base = tempfile.mkdtemp(prefix="cloop-torture.", dir="/var/lib")
        os.chmod(self.base, 0o755)
        self.hooks = os.path.join(self.base, "hooks")
        with open(self.hooks, "wb") as file:
            file.write(bytes(4096))
        with open(self.hooks, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)
        self.env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8",
                    "CLOOP_LIBEXEC": self.build, "CLOOP_HOOKS": self.hooks}
        self.env.update({k: v.format(self) for k, v in env.items()})
        self.net = daemons.take("net", 10, 209, is_free_net)
        self.names = ["t%d-%d-%d" % (self.net, os.getpid() % 100000, i)
                      for i in range(nagents)]
        self.agents, self.hub = [], None
        self.socket = self.path("hub", "sock")
        self.mounts = self.list_mounts()
        self.groups = self.list_groups()

    def more_conf(self, name):
        """Further lines of a configuration: "hub" or an agent's name."""
        return ""

    def path(self, *parts):
        return os.path.join(self.base, *parts)

    # -- making it

    def make(self):
        for part in ("keys", "hub", "hub/state", "hub/run"):
            os.makedirs(self.path(part), mode=0o755, exist_ok=True)
        os.chmod(self.path("keys"), 0o700)
        hosts = [a for i in range(len(self.names))
                 for a in ("-n", self.address(i))]
        keygen = os.path.join(self.build, "cloop-keygen")
        subprocess.run([keygen, "-t", "tls", "-n", "localhost", *hosts, "-o",
                        "KeyDirectory=" + self.path("keys")], check=True,
                       capture_output=True, env=self.env)
        subprocess.run([keygen, "-A", "-o", "KeyDirectory=" +
                        self.path("keys"), "-o", "StateDirectory=" +
                        self.path("hub/state")], check=True,
                       capture_output=True, env=self.env)
        self.port = daemons.port()
        self.write("hub/conf", """\
ListenAgents 0.0.0.0:%d
ListenStatus none
ExternalURL https://%s:%d
ControlSocket %s
StateDirectory %s
RuntimeDirectory %s
KeyDirectory %s
NetWorkers 2
PerSourcePenalty no
LogLevel debug
%s""" % (self.port, self.address(0), self.port, self.socket,
              self.path("hub/state"), self.path("hub/run"), self.path("keys"),
              self.more_conf("hub")))
        self.hub = Daemon([os.path.join(self.build, "cloopd"), "-d", "-f",
                           self.path("hub/conf")], self.path("hub/log"),
                          self.env)
        self.hub.tend()
        daemons.wait_up(self.hub.process, self.hub.log, "the hub's start", 90,
                        lambda: self.ctl("status")[0] == 0)
        for i, name in enumerate(self.names):
            self.make_agent(i, name)
        for name, agent in zip(self.names, self.agents):
            daemons.wait_up(agent.process, agent.log, name + " online", 90,
                            lambda n=name: self.is_online(n))

    def address(self, i, side=1):
        return "10.%d.%d.%d" % (self.net, i, side)

    def make_agent(self, i, name):
        run("ip", "netns", "add", name)
        run("ip", "link", "add", "v" + name, "type", "veth", "peer", "name",
            "eth0", "netns", name)
        run("ip", "addr", "add", self.address(i) + "/30", "dev", "v" + name)
        run("ip", "link", "set", "v" + name, "up")
        for words in (("addr", "add", self.address(i, 2) + "/30", "dev",
                       "eth0"), ("link", "set", "eth0", "up"),
                      ("link", "set", "lo", "up")):
            run("ip", "-n", name, *words)
        for part in ("state", "run", "work"):
            os.makedirs(self.path(name, part), mode=0o755)
        subprocess.run([os.path.join(self.build, "cloop-enroll"), "-s",
                        self.socket, "mint", "--name", name, "--server",
                        "wss://%s:%d" % (self.address(i), self.port),
                        "--bundle-file", self.path(name, "bundle")],
                       check=True, capture_output=True, env=self.env)
        self.write(name + "/conf", """\
StateDirectory {0}/state
RuntimeDirectory {0}/run
CredentialFile {0}/state/agent.json
TokenFile {0}/bundle
CAFile {1}/tls.crt
WorkDirRoot {0}/work
LogLevel debug
{2}""".format(self.path(name), self.path("keys"), self.more_conf(name)))
        daemon = Daemon(["nsenter", "--net=/run/netns/" + name,
                         os.path.join(self.build, "cloop-agentd"), "-d",
                         "-f", self.path(name, "conf")],
                        self.path(name, "log"), self.env)
        daemon.tend()
        self.agents.append(daemon)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o600)

    def tend(self):
        for daemon in (self.hub, *self.agents):
            daemon.tend()

    def clear(self, keep):
        self.arm("", 0)
        for daemon in (*self.agents, self.hub):
            if daemon is not None and daemon.process is not None:
                daemon.stop()
        for pid in self.ours():
            os.kill(pid, signal.SIGKILL)
        for name in self.names:
            run("ip", "netns", "del", name, check=False)
            run("ip", "link", "del", "v" + name, check=False)
        if keep:
            print("# kept: " + self.base)
        else:
            shutil.rmtree(self.base, ignore_errors=True)

    # -- asking it

    def ctl(self, *argv, timeout=60):
        try:
            done = subprocess.run(
                [os.path.join(self.build, "cloopctl"), "-s", self.socket,
                 "-q", *argv], capture_output=True, env=self.env,
                timeout=timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return 124, b""
        return done.returncode, done.stdout

    def ask(self, *argv):
        """A document, or None while the hub does not answer."""
        self.tend()
        code, out = self.ctl("--json", *argv)
        return json.loads(out) if code == 0 else None

    def handles(self):
        document = self.ask("ps", "-a")
        return document and {h["name"]: h for h in document["handles"]}

    def is_online(self, name):
        code, out = self.ctl("--json", "agents", name)
        return code == 0 and b'"status":"online"' in out

    def wait_online(self, seconds=90):
        def online():
            document = self.ask("agents")
            return document and [
                a["status"] for a in document["agents"]
                if a["name"] in self.names] == ["online"] * len(self.names)
        until("all agents online", seconds, online)

    def ours(self, program=None):
        mark = ("CLOOP_HOOKS=" + self.hooks).encode()
        return [pid for pid, (name, _, environ, _) in processes().items()
                if mark in environ.split(b"\0")
                and (program is None or name == program[:15])]

    def tell(self, word, most=60):
        """What the logs say about a workload, for a failure's report."""
        for name in ("hub", *self.names):
            with open(self.path(name, "log"), encoding="utf-8",
                      errors="replace") as file:
                lines = [line.rstrip() for line in file if word in line]
            for line in lines[-most:]:
                print("#     %s: %s" % (name, line))

    @staticmethod
    def list_mounts():
        with open("/proc/self/mountinfo") as file:
            return {line.split()[4] for line in file}

    @staticmethod
    def list_groups():
        found = set()
        for root, dirs, _ in os.walk("/sys/fs/cgroup"):
            if os.path.basename(root) == "cloop":
                found |= {os.path.join(root, d) for d in dirs}
        return found

    # -- cutting it

    def arm(self, name, count):
        self.page[64:68] = struct.pack("i", count)
        self.page[0:64] = name.encode().ljust(64, b"\0")

    def fired(self):
        return struct.unpack("I", self.page[68:72])[0]

    def nft(self, name, *commands):
        for command in commands:
            run("ip", "netns", "exec", name, "nft", *command.split(),
                check=False)

    def drop(self, name, hooks, verdict="drop"):
        self.nft(name, "add table inet cut")
        for hook in hooks:
            self.nft(name, "add chain inet cut %s { type filter hook %s "
                     "priority 0 ; }" % (hook, hook),
                     "add rule inet cut %s meta l4proto tcp %s" % (hook,
                                                                  verdict))

    def heal(self, name):
        self.nft(name, "delete table inet cut")
        run("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev",
            "eth0", "root", check=False)


class Cutter:
    """Chooses and makes the cuts of one round."""

    def __init__(self, rig, rng, only):
        self.rig, self.rng, self.only = rig, rng, only
        self.harmed = set()	# agents whose workload may have died
        self.said = []

    def say(self, text):
        self.said.append(text)

    def cut(self):
        kind = self.rng.choice(KINDS)
        if self.only:
            kind = self.only
        getattr(self, "cut_" + kind)()

    def pause(self, low, high):
        """Let time pass, and bring back who died."""
        deadline = time.monotonic() + self.rng.uniform(low, high)
        while time.monotonic() < deadline:
            self.rig.tend()
            time.sleep(0.03)

    def cut_link(self):
        name = self.rng.choice(self.rig.names)
        how = self.rng.choice(["drop", "in", "out", "reset", "delay"])
        self.say("link %s %s" % (how, name))
        if how == "delay":
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev",
                "eth0", "root", "netem", "delay", "120ms", "40ms", "loss",
                "5%", check=False)
        elif how == "reset":
            self.rig.drop(name, ["output"], "reject with tcp reset")
        else:
            self.rig.drop(name, {"drop": ["input", "output"],
                                 "in": ["input"], "out": ["output"]}[how])
        self.pause(0.1, 1.0)
        self.rig.heal(name)

    def kill_one(self, program):
        pids = sorted(self.rig.ours(program))
        if pids:
            self.say("kill %s" % program)
            try:
                os.kill(self.rng.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def cut_kill(self):
        self.kill_one(self.rng.choice(
            ["cloopd", "cloopd", "cloopd-net", "cloop-agentd",
             "cloop-agentd", "agentd-fetch", "cloopd-ctl", "cloopd-key"]))
        self.pause(0.05, 0.5)

    def cut_term(self):
        daemon = self.rng.choice([self.rig.hub, *self.rig.agents])
        self.say("SIGTERM %s" % os.path.basename(daemon.argv[
            0 if daemon is self.rig.hub else 2]))
        daemon.signal(signal.SIGTERM)
        self.pause(0.1, 0.6)

    def cut_shim(self):
        self.harmed |= set(self.rig.names)
        if self.rng.random() < 0.5:
            self.kill_one("cloop-shim")
        else:
            self.point(self.rng.choice(sorted(SHIM_POINTS)), SHIM_POINTS)

    def cut_point(self):
        self.point(self.rng.choice(sorted(POINTS)), POINTS)

    def point(self, name, table):
        count = self.rng.randint(1, table[name])
        before = self.rig.fired()
        self.rig.arm(name, count)
        deadline = time.monotonic() + 0.8
        while self.rig.fired() == before and time.monotonic() < deadline:
            self.rig.tend()
            time.sleep(0.01)
        self.rig.arm("", 0)
        self.say("point %s:%d%s" % (name, count, "" if self.rig.fired() !=
                                    before else " (not reached)"))
        self.pause(0.02, 0.2)


class Work:
    """One workload of one round."""

    def __init__(self, rig, agent, name, code):
        self.agent, self.name, self.code = agent, name, code
        self.tree = rig.path(agent, "work", name)
        script = (": %s; echo x >>starts; i=0; while [ $i -lt %d ]; do "
                  "echo \"$i %s\"; i=$((i+1)); [ $((i %% 60)) != 0 ] || "
                  "sleep 0.06; done; exit %d" % (name, LINES, PAD, code))
        self.argv = ["--json", "run", "--on", agent, "--detach", "--name",
                     name, "--workdir", name, "--", "sh", "-c", script]
        self.run = None

    def start(self, rig):
        self.run = subprocess.Popen(
            [os.path.join(rig.build, "cloopctl"), "-s", rig.socket, "-q",
             *self.argv], stdin=subprocess.DEVNULL, env=rig.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def expected(self):
        return "".join("%d %s\n" % (i, PAD) for i in range(LINES)).encode()

    def starts(self):
        try:
            with open(os.path.join(self.tree, "starts")) as file:
                return len(file.readlines())
        except OSError:
            return 0

    def check(self, rig, handle, may_die):
        """What is wrong, as sentences."""
        wrong = []
        reported = self.run.returncode == 0
        starts = self.starts()
        if starts > 1:
            wrong.append("%d starts" % starts)
        if handle is None:
            if reported:
                wrong.append("reported as started, but its row is gone")
            return wrong
        code, out = rig.ctl("logs", "--", handle["handle_id"], timeout=60)
        if code != 0:
            wrong.append("logs ended with %d" % code)
        want = self.expected()
        if handle["state"] == "exited":
            if handle["exit_code"] != self.code:
                wrong.append("exit code %s, not %d" % (handle["exit_code"],
                                                       self.code))
            if starts != 1:
                wrong.append("exited after %d starts" % starts)
            if out != want:
                at = next((i for i, (a, b) in enumerate(zip(out, want))
                           if a != b), min(len(out), len(want)))
                wrong.append("output of %d bytes, not %d; differs at %d" %
                             (len(out), len(want), at))
        else:
            if not handle["error"]:
                wrong.append("%s without a reason" % handle["state"])
            if not want.startswith(out):
                wrong.append("%s, and its output is not a beginning" %
                             handle["state"])
            if reported and not may_die:
                wrong.append("%s: %s" % (handle["state"], handle["error"]))
        return wrong


class Torture:
    def __init__(self, options):
        self.options = options
        self.rig = Rig(options.build, options.agents)
        self.ncuts = self.nworks = self.nexited = 0
        self.failures = []

    def round(self, number):
        rig, options = self.rig, self.options
        rng = random.Random("%d/%d" % (options.seed, number))
        cutter = Cutter(rig, rng, options.only)
        works = [Work(rig, agent, "r%d-%s" % (number, agent),
                      rng.randint(0, 99)) for agent in rig.names]
        rig.wait_online()
        rng.shuffle(works)
        begin = rng.randint(0, len(works))
        for work in works[:begin]:
            work.start(rig)
        cutter.pause(0, 0.3)
        for i in range(min(PER_ROUND, options.cuts - self.ncuts)):
            for work in works[begin + i:begin + i + 1]:
                work.start(rig)
            cutter.cut()
            self.ncuts += 1
        for work in works:
            if work.run is None:
                work.start(rig)
        wrong = self.settle(works, cutter)
        for text in wrong:
            self.failures.append("round %d: %s" % (number, text))
        if wrong or options.verbose:
            print("# round %d, seed %d: %s" % (number, options.seed,
                                              "; ".join(cutter.said)))
            for text in wrong:
                print("#   " + text)
            sys.stdout.flush()

    def settle(self, works, cutter):
        """Wait until all is over, then look at everything."""
        rig, wrong = self.rig, []
        names = {w.name for w in works}

        def over():
            rig.tend()
            if any(w.run.poll() is None for w in works):
                return None
            rows = rig.handles()
            if rows is None or any(
                    r["state"] in ("pending", "running", "unknown")
                    for n, r in rows.items() if n in names):
                return None
            return rows
        try:
            rows = until("the end of all workloads", 150, over, 0.2)
        except AssertionError as why:
            rows = rig.handles() or {}
            wrong.append("%s: %s" % (why, {
                n: rows[n]["state"] for n in names if n in rows}))
        for work in works:
            handle = rows.get(work.name)
            self.nworks += 1
            self.nexited += handle is not None and \
                handle["state"] == "exited"
            bad = work.check(rig, handle, work.agent in cutter.harmed)
            wrong += ["%s: %s" % (work.name, text) for text in bad]
            if bad and handle is not None:
                rig.tell(handle["handle_id"])
        return wrong + self.find_leftovers(names)

    def find_leftovers(self, names):
        rig = self.rig
        marks = [n.encode() for n in names]

        def left():
            rig.tend()
            found = ["shim %d" % pid for pid in rig.ours("cloop-shim")]
            for pid, (name, _, _, command) in processes().items():
                if name in ("sh", "sleep") and any(
                        b": " + m + b";" in command for m in marks):
                    found.append("process %d of a workload" % pid)
            for agent in rig.names:
                for part in ("state/handles", "run/shim"):
                    try:
                        found += ["%s/%s/%s" % (agent, part, n) for n in
                                  os.listdir(rig.path(agent, part))]
                    except FileNotFoundError:
                        pass
            found += ["a mount: " + m for m in rig.list_mounts() - rig.mounts
                      if m.startswith(rig.base)]
            found += ["a cgroup: " + g for g in rig.list_groups() -
                      rig.groups if is_ours_group(g)]
            return found
        try:
            until("nothing left", 60, lambda: not left(), 0.2)
        except AssertionError:
            return ["left over: " + text for text in left()]
        rows = rig.handles()
        if rows is None:
            return []
        on_disk = set(os.listdir(rig.path("hub/state/hub/handles")))
        ids = {h["handle_id"].encode().hex() for h in rows.values()}
        return ["a directory without a row: " + d for d in
                on_disk - ids if not self.is_fresh_orphan(d)] + \
            ["a row without its directory: " + d for d in ids - on_disk]

    def is_fresh_orphan(self, name):
        """Made just before a crash: the hub's next start removes it."""
        self.rig.hub.signal(signal.SIGTERM)
        until("the hub's restart", 60, lambda: self.rig.ask("status"))
        return not os.path.exists(self.rig.path("hub/state/hub/handles",
                                                name))

    def check_end(self):
        rig = self.rig
        code, out = rig.ctl("audit", "verify")
        if code != 0:
            self.failures.append("audit: %r" % out)

    def run(self):
        number = 0
        try:
            self.rig.make()
            while self.ncuts < self.options.cuts:
                self.round(number)
                number += 1
            self.check_end()
        finally:
            self.rig.clear(self.options.keep or bool(self.failures)
                           and os.environ.get("CLOOP_KEEP") == "1")
        left = self.rig.ours()
        if left:
            self.failures.append("processes are left: %s" % left)
        groups = [g for g in self.rig.list_groups() - self.rig.groups
                  if is_ours_group(g)]
        self.failures += ["a cgroup is left: " + g for g in groups]


def is_ours_group(path):
    """An empty one whose shim is gone; others run tests too."""
    name = os.path.basename(path)    # "wPID-TIME"
    return name.startswith("w") and not os.path.exists(
        "/proc/" + name[1:].split("-")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--seed", type=int,
                        default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--only", choices=sorted(set(KINDS)))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("build")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    print("# seed %d" % options.seed, flush=True)
    torture = Torture(options)
    torture.run()
    print("# %d cuts, %d workloads of which %d exited, %d s" % (
        torture.ncuts, torture.nworks, torture.nexited,
        time.monotonic() - began))
    for text in torture.failures:
        print("# " + text)
    return 1 if torture.failures else 0


if __name__ == "__main__":
    sys.exit(main())
