# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Hub and device are different hosts: network namespaces with a veth pair
# between them, TLS pinned; source trees lie on the device as tarballs and
# are built and tested there.
tid="a device on another host builds a source tree"
. "$SRC/regress/e2e-lib.sh"

command -v ip >/dev/null || skip "iproute2 is not installed"
for p in cc make tar; do
	command -v $p >/dev/null || skip "$p is not installed"
done
H=cl$$h D=cl$$d

e2e_on_finish()
{
	ip netns del "$H" 2>/dev/null
	ip netns del "$D" 2>/dev/null
}

ip netns add "$H" 2>/dev/null && ip netns add "$D" 2>/dev/null ||
    skip "network namespaces cannot be made here"
ip link add "$H" netns "$H" type veth peer name "$D" netns "$D" \
    2>/dev/null || skip "veth pairs cannot be made here"
ip -n "$H" addr add 192.0.2.1/24 dev "$H"
ip -n "$D" addr add 192.0.2.2/24 dev "$D"
for n in "$H" "$D"; do
	ip -n "$n" link set lo up
	ip -n "$n" link set "$n" up
done

E2E_HOST=192.0.2.1
E2E_HUB_IN="ip netns exec $H"
E2E_IN="ip netns exec $D"
e2e_hub
e2e_agent edge-1
pin=$(cloop-keygen -l -f "$TMP/keys/tls.crt" | sed -n 's/^ *pin //p')
grep -q 'transport=tls-pinned' "$TMP/edge-1.log" &&
    pass "the connection is pinned" || fail "the connection is not pinned"
grep -qF "\"pin\": \"$pin\"" "$TMP/edge-1/state/agent.json" &&
    pass "the pin of the hub is stored" || fail "the stored pin differs"
grep -q 'event=agent-up.*peer=192.0.2.2:' "$TMP/hub.log" &&
    pass "the device came over the wire" || fail "another way than the wire"
[ ! -e "$TMP/edge-1.bundle" ] && pass "the bundle is gone" ||
    fail "the bundle is still there"

# A small program: make, make test.
work=$TMP/edge-1/work
mkdir "$work/src"
tar -C regress/fixtures/roman -cf "$work/src/roman.tar" .
chown -R --reference="$work" "$work/src"
ctl run --on edge-1 --workdir src -- \
    sh -c 'tar x < roman.tar && make && make test' >"$TMP/out" 2>"$TMP/err"
status=$?
if [ $status -eq 0 ] && grep -q '^ok' "$TMP/out"; then
	pass "make, make test: exit code 0, output: $(wc -l <"$TMP/out") lines"
else
	fail "make test: exit code $status"
	note "$(tail -n 8 "$TMP/out" "$TMP/err")"
fi
ctl run --on edge-1 --workdir src -- make test >"$TMP/again" 2>&1 &&
    pass "the tree stays for the next command" ||
    { fail "the tree is gone"; note "$(cat "$TMP/again")"; }
ctl run --on edge-1 --workdir src -- \
    sh -c 'make no-such-target; exit 7' >"$TMP/out" 2>"$TMP/err"
status=$?
[ $status -eq 7 ] && grep -q 'no-such-target' "$TMP/out" &&
    pass "a failing build: its exit code and its words" ||
    fail "a failing build: exit code $status"
ctl run --on edge-1 -- sh -c 'kill -SEGV $$' >/dev/null 2>&1
status=$?
[ $status -eq 139 ] && pass "a signal is 128 and its number" ||
    fail "SIGSEGV: $status"
ctl run --on edge-1 -- no-such-command >"$TMP/out" 2>"$TMP/err"
status=$?
[ $status -eq 125 ] && grep -q no-such-command "$TMP/err" &&
    pass "what cannot be started is 125, with the reason" ||
    fail "no-such-command: $status: $(cat "$TMP/err")"

# A real one: ours.  Only once, it takes its time.
case $BUILD in *asan*) ended=1; exit 0 ;; esac
[ -e build/config.mk ] || skip "the tree is not configured"
mkdir "$work/cloop"
tar -czf "$work/cloop/cloop.tar.gz" Makefile configure.ac configure \
    build/config.mk common regress/unit regress/objects.mk
chown -R --reference="$work" "$work/cloop"
ctl run --on edge-1 --workdir cloop --timeout 5m -- sh -c '
    tar xz < cloop.tar.gz &&
    make -s B=out out/unit/test_utf8 out/unit/test_buf &&
    out/unit/test_utf8 && out/unit/test_buf' >"$TMP/out" 2>"$TMP/err"
status=$?
n=$(grep -c '^ok' "$TMP/out")
if [ $status -eq 0 ] && [ "$n" -gt 5 ]; then
	pass "our own tree: built, $n points of its tests hold"
else
	fail "our own tree: exit code $status, $n points"
	note "$(tail -n 10 "$TMP/out" "$TMP/err")"
fi
