# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A worker that was taken over penalises an address for a day: not when another
# worker has a live session from there, and not for what it never saw.
tid="penalties of a taken-over worker"
trees=one
. "$SRC/regress/attacks/attack.inc"

mkdir -m 755 "$TMP/orders"
attack_fake cloopd-net <<'END'
c = Worker.second(TMP, BUILD + "/cloopd-net")
write_file(TMP + "/orders/serving", "")
c.wait_order("go")
c.send("PENALTY", 0, "127.3.0.9", 3, 86400000, 86400000)
c.serve()
END
e2e_hub "NetWorkers 2"
e2e_tokens 4
attack_points python3 - <<'END'
from client import *
from wire import wait_file, write_file

load_tokens()
a, b = Device(), Device()
wait_file(TMP + "/orders/serving")
w = a.persist("127.3.0.9")
write_file(TMP + "/orders/go", "")
time.sleep(2)
point(w.is_alive(), "the live session goes on")
point(b.persist("127.3.0.9", False), "its address still gets in")
END
