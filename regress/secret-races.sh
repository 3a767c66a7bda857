# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A lease is taken back at the worst moments.  The device's monitor (or a
# workload's shim) is stopped meanwhile, so that the moment is certain.  Each
# time: no plaintext survives its authority.
tid="what is taken back in the middle of something is gone"

. "$SRC/regress/e2e-lib.sh"

marker=M4rk3r-$$-$(date +%s%N)
e2e_hub
e2e_agent edge
edge=$agent_pid
printf 'password: %s\n' "$marker" >"$TMP/value"
ctl secret put kube --kind kubeconfig <"$TMP/value" >/dev/null
grant=$(ctl --json grant add kube --to any | json "d['grant_id']")

# Plaintext in files of leases.
plaintext()
{
	grep -rlF "$marker" /dev/shm "$TMP/edge/run" "$TMP/edge/work" \
	    2>/dev/null
}

no_plaintext()
{
	[ -z "$(plaintext)" ]
}

lease_of()
{
	ctl --json lease ls -a | json "[l['lease_id'] for l in d['leases']
	    if l['handle_id'] == '$1'][0]"
}

# state_is WHAT: revocation of $lease.
state_is()
{
	ctl --json lease ls -a | json "[l['revocation'] for l in d['leases']
	    if l['lease_id'] == '$lease'][0]" | grep -qx "$1"
}

# begin NAME: a detached run that says when it has read its file.
begin()
{
	ctl --json run --detach --on edge --secret kube --name "$1" -- \
	    sh -c 'cat "$KUBECONFIG" >/dev/null && touch ran-$0; sleep 60' \
	    "$1" >"$TMP/$1.json" 2>"$TMP/$1.err" &
	begun=$!
}

has_run()
{
	find "$TMP/edge/work" -name "ran-$1" | grep -q .
}

is_over()
{
	! ctl --json ps | grep -q "\"name\":\"$1\""
}

# The lease that a run of that name is about to be given.
await_lease()
{
	wait_for 20 eval 'lease=$(ctl --json lease ls | json \
	    "[l[\"lease_id\"] for l in d[\"leases\"]][0]") && [ -n "$lease" ]'
}

gone()
{
	wait_for 20 no_plaintext && pass "$1: no plaintext" ||
	    fail "$1: left: $(plaintext)"
}

no_lease()
{
	! ctl --json lease ls | grep -q '"lease_id"'
}

# --- while it is provisioned
kill -STOP "$edge"
begin one
await_lease || fatal "no lease"
ctl --json lease revoke --kill -- "$lease" >"$TMP/out" 2>&1 &
revoking=$!
wait_for 20 state_is pending || fail "not pending: $(ctl --json lease ls -a)"
kill -CONT "$edge"
wait "$begun"
wait "$revoking" && pass "revoked while it starts: confirmed" ||
    fail "the revocation: $(cat "$TMP/out")"
state_is revoked && pass "and on record" || fail "$(ctl --json lease ls -a)"
gone "after a start that was overtaken"
wait_for 20 is_over one && pass "it does not run" || fail "it runs: $(ctl ps)"

# --- while its tree is fetched, from a server that never says a word
python3 "$SRC/regress/fixtures/silent.py" "$TMP/port" \
    2>"$TMP/silent.err" &
track $!
wait_up 30 "no server" "$TMP/silent.err" $! test -e "$TMP/port"
ctl run --detach --on edge --secret kube --name tree \
    --git "https://127.0.0.1:$(cat "$TMP/port")/o/n.git" -- true \
    >"$TMP/tree.out" 2>&1 &
begun=$!
wait_for 20 test -e "$TMP/port.asked" || fail "no fetch: $(cat "$TMP/tree.out")"
await_lease || fatal "no lease"
run "revoked while its tree is fetched: confirmed" \
    ctl lease revoke --kill -- "$lease"
wait "$begun" && fail "it was started" || pass "the start is refused"
grep -q revoked "$TMP/tree.out" && pass "with the reason" ||
    fail "$(cat "$TMP/tree.out")"
