# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# `cloopctl lease revoke --kill' of 50 workloads one after the other, each
# with a file and a variable on loan, a process that left its session and
# ignores everything, and a leader that ignores all but TERM; until the
# device has confirmed that file and processes are gone.  Beside it `pkill
# -9' through an open ssh connection, which confirms nothing.
. "$SRC/regress/bench/lib.sh"

WORKLOADS=50

metric p99 ms lower "command to confirmed gone, 99th percentile of $WORKLOADS"
metric p50 ms lower "the same, median"
metric file ms lower "command to file gone, a workload that ignores TERM too"
goal p99 ssh 1.0
goal_value p99 500
goal_value file 500
say "limit: SIGKILL to a child and its collection, in one process."
say "A leader that ignores TERM is given 5 s."
say "Its files go at once, which is what file measures."

# What a workload does.
cat >"$TMP/workload.py" <<'END'
import os, signal, sys, time
stubborn = sys.argv[1] == "stubborn"
for n in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    if n < 32 and n != signal.SIGCHLD:
        signal.signal(n, signal.SIG_IGN)
assert os.environ["BENCH_TOKEN"] and open(os.environ["KUBECONFIG"]).read()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
if not stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
open("ready", "w").close()
time.sleep(600)
END

# begin soft|stubborn TREE
begin()
{
	ctl --json run --detach --on edge --workdir "$2" --secret tok \
	    --secret kube -- python3 -c "$(cat "$TMP/workload.py")" "$1" \
	    2>"$TMP/run.err" | json "d['leases'][0]"
}

# ready COUNT: workloads that hold what they were lent.
ready()
{
	[ "$(find "$TMP/edge/work" -name ready | wc -l)" -ge "$1" ]
}

left()
{
	grep -lF "BENCH_TOKEN=$mark" /proc/[0-9]*/environ 2>/dev/null
	grep -rlF "$mark" /dev/shm "$TMP/edge/run" 2>/dev/null
}

ours_round()
{
	i=0
	: >"$TMP/leases"
	while [ $i -lt $WORKLOADS ]; do
		begin soft "w$i" >>"$TMP/leases" || e2e_fatal "no run" "$TMP/run.err"
		i=$((i + 1))
	done
	wait_for 60 ready $WORKLOADS || fatal "not all workloads are ready"
	# shellcheck disable=SC2046
	set -- $(python3 "$SRC/regress/bench/revoke.py" cloopctl -s \
	    "$TMP/run/cloopd.sock" lease revoke --kill -- {} <"$TMP/leases")
	[ $# = 2 ] || fatal "a revocation failed: $*"
	sample p50 ours "$1"
	sample p99 ours "$2"
	[ -z "$(left)" ] || fail "confirmed, and still there: $(left)"
	find "$TMP/edge/work" -name ready -delete
}

ssh_round()
{
	i=0
	: >"$TMP/tags"
	while [ $i -lt $WORKLOADS ]; do
		ln -s "$(command -v sleep)" "$TMP/tag-$round-$i-"
		# shellcheck disable=SC2086
		$ssh_mux "exec >/dev/null 2>&1 </dev/null; for i in 1 2; do \
		    setsid -f $TMP/tag-$round-$i- 600; done"
		echo "[t]ag-$round-$i-" >>"$TMP/tags"
		i=$((i + 1))
	done
	# shellcheck disable=SC2046,SC2086
	set -- $(python3 "$SRC/regress/bench/revoke.py" $ssh_mux pkill -9 -f {} \
	    <"$TMP/tags")
	[ $# = 2 ] || fatal "ssh: $*"
	sample p50 ssh "$1"
	sample p99 ssh "$2"
}

limit_round()
{
	# shellcheck disable=SC2046
	set -- $(python3 -c "
import os, signal, time
took = []
for _ in range($WORKLOADS):
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    time.sleep(0.002)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    took.append((time.monotonic() - began) * 1e3)
took.sort()
print(took[$WORKLOADS // 2], took[-1])")
	sample p50 limit "$1"
	sample p99 limit "$2"
}

stubborn_round()
{
	lease=$(begin stubborn stubborn)
	wait_for 20 ready 1 || fatal "it is not ready"
	file=$(grep -rlF "$mark" /dev/shm "$TMP/edge/run")
	[ -e "$file" ] || fatal "no file: $file"
	python3 - "$file" cloopctl -s "$TMP/run/cloopd.sock" lease revoke \
	    --kill -- "$lease" >"$TMP/stubborn" <<-END || fatal "no end of it"
	import os, subprocess, sys, time
	began = time.monotonic()
	tool = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL)
	while os.path.exists(sys.argv[1]):
	    time.sleep(0.0002)
	print((time.monotonic() - began) * 1e3)
	sys.exit(tool.wait())
	END
	sample file ours "$(cat "$TMP/stubborn")"
	[ -z "$(left)" ] || fail "confirmed, and still there: $(left)"
	find "$TMP/edge/work" -name ready -delete
}

mark=M4rk3r-$$-$(date +%s%N)
e2e_hub
e2e_agent edge "MaxConcurrent 64"
printf 'BENCH_TOKEN=%s\n' "$mark" | ctl -q secret put tok
printf 'password: %s\n' "$mark" | ctl -q secret put kube --kind kubeconfig
for s in tok kube; do
	ctl grant add $s --to any >/dev/null || fatal "no grant of $s"
done
with_ssh=
peer_ssh && peer_ssh_mux && with_ssh=yes
[ -n "$with_ssh" ] || say "ssh: no sshd here."
for round in $(rounds); do
	ours_round
	[ -z "$with_ssh" ] || ssh_round
	limit_round
	stubborn_round
done
