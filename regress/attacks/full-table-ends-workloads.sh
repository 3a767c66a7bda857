# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# The monitor runs out of descriptors while a device with 505 workloads comes
# back: that is no reason to tell the device to end any of them.
tid="no descriptors left when a device comes back"
trees=one
. "$SRC/regress/attacks/attack.inc"

# shellcheck disable=SC3045
ulimit -n 1024
"$(attack_tool spec)" >"$TMP/spec.bin"
e2e_hub "NetWorkers 2"
e2e_tokens 2
attack_points python3 - <<'END'
from collections import Counter

from device import *

load_tokens()
h = Host()
h.serve()
run_on([h], 505)
note("running: %d" % len(h.handles))
h.hang_up()
time.sleep(1.5)
h.dial()
h.resume()
verdicts = Counter(v["action"] for v in h.verdicts())
point(len(h.handles) > 100 and set(verdicts) == {"continue"},
      "all of them go on", dict(verdicts))
END
