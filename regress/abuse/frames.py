#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""Frames as they must not be, on live sessions beside 200 honest ones
(BC-26, BC-28, BC-29)."""
import json

from client import (BINARY, CLOSE, PING, PONG, Device, Siege, Wire, beat,
                    frame, note, point, request)

MIB = 1 << 20


def padded(n):
    """A message of n bytes that is sound in itself."""
    head = '{"v":26,"type":"heartbeat","payload":{"seq":7},"pad":"'
    return head + "x" * (n - len(head) - 2) + '"}'


def env(payload, kind="heartbeat"):
    return '{"v":26,"type":"%s","payload":%s}' % (kind, payload)


# what is sent, how the session ends: close codes, or "lives"
CASES = [
    ("unmasked", [frame(beat(1), mask=None)], [1002]),
    ("RSV1", [frame(beat(1), rsv=4)], [1002]),
    ("RSV2", [frame(beat(1), rsv=2)], [1002]),
    ("RSV3", [frame(beat(1), rsv=1)], [1002]),
    ("opcode 3", [frame(beat(1), op=3)], [1002]),
    ("opcode 11", [frame("", op=11)], [1002]),
    ("binary", [frame(beat(1), op=BINARY)], [1003]),
    ("a fragmented ping", [frame("", op=PING, fin=0)], [1002]),
    ("a ping of 126", [frame("x" * 126, op=PING)], [1002]),
    ("a ping of 125", [frame("x" * 125, op=PING)], ["lives"]),
    ("a stray continuation", [frame("", op=0)], [1002]),
    ("a text within a text", [frame("{", fin=0), frame("{}")], [1002]),
    ("a close of one byte", [frame("x", op=CLOSE)], [1002]),
    ("2^63 announced", [frame("", length=1 << 63)], [1002, "eof"]),
    ("2^63-1 announced", [frame("", length=(1 << 63) - 1)], [1009]),
    ("2^32+1 announced", [frame("", length=(1 << 32) + 1)], [1009]),
    ("1 MiB", [frame(padded(MIB))], ["lives"]),
    ("1 MiB + 1", [frame(padded(MIB + 1))], [1009]),
    ("1 MiB + 1 in pieces", [frame("x" * (MIB // 2), fin=0),
                             frame("x" * (MIB // 2), op=0, fin=0),
                             frame("x", op=0)], [1009]),
    ("a beat in fragments of a byte",
     [frame(beat(7)[0], fin=0)] +
     [frame(c, op=0, fin=0) for c in beat(7)[1:]] + [frame("", op=0)],
     ["lives"]),
    ("1 MiB + 1 in fragments of a byte",
     [frame(" ", fin=0), frame(" ", op=0, fin=0) * (MIB + 1)], [1009]),
    ("endless empty fragments",
     [frame("", fin=0), frame("", op=0, fin=0) * 4096], [1002]),
    ("1024 empty fragments",
     [frame("", fin=0), frame("", op=0, fin=0) * 1023,
      frame(beat(1), op=0)], ["lives"]),
    ("1025 empty fragments",
     [frame("", fin=0), frame("", op=0, fin=0) * 1024], [1002]),
    ("JSON 100 000 deep", [frame("[" * 100000)], [1000]),
    ("a deep payload", [frame(env('{"seq":' + "[" * 65 + "]" * 65 + "}"))],
     [1000, "lives"]),
    ("a deep payload over 256", [frame(env('{"seq":1,"x":' + "[" * 300 +
                                           "]" * 300 + "}"))],
     [1000, "lives"]),
    ("a huge version", [frame('{"v":99999999999999999999,"type":"x"}')],
     [1000]),
    ("a version of 1e999", [frame('{"v":1e999,"type":"x"}')], [1000]),
    ("a huge sequence", [frame(env('{"seq":1e400}'))], ["lives"]),
    ("a number of 100 000 digits",
     [frame(env('{"seq":1,"x":' + "9" * 100000 + "}"))], ["lives", 1000]),
    ("duplicate members", [frame('{"v":26,"v":26,"type":"x"}')],
     [1000, "lives"]),
    ("a duplicate in the payload", [frame(env('{"seq":1,"seq":2}'))],
     [1000, "lives"]),
    ("16 385 members", [frame(env("{" + ",".join(
        '"m%d":0' % i for i in range(16385)) + "}"))], [1000, "lives"]),
    ("invalid UTF-8", [frame(b'{"v":26,"type":"\xff\xc0\x80","id":"\xed'
                             b'\xa0\x80"}')], ["lives"]),
    ("no JSON", [frame("beat")], [1000]),
    ("two objects", [frame(beat(1) + beat(2))], [1000]),
    ("hello again", [frame(json.dumps({"v": 1, "type": "hello"}))],
     [1000]),
    ("256 KiB of small frames at once", [frame(beat(7)) * 3500], ["lives"]),
]


def refuse_frames(siege):
    device, wrong = Device(), []
    for name, sent, wanted in CASES:
        w = device.session()
        w.put(b"".join(sent))
        ends = w.outcome()
        if ends not in wanted:
            wrong.append("%s: %s, not %s" % (name, ends, wanted))
        w.close()
        siege.look()
    point(not wrong, "%d kinds of frames end as they should" % len(CASES),
          "; ".join(wrong))


HEADS = [
    ("2001 headers", request("x", "X: y\r\n" * 2001), [431]),
    ("a header of 64 KiB", request("x", "X: " + "y" * 65536 + "\r\n"), [431]),
    ("two Upgrade headers", request("x", "Upgrade: h2c\r\n"), [400, 401]),
    ("a bad version", request("x").replace(b": 13", b": 8"), [400]),
    ("a short key", request("x").replace(b"AAAA", b""), [400]),
    ("bare line feeds", request("x").replace(b"\r\n", b"\n"), [400]),
    ("a body", request("x", "Content-Length: 5\r\n"), [400]),
    ("two lengths", request("x", "Content-Length: 0\r\nContent-Length: 5\r\n"),
     [400]),
    ("a token of 4096", request("x" * 4096), [401, 400]),
]


def refuse_heads(siege):
    wrong = []
    for name, sent, wanted in HEADS:
        w = Wire()
        w.put(sent)
        try:
            status = w.head()[0]
        except (EOFError, OSError):
            status = "eof"
        if status not in wanted:
            wrong.append("%s: %s, not %s" % (name, status, wanted))
        w.close()
    point(not wrong, "%d malformed requests are answered" % len(HEADS),
          "; ".join(wrong))


def offer_compression(siege):
    device = Device()
    w = device.session(extra="Sec-WebSocket-Extensions: permessage-deflate; "
                       "server_max_window_bits=10\r\n")
    point("extensions" not in device.answer.lower() and w.is_alive(),
          "an offer of compression is left unanswered")
    w.close()


def flood_pings(siege):
    device = Device()
    w = device.session()
    for _ in range(40):         # 100 000 pings, nothing is read
        if not w.put(frame("p" * 125, op=PING) * 2500):
            break
        siege.look()
    note("a flood of pings ends with %s" % w.end(3))
    w.close()


def flood_pongs(siege):
    device = Device()
    w = device.session()
    for _ in range(40):
        if not w.put(frame("p" * 125, op=PONG) * 2500):
            break
        siege.look()
    note("a flood of pongs ends with %s" % w.outcome())
    w.close()


def hold_halves(siege):
    """Nearly whole messages for ever: their sum is bounded, not only
    each."""
    device = [Device() for _ in range(40)]
    ws = []
    for d in device:
        w = d.session()
        w.put(frame("x" * 100, length=MIB))
        ws.append(w)
    siege.look()
    for w in ws:
        w.sock.settimeout(10)
        for _ in range(7):
            if not w.put(b"x" * 131072):
                break
    siege.hold(1)
    for w in ws:
        w.close()


def main():
    siege = Siege()
    siege.attack("bad frames", refuse_frames, 400)
    siege.attack("bad requests", refuse_heads)
    siege.attack("compression", offer_compression)
    siege.attack("pings", flood_pings)
    siege.attack("pongs", flood_pongs)
    siege.attack("half messages", hold_halves, 400)
    siege.peace()


if __name__ == "__main__":
    main()
