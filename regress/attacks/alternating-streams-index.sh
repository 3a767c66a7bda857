# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# `LogLimit 1M' and a device that alternates between stdout and stderr a byte
# at a time: the log is bounded, and so is its index.
tid="the index of a log of one-byte chunks"
trees=one
. "$SRC/regress/attacks/attack.inc"

"$(attack_tool spec)" >"$TMP/spec.bin"
e2e_hub "LogLimit 1M"
e2e_tokens 2
attack_points python3 - <<'END'
import glob

from device import *

load_tokens()
h = Host()
h.serve()                       # and reads what else there is
if run_on([h]) != 1:
    raise SystemExit("no workload")
chunk = ('{"v":26,"type":"log_chunk","handle":"%s","payload":{"stream":"%s",'
         '"offset":%d,"text":"x"}}')
off, end, last = 0, time.monotonic() + 30, 0
while off < 250000 and time.monotonic() < end:
    data = b"".join(
        frame(chunk % (h.handles[0], ("stdout", "stderr")[n % 2], n))
        for n in range(off, off + 500))
    off += 500
    if not h.wire.put(data):
        note("ended")
        break
    if time.monotonic() - last > 3:
        last = time.monotonic()
        h.beat()
time.sleep(1)
sizes = {os.path.basename(p): os.stat(p).st_size >> 10
         for p in glob.glob(TMP + "/hub/**/handles/*/*", recursive=True)}
note("%d chunks; KiB: %s" % (off, sizes))
point(off >= 125000 and sum(sizes.values()) <= 4096,
      "log and index are at most 4 MiB", sizes)
END
