# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# BC-42: evicting (revoke), banning and deleting an agent are three things,
# for one that is connected and for one that is not.
tid="evict, ban and delete"
. "$SRC/regress/e2e-lib.sh"

# A sanitizer's start-up is part of it.
soon=1000
case $BUILD in *asan*) soon=4000 ;; esac

enroll()
{
	cloop-enroll -s "$TMP/run/cloopd.sock" "$@"
}

agent_id()
{
	enroll agents --json | json "[a['agent_id'] for a in d['agents']
	    if a['name'] == '$1' and not a['revoked']][-1]"
}

state_of()
{
	enroll agents | awk -v n="$1" '$2 == n { print $3 }' | tail -n 1
}

# stopped NAME WORD: the device was told to stop, and why, within a second of
# the command that began at $at.
stopped()
{
	wait_for 20 grep -q "event=refused reason=bye detail=.*said bye: $2" \
	    "$TMP/$1.log" || {
		fail "$1 is not told \"$2\""
		note "$(tail -n 5 "$TMP/$1.log")"
		return
	}
	ms=$(($(date +%s%3N) - at))
	[ $ms -lt $soon ] && pass "$1 is told \"$2\" within a second" ||
	    fail "$1 is told \"$2\" after $ms ms"
}

e2e_hub "PerSourcePenalty no"
for name in edge-1 edge-2 edge-3; do
	e2e_agent $name
	eval "pid_${name#edge-}=$agent_pid"
done
h=$(ctl run --on edge-3 --detach -- sleep 60) || fatal "no workload"
id1=$(agent_id edge-1) id2=$(agent_id edge-2) id3=$(agent_id edge-3)

# ------------------------------------------------------------- connected
at=$(date +%s%3N)
run "evict" enroll revoke --reason moved -- "$id1"
stopped edge-1 revoked
at=$(date +%s%3N)
run "ban, by id" enroll ban --reason stolen -- "$id2"
stopped edge-2 banned
at=$(date +%s%3N)
run "delete" enroll delete --reason scrapped -- "$id3"
stopped edge-3 deleted
[ "$(state_of edge-1) $(state_of edge-2) $(state_of edge-3)" = \
    "revoked banned " ] && pass "the lists tell them apart" ||
    fail "$(enroll agents)"
ctl show -- "$h" >"$TMP/out" 2>&1 && fail "a workload of a deleted agent" ||
    pass "a deleted agent's workloads are gone"
ls "$TMP/hub/hub/handles" 2>/dev/null | grep -q . &&
    fail "files of a deleted agent stay" || pass "and their output"

# ---------------------------------------- they come back, or they do not
again()
{
	rm -f "$TMP/$1/state/agent.json" "$TMP/$1.log"
	enroll mint --name "$1" --bundle-file "$TMP/$1.bundle" >"$TMP/out" \
	    2>&1
}
again edge-1 && e2e_start_agent edge-1 &&
    wait_for 40 is_online edge-1 &&
    pass "evicted: a new token brings it back" || fail "edge-1 stays away"
pid_1=$agent_pid
again edge-2 && fail "a token for a banned name" ||
    { grep -q banned "$TMP/out" && pass "banned: no token: $(head -n 1 \
    "$TMP/out")" || fail "$(cat "$TMP/out")"; }
again edge-3 && e2e_start_agent edge-3 && wait_for 40 is_online edge-3 &&
    pass "deleted: it comes as if for the first time" ||
    fail "edge-3 stays away"
pid_3=$agent_pid

# ---------------------------------------------------------- not connected
for p in $pid_1 $pid_3; do e2e_stop "$p"; done
wait_for 30 is_offline edge-1
id1=$(agent_id edge-1) id3=$(agent_id edge-3)
enroll mint --name edge-4 --bundle-file "$TMP/edge-4.bundle" >/dev/null 2>&1
run "ban a name that nobody has yet" enroll ban edge-4
run "delete one that is away" enroll delete -- "$id3"
run "evict one that is away" enroll revoke -- "$id1"
rm -f "$TMP/edge-1.log" "$TMP/edge-3.log"
e2e_start_agent edge-1
e2e_start_agent edge-3
mkdir -p "$TMP/edge-4"
sed 's/edge-1/edge-4/g' "$TMP/edge-1.conf" >"$TMP/edge-4.conf"
chmod 600 "$TMP/edge-4.conf"
e2e_start_agent edge-4
pid_4=$agent_pid
# Over HTTP all of them look the same; the hub knows.
for name in edge-1 edge-3 edge-4; do
	wait_for 30 grep -q ' 401' "$TMP/$name.log" &&
	    pass "$name is refused, without a word why" ||
	    fail "$name: $(tail -n 3 "$TMP/$name.log")"
done
for why in revoked agent_not_found banned; do
	wait_for 30 grep -q "event=auth result=denied.*reason=$why" \
	    "$TMP/hub.log" && pass "the hub says $why" ||
	    fail "the hub does not say $why"
done
run "unban" enroll unban edge-4
e2e_stop "$pid_4"	# it would try again, later
e2e_start_agent edge-4
wait_for 40 is_online edge-4 && pass "then the same token is good" ||
    fail "edge-4 stays away"
enroll bans --json | json "[b['name'] for b in d['bans']] == ['edge-2'] and
    d['bans'][0]['reason'] == 'stolen'" | grep -q True &&
    pass "bans says which are left" || fail "$(enroll bans)"
ctl --json audit >"$TMP/audit"
for action in revoke ban unban delete; do
	grep -q "\"action\":\"executor.$action\"" "$TMP/audit" &&
	    pass "the audit has $action" || fail "no $action in the audit"
done
run "and is whole" ctl audit verify
