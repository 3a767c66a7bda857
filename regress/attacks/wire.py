# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Messages between the hub's (and the agent's) own processes, for tests that
play an operator's program or a child that was taken over.

What a message is made of stands in a catalogue, a text of lines

	ROW number direction states fd once
		member type bound

where the members of a list follow it, indented by one more tab; it is made
of the .def files of the tree, $SRC.
"""
import array
import fcntl
import glob
import os
import re
import select
import socket
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
HEAD = struct.Struct(">IIQ")            # type, length of the body, id


# ------------------------------------------------------------- the catalogue

class Row:
    def __init__(self, name, number, direction, states, has_fd, once):
        self.name, self.number = name, int(number, 0)
        self.direction, self.states = direction, states.split(",")
        self.has_fd, self.is_once = has_fd == "1", once == "1"
        self.members = []               # [name, type, bound, [members]]


def read_catalogue(text):
    """{name: Row} of a generated text."""
    rows, lists = {}, []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip("\t"))
        words = line.split()
        if not words:
            continue
        if depth == 0:
            row = rows[words[0]] = Row(*words)
            lists = [row.members]
        else:
            del lists[depth:]
            lists[-1].append([*words[:3], []])
            lists.append(lists[-1][-1][3])
    return rows


# How each kind of member of a .def is written.
KINDS = {"STR": "str", "CSTR": "str", "RAW": "str", "SECRET": "data",
         "SBYTES": "data", "BYTES": "data", "INT": "i64", "UINT": "u64",
         "TIME": "i64", "BOOL": "bool", "STRS": "strs", "MAP": "pairs"}


def tree_text(pattern):
    found = {}
    for path in sorted(glob.glob(os.environ["SRC"] + "/" + pattern,
                                 recursive=True)):
        with open(path, encoding="utf-8") as file:
            found[os.path.basename(path)] = re.sub(
                r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    return found


def member_lines(structs, name, depth):
    """The members of a struct, those of others in it expanded."""
    for kind, words in structs[name]:
        member, *more = [w.strip() for w in words.split(",")]
        if kind == "OBJ":
            yield from member_lines(structs, more[0], depth)
        elif kind == "LIST":
            yield "\t" * depth + "%s array %s" % (member, more[0])
            yield from member_lines(structs, more[1], depth + 1)
        else:
            yield "\t" * depth + "%s %s %s" % (
                member, KINDS.get(kind, kind),
                (more or ["-"])[-1].replace(" ", ""))


def catalogue_of_tree():
    """The text, of the channels that catalogue.def includes."""
    defs, structs, out = tree_text("common/**/*.def"), {}, []
    for text in defs.values():
        for name, body in re.findall(
                r"^STRUCT\((\w+)\)(.*?)^END\(", text, re.M | re.S):
            structs[name] = re.findall(r"^\s*([A-Z]+)\((.*)\)", body, re.M)
    for part in re.findall(r'#include "(\w+\.def)"',
                           defs.get("catalogue.def", "")):
        for row in re.findall(r"^ROW\((.*?)\)$", defs[part], re.M | re.S):
            name, number, way, states, body, fd, once = [
                w.strip() for w in row.split(",")][:7]
            try:
                members = list(member_lines(structs, body, 1))
            except KeyError:
                continue                # a struct that no .def declares
            states = states.replace("MS_", "").replace(" | ", ",")
            out += [" ".join([name, number, way, states, fd, once]), *members]
    return "\n".join(out)


def numbers_of_tree():
    found = {}
    for text in [*tree_text("common/msg/*.h").values(),
                 *tree_text("common/msg/*.def").values()]:
        found.update(re.findall(r"\b([A-Z][A-Z_]+), *(0x[0-9a-f]{4})\b",
                                text))
    return {name: int(number, 16) for name, number in found.items()}


ROWS = read_catalogue(catalogue_of_tree())
NUMBERS = {name: row.number for name, row in ROWS.items()}
NUMBERS.update(numbers_of_tree())
NAMES = {number: name for name, number in NUMBERS.items()}
VERSION = int(re.search(r"define MSGCAT_VERSION (\d+)",
                        tree_text("common/msg/msgcat.h")["msgcat.h"]).group(1))


# ------------------------------------------------- packing, a function a type

def u8(n):
    return struct.pack(">B", n)


def u16(n):
    return struct.pack(">H", n)


def u32(n):
    return struct.pack(">I", n)


def u64(n):
    return struct.pack(">Q", n)


def i64(n):
    return struct.pack(">q", n)


def boolean(n):
    return struct.pack(">B", bool(n))


def string(x):
    return blob(x.encode())


def blob(x):
    return u32(len(x)) + x


def data(x):
    """Bytes that may be none at all."""
    x = x.encode() if isinstance(x, str) else x
    return u8(bool(x)) + blob(x or b"")


def count(values):
    """Of things that may be none at all."""
    return u32(len(values) + 1 if values else 0)


def strs(values):
    return count(values) + b"".join(map(string, values or ()))


def pairs(values):
    return count(values) + b"".join(
        string(k) + string(v) for k, v in (values or {}).items())


def list_of(values, members):
    return u16(len(values)) + b"".join(pack_all(members, v) for v in values)


def array_of(values, members):
    return count(values) + b"".join(pack_all(members, v) for v in values)


PACK = {"u8": u8, "u16": u16, "u32": u32, "u64": u64, "i64": i64,
        "bool": boolean, "str": string, "blob": blob, "data": data,
        "strs": strs, "pairs": pairs}
PACK_MANY = {"list": list_of, "array": array_of}


def pack_all(members, values):
    if len(values) != len(members):
        raise ValueError("%d values for %s" % (
            len(values), [m[0] for m in members]))
    return b"".join(
        PACK_MANY[kind](value, inner) if kind in PACK_MANY
        else PACK[kind](value)
        for (_, kind, _, inner), value in zip(members, values))


# ----------------------------------------------- unpacking, the other way round

FIXED = {"u8": ">B", "u16": ">H", "u32": ">I", "u64": ">Q", "i64": ">q",
         "bool": ">?"}


class Reader:
    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, n):
        self.at += n
        if self.at > len(self.body):
            raise ValueError("the body is too short")
        return self.body[self.at - n:self.at]

    def fixed(self, kind):
        form = FIXED[kind]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def blob(self):
        return self.take(self.fixed("u32"))

    def count(self):
        return max(self.fixed("u32") - 1, 0)

    def get(self, members):
        return {name: self.get_one(kind, inner)
                for name, kind, _, inner in members}

    def get_one(self, kind, inner):
        if kind == "list":
            return [self.get(inner) for _ in range(self.fixed("u16"))]
        if kind == "array":
            return [self.get(inner) for _ in range(self.count())]
        if kind == "strs":
            return [self.get_one("str", ()) for _ in range(self.count())]
        if kind == "pairs":
            return dict((self.get_one("str", ()), self.get_one("str", ()))
                        for _ in range(self.count()))
        if kind == "data":
            self.fixed("u8")
        if kind in ("blob", "data"):
            return self.blob()
        if kind == "str":
            return self.blob().decode(errors="replace")
        return self.fixed(kind)


def members_of(name, body):
    """{member: value} of a body; what follows the last is not looked at."""
    return Reader(body).get(ROWS[name].members)


def message(name, ident, values):
    """The values are those of its members, in their order."""
    body = pack_all(ROWS[name].members, values)
    return HEAD.pack(NUMBERS[name], len(body), ident) + body


# ------------------------------------------------------------------- helpers

def rss(pid):
    """KiB."""
    with open("/proc/%s/status" % pid, encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def drop_to(uid, gid):
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def memfd(data):
    """Sealed, as everything that crosses between processes."""
    fd = os.memfd_create("x", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK |
                fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def write_file(path, data):
    """It is there when it is complete."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(str(data))
    os.rename(path + ".new", path)


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def wait_file(path, seconds=60):
    end = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise SystemExit("%s: not in %d s" % (path, seconds))
        time.sleep(0.05)


