# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A viewer opens 31 connections, asks each for the audit 32 times and reads
# nothing: only those connections may suffer, not cloopd-ctl and its others.
tid="a viewer that does not read"
trees=one
. "$SRC/regress/attacks/attack.inc"

ctl_child()
{
	for p in $(e2e_children "$hub_pid"); do
		[ "$(cat "/proc/$p/comm")" != cloopd-ctl ] || echo "$p"
	done
}

gid=$(getent group games | cut -d: -f3)
e2e_hub "ViewerGroup games"
chmod 711 "$TMP/run"
e2e_tokens 20
ctl_pid=$(ctl_child)
attack_points python3 - "$gid" <<'END'
from wire import *

other = Operator()              # root's, and idle
held = []
drop_to(65533, int(sys.argv[1]))
try:
    for c in range(31):
        k = Operator()
        for r in range(32):
            k.send("CTL_AUDIT", r + 2, 0, -2**63, 256)
        held.append(k)
except OSError as why:
    print("note refused at", len(held), why)
time.sleep(3)
try:
    other.send("CTL_STATUS", 2)
    lives = other.until("CTL_DONE", 30) is not None
except (OSError, EOFError):
    lives = False
print("pass" if lives else "fail", "another connection lives on")
END
run "cloopd-ctl is the same process" test "$(ctl_child)" = "$ctl_pid"
attack_held "the monitor ended nobody" grep event=child-kill "$TMP/hub.log"
