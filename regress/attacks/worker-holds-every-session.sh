# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A worker that was taken over learns one credential and asks AUTH with it 400
# times: it may not take every place that MaxAgents has.
tid="session places of a taken-over worker"
trees=one
. "$SRC/regress/attacks/attack.inc"

mkdir -m 755 "$TMP/orders"
attack_fake cloopd-net <<'END'
c = Worker.second(TMP, BUILD + "/cloopd-net")
write_file(TMP + "/orders/serving", "")
c.wait_order("bearer")
bearer, held = read_file(TMP + "/orders/bearer").decode(), 0
for i in range(400):
    held += c.ask("AUTH", i + 1, bearer, "127.0.0.1:1")["result"] == 0
write_file(TMP + "/orders/held", held)
c.serve()
END
e2e_hub "NetWorkers 2" "MaxAgents 300"
e2e_tokens 4
attack_points python3 - <<'END'
from client import *
from wire import wait_file, write_file

load_tokens()
a, b = Device(), Device()
wait_file(TMP + "/orders/serving")
a.persist("127.4.0.1")
write_file(TMP + "/orders/bearer", a.token)
until(lambda: os.path.exists(TMP + "/orders/held"), 30)
try:
    with open(TMP + "/orders/held") as file:
        note("places it got: " + file.read())
except OSError:
    note("it was ended")
point(b.persist("127.4.0.3", False), "a device of the other worker gets in")
END