# ------------------------------------------------------------------ the peers

class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.waiting = []       # came while we wanted to send

    def send(self, name, ident, *values, fd=None):
        anc = [] if fd is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))]
        # Who is not read while it does not read itself would wait for ever.
        while True:
            can, may, _ = select.select([self.sock], [self.sock], [])
            if may:
                try:
                    self.sock.sendmsg([message(name, ident, values)], anc,
                                      socket.MSG_DONTWAIT)
                    return
                except BlockingIOError:
                    pass
            if can:
                self.waiting.append(self.sock.recvmsg(65536, 1024))

    def send_file(self, name, ident, *values, data):
        """With a descriptor of these bytes."""
        fd = memfd(data)
        self.send(name, ident, *values, fd=fd)
        os.close(fd)

    def read(self, timeout=None, keep=False):
        """(name, id, body[, fd]); None when nothing comes in time."""
        if self.waiting:
            data, anc, _, _ = self.waiting.pop(0)
        elif timeout is not None and not select.select(
                [self.sock], [], [], timeout)[0]:
            return None
        else:
            data, anc, _, _ = self.sock.recvmsg(65536, 1024)
        if not data:
            raise EOFError
        fds = array.array("i")
        for _, _, part in anc:
            fds.frombytes(part[:len(part) // 4 * 4])
        number, _, ident = HEAD.unpack(data[:HEAD.size])
        got = NAMES.get(number, hex(number)), ident, data[HEAD.size:]
        if keep:
            return (*got, fds[0] if fds else None)
        for fd in fds:
            os.close(fd)
        return got

    def until(self, name, seconds=60):
        """The next message of this name; None when it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.read(1)
            if got and got[0] == name:
                return got
        return None

    def ask(self, name, ident, *values, seconds=60):
        """{member: value} of its answer, {} when there is none."""
        self.send(name, ident, *values)
        got = self.until(name + "_ANS", seconds)
        return members_of(*got[::2]) if got else {}

    def drain(self, seconds=0):
        n = 0
        while self.read(seconds) is not None:
            n += 1
        return n


class Operator(Channel):
    """A program on the hub's control socket."""

    def __init__(self, path=None):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(30)
        s.connect(path or os.environ["TMP"] + "/run/cloopd.sock")
        super().__init__(s)
        self.send("CTL_HELLO", 1, VERSION)
        self.read()

    def run_on(self, agents, spec, at_once=16, seconds=150):
        """A detached workload on each of these: how many were started."""
        left, asked, started = list(enumerate(agents, 2)), 0, 0
        end = time.monotonic() + seconds
        while (left or asked) and time.monotonic() < end:
            while left and asked < at_once:
                ident, agent = left.pop(0)
                self.send_file("CTL_RUN", ident, len(spec), agent, "", True,
                               [], data=spec)
                asked += 1
            got = self.read(5)
            if got and got[0] in ("CTL_DONE", "CTL_ERR"):
                asked -= 1
                started += got[0] == "CTL_DONE"
        return started


class Child(Channel):
    """This process, started by a monitor in place of its child."""

    def __init__(self, name):
        super().__init__(socket.socket(fileno=3))
        self.sock.setblocking(True)
        self.name = name

    def read(self, timeout=None, keep=False):
        try:
            return super().read(timeout, keep)
        except EOFError:
            sys.exit(0)                 # the monitor is gone

    def serve(self):
        """Whatever comes, for ever."""
        while True:
            self.read()

    def say(self, words):
        sys.stderr.write("fake %s: %s\n" % (self.name, words))
        sys.stderr.flush()


class Fetcher(Child):
    """An agentd-fetch that was taken over; it ends as a resolver."""

    def __init__(self):
        if sys.argv[1:] != ["session"]:
            sys.exit(0)
        super().__init__("fetch")
        while self.read()[0] != "FETCH_START":
            pass
        self.send("FETCH_READY", 0, VERSION)


def hang_up(fd):
    """On whoever dials this listening socket."""
    s = socket.socket(fileno=fd)
    s.setblocking(True)
    while True:
        try:
            s.accept()[0].close()
        except OSError:
            time.sleep(0.1)


class Worker(Child):
    """A cloopd-net that was taken over; it serves nobody who dials it."""

    def __init__(self, tmp):
        super().__init__("net")
        self.tmp, self.session = tmp, 0
        name = worker = None
        while name != "NET_START":
            name, _, body, fd = self.read(keep=True)
            if name == "NET_CONFIG":
                worker = members_of(name, body)["worker"]
            if name == "NET_LISTEN":
                threading.Thread(target=hang_up, args=(fd,),
                                 daemon=True).start()
            elif fd is not None:
                os.close(fd)
        self.send("NET_READY", 0, VERSION, worker)

    @classmethod
    def second(cls, tmp, program):
        """Of two workers the first one that asks stays what it is."""
        try:
            os.close(os.open(tmp + "/orders/first",
                             os.O_CREAT | os.O_EXCL))
            os.execv(program, [os.path.basename(program)])
        except FileExistsError:
            pass
        return cls(tmp)

    def wait_order(self, name):
        while not os.path.exists(self.tmp + "/orders/" + name):
            self.read(0.2)

    def login(self):
        """A device enrolls: its session."""
        while not os.path.exists(self.tmp + "/tokens"):
            self.read(0.1)
        token = read_file(self.tmp + "/tokens").split()[0].decode()
        got = self.ask("AUTH", 1, token, "127.0.0.1:1")
        if got.get("result") != 0:
            raise SystemExit("no session")
        self.session = got["session"]
        hello = read_file(self.tmp + "/hello.bin")
        self.send_file("HELLO", 2, self.session, len(hello), data=hello)
        if members_of(*self.until("HELLO_ANS")[::2])["result"]:
            raise SystemExit("no welcome")
        self.send("SESSION_UP", 0, self.session)

    def start_answer(self, ident, handle):
        """It runs."""
        self.send("START_ANS", ident, 0, "", "", 1, time.time_ns())

    def status(self, handle, state, code, error="", received=0):
        now = time.time_ns()
        self.send("HANDLE_STATUS", 0, self.session, handle, state, 1, code,
                  now, now, error, False, 0, received,
                  False)
