# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# What the service manager hears of the hub: ready, watchdog pings from the
# event loop, reloading, stopping.
tid="what the hub tells its service manager"
. "$SRC/regress/fixtures/hub.inc"

hub_make
python3 - "$TMP/notify" >"$TMP/heard" 2>"$TMP/hears.err" <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
while True:
    print(s.recv(4096).decode(), flush=True)
PY
track $!
wait_up 30 "no socket to listen on" "$TMP/hears.err" $! test -S "$TMP/notify"
export NOTIFY_SOCKET="$TMP/notify" WATCHDOG_USEC=400000
hub_start

heard() { grep -q "^$1" "$TMP/heard"; }
beats() { [ "$(grep -c '^WATCHDOG=1' "$TMP/heard")" -ge 3 ]; }
hears()
{
	wait_for 30 "$@" && pass "$*" || fail "not heard: $*"
}

hears heard READY=1
hears beats
kill -HUP "$hub"
hears heard RELOADING=1
hub_stop
hears heard STOPPING=1
[ "$hub_status" = 0 ] && pass "and it ends with 0" ||
    fail "it ends with $hub_status"
