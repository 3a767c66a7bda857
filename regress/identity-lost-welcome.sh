# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# BC-35: a device that dies between the redemption of its token and the
# saving of its credential.  The token is spent; everybody says so, and a new
# token is the way on.
tid="a welcome that is lost"
trees=one
. "$SRC/regress/e2e-lib.sh"

hooks=${CLOOP_HOOKS_BUILD:-$BUILD/hooks}
[ -x "$hooks/cloop-agentd" ] && [ -x "$hooks/agentd-fetch" ] ||
    skip "$hooks is not built (make check-build)"

enroll()
{
	cloop-enroll -s "$TMP/run/cloopd.sock" "$@"
}

e2e_hub "PerSourcePenalty no"
e2e_mint edge-1
cp "$TMP/edge-1.bundle" "$TMP/used.bundle"
mkdir -p "$TMP/edge-1"
cat >"$TMP/edge-1.conf" <<END
StateDirectory $TMP/edge-1/state
RuntimeDirectory $TMP/edge-1/run
WorkDirRoot $TMP/edge-1/work
TokenFile $TMP/edge-1.bundle
CAFile $TMP/keys/tls.crt
END
chmod 600 "$TMP/edge-1.conf"
# The name of the point, how often it is passed, how often it was fired.
python3 -c 'import struct, sys
sys.stdout.buffer.write(struct.pack("64siI", b"enroll.save", 1, 0))' \
    >"$TMP/hooks"
CLOOP_HOOKS=$TMP/hooks CLOOP_LIBEXEC=$hooks timeout 60 \
    "$hooks/cloop-agentd" -d -f "$TMP/edge-1.conf" >"$TMP/edge-1.log" 2>&1
[ "$(od -An -tu4 -j68 -N4 "$TMP/hooks" | tr -d ' ')" = 1 ] &&
    pass "the device dies with the credential in its hands" ||
    fatal "it does not: $(tail -n 3 "$TMP/edge-1.log")"
[ ! -e "$TMP/edge-1/state/agent.json" ] &&
    [ -e "$TMP/edge-1.bundle" ] &&
    pass "it has saved nothing, and still has its token" ||
    fail "$(ls -R "$TMP/edge-1/state")"
wait_for 30 grep -q event=enrollment-unconfirmed "$TMP/hub.log" &&
    pass "the hub says that the enrollment was not finished" ||
    fail "the hub says nothing"
ctl --json audit >"$TMP/audit"
grep -q '"action":"executor.enroll".*unconfirmed' "$TMP/audit" &&
    ! grep -q '"executor.enroll".*\\"confirm\\"' "$TMP/audit" &&
    pass "and so does the audit" || fail "$(cat "$TMP/audit")"
enroll agents | grep -q 'edge-1 .*unconfirmed' &&
    pass "and the list of agents" || fail "$(enroll agents)"

# Started again as it is, it says what to do.
: >"$TMP/edge-1.log"
e2e_start_agent edge-1
wait_for 30 grep -q 'used already; mint a new token' "$TMP/edge-1.log" &&
    pass "with the spent token it is refused, and says what to do" ||
    fail "$(tail -n 3 "$TMP/edge-1.log")"
wait_for 30 grep -q 'event=auth result=denied.*token_already_used' \
    "$TMP/hub.log" && pass "the hub's log has the cause" || fail "no cause"
ctl --json audit >"$TMP/audit"
grep '"decision":"deny"' "$TMP/audit" | grep -q 'first_peer.*token_already\|token_already.*first_peer' ||
    grep '"decision":"deny"' "$TMP/audit" | grep -q first_agent_id &&
    pass "the audit names who was first, from where, and when (BC-37)" ||
    fail "$(grep deny "$TMP/audit")"
e2e_stop "$agent_pid"

# The way on: the orphan is revoked, a new token is minted.
orphan=$(enroll agents --json | json "d['agents'][0]['agent_id']")
run "the orphan is revoked" enroll revoke -- "$orphan"
rm "$TMP/edge-1.bundle"
e2e_mint edge-1
e2e_start_agent edge-1
wait_for 30 is_online edge-1 && pass "a new token brings the device in" ||
    fail "$(tail -n 3 "$TMP/edge-1.log")"
run "and it works" ctl run --on edge-1 -- true
