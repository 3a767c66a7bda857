# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A lease revoked while its device is away is taken back when it returns, hub
# restarts in between or not; time takes it back as well.
tid="a device that was away gives its leases back first"

. "$SRC/regress/e2e-lib.sh"

e2e_hub "LeaseTTL 10s"
e2e_agent edge

printf 'kind: Config\npassword: offline-secret-0123\n' >"$TMP/value"
ctl secret put kube --kind kubeconfig <"$TMP/value" >/dev/null
ctl grant add kube --to any >/dev/null

lease_file()
{
	grep -rlF offline-secret-0123 /dev/shm "$TMP/edge" /run/cloop \
	    2>/dev/null | grep cloop-lease- | head -n 1
}

begin()
{
	ctl --json run --detach --on edge --secret kube --name "$1" -- \
	    sleep 120 >"$TMP/run.json" || fatal "the run does not start"
	h=$(json "d['handle_id']" <"$TMP/run.json")
	lease=$(json "d['leases'][0]" <"$TMP/run.json")
}

state_is()
{
	ctl --json lease ls -a | json "[l['revocation'] for l in d['leases']
	    if l['lease_id'] == '$lease'][0]" | grep -qx "$1"
}

begin one
[ -n "$(lease_file)" ] && pass "the file is on the device" ||
    fail "no lease file"
e2e_stop "$agent_pid" KILL
wait_for 60 is_offline edge || fail "the hub does not notice"
ctl --json lease revoke -- "$lease" >"$TMP/out"
[ $? = 1 ] && pass "an unconfirmed revocation is exit status 1" ||
    fail "status of the revocation"
grep -q '"state":"unreachable"' "$TMP/out" && pass "it says unreachable" ||
    fail "$(cat "$TMP/out")"
state_is unreachable && pass "and so does every view" ||
    fail "lease ls: $(ctl --json lease ls -a)"

e2e_stop "$hub_pid" KILL
e2e_start_hub
state_is unreachable && pass "a crash of the hub forgets none of it" ||
    fail "after the crash: $(ctl --json lease ls -a)"
e2e_start_agent edge
wait_for 40 is_online edge || fail "the device does not come back"
wait_for 20 state_is revoked && pass "it is taken back on return" ||
    fail "still $(ctl --json lease ls -a)"
[ -z "$(lease_file)" ] && pass "the file is gone" ||
    fail "still there: $(lease_file)"
ctl --json audit | grep -q lease.revoke_acked && pass "the ack is audited" ||
    fail "no ack in the audit"
ctl kill -- "$h" >/dev/null
ctl wait -- "$h" >/dev/null 2>&1

begin two
ctl grant ls --json >/dev/null 2>&1
grant=$(ctl --json grant ls | json "d['grants'][0]['grant_id']")
run "a grant is revoked" ctl grant rm "$grant"
[ -z "$(lease_file)" ] && pass "what ran under it lost the file" ||
    fail "still there: $(lease_file)"
ctl run --on edge --secret kube -- true >/dev/null 2>&1 &&
    fail "and nobody gets another one" || pass "and nobody gets another one"
ctl kill -- "$h" >/dev/null
ctl wait -- "$h" >/dev/null 2>&1

ctl grant add kube --to any --ttl 60s >/dev/null
begin three
sleep 12
state_is None && pass "a live workload keeps its lease past LeaseTTL" ||
    fail "lost: $(ctl --json lease ls -a)"
run "a drained device" ctl drain --no-wait edge
[ -z "$(lease_file)" ] && pass "holds nothing" ||
    fail "still there: $(lease_file)"
ctl run --on edge -- true >/dev/null 2>&1 && fail "gets work" ||
    pass "gets no work"
run "an uncordoned one" ctl uncordon edge
run "gets work" ctl run --on edge -- true
ctl kill -- "$h" >/dev/null
run "the audit chain is whole" ctl audit verify
