# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A full disk or a read-only directory, on either side, is an error message,
# not a crash; nothing acknowledged is lost, and the service goes on when
# there is room again.
tid="full and read-only disks"
. "$SRC/regress/e2e-lib.sh"

hubfs=$TMP/hubfs devfs=$TMP/devfs
e2e_on_finish()
{
	e2e_kill_shims
	for p in $tracked; do
		kill "$p" 2>/dev/null
	done
	for p in $tracked; do
		wait_for 30 e2e_is_gone "$p"
	done
	umount -l "$hubfs" "$devfs" 2>/dev/null
}
mkdir "$hubfs" "$devfs"
mount -t tmpfs -o size=8m,mode=755 none "$hubfs" 2>/dev/null &&
    mount -t tmpfs -o size=8m,mode=755 none "$devfs" 2>/dev/null ||
    skip "file systems cannot be mounted here"

# fill DIR KIB: leave that much.
fill()
{
	cat /dev/zero >"$1/filler" 2>/dev/null
	truncate -s "-$2K" "$1/filler"
}

# refused TEXT FILE: one line, no crash.
refused()
{
	if [ "$status" -eq 1 ] && grep -q "$2" "$3" &&
	    ! grep -qi 'sanitizer\|assert\|fatal' "$3"; then
		pass "$1: $(grep -m 1 "$2" "$3" | cut -c1-120)"
	else
		fail "$1: status $status"
		note "$(tail -n 5 "$3")"
	fi
}

E2E_STATE=$hubfs/state
E2E_AGENT_STATE=$devfs/state

# ------------------------------------------------- read-only at the start
cloop-keygen -A -n localhost -n 127.0.0.1 -o "KeyDirectory=$TMP/keys" \
    >/dev/null 2>&1
mount -o remount,ro "$hubfs"
cat >"$TMP/ro.conf" <<END
ListenAgents 127.0.0.1:$(free_port)
ControlSocket $TMP/ro.sock
StateDirectory $hubfs/state
RuntimeDirectory $TMP/ro-run
KeyDirectory $TMP/keys
END
timeout 60 cloopd -d -f "$TMP/ro.conf" >"$TMP/out" 2>&1
status=$?
refused "a hub on a read-only file system" "$hubfs/state.*[Rr]ead-only" \
    "$TMP/out"
mount -o remount,rw "$hubfs"
e2e_hub
e2e_mint edge-1
mount -o remount,ro "$devfs"
cat >"$TMP/edge-1.conf" <<END
StateDirectory $devfs/state
RuntimeDirectory $TMP/edge-1/run
WorkDirRoot $TMP/edge-1/work
TokenFile $TMP/edge-1.bundle
CAFile $TMP/keys/tls.crt
END
chmod 600 "$TMP/edge-1.conf"
mkdir "$TMP/edge-1"
timeout 60 cloop-agentd -d -f "$TMP/edge-1.conf" >"$TMP/out" 2>&1
status=$?
refused "a device on a read-only file system" "$devfs/state.*[Rr]ead-only" \
    "$TMP/out"
[ -e "$TMP/edge-1.bundle" ] && pass "and its token is not spent" ||
    fail "the token file is gone"
mount -o remount,rw "$devfs"
e2e_start_agent edge-1
e2e_online edge-1
pass "both start when they may write"
work=$TMP/edge-1/work

alive()
{
	kill -0 "$hub_pid" && kill -0 "$agent_pid" && ctl status >/dev/null &&
	    is_online edge-1
}

# --------------------------------------------------- the hub's disk is full
mkdir "$work/job"
chown --reference="$work" "$work/job"