gone "after a fetch that was cut off"

# --- its grant, between lease and start
kill -STOP "$edge"
begin two
await_lease || fatal "no lease"
ctl grant rm "$grant" >"$TMP/out" 2>&1 &
revoking=$!
wait_for 20 state_is pending || fail "not pending: $(ctl --json lease ls -a)"
kill -CONT "$edge"
wait "$begun"
wait "$revoking" && pass "a grant that ends before the start: confirmed" ||
    fail "the end of the grant: $(cat "$TMP/out")"
gone "after the end of a grant"
h=$(e2e_handle two 2>/dev/null) && ctl kill -- "$h" >/dev/null 2>&1
ctl grant add kube --to any >/dev/null

# --- twice at once
begin three
wait_for 20 has_run three || fatal "three does not run"
await_lease
ctl --json lease revoke --kill -- "$lease" >"$TMP/a" 2>&1 &
a=$!
ctl --json lease revoke --kill -- "$lease" >"$TMP/b" 2>&1 &
b=$!
wait "$a" && wait "$b" && pass "twice at once: both are told" ||
    fail "one failed: $(cat "$TMP/a" "$TMP/b")"
gone "after two revocations"
n=$(ctl --json audit | grep -c "\"lease.revoke_sent\".*$lease")
[ "$n" = 1 ] && pass "one frame was sent" || fail "$n frames were sent"
wait "$begun"

# --- during a refresh: the shim has not learned the new value yet
begin four
wait_for 20 has_run four || fatal "four does not run"
wait "$begun"
await_lease
shim=
for p in $(pgrep -x cloop-shim); do
	find "/proc/$p/fd" -lname "$TMP/*" 2>/dev/null | grep -q . &&
	    shim="$shim $p"
done
kill -STOP $shim
printf 'password: new-%s\n' "$marker" >"$TMP/value"
ctl secret put kube --kind kubeconfig <"$TMP/value" >/dev/null
ctl --json lease refresh -- "$lease" >"$TMP/refresh" 2>&1 &
refreshing=$!
# Its message waits in the shim's socket.
wait_for 20 sh -c "ss -xpn | awk '\$3 > 0' | grep -q 'pid=${shim# },'" ||
    fail "the refresh does not reach the shim"
ctl --json lease revoke --kill -- "$lease" >"$TMP/out" 2>&1 &
revoking=$!
wait_for 20 no_plaintext && pass "the file is gone, whatever the shim does" ||
    fail "left: $(plaintext)"
kill -CONT $shim
wait "$revoking" && pass "revoked during a refresh: confirmed" ||
    fail "the revocation: $(cat "$TMP/out")"
wait "$refreshing"
grep -q '"files_rewritten":1' "$TMP/refresh" &&
    fail "a file came back: $(cat "$TMP/refresh")" ||
    pass "the refresh brings nothing back"
gone "after it"

# --- while the hub restarts
begin five
wait_for 20 has_run five || fatal "five does not run"
wait "$begun"
await_lease
kill -STOP "$edge"
ctl --json lease revoke --kill -- "$lease" >"$TMP/out" 2>&1 &
revoking=$!
wait_for 20 state_is pending || fail "not pending: $(ctl --json lease ls -a)"
e2e_stop "$hub_pid" KILL
wait "$revoking" && fail "it claims to be revoked: $(cat "$TMP/out")" ||
    pass "killed meanwhile, the hub confirms nothing"
e2e_start_hub
state_is revoked && fail "on record as revoked before the device said so" ||
    pass "the next one owes it"
kill -CONT "$edge"
wait_for 30 state_is revoked && pass "and has it confirmed" ||
    fail "still $(ctl --json lease ls -a)"
gone "after the restart"
wait_for 20 is_over five && pass "the workload is gone" ||
    fail "it runs: $(ctl ps)"
wait_for 30 no_lease && pass "nothing is lent any more" ||
    fail "lent: $(ctl --json lease ls)"
run "the audit chain is whole" ctl audit verify
