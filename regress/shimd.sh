# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# An agent whose shims are started by cloop-shimd, as the shipped units have
# it: it may build no sandbox itself, its workloads are as confined and as
# lasting as ever, and cloop-shimd obeys nobody else.
tid="shims that cloop-shimd starts"
. "$SRC/regress/e2e-lib.sh"
[ -x "$BUILD/cloop-shimd" ] || skip "cloop-shimd is not built"
export TMP

sock=$TMP/shimd.sock
start_shimd()
{
	shimd_ready=$(grep -c event=confined "$TMP/shimd.log" 2>/dev/null)
	python3 "$SRC/regress/fixtures/manager.py" -r "packet:$sock" -- \
	    "$CLOOP_LIBEXEC/cloop-shimd" >>"$TMP/shimd.log" 2>&1 &
	manager_pid=$!
	track "$manager_pid"
	wait_up 60 "cloop-shimd does not start" "$TMP/shimd.log" \
	    "$manager_pid" e2e_has_more "$TMP/shimd.log" event=confined \
	    "${shimd_ready:-0}"
	shimd=$(e2e_children "$manager_pid" | tr -d ' ')
}
# status FIELD PID
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$2/status"; }
# The shims of this test, by their parent and their open files.
shims()
{
	for p in $(pgrep -x cloop-shim); do
		find "/proc/$p/fd" -lname "$TMP/*" 2>/dev/null | grep -q . &&
		    echo "$p"
	done
}
no_shims() { [ -z "$(shims)" ]; }
is() { [ "$2" = "$3" ] && pass "$1" || { fail "$1"; note "$2, not $3"; }; }
# says LOG PATTERN TEXT
says()
{
	wait_for 30 grep -q -- "$2" "$TMP/$1" && pass "$3" ||
	    { fail "$3"; note "$(tail -n 3 "$TMP/$1")"; }
}

# Alone it is no use, and says what is.
"$CLOOP_LIBEXEC/cloop-shimd" >"$TMP/alone" 2>&1
is "without a socket it does not start" $? 1
grep -q "cloop-shimd.socket starts this" "$TMP/alone" &&
    pass "and names what starts it" || fail "without a remedy"
timeout 10 python3 "$SRC/regress/fixtures/manager.py" unix -- \
    "$CLOOP_LIBEXEC/cloop-shimd" >"$TMP/alone" 2>&1
is "nor with a socket of another kind" $? 1
grep -q "correct cloop-shimd.socket" "$TMP/alone" &&
    pass "and says what is wrong" || fail "without a remedy"

e2e_hub
E2E_AGENT_OPTIONS="-o ShimSocket=$sock"
# The work root is in the agent's mount namespace only.
mkdir -p "$TMP/edge-1/work"
cat >"$TMP/in" <<'SH'
mount -t tmpfs none "$TMP/edge-1/work" || exit
exec "$@"
SH
E2E_IN="unshare -m sh $TMP/in"

# No cloop-shimd, no agent.
e2e_mint none
mkdir "$TMP/none"
cat >"$TMP/none.conf" <<END
StateDirectory $TMP/none/state
RuntimeDirectory $TMP/none/run
WorkDirRoot $TMP/none/work
TokenFile $TMP/none.bundle
CAFile $TMP/keys/tls.crt
END
chmod 600 "$TMP/none.conf"
timeout 60 cloop-agentd -d -f "$TMP/none.conf" -o "ShimSocket=$sock" \
    >"$TMP/none.out" 2>&1
is "an agent without its cloop-shimd does not start" $? 1
grep -q "ShimSocket=.$sock. .*No such file.*systemctl start cloop-shimd.socket" \
    "$TMP/none.out" && pass "and names the remedy" ||
    { fail "without a remedy"; note "$(tail -n 2 "$TMP/none.out")"; }

start_shimd
e2e_agent edge-1
is "the capabilities of cloop-shimd" "$(status CapEff "$shimd")" \
    00000000802401e2
is "the agent's, without CAP_SYS_ADMIN and CAP_SETFCAP" \
    "$(status CapEff "$agent_pid")" 00000000000401eb
is "cloop-shimd gets no new privileges" "$(status NoNewPrivs "$shimd")" 1
is "and is under seccomp" "$(status Seccomp "$shimd")" 2