# on_full LINES: a workload prints that many while the hub has no room and
# goes on afterwards; its handle is in $h, the text in $TMP/want.
on_full()
{
	rm -f "$work/job/go" "$work/job/end"
	seq 1 $(($1 + 2000)) >"$TMP/want"
	errors=$(grep -c event=log-write-failed "$TMP/hub.log")
	h=$(ctl run --on edge-1 --workdir job --detach -- sh -c "
	    seq 1 1000; while [ ! -e go ]; do sleep 0.05; done
	    seq 1001 $((1000 + $1)); while [ ! -e end ]; do sleep 0.05; done
	    seq $((1001 + $1)) $((2000 + $1)); exit 3") || fatal "no start"
	wait_for 20 has_line 1000 || fail "no output"
	fill "$hubfs" 16
	: >"$work/job/go"
	wait_for 20 e2e_has_more "$TMP/hub.log" event=log-write-failed \
	    "$errors" && pass "the hub says that it cannot write" ||
	    fail "the hub says nothing"
}

has_line()
{
	[ "$(ctl logs -- "$h" | tail -n 1)" = "$1" ]
}

ends()
{
	timeout 60 cloopctl -s "$TMP/run/cloopd.sock" wait -- "$h" \
	    >"$TMP/out" 2>&1
	status=$?
	[ $status -eq 3 ] && pass "with room again it ends with its own code" ||
	    { fail "wait says $status"; note "$(cat "$TMP/out")"; }
	ctl logs -- "$h" >"$TMP/have" 2>"$TMP/err"
}

on_full 20000
alive && pass "everybody lives" || fail "somebody died"
rm "$hubfs/filler"
: >"$work/job/end"
ends
cmp -s "$TMP/want" "$TMP/have" && [ ! -s "$TMP/err" ] &&
    pass "no byte of its output is lost" ||
    { fail "output: $(wc -c <"$TMP/have") of $(wc -c <"$TMP/want") bytes"
    note "$(cat "$TMP/err")"; }

# Much more than a worker holds in memory.
on_full 400000
alive && pass "everybody lives" || fail "somebody died"
rm "$hubfs/filler"
: >"$work/job/end"
ends
if cmp -s "$TMP/want" "$TMP/have"; then
	pass "no byte of 2.7 MB is lost"
elif ctl --json show -- "$h" | grep -q '"gapped":true' &&
    [ "$(head -n 1000 "$TMP/have" | tail -n 1)" = 1000 ]; then
	pass "what memory could not hold is marked as a gap"
	note "$(wc -c <"$TMP/have") of $(wc -c <"$TMP/want") bytes"
else
	fail "output is missing in silence"
	note "$(wc -c <"$TMP/have") of $(wc -c <"$TMP/want") bytes"
	note "the last line is $(tail -n 1 "$TMP/have")"
	note "$(cat "$TMP/err"; ctl --json show -- "$h")"
fi

# It ends while there is no room.
on_full 20000
: >"$work/job/end"
timeout 60 cloopctl -s "$TMP/run/cloopd.sock" wait -- "$h" >/dev/null 2>&1
rm "$hubfs/filler"
ends
cmp -s "$TMP/want" "$TMP/have" ||
    ctl --json show -- "$h" | grep -q '"gapped":true' &&
    pass "an end on a full disk: all of it, or marked as a gap" ||
    fail "an end on a full disk: output is missing in silence"
note "$(wc -c <"$TMP/have") of $(wc -c <"$TMP/want") bytes"
run "and the next one runs" ctl run --on edge-1 -- true

# ------------------------------------- the hub's disk is full, completely
# The store has some pages to spare; then it must say so, and give nothing
# away that it has no record of.
fill "$hubfs" 0
n=0 status=0
while [ $status -eq 0 ] && [ $n -lt 500 ]; do
	cloop-enroll -s "$TMP/run/cloopd.sock" mint --name "full-$n" \
	    >"$TMP/out" 2>&1
	status=$?
	n=$((n + 1))
done
grep -q clet1 "$TMP/out" && fail "a token without a record of it"
refused "mint with no room at all" 'disk is full' "$TMP/out"
ctl run --on edge-1 -- true >"$TMP/out" 2>&1
status=$?
[ $status -eq 125 ] && status=1
refused "run with no room at all" 'disk is full' "$TMP/out"
alive && pass "everybody lives" || fail "somebody died"
rm "$hubfs/filler"
run "with room again a run works" ctl run --on edge-1 -- true
run "and the audit chain is whole" ctl audit verify
# ------------------------------------------------ the device's disk is full
fill "$devfs" 0
ctl run --on edge-1 -- true >"$TMP/out" 2>&1
status=$?
[ $status -eq 125 ] && grep -qi 'full\|space' "$TMP/out" &&
    pass "a full device refuses: $(head -n 1 "$TMP/out" | cut -c1-120)" ||
    fail "a full device: $status $(cat "$TMP/out")"
alive && pass "everybody lives" || fail "somebody died"
rm "$devfs/filler"
rm "$work/job/go"
h=$(ctl run --on edge-1 --workdir job --detach -- sh -c '
    echo first; while [ ! -e go ]; do sleep 0.05; done
    seq 1 1000; echo last; exit 4') || fatal "no start"
fill "$devfs" 0
: >"$work/job/go"
timeout 60 cloopctl -s "$TMP/run/cloopd.sock" wait -- "$h" >"$TMP/out" 2>&1
status=$?
[ $status -eq 4 ] && pass "a workload on a full device ends as it wants" ||
    { fail "it ended with $status"; note "$(cat "$TMP/out")"; }
{ echo first; seq 1 1000; echo last; } >"$TMP/want"
ctl logs -- "$h" >"$TMP/have" 2>"$TMP/err"
if cmp -s "$TMP/want" "$TMP/have"; then
	pass "its output fitted, and is whole"
elif grep -q 'never arrived' "$TMP/err" &&
    ctl --json show -- "$h" | grep -q '"gapped":true'; then
	pass "what its disk could not hold is said: $(head -n 1 "$TMP/err")"
else
	fail "output is missing in silence"
	note "$(wc -c <"$TMP/have") of $(wc -c <"$TMP/want") bytes"
fi
rm "$devfs/filler"
run "with room again a run works" ctl run --on edge-1 -- true
ctl run --on edge-1 -- sh -c 'seq 1 300000; exit 6' >"$TMP/have" 2>"$TMP/err"
status=$?
seq 1 300000 | cmp -s - "$TMP/have" && [ $status -eq 6 ] &&
    pass "with all its output, 2 MiB" ||
    { fail "status $status"; note "$(cat "$TMP/err")"; }
