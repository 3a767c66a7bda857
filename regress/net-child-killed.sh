# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Each child of the hub can be killed; the monitor stays, replaces it, hands
# the new one everything, and says so.
tid="children of the hub are replaced"
. "$SRC/regress/fixtures/hub.inc"

hub_make
hub_start

tls_answers()
{
	python3 - "$port" <<-'PY'
	import socket, ssl, sys
	ctx = ssl.create_default_context()
	ctx.check_hostname = False
	ctx.verify_mode = ssl.CERT_NONE
	with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as s:
	    ctx.wrap_socket(s).close()
	PY
}

replaced()
{
	new=$(hub_children "$1" | tr '\n' ' ')
	[ -n "$new" ] && [ "$(hub_children "$1" | wc -l)" = "$2" ] || return 1
	case " $new" in *" $3 "*) return 1 ;; esac
	[ "$(sed -n 's/^Seccomp:[[:space:]]*//p' \
	    /proc/${new%% *}/status)" = 2 ]
}

for program in cloopd-net cloopd-key cloopd-ctl; do
	count=$(hub_children $program | wc -l)
	old=$(hub_children $program | head -n 1)
	kill -KILL "$old"
	wait_for 30 replaced $program "$count" "$old" &&
	    pass "$program is replaced" || fail "$program is not replaced"
	wait_for 30 hub_ctl status && pass "the hub answers" ||
	    fail "the hub does not answer"
	wait_for 30 tls_answers && pass "TLS answers" ||
	    fail "TLS does not answer"
done
kill -0 "$hub" && pass "the monitor is the same" ||
    fail "the monitor ended"
hub_says 'event=child-end child=cloopd-net/' && pass "it was logged" ||
    fail "nothing was logged"

# A child that dies again and again is started less and less often.
i=0
while [ $i -lt 4 ]; do
	pid=$(hub_children cloopd-key | head -n 1)
	[ -z "$pid" ] || kill -KILL "$pid"
	wait_for 30 sh -c "! kill -0 ${pid:-1} 2>/dev/null"
	wait_for 30 replaced cloopd-key 1 "$pid"
	i=$((i + 1))
done
wait_for 30 tls_answers && pass "TLS answers after five ends of cloopd-key" ||
    fail "TLS does not answer any more"
hub_stop
[ "$hub_status" = 0 ] && pass "an orderly stop afterwards" ||
    fail "status $hub_status"
