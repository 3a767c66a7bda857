# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# While a git speaks to its forge, nothing of its job can send a packet to
# another address; a forge without one is said to be.
tid="a git reaches its forge's addresses and no other"
. "$SRC/regress/e2e-lib.sh"

command -v git >/dev/null || skip "git is not installed"
[ -x "$BUILD/cloop-git" ] || skip "cloop-git is not built"

e2e_hub
e2e_agent edge-1

# A forge that takes the connection and says nothing, for as long as we look.
python3 "$SRC/regress/fixtures/silent.py" "$TMP/port" \
    2>"$TMP/silent.err" &
forge_pid=$!
track $forge_pid
wait_up 30 "no forge" "$TMP/silent.err" $forge_pid test -e "$TMP/port"
port=$(cat "$TMP/port")

ctl -q run --on edge-1 --name one --git "https://localhost:$port/r.git" -- \
    true >"$TMP/out" 2>"$TMP/err" &
run_pid=$!
track $run_pid
wait_for 20 test -e "$TMP/port.asked" ||
    { fail "git does not reach the forge"; note "$(cat "$TMP/err")"; exit 1; }
pass "git connects, without looking the name up itself"

if grep -q 'event=forge-filter.*available=no' "$TMP/edge-1.log"; then
	why=$(sed -n 's/.*event=forge-filter.*reason=//p' "$TMP/edge-1.log")
	note "no packet filter here: $why"
	skip "no packet filter for cgroups: $why"
fi

# A process of ours in the job's cgroup stands for a git that was taken over.
for p in $(pgrep -f "git-remote-https .*localhost:$port/"); do
	job_group=$(sed -n 's/^0:://p' "/proc/$p/cgroup")
done
[ -n "${job_group:-}" ] || fatal "no git-remote-https runs"
python3 - "$job_group" "$port" >"$TMP/tried" 2>&1 <<'PY'
import errno, os, socket, sys
group, port = sys.argv[1], int(sys.argv[2])
for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
    path = root + group + "/cgroup.procs"
    if os.path.exists(path):
        break
other = socket.create_server(("127.0.0.9", port))
with open(path, "w") as file:
    file.write(str(os.getpid()))


def tcp(address):
    s = socket.socket()
    s.settimeout(1.5)
    try:
        s.connect((address, port))
        return "connected"
    except OSError as why:
        return "timed out" if why.errno is None else \
            errno.errorcode[why.errno]


def udp(address, to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.sendto(b"x", (address, to))
        return "sent"
    except OSError as why:
        return errno.errorcode[why.errno]


print("forge", tcp("127.0.0.1"))
print("other", tcp("127.0.0.9"))
print("datagram", udp("127.0.0.9", port))
print("dns", udp("127.0.0.53", 53))
PY
note "$(cat "$TMP/tried")"
grep -q '^forge connected$' "$TMP/tried" && pass "the forge's address" ||
    fail "the forge cannot be reached"
grep -q '^other \(timed out\|EPERM\)$' "$TMP/tried" &&
    grep -q '^datagram EPERM$' "$TMP/tried" &&
    pass "no other address, whatever protocol" ||
    fail "another address can be reached"
grep -q '^dns EPERM$' "$TMP/tried" && pass "no name server" ||
    fail "a name server can be reached"

ctl kill -- "$(e2e_handle one)" >"$TMP/killed" 2>&1 ||
    { fail "it cannot be killed"; note "$(cat "$TMP/killed")"; }
wait $run_pid && fail "it was started" || pass "a kill ends the fetch"
group_is_gone()
{
	[ ! -e "/sys/fs/cgroup/unified$job_group" ] &&
	    [ ! -e "/sys/fs/cgroup$job_group" ]
}
wait_for 20 group_is_gone && pass "the filter goes with the job's cgroup" ||
    fail "the job's cgroup is left: $job_group"

ctl -q run --on edge-1 --name two --git "https://nowhere.invalid/r.git" -- \
    true >"$TMP/out" 2>"$TMP/err"
grep -q 'workspace: the address of "nowhere.invalid" cannot be found: ' \
    "$TMP/err" && pass "a forge without an address, in so many words" ||
    { fail "no reason"; note "$(cat "$TMP/err")"; }

# By its address: nothing is looked up.
ctl -q run --on edge-1 --name three --git "https://127.0.0.1:1/r.git" -- \
    true >"$TMP/out" 2>"$TMP/err"
grep -q 'git fetch failed: .*127.0.0.1' "$TMP/err" &&
    pass "an address needs no name" ||
    { fail "no reason"; note "$(cat "$TMP/err")"; }

# A proxy that resolves what the device cannot.
e2e_stop "$agent_pid"
HTTPS_PROXY=http://localhost:1 e2e_start_agent edge-1
wait_for 30 is_online edge-1
ctl -q run --on edge-1 --name four --git "https://nowhere.invalid/r.git" -- \
    true >"$TMP/out" 2>"$TMP/err"
grep -q 'git fetch failed: .*localhost port 1' "$TMP/err" &&
    pass "a proxy is reached for a name only it can resolve" ||
    { fail "the proxy"; note "$(cat "$TMP/err")"; }

# A name server that never answers.
e2e_stop "$agent_pid"
python3 "$SRC/regress/fixtures/silent.py" "$TMP/dns" 127.0.0.9 &
track $!
wait_for 30 test -e "$TMP/dns" || fatal "no name server"
echo "nameserver 127.0.0.9" >"$TMP/resolv.conf"
cat >"$TMP/in" <<END
#!/bin/sh
mount --bind "$TMP/resolv.conf" /etc/resolv.conf && exec "\$@"
END
chmod 755 "$TMP/in"
E2E_IN="unshare -m $TMP/in"
e2e_start_agent edge-1
wait_for 30 is_online edge-1
ctl -q run --on edge-1 --name five --git "https://slow.example/r.git" -- \
    true >"$TMP/out" 2>"$TMP/err" &
run_pid=$!
track $run_pid
wait_for 20 test -e "$TMP/dns.asked" || fail "no name server is asked"
ctl kill -- "$(e2e_handle five)" >"$TMP/killed" 2>&1 ||
    { fail "it cannot be killed"; note "$(cat "$TMP/killed")"; }
wait $run_pid
grep -q 'cancelled by a signal' "$TMP/err" &&
    pass "a kill ends the look-up" ||
    { fail "the kill during the look-up"; note "$(cat "$TMP/err")"; }
resolver_is_gone()
{
	for p in $(e2e_children "$agent_pid"); do
		grep -q resolver "/proc/$p/cmdline" 2>/dev/null && return 1
	done
	return 0
}
wait_for 20 resolver_is_gone && pass "and its process" ||
    fail "a resolver is left"
e2e_finish
