# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# HostMode confined against a workload that means harm: what it cannot read,
# whom it cannot touch, and that nothing of it survives its end.
tid="a hostile workload stays in its tree"
. "$SRC/regress/e2e-lib.sh"

e2e_hub
e2e_agent edge-1 "MaxConcurrent 8" "HostMode confined"
work=$TMP/edge-1/work
mark=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')

# What there is to steal.  The other trees belong to the same user.
mkdir "$work/evil" "$work/other"
echo treasure >"$work/other/private"
echo treasure >"/tmp/cloop-treasure.$mark"
cp /usr/bin/id "$work/evil/suid-id"
chown -R --reference="$work" "$work/evil" "$work/other"
chown root:root "$work/evil/suid-id"
chmod 4755 "$work/evil/suid-id"
chmod 644 "/tmp/cloop-treasure.$mark"
e2e_on_finish()
{
	rm -f "/tmp/cloop-treasure.$mark"
}

# A neighbour of the same user, and a process of that user outside.
ctl run --on edge-1 --workdir other --detach --name neighbour -- \
    sh -c "exec sleep 3600.$mark" >"$TMP/neighbour" ||
    fatal "the neighbour does not start"
wait_for 30 pgrep -f "sleep 3600.$mark" || fatal "the neighbour does not run"
neighbour=$(pgrep -f "^sleep 3600.$mark")
setpriv --reuid=_cloop-work --regid=_cloop-work --clear-groups \
    sleep "7200.$mark" &
outside=$!
track "$outside"

cat >"$work/evil/evil.py" <<'END'
import ctypes
import glob
import os
import signal
import socket
import subprocess
import sys

top, mark, neighbour, outside, agent = sys.argv[1:6]
pids = [int(p) for p in (neighbour, outside, agent)]
libc = ctypes.CDLL(None, use_errno=True)
held = 0


def attempt(what, action):
    """action returns something true when it got through."""
    global held
    try:
        got = action()
    except (OSError, subprocess.SubprocessError):
        got = None
    if got:
        print("ESCAPED: %s: %.200r" % (what, got), flush=True)
    else:
        held += 1


def read(path):
    return lambda: open(path, "rb").read(64) or None


def succeeds(*argv):
    return lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, stdin=
        subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        timeout=20).returncode == 0


def call(name, *args):
    def run():
        r = getattr(libc, name)(*args)
        return r != -1 and "%s gave %d" % (name, r)
    return run


for path in (
        top + "/edge-1/state/agent.json", top + "/edge-1.conf",
        top + "/edge-1/state/agentd.lock", top + "/keys/tls.key",
        top + "/keys/mac.key", top + "/hub/hub/cloop.db",
        top + "/edge-1/work/other/private", "../other/private",
        "/proc/1/root" + top + "/edge-1/work/other/private",
        "/proc/self/cwd/../other/private",
        "/tmp/cloop-treasure." + mark, "/etc/shadow", "/etc/cloop/keys/tls.key",
        "/root/.bashrc", "/proc/kcore", "/dev/mem", "/dev/kmsg"):
    attempt("read " + path, read(path))
for pattern in ("/edge-1/state/handles/*", "/edge-1/state/handles/*/*",
                "/edge-1/run/*", "/hub/hub/handles/*", "/edge-1/work/*"):
    attempt("list " + pattern, lambda: [
        p for p in glob.glob(top + pattern) if not p.endswith("/evil")])
attempt("list /root", lambda: os.listdir("/root"))
attempt("list /home", lambda: os.listdir("/home"))
attempt("sockets in /run", lambda: [
    p for p in glob.glob("/run/**", recursive=True) if
    not os.path.isdir(p)])
attempt("link to the other tree", lambda: os.symlink(
    "../other", "link") or open("link/private").read())
attempt("write to /usr", lambda: open("/usr/evil", "w"))
attempt("write to /etc", lambda: open("/etc/evil", "w"))
attempt("write beside the tree", lambda: open("../evil-file", "w"))


def control():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(top + "/run/cloopd.sock")
    return s


attempt("the control socket", control)

seen = [int(p) for p in os.listdir("/proc") if p.isdigit()]
mine = {os.getpid(), os.getppid(), 1}
attempt("processes of others in /proc", lambda: [
    p for p in seen if p not in mine])
