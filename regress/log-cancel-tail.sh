# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# BC-13: what a workload says after it was asked to end, and before it is
# killed, arrives, and before its end does.
tid="the last words of a workload that is killed"
trees=one
. "$SRC/regress/e2e-lib.sh"

e2e_hub
e2e_agent edge-1
h=$(ctl run --on edge-1 --workdir w --detach -- sh -c '
    exec 2>/dev/null
    trap "seq 1 40000; echo the-tail; touch said" TERM
    echo up; while :; do sleep 0.05; done') || fatal "no start"
says()
{
	ctl logs -- "$h" | tail -n 1 | grep -qx "$1"
}
wait_for 30 says up || fatal "it does not begin"
run "it is asked to end" ctl signal -- "$h" TERM
wait_for 30 [ -e "$TMP/edge-1/work/w/said" ] ||
    fatal "it does not hear the signal"
run "it is killed" ctl kill -- "$h"
timeout 60 cloopctl -s "$TMP/run/cloopd.sock" wait -- "$h" >/dev/null 2>&1
status=$?
[ $status -eq 137 ] && pass "it ends as killed" || fail "it ended: $status"
{ echo up; seq 1 40000; echo the-tail; } >"$TMP/want"
ctl logs -- "$h" >"$TMP/have"
cmp -s "$TMP/want" "$TMP/have" &&
    pass "all of $(wc -c <"$TMP/want") bytes are there when it has ended" ||
    fail "$(wc -c <"$TMP/have") of $(wc -c <"$TMP/want") bytes"
