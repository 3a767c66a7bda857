# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-agentd as an ordinary user: it enrolls, runs workloads as confined as
# that user can make them, and claims nothing that it cannot do.
tid="an agent without root"
. "$SRC/regress/e2e-lib.sh"

command -v setpriv >/dev/null || skip "setpriv is not installed"
user=nobody
id $user >/dev/null 2>&1 || skip "there is no user $user"
home=$TMP/home
mkdir -p "$home"
chown $user "$home"
chmod 700 "$home"
# A kernel or a sysctl may keep user namespaces from ordinary users.
as_user()
{
	setpriv --reuid=$user --regid="$(id -g $user)" --clear-groups \
	    env -i PATH="$PATH" HOME="$home" CLOOP_LIBEXEC="$CLOOP_LIBEXEC" \
	    ASAN_OPTIONS="$ASAN_OPTIONS" "$@"
}
as_user test -x "$BUILD/cloop-agentd" ||
    skip "$user cannot reach the build tree"

e2e_hub
e2e_mint edge-u
mv "$TMP/edge-u.bundle" "$home/bundle"
chown $user "$home/bundle"
cp "$TMP/keys/tls.crt" "$home/hub.crt"
chmod 644 "$home/hub.crt"

start_user_agent()
{
	setpriv --reuid=$user --regid="$(id -g $user)" --clear-groups \
	    env -i PATH="$PATH" HOME="$home" CLOOP_LIBEXEC="$CLOOP_LIBEXEC" \
	    ASAN_OPTIONS="$ASAN_OPTIONS" \
	    cloop-agentd -d --token-file "$home/bundle" \
	    --ca-file "$home/hub.crt" --label kind=user \
	    >>"$TMP/edge-u.log" 2>&1 &
	agent_pid=$!
	track "$agent_pid"
}

as_user cloop-agentd -T >"$TMP/conf" 2>&1
grep -q "^StateDirectory $home/.cloop\$" "$TMP/conf" &&
    grep -q "^CredentialFile $home/.cloop/agent.json\$" "$TMP/conf" &&
    pass "state is below the user's home" ||
    { fail "state is elsewhere"; note "$(cat "$TMP/conf")"; }
start_user_agent
e2e_online edge-u
pass "it enrolls"
[ "$(stat -c '%a %U' "$home/.cloop/agent.json")" = "600 $user" ] &&
    pass "the credential is the user's, 0600" ||
    fail "credential: $(stat -c '%a %U' "$home/.cloop/agent.json")"
[ ! -e "$home/bundle" ] && pass "the bundle is gone" ||
    fail "the bundle is still there"
grep -q event=unprivileged "$TMP/edge-u.log" &&
    pass "the log says what that means" || fail "the log is silent about it"
for pid in $agent_pid $(e2e_children "$agent_pid"); do
	[ "$(stat -c %U "/proc/$pid")" = root ] && grep -q \
	    '^Uid:.*[[:space:]]0[[:space:]]' "/proc/$pid/status" &&
	    fail "process $pid is root"
	grep -q '^CapEff:[[:space:]]*0000000000000000' "/proc/$pid/status" ||
	    fail "process $pid has capabilities"
done

# What it claims is what it can do.
ctl --json agents edge-u >"$TMP/agents" 2>&1
json "d['agents'][0]['capabilities'] if 'agents' in d else
    d['capabilities']" <"$TMP/agents" >"$TMP/caps" 2>&1 ||
    { fail "no capabilities"; note "$(cat "$TMP/agents")"; }
git="workspace_provisioning write_back branch_bundles"
as_user sh -c 'command -v git' >/dev/null && git=
for no in container_runtimes packet_filter denial_log forwarded_usb \
    forwarded_l2 remote_upgrade $git; do
	grep -qE "'$no': (True|\\['|[1-9])" "$TMP/caps" &&
	    fail "$no is claimed"
done
grep -q "'os': 'linux'" "$TMP/caps" && grep -q "kind" "$TMP/caps" &&
    pass "capabilities: nothing it cannot do is claimed" ||
    { fail "capabilities"; note "$(cat "$TMP/caps")"; }
kvm=no
as_user sh -c '[ -r /dev/kvm ] && [ -w /dev/kvm ]' && kvm=maybe
[ $kvm = maybe ] || grep -q "'virtualization': True" "$TMP/caps" &&
    [ $kvm = no ] && fail "virtualization is claimed without /dev/kvm"

ctl run --on edge-u --name id -- sh -c 'id -un; pwd; echo err >&2; exit 9' \
    >"$TMP/out" 2>"$TMP/err"
status=$?
[ $status -eq 9 ] && [ "$(sed -n 1p "$TMP/out")" = $user ] &&
    [ "$(sed -n 2p "$TMP/out")" = "$home/.cloop/work" ] &&
    grep -q err "$TMP/out" && pass "a workload runs as $user" ||
    { fail "a workload: status $status"
    note "$(cat "$TMP/out" "$TMP/err")"; }
ctl run --on edge-u --memory 64M -- true >"$TMP/out" 2>&1
status=$?
[ $status -eq 125 ] && grep -qi 'limit' "$TMP/out" &&
    pass "what it cannot enforce it refuses" ||
    fail "limits: status $status, $(cat "$TMP/out")"
ctl run --on edge-u -- cat "$home/.cloop/agent.json" >"$TMP/out" 2>&1
if grep -q clac1 "$TMP/out"; then
	fail "a workload reads the agent's credential"
else
	pass "a workload cannot read the agent's credential"
fi
ctl run --on edge-u -- sh -c "kill -KILL $agent_pid $(e2e_children \
    "$agent_pid")" >"$TMP/out" 2>&1
kill -0 "$agent_pid" && is_online edge-u &&
    pass "nor end the agent" || fail "a workload ended the agent"
ctl run --on edge-u --workdir ../../.. -- true >"$TMP/out" 2>&1
status=$?
[ $status -eq 125 ] && pass "nor leave the work root" ||
    fail "it left the work root: $status $(cat "$TMP/out")"

# Daemons of a workload end with it, also without cgroups of root.
mark=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
h=$(ctl run --on edge-u --detach -- sh -c "
    setsid sleep 61.$mark & (setsid sh -c 'sleep 62.$mark & wait' &)
    sleep 63.$mark")
wait_for 30 pgrep -f "sleep 62.$mark" >/dev/null || fail "daemons do not run"
run "kill answers" ctl kill -- "$h"
gone()
{
	[ -z "$(pgrep -f "sleep 6..$mark")" ]
}
wait_for 30 gone && pass "nothing survives the kill" ||
    fail "survivors: $(pgrep -af "sleep 6..$mark")"

# A restart uses the credential.
e2e_stop "$agent_pid"
is_offline edge-u || fail "it is still online"
start_user_agent
wait_for 30 is_online edge-u && pass "it comes back with its credential" ||
    fail "it does not come back"