for pid in pids:
    for name in ("environ", "cmdline", "maps", "mem", "root/etc/shadow"):
        attempt("/proc/%d/%s" % (pid, name), read("/proc/%d/%s" % (pid, name)))
    attempt("signal %d" % pid, lambda: os.kill(pid, 0) or True)
    attempt("kill %d" % pid, lambda: os.kill(pid, signal.SIGKILL) or True)
    attempt("ptrace %d" % pid, call("ptrace", 16, pid, 0, 0))
    attempt("seize %d" % pid, call("ptrace", 0x4206, pid, 0, 0))
    attempt("pidfd of %d" % pid, lambda: os.pidfd_open(pid))
child = os.fork()
if child == 0:
    signal.pause()
attempt("ptrace of an own child", call("ptrace", 16, child, 0, 0))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)

# Privileges.
status = dict(line.split(":\t", 1) for line in
              open("/proc/self/status").read().splitlines() if ":\t" in line)
for field, want in (("NoNewPrivs", "1"), ("Seccomp", "2"),
                    ("CapEff", "0" * 16), ("CapPrm", "0" * 16),
                    ("CapBnd", "0" * 16), ("CapAmb", "0" * 16)):
    attempt("%s is %s" % (field, status[field]),
            lambda: status[field] != want)
attempt("uid 0 in %s" % status["Uid"], lambda: "0" in status["Uid"].split())
attempt("setuid", call("setuid", 0))
attempt("setgid", call("setgid", 0))
attempt("setgroups", call("setgroups", 0, None))
attempt("a set-user-id program", lambda: "euid=0" in subprocess.run(
    ["./suid-id"], capture_output=True, text=True).stdout)
attempt("su", succeeds("su", "-c", "true"))
attempt("sudo", succeeds("sudo", "-n", "true"))
attempt("unshare user", call("unshare", 0x10000000))
attempt("unshare net", call("unshare", 0x40000000))
attempt("unshare(1)", succeeds("unshare", "-Ur", "true"))
attempt("mount", call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
attempt("umount /tmp", call("umount2", b"/tmp", 2))
attempt("umount /root", call("umount2", b"/root", 2))
attempt("chroot", call("chroot", b"."))
attempt("pivot_root", call("syscall", 155, b".", b"."))
attempt("setns", lambda: call("setns", os.open(
    "/proc/1/ns/mnt", os.O_RDONLY), 0)())
attempt("mknod", lambda: os.mknod("disk", 0o60666, os.makedev(8, 0)) or True)
attempt("bpf", call("syscall", 321, 0, 0, 0))
attempt("bpf load", call("syscall", 321, 5, 0, 0))
attempt("bpf attach", call("syscall", 321, 8, 0, 0))
attempt("keyctl", call("syscall", 250, 0, -3, 1))
attempt("perf", call("syscall", 298, 0, 0, -1, -1, 0))
attempt("module", call("syscall", 175, 0, 0, b""))
attempt("reboot", call("reboot", 0x89abcdef))
attempt("hostname", call("sethostname", b"evil", 4))
attempt("clock", call("clock_settime", 0, b"\0" * 16))
attempt("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW,
                                            socket.IPPROTO_ICMP))
attempt("packet socket", lambda: socket.socket(socket.AF_PACKET,
                                               socket.SOCK_RAW))
attempt("a descriptor that is not ours", lambda: [
    os.readlink("/proc/self/fd/%s" % fd) for fd in os.listdir("/proc/self/fd")
    if int(fd) > 2 and not os.readlink("/proc/self/fd/%s" % fd).startswith(
        "/proc/")])

# What it may do, or the rest proves little.
open("mine", "w").write("x")
open("/tmp/mine", "w").write("x")
open("/dev/null", "w").write("x")
subprocess.run(["sh", "-c", "cat /etc/passwd >/dev/null"], check=True)
try:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(-1, signal.SIGTERM)
except OSError:
    pass
print("held: %d" % held)
END
ctl run --on edge-1 --workdir evil --name evil -- python3 evil.py "$TMP" \
    "$mark" "$neighbour" "$outside" "$agent_pid" >"$TMP/out" 2>"$TMP/err"
