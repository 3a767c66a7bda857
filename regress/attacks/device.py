# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""A device that says it runs whatever it is told to start, and comes back."""
import threading

from client import *
from wire import Operator, read_file

BEGAN = "2026-01-02T03:04:06Z"


class Host(Device):
    def __init__(self, address=None):
        super().__init__()
        self.handles, self.seq = [], 0
        self.wire = self.session(address)

    def say(self, kind, payload, **more):
        return self.wire.put(frame(json.dumps(dict(
            {"v": 26, "type": kind, "payload": payload}, **more))))

    def beat(self):
        self.seq += 1
        return self.say("heartbeat", {
            "seq": self.seq, "active_handles": self.handles},
            id="b%d" % self.seq)

    def accept(self):
        """The next start; now and then the list of all."""
        start = self.wire.say("start")
        handle = start["payload"]["handle_id"]
        self.handles.append(handle)
        self.say("started", {"handle_id": handle, "pid": 1,
                             "started_at": BEGAN},
                 id=start["id"], handle=handle)
        if len(self.handles) % 40 == 0:
            self.beat()
        return handle

    def serve(self):
        """Every start, until the connection ends."""
        def work():
            try:
                self.wire.sock.settimeout(None)
                while True:
                    self.accept()
            except (OSError, EOFError):
                pass
        threading.Thread(target=work, daemon=True).start()

    def hang_up(self):
        self.wire.sock.shutdown(socket.SHUT_RDWR)

    def dial(self, address=None, seconds=60):
        """Again, up to the upgrade."""
        self.wire = Wire(address, seconds)
        self.wire.put(request(self.token))
        self.wire.head()

    def resume(self):
        """It still runs all of them."""
        self.wire.put(frame(json.dumps({
            "v": 1, "type": "hello", "id": "h", "payload": {
                "protocol_version": 26, "agent_id": self.agent_id,
                "capabilities": CAPS, "resume": [
                    {"handle_id": h, "started_at": BEGAN, "log_offset": 0}
                    for h in self.handles]}})))

    def verdicts(self):
        """What the welcome says of them."""
        return self.wire.say("welcome")["payload"].get("resume_accepted", [])


def run_on(hosts, each=1):
    """So many workloads on each of them."""
    return Operator().run_on([h.agent_id for h in hosts] * each,
                             read_file(TMP + "/spec.bin"))
