# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Ten devices with 510 workloads each come back at once, as after a restart of
# a switch: the monitor queues their HANDLE_OPENs for a healthy worker faster
# than any process reads, and must not punish the worker for it.
tid="ten devices with 510 workloads come back"
alone=yes
trees=one
. "$SRC/regress/attacks/attack.inc"

# shellcheck disable=SC3045
ulimit -Sn 20000
"$(attack_tool spec)" >"$TMP/spec.bin"
e2e_hub "NetWorkers 1" "PerSourcePenalty no" "MaxPerSource 1000"
e2e_tokens 12
attack_points python3 - <<'END'
from device import *

raise_limit()
load_tokens()
hosts = [Host(source()) for i in range(10)]
for h in hosts:
    h.serve()
run_on(hosts, 510)
note("running: %s" % [len(h.handles) for h in hosts])
point(sum(len(h.handles) for h in hosts) > 4000, "it came so far")
for h in hosts:
    h.hang_up()
time.sleep(1)
for h in hosts:
    h.dial(source())
for h in hosts:
    h.resume()
welcomed = 0
for h in hosts:
    try:
        h.verdicts()
        welcomed += 1
    except (OSError, EOFError):
        pass
point(welcomed == len(hosts), "all of them are welcomed", welcomed)
END
attack_held "the monitor ended nobody" grep event=child-kill "$TMP/hub.log"
