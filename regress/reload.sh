# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# SIGHUP and `cloopctl reload` take over what may change; a bad file keeps
# the old configuration and says so.
tid="reload of the hub"
. "$SRC/regress/fixtures/hub.inc"

hub_make
hub_start

# origin ORIGIN: the status line a request with it gets
origin()
{
	python3 - "$port" "$1" <<-'PY'
	import socket, ssl, sys
	ctx = ssl.create_default_context()
	ctx.check_hostname = False
	ctx.verify_mode = ssl.CERT_NONE
	with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as s:
	    t = ctx.wrap_socket(s)
	    t.sendall(("GET /api/executors/connect HTTP/1.1\r\nHost: x\r\n"
	        "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	        "Sec-WebSocket-Version: 13\r\n"
	        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	        "Origin: %s\r\n\r\n" % sys.argv[2]).encode())
	    print(t.recv(4096).split()[1].decode())
	PY
}
is() { [ "$(origin "$2")" = "$1" ]; }

run "an unknown origin is refused" is 403 https://new.example
echo "AllowedOrigin https://new.example" >>"$TMP/cloopd.conf"
kill -HUP "$hub"
wait_for 30 is 401 https://new.example &&
    pass "SIGHUP: the new origin is let in" ||
    fail "SIGHUP: the new origin is not let in"

cp "$TMP/cloopd.conf" "$TMP/good.conf"
echo "LogFormat loud" >>"$TMP/cloopd.conf"
kill -HUP "$hub"
wait_for 30 hub_says 'event=reload result=failed' &&
    pass "a bad file is reported" || fail "a bad file is not reported"
grep 'event=reload result=failed' "$TMP/cloopd.log" |
    grep -q 'cloopd.conf:12: .*kept=old-configuration' &&
    pass "with file, line, and that the old stays" ||
    fail "the report says too little"
run "the old configuration stays" is 401 https://new.example
hub_ctl reload >"$TMP/out" 2>&1 && fail "cloopctl reload of a bad file" ||
    pass "cloopctl reload of a bad file fails"
grep -q loud "$TMP/out" && pass "and names the value" ||
    fail "cloopctl reload does not name the value"

sed 's/^NetWorkers 2/NetWorkers 3/' "$TMP/good.conf" >"$TMP/cloopd.conf"
run "cloopctl reload" hub_ctl reload
hub_says 'event=reload keyword=NetWorkers' &&
    pass "what needs a restart is named" ||
    fail "what needs a restart is not named"
[ "$(hub_children cloopd-net | wc -l)" = 2 ] &&
    pass "and left alone" || fail "the number of workers changed"

kill -USR1 "$hub"
wait_for 20 hub_says 'event=dump-child child=cloopd-net/2' &&
    pass "SIGUSR1 writes a state dump" || fail "no state dump"
hub_stop
[ "$hub_status" = 0 ] && pass "an orderly stop" || fail "status $hub_status"