is "work runs" "$(ctl run --on edge-1 -- echo one two)" "one two"
ctl run --on edge-1 -- sh -c 'exit 7'
is "with its exit code" $? 7
is "as its user" "$(ctl run --on edge-1 -- id -un)" \
    "$(id -un _cloop-work 2>/dev/null || echo nobody)"
ctl run --on edge-1 --workdir seen -- sh -c 'echo mine >mark' >"$TMP/mark" 2>&1
is "its tree is what its agent sees" \
    "$(nsenter -m -t "$agent_pid" cat "$TMP/edge-1/work/seen/mark")" mine
[ ! -e "$TMP/edge-1/work/seen" ] && pass "and nobody else" ||
    fail "its tree is the one that cloop-shimd sees"

# A long one: outlives both, and its end is told.
long()
{
	ctl run --on edge-1 --name "$1" --workdir "$1" -- sh -c \
	    'echo before; while [ ! -e stop ]; do sleep 0.1; done
	    echo after; exit 3' >"$TMP/$1" 2>&1 &
	long_pid=$!
	wait_for 20 grep -q before "$TMP/$1" || fail "$1 does not run"
}
# ends NAME
ends()
{
	nsenter -m -t "$agent_pid" sh -c ": >$TMP/edge-1/work/$1/stop"
	wait "$long_pid"
	is "$1: its own exit code" $? 3
	grep -q after "$TMP/$1" && pass "$1: all of its output" ||
	    fail "$1: its output ended"
}
long killed
is "its shim is a child of cloop-shimd" \
    "$(status PPid "$(shims)")" "$shimd"
kill -KILL "$shimd"
wait_for 20 e2e_has_more "$TMP/shimd.log" event=confined 1 ||
    fail "no second cloop-shimd"
shimd=$(e2e_children "$manager_pid" | tr -d ' ')
is "another cloop-shimd starts others" \
    "$(ctl run --on edge-1 -- echo again)" again
ends killed
wait_for 30 no_shims && pass "no shim is left" || fail "a shim is left"

# One agent after another needs its mounts: this one has them not.
E2E_IN=
e2e_stop "$agent_pid"
e2e_start_agent edge-1
wait_for 30 is_online edge-1 || fail "the agent does not come back"
long adopted
e2e_stop "$agent_pid" KILL
e2e_start_agent edge-1
says edge-1.log event=workload-adopted "a killed agent's successor has it"
wait_for 30 is_online edge-1 || fail "the agent does not come back"
ends adopted

# Its shim is killed: what is left is swept by cloop-shimd.
if grep -q "event=confinement.*cgroup=\(v2\|hybrid\)" "$TMP/shimd.log"; then
	group=$(sed -n 's/^0:://p' "/proc/$shimd/cgroup")
	for top in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		[ -e "$top/cgroup.procs" ] && group=$top$group/cloop
	done
	long swept
	leaf=$group/w$(shims)-
	ls -d "$leaf"* >/dev/null 2>&1 && pass "it has a cgroup" ||
	    fail "no $leaf*"
	kill -KILL "$(shims)"
	wait "$long_pid"
	wait_for 30 sh -c "! ls -d '$leaf'*" &&
	    pass "cloop-shimd sweeps that of a killed one" ||
	    fail "$leaf* stays"
	# Nobody's child any more, and the agent's connection is the old one's.
	long orphaned
	leaf=$group/w$(shims)-
	starts=$(grep -c event=confined "$TMP/shimd.log")
	kill -KILL "$shimd"
	wait_for 20 e2e_has_more "$TMP/shimd.log" event=confined "$starts" ||
	    fail "no third cloop-shimd"
	shimd=$(e2e_children "$manager_pid" | tr -d ' ')
	ls -d "$leaf"* >/dev/null 2>&1 && pass "it stays while it is used" ||
	    fail "no $leaf*"
	kill -KILL "$(shims)"
	wait "$long_pid"
	wait_for 30 sh -c "! ls -d '$leaf'*" &&
	    pass "also when another cloop-shimd had started it" ||
	    fail "$leaf* stays"
else
	note "no cgroup can be made here: the sweep was not tried"
fi

