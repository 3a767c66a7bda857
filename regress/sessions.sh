# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Slow tier.  A hub serves 100 000 sessions (TLS, upgrade, hello, welcome,
# bye) and is then what it was after 10 000: each process's memory within
# 1 MiB or 5 %, its descriptors the same, nobody restarted.  SESSIONS=n makes
# it n; a tenth of them is the warm-up.
tid="no leak after many sessions"
trees=one
[ -n "$CLOOP_SLOW" ] || skip "slow tier: make check-slow"
. "$SRC/regress/e2e-lib.sh"
for p in cycle fleet; do
	[ -x "$BUILD/bench/$p" ] || skip "$p is not built: make bench"
done

SESSIONS=${SESSIONS:-100000}
AGENTS=64
# One address is the source of them all.
e2e_hub "MaxPending 1000" "TrustedProxy 127.0.0.1"
e2e_stop "$hub_pid"
"$BUILD/bench/fleet" "$TMP/keys" "$TMP/hub" $AGENTS >"$TMP/credentials" ||
    fatal "no credentials"
e2e_start_hub
pids="$hub_pid $(e2e_children "$hub_pid")"

# picture FILE: a line a process: name, KiB of PSS, open descriptors.
picture()
{
	for p in $pids; do
		[ -e "/proc/$p" ] || { fail "process $p is gone"; continue; }
		echo "$p $(cat "/proc/$p/comm")" \
		    "$(sed -n 's/^Pss: *\([0-9]*\).*/\1/p' \
		    "/proc/$p/smaps_rollup")" "$(ls "/proc/$p/fd" | wc -l)"
	done >"$1"
}

mkfifo "$TMP/go"
"$BUILD/bench/cycle" -a "127.0.0.1:$E2E_PORT" -c "$TMP/credentials" \
    -n $AGENTS $((SESSIONS / 10)) "$SESSIONS" <"$TMP/go" >"$TMP/marks" \
    2>"$TMP/cycle.err" &
cycle=$!
track $cycle
exec 9>"$TMP/go"
# marked COUNT: so many were served, or cycle has ended.
marked()
{
	[ "$(wc -l <"$TMP/marks")" -ge "$1" ] || ! kill -0 $cycle 2>/dev/null
}
# The last session's end is known to all: nobody is online.
nobody()
{
	[ "$(ctl --json status | json "d['agents']['online']")" = 0 ]
}
for n in 1 2; do
	wait_for 7000 marked $n
	[ "$(wc -l <"$TMP/marks")" -ge $n ] ||
	    { note "$(cat "$TMP/cycle.err")"; fatal "it does not come so far"; }
	wait_for 30 nobody || note "somebody stays online"
	picture "$TMP/picture.$n"
	note "sessions, seconds: $(tail -n 1 "$TMP/marks")"
	echo >&9
done
exec 9>&-
wait $cycle

while read -r pid name before fds; do
	set -- $(grep "^$pid " "$TMP/picture.2")
	room=$((before / 20))
	[ $room -ge 1024 ] || room=1024
	note "$name: $before KiB, $fds descriptors; then $3 KiB, $4"
	[ $(($3 - before)) -le $room ] && pass "$name: memory" ||
	    fail "$name: $before KiB have become $3"
	[ "$4" = "$fds" ] && pass "$name: descriptors" ||
	    fail "$name: $fds descriptors have become $4"
done <"$TMP/picture.1"
[ "$(grep -c event=child-start "$TMP/hub.log")" = \
    "$(($(echo $pids | wc -w) * 2 - 2))" ] &&
    pass "no process was replaced" || fail "a process was replaced"
grep -q "why=-" "$TMP/marks" || note "failures: $(cat "$TMP/marks")"
