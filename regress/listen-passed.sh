# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloopd.socket: listening sockets of a service manager (sd_listen_fds(3)),
# served by a hub that has no network of its own.
tid="a hub that is given its listening sockets"
. "$SRC/regress/e2e-lib.sh"

manager=$SRC/regress/fixtures/manager.py
export TMP manager

# What it refuses, each with the thing, the value and the remedy.
port=$(free_port)
mkdir -p "$TMP/hub" "$TMP/run"
cloop-keygen -A -n localhost -n 127.0.0.1 -o "KeyDirectory=$TMP/keys" \
    >"$TMP/keygen.out" 2>&1 || e2e_fatal "no keys" "$TMP/keygen.out"
install -m 600 /dev/null "$TMP/empty"
# refused TEXT SOCKET...
refused()
{
	want=$1
	shift
	timeout 60 python3 "$manager" "$@" -- cloopd -d -f "$TMP/empty" \
	    -o "ListenAgents=127.0.0.1:$port" -o "ListenStatus=none" \
	    -o "ExternalURL=https://localhost:$port" \
	    -o "ControlSocket=$TMP/run/cloopd.sock" \
	    -o "StateDirectory=$TMP/hub" -o "RuntimeDirectory=$TMP/run" \
	    -o "KeyDirectory=$TMP/keys" >"$TMP/refused" 2>&1
	status=$?
	[ "$status" = 1 ] && grep -q -- "$want" "$TMP/refused" &&
	    pass "refused: $want" ||
	    { fail "status $status, not: $want"; note "$(cat "$TMP/refused")"; }
}
other=$(free_port)
refused "ListenAgents 127.0.0.1:$port: .*put ListenStream=127.0.0.1:$port" \
    "127.0.0.1:$other"
refused "for 127.0.0.1:$other, .*take ListenStream=127.0.0.1:$other out" \
    "127.0.0.1:$port" "127.0.0.1:$other"
refused "descriptor 3 .* not a listening TCP socket" unix
refused "descriptor 4 .* not a listening TCP socket" "127.0.0.1:$port" stream
FDS=17 refused "LISTEN_FDS=17 is too large: 0 to 16" "127.0.0.1:$port"
FDS=x refused "LISTEN_FDS=x is invalid: 0 to 16" "127.0.0.1:$port"
rm -rf "$TMP/hub" "$TMP/run"

# Meant for another process: it binds its own.
E2E_HUB_IN="env LISTEN_PID=1 LISTEN_FDS=1"
e2e_hub
pass "sockets that were passed to another process are not its own"
e2e_stop "$hub_pid"

# A hub in an empty network, with two workers and one socket.
cat >"$TMP/in" <<'SH'
#!/bin/sh
at=$(sed -n 's/^ListenAgents //p' "$TMP/cloopd.conf")
exec python3 "$manager" -r "$at" -- unshare -n "$@"
SH
E2E_HUB_IN="sh $TMP/in"
: >"$TMP/hold"
e2e_hub "NetWorkers 2"
e2e_agent edge-1
pass "a device is online"
[ "$(ctl run --on edge-1 -- echo one two)" = "one two" ] &&
    pass "and works" || fail "the device does no work"
hub=$(e2e_children "$hub_pid" | tr -d ' ')
same=yes
for p in "$hub" $(e2e_children "$hub"); do
	[ "$(readlink "/proc/$p/ns/net")" != "$(readlink /proc/1/ns/net)" ] ||
	    same=no
	tr '\0' '\n' <"/proc/$p/environ" >"$TMP/environ"
	[ "$p" = "$hub" ] || ! grep -q LISTEN_ "$TMP/environ" ||
	    fail "process $p has the words of the service manager"
done
[ "$same" = yes ] && pass "the hub has no network of its own" ||
    fail "a process of the hub is in the network"

# Both workers accept from it.
serves()
{
	seq 8 | xargs -P 8 -I @ sh -c 'timeout 20 openssl s_client \
	    -connect "127.0.0.1:$1" </dev/null >"$TMP/s_client.@" 2>&1' \
	    - "$E2E_PORT"
	[ "$(cat "$TMP"/s_client.* | grep -c 'Server certificate')" = 8 ]
}
serves && pass "connections come in" || fail "connections do not come in"
kill -KILL "$(pgrep -P "$hub" -x cloopd-net | head -n 1)"
serves && pass "also while a worker is replaced" ||
    fail "a killed worker takes connections along"

# The socket outlives the hub: who connects meanwhile waits.
kill -TERM "$hub"
wait_for 30 e2e_is_gone "$hub" || fail "the hub does not end"
timeout 60 openssl s_client -connect "127.0.0.1:$E2E_PORT" </dev/null \
    >"$TMP/waited" 2>&1 &
waits=$!
sleep 0.5
kill -0 "$waits" && pass "a connection waits for the hub" ||
    { fail "nobody waits"; note "$(tail -n 3 "$TMP/waited")"; }
rm "$TMP/hold"
wait "$waits"
grep -q 'Server certificate' "$TMP/waited" &&
    pass "and is served by the next one" ||
    { fail "it was not served"; note "$(tail -n 3 "$TMP/waited")"; }
wait_for 30 is_online edge-1 && pass "the device is back" ||
    fail "the device does not come back"
