# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# BC-28: a device that floods pings and never reads costs the hub nothing but
# its own session.
tid="a flood of pings"
. "$SRC/regress/e2e-lib.sh"

e2e_hub "NetWorkers 1"
for name in flood beat; do e2e_mint $name; done
python3 - "$TMP" "$E2E_PORT" "$hub_pid" >"$TMP/out" 2>"$TMP/err" <<'END'
import base64, json, os, socket, ssl, struct, sys, time

tmp, port, hub = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PING, PONG, TEXT, CLOSE = 9, 10, 1, 8
BOUND = 2000                    # MAX_CONTROL_FRAMES


def worker():
    for pid in open("/proc/%s/task/%s/children" % (hub, hub)).read().split():
        if open("/proc/%s/comm" % pid).read() == "cloopd-net\n":
            return pid


def rss(pid):
    for line in open("/proc/%s/status" % pid):
        if line.startswith("VmRSS"):
            return int(line.split()[1])


class Link:
    def __init__(self, name):
        text = open("%s/%s.bundle" % (tmp, name)).read().split(".")[1].strip()
        token = json.loads(base64.urlsafe_b64decode(
            text + "=" * (-len(text) % 4)))["token"]
        tls = ssl.create_default_context(cafile=tmp + "/keys/tls.crt")
        self.sock = tls.wrap_socket(socket.create_connection(
            ("127.0.0.1", port)), server_hostname="127.0.0.1")
        self.sock.sendall((
            "GET /api/executors/connect HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Authorization: Bearer %s\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: %s\r\n\r\n" % (
                token, base64.b64encode(os.urandom(16)).decode())).encode())
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        assert b" 101 " in head, head
        self.text({"v": 1, "type": "hello", "id": "hello", "payload": {
            "protocol_version": 26, "agent_id": "", "capabilities": {
                "os": "linux", "arch": "amd64"}}})
        assert self.until(TEXT)["type"] == "welcome"

    def more(self):
        got = self.sock.recv(65536)
        if not got:
            raise EOFError
        self.data += got

    def frame(self):
        def need(n):
            while len(self.data) < n:
                self.more()
        need(2)
        op, n, at = self.data[0] & 15, self.data[1] & 127, 2
        if n == 126:
            need(4)
            n, at = struct.unpack(">H", self.data[2:4])[0], 4
        need(at + n)
        body, self.data = self.data[at:at + n], self.data[at + n:]
        return op, body

    def until(self, want):
        while True:
            op, body = self.frame()
            if op == want:
                return json.loads(body) if op == TEXT else body

    def text(self, value):
        body = json.dumps(value).encode()
        assert 125 < len(body) < 65536 or len(body) <= 125
        head = bytes([0x81, 0x80 | len(body)]) if len(body) < 126 else \
            bytes([0x81, 0xfe]) + struct.pack(">H", len(body))
        self.sock.sendall(head + bytes(4) + body)

    def beat(self):
        began = time.monotonic()
        self.text({"v": 26, "type": "heartbeat", "id": "b",
                   "payload": {"seq": 1}})
        assert self.until(TEXT)["type"] == "heartbeat_ack"
        return time.monotonic() - began


ping = bytes([0x80 | PING, 0x80 | 125]) + bytes(4) + b"x" * 125
flood, other = Link("flood"), Link("beat")
pid = worker()
calm = sorted(other.beat() for _ in range(50))
before = rss(pid)
flood.sock.sendall(ping * BOUND)
stormy = sorted(other.beat() for _ in range(50))
after = rss(pid)
print("ok" if after - before < 4096 else "no",
      "%d pings unread: the worker grew by %d KiB" % (BOUND, after - before))
print("ok" if stormy[-1] < max(0.25, 2 * calm[-1]) else "no",
      "beats of another: at most %.1f ms, %.1f ms before" % (
          stormy[-1] * 1e3, calm[-1] * 1e3))
flood.text({"v": 26, "type": "heartbeat", "id": "b", "payload": {"seq": 1}})
npongs = 0
while True:
    op, body = flood.frame()
    npongs += op == PONG
    if op == TEXT:
        break
print("ok", "the session outlives as many as there may be")
flood.sock.sendall(ping)
code = struct.unpack(">H", flood.until(CLOSE)[:2])[0]
print("ok" if code == 1008 else "no", "one more ends it with 1008:", code)
print("ok" if other.beat() < 2 else "no", "the other lives on")
END
points_of "$TMP/out"
[ "$(grep -c '^ok\|^no' "$TMP/out")" = 5 ] || {
	fail "not all of it ran"
	note "$(tail -n 20 "$TMP/err")"
}
[ "$(grep -c 'event=agent-down.*too many pings' "$TMP/hub.log")" = 1 ] &&
    pass "the hub says so once" || fail "$(grep agent-down "$TMP/hub.log")"