status=$?
held=$(sed -n 's/^held: //p' "$TMP/out")
if [ $status -eq 0 ] && [ "${held:-0}" -ge 80 ] &&
    ! grep -q ESCAPED "$TMP/out"; then
	pass "$held attempts to read, trace, signal and gain were held"
else
	fail "status $status, ${held:-0} attempts held"
	note "$(tail -n 30 "$TMP/out" "$TMP/err")"
fi
kill -0 "$outside" && kill -0 "$neighbour" && kill -0 "$agent_pid" &&
    pass "kill(-1) reached nobody else" || fail "somebody was killed"

# gone: no process with the mark is left but the two above.
gone()
{
	[ -z "$(pgrep -f "$1.$mark")" ]
}

# start NAME COMMAND: detached, its handle in $handle.
start()
{
	handle=$(ctl run --on edge-1 --workdir evil --detach --name "$1" -- \
	    sh -c "$2") || { fail "$1 does not start"; return 1; }
}

start daemons "
    sleep 91.$mark &
    setsid sleep 92.$mark &
    (setsid sh -c 'setsid sleep 93.$mark & exec sleep 94.$mark' &) &
    nohup sleep 95.$mark >/dev/null 2>&1 &
    trap '' TERM HUP INT
    while :; do sleep 96.$mark; done"
wait_for 30 pgrep -f "sleep 96.$mark" >/dev/null || fail "daemons do not run"
wait_for 20 pgrep -f "sleep 93.$mark" >/dev/null || fail "no double fork"
run "kill answers" ctl kill -- "$handle"
wait_for 30 gone 'sleep 9.' &&
    pass "setsid, double fork, nohup, a deaf leader: killed" ||
    fail "survivors: $(pgrep -af "sleep 9..$mark")"
ctl wait -- "$handle" >/dev/null 2>&1
status=$?
[ $status -eq 137 ] && pass "and its exit code is 137" ||
    fail "its exit code is $status"

start leaver "setsid sleep 81.$mark & (sleep 82.$mark &) ; exit 3"
ctl wait -- "$handle" >/dev/null 2>&1
status=$?
[ $status -eq 3 ] && pass "a leader that leaves daemons: its own code" ||
    fail "a leader that leaves daemons: $status"
wait_for 30 gone 'sleep 8.' && pass "they end with it" ||
    fail "survivors: $(pgrep -af "sleep 8..$mark")"

tasks()
{
	pgrep -c -x "b$mark"
}
# Doubles until it is stopped, then holds still: churning would only show
# that two processors are shared.
cat >"$work/evil/bomb.c" <<'END'
#include <unistd.h>
int main(void)
{
	while (fork() != -1)
		continue;
	pause();
	return 0;
}
END
cc -o "$work/evil/b$mark" "$work/evil/bomb.c" || skip "no C compiler"
chmod 755 "$work/evil/b$mark"
start bomb "exec ./b$mark"
n=0 most=0 before=-1
while [ $n -lt 60 ] && [ "$most" -ne "$before" -o "$most" -lt 100 ]; do
	before=$most
	sleep 0.5
	most=$(tasks)
	n=$((n + 1))
done
[ "$most" -ge 100 ] && [ "$most" -le 1100 ] &&
    pass "a fork bomb is bounded: $most tasks" ||
    fail "a fork bomb made $most tasks"
timeout 60 cloopctl -s "$TMP/run/cloopd.sock" run --on edge-1 --workdir other \
    -- true >"$TMP/out" 2>&1 && pass "others start meanwhile" ||
    { fail "others cannot start meanwhile"; note "$(cat "$TMP/out")"; }
run "it is killed" timeout 60 cloopctl -s "$TMP/run/cloopd.sock" kill -- \
    "$handle"
none()
{
	[ "$(tasks)" -eq 0 ]
}
wait_for 30 none && pass "all of it is gone" ||
    fail "$(tasks) tasks are left"

run "the neighbour is killed" ctl kill -- "$(cat "$TMP/neighbour")"
wait_for 30 e2e_is_gone "$neighbour" && pass "and gone" ||
    fail "the neighbour survives"
