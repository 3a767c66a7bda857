#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""The link between devices and hub, for the row `resume`: cuts and counts.

usage: resume_link.py -l PORT -p HUBPORT -k KEYDIR -s SOCKET -t DIR -c CTL

It ends TLS with the hub's own key, so that it sees frames: how far the hub
said it had got (welcome, log_ack), and what the device sent after that.  A
line on standard input is a task,

	cut DEVICES MIB CUTS SEED	devices named d1.., that much output each
	first MIB CUTS SEED		of d1, with an operator who follows

each answered by one line of numbers on standard output.  A task that finds
output lost, doubled or changed ends the program.
"""
import argparse
import asyncio
import hashlib
import json
import os
import random
import socket
import ssl
import struct
import sys
import time

LINE = 10                       # bytes of a line of the workload's output


def fail(text):
    print(text, file=sys.stderr, flush=True)
    os._exit(1)


class Output:
    """One workload, and what its device has sent of it."""

    def __init__(self, device, size, cuts, rng):
        self.device, self.size, self.cuts, self.rng = device, size, cuts, rng
        self.handle = None
        self.go = -1            # its FIFO: a line starts it, one ends it
        self.ncuts = 0
        self.acked = 0          # highest that the hub ever confirmed
        self.given = 0          # highest that reached the hub's socket whole
        self.sent = 0           # of text, all of it
        self.beyond = 0         # of it, what the hub had already
        self.unread = 0         # given, but gone with the cut

    def budget(self, need):
        """After how many bytes of output this connection is cut; None: not
        at all."""
        left = self.cuts - self.ncuts
        if left <= 0:
            return None
        return int((self.size - need) / (left + 1) *
                   self.rng.uniform(0.5, 1.5))


class Connection:
    def __init__(self, link, began):
        self.link, self.began = link, began
        self.need, self.passed, self.limit = {}, 0, None
        self.output = None
        self.cut = asyncio.Event()

    # -- what passes

    async def read_frame(self, reader):
        """Header with mask, payload in clear, or None at the end."""
        try:
            head = await reader.readexactly(2)
            length = head[1] & 127
            more = b""
            if length > 125:
                more = await reader.readexactly(2 if length == 126 else 8)
                length = int.from_bytes(more, "big")
            mask = await reader.readexactly(4) if head[1] & 128 else b""
            raw = await reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError, ssl.SSLError):
            return None
        text = raw
        if mask and raw:
            key = (mask * (length // 4 + 1))[:length]
            text = (int.from_bytes(raw, "big") ^
                    int.from_bytes(key, "big")).to_bytes(length, "big")
        return head + more + mask + raw, (head[0] & 15) == 1 and text

    async def pass_head(self, reader, writer):
        writer.write(await reader.readuntil(b"\r\n\r\n"))
        await writer.drain()

    async def pump_up(self, reader, writer):
        await self.pass_head(reader, writer)
        while True:
            frame = await self.read_frame(reader)
            if frame is None:
                return
            raw, text = frame
            length = self.see_up(text) if text and b"log_chunk" in text[:99] \
                else 0
            if self.limit is not None and self.passed + length > self.limit:
                # Inside a frame as often as at its end.
                part = self.output.rng.choice([0, len(raw), self.output.rng
                                               .randrange(len(raw))])
                writer.write(raw[:part])
                if part == len(raw):
                    self.on_given(text)
                self.output.ncuts += 1
                return
            writer.write(raw)
            await writer.drain()
            self.passed += length
            if length:
                self.on_given(text)

    async def pump_down(self, reader, writer):
        await self.pass_head(reader, writer)
        while True:
            frame = await self.read_frame(reader)
            if frame is None:
                return
            if frame[1]:
                self.see_down(json.loads(frame[1]))
            writer.write(frame[0])
            await writer.drain()

    # -- what is seen of it

    def see_down(self, frame):
        if frame["type"] == "welcome":
            self.link.on_welcome(self)
            for verdict in frame["payload"].get("resume_accepted") or []:
                self.resume(verdict["handle_id"], verdict["from_offset"])
        elif frame["type"] == "log_ack":
            out = self.link.outputs.get(frame["handle"])
            if out is not None:
                out.acked = max(out.acked, frame["payload"]["offset"])

    def resume(self, handle, offset):
        out = self.link.outputs.get(handle)
        if out is None:
            return
        self.output = out
        self.need[handle] = offset
        self.limit = out.budget(offset)
        if offset < out.acked:
            out.beyond += out.acked - offset
        out.unread += max(0, out.given - offset)
        if out.ncuts % 100 == 0:
            print("%s: %d cuts, %d of %d bytes, %d beyond need, %d unread"
                  % (out.device, out.ncuts, offset, out.size, out.beyond,
                     out.unread), file=sys.stderr, flush=True)
        out.given = offset
        self.link.offset = offset

    def see_up(self, text):
        """Length of the output in this chunk."""
        frame = json.loads(text)
        out = self.link.outputs.get(frame.get("handle"))
        if out is None:
            return 0
        begin = frame["payload"]["offset"]
        length = len(frame["payload"]["text"].encode())
        need = self.need.get(frame["handle"], 0)
        out.sent += length
        out.beyond += max(0, min(need, begin + length) - begin)
        if begin > need:
            fail("%s: a gap, %d to %d" % (out.device, need, begin))
        self.need[frame["handle"]] = max(need, begin + length)
        return length

    def on_given(self, text):
        frame = json.loads(text)
        out = self.link.outputs.get(frame.get("handle"))
        if out is not None:
            out.given = max(out.given, frame["payload"]["offset"] +
                            len(frame["payload"]["text"].encode()))


class Link:
    def __init__(self, options):
        self.options = options
        self.outputs = {}
        self.closed = False
        self.tasks = set()
        self.offset = 0
        self.began = self.welcome = None
        self.nruns = 0
        self.server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_tls.load_cert_chain(options.keys + "/tls.crt",
                                        options.keys + "/tls.key")
        self.client_tls = ssl.create_default_context(
            cafile=options.keys + "/tls.crt")

    # -- connections

    async def listen(self):
        loop = asyncio.get_running_loop()
        sock = socket.create_server(("127.0.0.1", self.options.listen),
                                    backlog=512)
        sock.setblocking(False)
        while True:
            conn, _ = await loop.sock_accept(sock)
            began = time.monotonic()
            if self.closed:
                conn.close()
                continue
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = loop.create_task(self.serve(conn, began))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def serve(self, conn, began):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(1 << 21)
        protocol = asyncio.StreamReaderProtocol(reader)
        writers = []
        pumps = []
        try:
            hub = asyncio.open_connection(
                "127.0.0.1", self.options.port, ssl=self.client_tls,
                server_hostname="localhost", limit=1 << 21)
            hub = loop.create_task(hub)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, conn, ssl=self.server_tls)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            writers.append(writer)
            hub_reader, hub_writer = await hub
            writers.append(hub_writer)
            this = Connection(self, began)
            pumps = [loop.create_task(this.pump_up(reader, hub_writer)),
                     loop.create_task(this.pump_down(hub_reader, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        finally:
            for pump in pumps:
                pump.cancel()
            rough = random.random() < 0.5
            for writer in writers:
                if rough:       # a reset on both sides
                    sock = writer.get_extra_info("socket")
                    if sock is not None and sock.fileno() != -1:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                        struct.pack("ii", 1, 0))
                    writer.transport.abort()
                else:
                    writer.close()

    def on_welcome(self, connection):
        self.began, self.welcome = connection.began, time.monotonic()

    def cut_all(self):
        for task in self.tasks:
            task.cancel()

    # -- tasks

    async def ctl(self, *argv):
        process = await asyncio.create_subprocess_exec(
            self.options.ctl, "-s", self.options.socket, "-q", *argv,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        if process.returncode:
            fail("cloopctl %s: status %d" % (argv, process.returncode))
        return out

    async def start(self, device, size, cuts, rng):
        """A workload that has written it all while its hub was away."""
        self.nruns += 1
        name = "r%d" % self.nruns
        lines = size // LINE
        out = Output(device, lines * LINE, cuts, rng)
        text = await self.ctl(
            "--json", "run", "--on", device, "--detach", "--name", name,
            "--workdir", name, "--", "sh", "-c",
            "mkfifo go; read x <go; seq 100000000 %d; echo >end; read x <go" %
            (100000000 + lines - 1))
        out.handle = json.loads(text.splitlines()[-1])["handle_id"]
        out.tree = os.path.join(self.options.tmp, device, "work", name)
        self.outputs[out.handle] = out
        return out

    async def fill(self, outputs):
        self.closed = True
        self.cut_all()
        while self.tasks:
            await asyncio.sleep(0.02)
        for out in outputs:
            while not os.path.exists(out.tree + "/go"):
                await asyncio.sleep(0.05)
            # Both: it is there, and nobody waits for the other side.
            out.go = os.open(out.tree + "/go", os.O_RDWR)
            os.write(out.go, b"go\n")
        for out in outputs:
            while not os.path.exists(out.tree + "/end"):
                await asyncio.sleep(0.05)
        self.closed = False

    async def finish(self, outputs):
        for out in outputs:
            os.write(out.go, b"end\n")
            await self.ctl("wait", "--", out.handle)
            got = hashlib.sha256(await self.ctl("logs", "--", out.handle))
            want = await asyncio.create_subprocess_exec(
                "seq", "100000000", "%d" % (99999999 + out.size // LINE),
                stdout=asyncio.subprocess.PIPE)
            text, _ = await want.communicate()
            if got.digest() != hashlib.sha256(text).digest():
                fail("%s: its output differs" % out.device)
            if out.ncuts != out.cuts:
                fail("%s: %d cuts" % (out.device, out.ncuts))
            os.close(out.go)
            del self.outputs[out.handle]

    async def cut(self, ndevices, mib, ncuts, seed):
        rng = random.Random(seed)
        outputs = [await self.start("d%d" % (i + 1), mib << 20,
                                    ncuts // ndevices, rng)
                   for i in range(ndevices)]
        began = time.monotonic()
        await self.fill(outputs)
        while any(o.acked < o.size for o in outputs):
            await asyncio.sleep(0.1)
        seconds = time.monotonic() - began
        await self.finish(outputs)
        return "%d %d %d %d %.1f" % (
            sum(o.ncuts for o in outputs), sum(o.beyond for o in outputs),
            sum(o.unread for o in outputs),
            sum(o.sent - o.size for o in outputs), seconds)

    async def first(self, mib, ncuts, seed):
        """Milliseconds from the connection, and from the welcome, to the
        first byte that an operator had not seen; the medians."""
        rng = random.Random(seed)
        out = await self.start("d1", mib << 20, ncuts, rng)
        follower = await asyncio.create_subprocess_exec(
            self.options.ctl, "-s", self.options.socket, "-q", "logs", "-f",
            "--", out.handle, stdout=asyncio.subprocess.PIPE)
        await self.fill([out])
        seen, last, dial, resume = 0, None, [], []
        while seen < out.size:
            piece = await follower.stdout.read(65536)
            now = time.monotonic()
            if not piece:
                fail("the follower ended at %d" % seen)
            seen += len(piece)
            if self.welcome != last and seen > self.offset:
                last = self.welcome
                dial.append(now - self.began)
                resume.append(now - self.welcome)
        follower.kill()
        await follower.wait()
        await self.finish([out])
        dial.sort()
        resume.sort()
        return "%.3f %.3f %d" % (dial[len(dial) // 2] * 1e3,
                                 resume[len(resume) // 2] * 1e3, len(dial))

    async def run(self):
        loop = asyncio.get_running_loop()
        listener = loop.create_task(self.listen())
        print("ready", flush=True)
        while True:
            line = await loop.run_in_executor(None, sys.stdin.readline)
            if not line:
                break
            name, *numbers = line.split()
            task = {"cut": self.cut, "first": self.first}[name]
            print(await task(*map(int, numbers)), flush=True)
        listener.cancel()
        self.cut_all()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-l", dest="listen", type=int, required=True)
    parser.add_argument("-p", dest="port", type=int, required=True)
    parser.add_argument("-k", dest="keys", required=True)
    parser.add_argument("-s", dest="socket", required=True)
    parser.add_argument("-t", dest="tmp", required=True)
    parser.add_argument("-c", dest="ctl", default="cloopctl")
    asyncio.run(Link(parser.parse_args()).run())


if __name__ == "__main__":
    main()
