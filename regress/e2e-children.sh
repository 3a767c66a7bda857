# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# kill -9 of each child of the hub and of the device: it is replaced, the
# agents come back, the workloads do not notice, and their output is whole.
tid="killed children are replaced, and no output is lost"
. "$SRC/regress/e2e-lib.sh"

# One address is everybody here: penalties would hit the wrong ones.
e2e_hub "NetWorkers 2" "PerSourcePenalty no"
e2e_agent edge-1
first=$agent_pid
e2e_agent edge-2

# A number every 20 ms for as long as the file "go" is there.
for n in edge-1 edge-2; do
	mkdir "$TMP/$n/work/job"
	: >"$TMP/$n/work/job/go"
	chown -R --reference="$TMP/$n/work" "$TMP/$n/work/job"
	ctl run --on $n --workdir job --detach --name $n -- sh -c '
	    i=0
	    while [ -e go ]; do i=$((i+1)); echo $i; sleep 0.02; done
	    exit 5' >"$TMP/$n.handle" || fatal "no workload on $n"
done
h1=$(cat "$TMP/edge-1.handle") h2=$(cat "$TMP/edge-2.handle")

grows()
{
	[ "$(ctl logs -- "$1" 2>/dev/null | wc -c)" -gt "$2" ]
}

# back TEXT: both agents are online and both logs grow.
back()
{
	wait_for 30 is_online edge-1 && wait_for 30 is_online edge-2 ||
	    { fail "$1: the agents do not come back"; return; }
	a=$(ctl logs -- "$h1" | wc -c) b=$(ctl logs -- "$h2" | wc -c)
	wait_for 20 grows "$h1" "$a" && wait_for 20 grows "$h2" "$b" &&
	    pass "$1: agents are back, output goes on" ||
	    fail "$1: output does not go on"
}

# pids PARENT PROGRAM
pids()
{
	for p in $(e2e_children "$1"); do
		case $(readlink "/proc/$p/exe") in
		*/"$2") echo "$p" ;;
		esac
	done
}

replaced()
{
	now=$(pids "$1" "$2" | tr '\n' ' ')
	[ "$(echo "$now" | wc -w)" -eq "$4" ] || return 1
	case " $now" in *" $3 "*) return 1 ;; esac
}

# kill_each PARENT PROGRAM
kill_each()
{
	n=$(pids "$1" "$2" | wc -l)
	for p in $(pids "$1" "$2"); do
		kill -KILL "$p"
		wait_for 20 replaced "$1" "$2" "$p" "$n" &&
		    pass "$2 is replaced" || fail "$2 is not replaced"
		back "$2 killed"
	done
}

back "before"
for program in cloopd-net cloopd-key cloopd-ctl; do
	[ -n "$(pids "$hub_pid" $program)" ] || fail "no $program"
	kill_each "$hub_pid" $program
done
for p in $first $agent_pid; do
	[ -n "$(pids "$p" agentd-fetch)" ] || fail "no agentd-fetch"
	kill_each "$p" agentd-fetch
done

# The device monitor itself: shims go on, the next one adopts them.
kill -KILL "$first"
wait_for 20 is_offline edge-1 || fail "the hub does not notice"
e2e_start_agent edge-1
back "cloop-agentd killed"
kill -KILL "$hub_pid"
wait_for 20 e2e_is_gone "$hub_pid"
e2e_start_hub
back "cloopd killed"

for n in edge-1 edge-2; do
	rm "$TMP/$n/work/job/go"
	h=$(cat "$TMP/$n.handle")
	timeout 60 cloopctl -s "$TMP/run/cloopd.sock" wait -- "$h" \
	    >"$TMP/wait.out" 2>&1
	status=$?
	[ $status -eq 5 ] && pass "$n: the workload ended with its own code" ||
	    { fail "$n: wait says $status"; note "$(cat "$TMP/wait.out")"; }
	ctl logs -- "$h" >"$TMP/have" 2>"$TMP/err"
	last=$(tail -n 1 "$TMP/have")
	seq 1 "${last:-0}" | cmp -s - "$TMP/have" && [ ! -s "$TMP/err" ] &&
	    pass "$n: all $last lines are there, once each" ||
	    { fail "$n: lines are missing or doubled"
	    note "$(seq 1 "${last:-0}" | diff - "$TMP/have" | head -n 5)"
	    note "$(cat "$TMP/err")"; }
done
