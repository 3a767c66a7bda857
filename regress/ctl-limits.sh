# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# common/base/limits.h: how many operators the hub serves at once, all of them
# and those of one user; one more hears why.
tid="the number of operators is bounded"
. "$SRC/regress/e2e-lib.sh"

bound()
{
	sed -n "s/^#define $1 \([0-9]*\).*/\1/p" "$SRC/common/base/limits.h"
}
getent group cloop >/dev/null || skip "no group cloop: make users"
e2e_hub
chmod 711 "$TMP" "$TMP/run"
SRC="$SRC" python3 - "$TMP/run/cloopd.sock" "$(bound MAX_CTL_CLIENTS)" \
    "$(bound MAX_CTL_CLIENTS_PER_UID)" "$(getent group cloop | cut -d: -f3)" \
    >"$TMP/out" 2>&1 <<'END'
import os, socket, sys, time

sys.path.insert(0, os.environ["SRC"] + "/regress/attacks")
import wire

path, most, most_of_one, group = sys.argv[1], *map(int, sys.argv[2:])
NOBODY = 65534


def greet():
    """A connection that said hello, and whether it may stay."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(path)
    channel = wire.Channel(s)
    channel.send("CTL_HELLO", 1, wire.VERSION)
    name, _, answer = channel.read()
    return s, name == "CTL_HELLO_ANS", answer


def count(limit, word):
    """limit + 1 of them; the last is told why it may not stay."""
    held = [greet() for _ in range(limit + 1)]
    print(word, sum(served for _, served, _ in held),
          b"too many" in held[-1][2], held[-1][0].recv(10) == b"",
          flush=True)
    return [s for s, _, _ in held]


held = count(most, "all")
held.pop(0).close()
deadline = time.monotonic() + 20
while True:
    s, served, _ = greet()
    if served or time.monotonic() > deadline:
        break
    s.close()
    time.sleep(0.05)
print("left", served, flush=True)
for s in [*held, s]:
    s.close()
time.sleep(0.5)

# One user, who is not root, counts by itself.
os.setgroups([])
os.setresgid(group, group, group)
os.setresuid(NOBODY, NOBODY, NOBODY)
held = count(most_of_one, "one")
END
is_said()
{
	grep -qx "$1" "$TMP/out" && pass "$2" ||
	    { fail "$2"; note "$(cat "$TMP/out")"; }
}
is_said "all $(bound MAX_CTL_CLIENTS) True True" \
    "as many as there may be, and one more hears why"
is_said "left True" "a place that is left can be taken"
is_said "one $(bound MAX_CTL_CLIENTS_PER_UID) True True" \
    "of one user fewer, and one more hears why"
e2e_finish
