# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# BC-38: a copied state directory.  Two hosts with one identity throw each
# other out; the hub notices, says so, and lets the one that is connected
# stay.
tid="one identity on two hosts"
trees=one
. "$SRC/regress/e2e-lib.sh"

e2e_hub
e2e_agent edge-1
first=$agent_pid
cp -a "$TMP/edge-1" "$TMP/clone"
sed "s,$TMP/edge-1/,$TMP/clone/," "$TMP/edge-1.conf" >"$TMP/clone.conf"
chmod 600 "$TMP/clone.conf"
e2e_start_agent clone
second=$agent_pid
wait_for 20 grep -q event=duplicate-identity "$TMP/hub.log" &&
    pass "the hub notices: $(grep -m 1 -o 'event=duplicate-identity.*' \
    "$TMP/hub.log" | cut -c1-120)" || fatal "the hub does not notice"
changes=$(grep -c event=session-superseded "$TMP/hub.log")
# Whoever is refused says so; one that was thrown out tries at once.
wait_for 30 grep -q 'event=hello-refused.*duplicate-identity' \
    "$TMP/hub.log" && pass "a newcomer is refused" || fail "no refusal"
grep -q 'another host is connected with this identity' "$TMP/clone.log" \
    "$TMP/edge-1.log" && pass "and is told why" ||
    fail "it is not told: $(tail -n 3 "$TMP/clone.log" "$TMP/edge-1.log")"
n=0
while [ $n -lt 5 ]; do
	ctl run --on edge-1 -- true >/dev/null 2>&1 || break
	n=$((n + 1))
	sleep 0.4
done
[ $n -eq 5 ] && pass "work is done meanwhile" || fail "run $n failed"
[ "$(grep -c event=session-superseded "$TMP/hub.log")" = "$changes" ] &&
    pass "nobody is thrown out any more ($changes times before)" ||
    fail "they still change places"
[ "$(grep -c event=duplicate-identity "$TMP/hub.log")" = 1 ] &&
    pass "it was said once" || fail "it was said again"
ctl agents edge-1 | grep -q '^issue  *duplicate identity: used by ' &&
    pass "agents shows it" || fail "$(ctl agents edge-1 | grep issue)"
ctl --json status | grep -q '"duplicate_identities":1' &&
    pass "status counts it" || fail "$(ctl --json status)"
ctl --json audit | grep -q '"executor.duplicate_identity"' &&
    pass "the audit has it" || fail "not in the audit"

# The one that was refused is not lost: when the other goes, it may come.
grep -q . "/proc/$first/comm" && grep -q . "/proc/$second/comm" &&
    pass "neither stopped for good" || fail "one has stopped"
e2e_stop "$first"
wait_for 30 is_online edge-1 && pass "one alone is welcome" ||
    fail "the other does not come"
