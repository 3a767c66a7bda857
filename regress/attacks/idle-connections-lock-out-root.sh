# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A local user without any role holds 140 connections to the control socket
# and says nothing; root's cloopctl must get in all the same.
tid="idle connections of a stranger"
trees=one
. "$SRC/regress/attacks/attack.inc"

e2e_hub
chmod 711 "$TMP/run"
attack_points python3 - <<'X'
import subprocess
from wire import *

path = TMP = os.environ["TMP"] + "/run/cloopd.sock"
pid = os.fork()
if pid == 0:
    drop_to(65533, 65533)
    held, end = [], time.time() + 12
    while time.time() < end:
        alive = []
        for s in held:
            try:
                if s.recv(1, socket.MSG_DONTWAIT):
                    alive.append(s)
            except BlockingIOError:
                alive.append(s)
            except OSError:
                pass
        held = alive
        while len(held) < 140:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.settimeout(1)
            try:
                s.connect(path)
            except OSError:
                break
            held.append(s)
        time.sleep(0.02)
    os._exit(0)
time.sleep(2)
refused, last = 0, ""
for i in range(20):
    r = subprocess.run(["cloopctl", "-s", path, "status"], timeout=30,
                       capture_output=True, text=True)
    if r.returncode:
        refused, last = refused + 1, r.stderr.strip().split("\n")[0]
    time.sleep(0.2)
print("fail" if refused else "pass", "root is never refused:",
      refused, "of 20", last)
os.waitpid(pid, 0)
X