# It hangs: a start fails in time, and leaves nothing when it goes on.
kill -STOP "$shimd"
timeout 30 cloopctl -s "$TMP/run/cloopd.sock" run --on edge-1 -- \
    touch "$TMP/edge-1/work/late" >"$TMP/hung" 2>&1
hung=$?
[ "$hung" != 0 ] && [ "$hung" != 124 ] &&
    pass "a start without an answer fails" || fail "status $hung"
says edge-1.log "event=shim-start ShimSocket=.*timed out" "with the reason"
kill -CONT "$shimd"
wait_for 30 no_shims && pass "and leaves no shim" || fail "a shim is left"
[ ! -e "$TMP/edge-1/work/late" ] && pass "nor has it run" || fail "it ran"
is "the next one starts" "$(ctl run --on edge-1 -- echo next)" next

# Whoever else comes, and says what he should not.
cat >"$TMP/client.py" <<'PY'
import os, socket, struct, sys
sock = sys.argv[1]
def come():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(sock)
    return s
def say(s, kind, body=b"", path=None):
    fds = [] if path is None else [os.open(path, os.O_RDONLY)]
    socket.send_fds(s, [struct.pack(">IIQ", kind, len(body), 0) + body], fds)
def dropped(s):
    try:
        return s.recv(100) == b""
    except ConnectionResetError:
        return True
ns = "/proc/self/ns/mnt"
import os
import sys

sys.path.insert(0, os.environ["SRC"] + "/regress/attacks")
import wire

hello = struct.pack(">Q", wire.VERSION)
for what, messages in (
        ("a start before hello", [(0x702, b"", ns)]),
        ("a hello without a descriptor", [(0x700, hello)]),
        ("another version", [(0x700, struct.pack(">Q", wire.VERSION + 1), ns)]),
        ("an unknown type", [(0x7fe, b"")]),
        ("an answer as a question", [(0x701, hello)]),
        ("a hello that is too long", [(0x700, hello + b"x", ns)])):
    s = come()
    for m in messages:
        say(s, *m)
    print("ok" if dropped(s) else "not ok", what)
s = come()
say(s, 0x700, hello, ns)
s.recv(100)
say(s, 0x700, hello, ns)
print("ok" if dropped(s) else "not ok", "a second hello")
s = come()
say(s, 0x700, hello, "/dev/null")
s.recv(100)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
socket.send_fds(s, [struct.pack(">IIQ", 0x702, 0, 0)], [b.fileno()])
error, pid = struct.unpack(">Qq", s.recv(100)[16:])
print("ok" if (error, pid) == (22, 0) else "not ok",
      "a namespace that is none is EINVAL")
s.close()
# The agent is one.
most = int(sys.argv[2]) - 1
many = [come() for _ in range(most)]
for s in many:
    say(s, 0x700, hello, ns)
print("ok" if all(len(s.recv(100)) == 24 for s in many) else "not ok",
      "as many agents as may be")
print("ok" if dropped(come()) else "not ok", "and no more")
many.pop().close()
for _ in range(200):
    s = come()
    try:
        say(s, 0x700, hello, ns)
        if len(s.recv(100)) == 24:
            print("ok another when one has gone")
            break
    except OSError:
        pass
else:
    print("not ok another when one has gone")
PY
python3 "$TMP/client.py" "$sock" \
    "$(sed -n 's/^#define MAX_SHIMD_CLIENTS \([0-9]*\).*/\1/p' common/base/limits.h)" \
    >"$TMP/client" 2>&1
while read -r word text; do
	case $word in
	ok)	pass "$text";;
	*)	fail "$word $text";;
	esac
done <"$TMP/client"
is "all of them were tried" "$(grep -c . "$TMP/client")" 11
kill -0 "$shimd" && pass "cloop-shimd lives" || fail "cloop-shimd is gone"
says shimd.log "event=client-violation pid=.*descriptor missing" \
    "and says who did what"
says shimd.log "event=client-version .*ours=[0-9]*" "and which release came"

chmod 777 "$sock"
[ -x /usr/bin/python3 ] || skip "no Python for everybody: /usr/bin/python3"
setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
sys.exit(s.recv(10) != b"")' "$sock" && pass "another user is refused" ||
    fail "another user is served"
says shimd.log "event=client-refused uid=65534" "and named"
is "the agent is served as before" "$(ctl run --on edge-1 -- echo more)" more
