# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Read by the rows of the bench (README here), which test-exec.sh runs for
# run.py.  What e2e-lib.sh and test-exec.sh offer is there too.
#
#	metric NAME UNIT higher|lower TEXT	once, before its samples
#	sample NAME SIDE VALUE		SIDE: ours, limit or a peer's name
#	goal NAME SIDE RATIO		what ours must be against that side;
#					1.5 is half as good again, whichever
#					way the metric runs
#	goal_value NAME VALUE		a bound of the median: at least for
#					`higher', at most for `lower'
#	say TEXT			a note under the table
#	version PROGRAM TEXT		of a peer
#	bench_skip REASON		this row cannot run here; ends it
#	rounds				the numbers 1 to ROUNDS
#
#	cpu_of PID...	CPU seconds of these processes, children excluded
#	cpu_tree PID...	the same with all living descendants, and those that
#			they have waited for
#	pss_of PID...	KiB, every shared page divided among its users
#	tree_of PID...	these processes and all living descendants
#	hub_pids	of the hub that e2e_hub started, monitor first
#	now		seconds, monotonic, with fraction
#	calc EXPRESSION	of Python, six digits
#	each COUNT COMMAND...	runs it one after the other; prints
#			"p50 p95 mean" in ms, and fails when a run fails
#	bench_tool NAME	path of a C program of the bench
#	fleet COUNT	enroll so many agents at the hub of e2e_hub, which is
#			stopped for it; credentials in $TMP/fleet
#	load_start NUMBER OPTION...	a load generator (load.c), one of 1 to
#			3, connected; load_ask NUMBER COMMAND leaves its
#			answer in $answer, load_get KEY prints a value of it
#	load_agents NUMBER COUNT OPTION...	the same with agents of the
#			fleet at our hub, ten behind an address
#	load_begin NUMBER COMMAND, load_end NUMBER	load_ask in two steps
#	load_stop NUMBER
#	peer_ws, peer_lws	start npm's ws, libwebsockets' test server, on
#			$peer_port, as $peer_pid; false when it is not there
#	peer_stop
#	peer_ssh [LINE...]	start sshd, with more lines of its file; then
#			$ssh COMMAND runs one there, $ssh_options are what ssh
#			and scp need beside -p or -P $ssh_port, $sshd_pid is it
#	peer_ssh_mux	$ssh_mux COMMAND does so over a connection that stands
#	have COMMAND	whether it can be found

. "$SRC/regress/e2e-lib.sh"

ulimit -n "$(ulimit -Hn)"
ROUNDS=${ROUNDS:-5}
BENCH_OUT=${BENCH_OUT:-$TMP/bench.out}
BENCH_DIR=$BUILD/bench		# programs, and what npm brought
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin

bench_row()
{
	bench_line=$1
	shift
	for bench_field; do
		bench_line="$bench_line	$bench_field"
	done
	printf '%s\n' "$bench_line" >>"$BENCH_OUT"
}

metric() { bench_row metric "$@"; }
goal() { bench_row goal "$@"; }
goal_value() { bench_row goal_value "$@"; }
say() { bench_row say "$*"; }

version()
{
	bench_version=$1
	shift
	bench_row version "$bench_version" "$*"
}

sample()
{
	case $3 in
	''|*[!0-9.eE+-]*)
		fatal "sample $1 of $2 is no number: '$3'" ;;
	esac
	bench_row sample "$@"
	note "$1 $2 $3"
}

bench_skip()
{
	bench_row skip "$*"
	skip "$@"
}

rounds()
{
	seq "$ROUNDS"
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

bench_tool()
{
	[ -x "$BENCH_DIR/$1" ] || fatal "$BENCH_DIR/$1 is not built" >&2
	echo "$BENCH_DIR/$1"
}

now() { "$BENCH_DIR/measure" now; }
cpu_of() { "$BENCH_DIR/measure" cpu "$@"; }
cpu_tree() { "$BENCH_DIR/measure" cputree "$@"; }
pss_of() { "$BENCH_DIR/measure" pss "$@"; }
tree_of() { "$BENCH_DIR/measure" tree "$@"; }
each() { "$BENCH_DIR/measure" each "$@"; }

hub_pids()
{
	tree_of "$hub_pid"
}

fleet()
{
	e2e_stop "$hub_pid"
	"$(bench_tool fleet)" "$TMP/keys" "${E2E_STATE:-$TMP/hub}" "$1" \
	    >"$TMP/fleet" || fatal "the fleet cannot be enrolled"
	e2e_start_hub
}

load_start()
{
	load_nr=$1 load_in=$(($1 * 2 + 1)) load_out=$(($1 * 2 + 2))
	shift
	rm -f "$TMP/load.in" "$TMP/load.out"
	mkfifo "$TMP/load.in" "$TMP/load.out"
	"$(bench_tool load)" "$@" <"$TMP/load.in" >"$TMP/load.out" \
	    2>>"$TMP/load$load_nr.log" &
	eval "load_pid$load_nr=$!"
	track "$!"
	eval "exec $load_in>'$TMP/load.in' $load_out<'$TMP/load.out'"
	eval "read -r answer <&$load_out" || fatal "the load generator ended"
	note "load $load_nr: $answer"
}

load_agents()
{
	load_agents_nr=$1 load_agents_count=$2
	shift 2
	load_start "$load_agents_nr" -a "127.0.0.1:$E2E_PORT" -k 10 \
	    -n "$load_agents_count" -c "$TMP/fleet" \
	    -u /api/executors/connect "$@"
	[ "$(load_get agents)" = "$load_agents_count" ] ||
	    fatal "not all agents are connected: $answer"
	load_ask "$load_agents_nr" "pids $(hub_pids | tr '\n' ' ')"
}

load_begin()
{
	eval "echo \"\$2\" >&$(($1 * 2 + 1))"
}

load_end()
{
	load_out=$(($1 * 2 + 2))
	eval "read -r answer <&$load_out" || fatal "the load generator ended"
	note "load $1: $answer"
}

load_ask()
{
	load_begin "$@"
	load_end "$1"
}

load_get()
{
	load_value=${answer##*" $1="}
	echo "${load_value%% *}"
}

load_stop()
{
	eval "exec $(($1 * 2 + 1))>&- $(($1 * 2 + 2))<&-"
	eval "e2e_stop \"\$load_pid$1\""
}

# peer_run COMMAND...: listening on $peer_port when this returns.
peer_run()
{
	"$@" >"$TMP/peer.log" 2>&1 &
	peer_pid=$!
	track "$peer_pid"
	wait_for 20 python3 -c "import socket
socket.create_connection(('127.0.0.1', $peer_port)).close()" && return 0
	note "$1: $(python3 "$SRC/regress/daemons.py" why "$TMP/peer.log" \
	    "$peer_pid")"
	return 1
}

peer_ws()
{
	have node && [ -d "$BENCH_DIR/node_modules/ws" ] || return 1
	peer_port=$(free_port)
	NODE_PATH=$BENCH_DIR/node_modules peer_run node \
	    "$SRC/regress/bench/peer-ws.js" "$peer_port" "$TMP/keys/tls.crt" \
	    "$TMP/keys/tls.key" || return 1
	version ws "$(json "d['version']" \
	    <"$BENCH_DIR/node_modules/ws/package.json"), node $(node -v)"
}

peer_lws()
{
	have libwebsockets-test-server || return 1
	peer_port=$(free_port)
	# The key it brings is too small for today's OpenSSL.
	peer_run libwebsockets-test-server --port="$peer_port" --ssl -d 7 \
	    --ssl-cert="$TMP/keys/tls.crt" --ssl-key="$TMP/keys/tls.key" ||
	    return 1
	version libwebsockets "$(dpkg-query -W -f '${Version}' \
	    libwebsockets-test-server)"
}

peer_stop()
{
	e2e_stop "$peer_pid" "${1:-TERM}"
}

calc()
{
	python3 -c "from math import *; print('%.6g' % ($1))"
}

[ -x "$BENCH_DIR/measure" ] || skip "the bench is not built: make bench"

# SHLVL: else bash as the login shell takes itself for one of a network and
# reads root's .bashrc first, which is not ssh's doing.
peer_ssh()
{
	have ssh && have ssh-keygen && have sshd || return 1
	mkdir -p "$TMP/ssh" /run/sshd
	chmod 700 "$TMP/ssh"
	ssh-keygen -q -t ed25519 -N "" -f "$TMP/ssh/host" &&
	    ssh-keygen -q -t ed25519 -N "" -f "$TMP/ssh/user" || return 1
	cp "$TMP/ssh/user.pub" "$TMP/ssh/authorized"
	ssh_port=$(free_port)
	{
		cat <<-END
		ListenAddress 127.0.0.1:$ssh_port
		HostKey $TMP/ssh/host
		AuthorizedKeysFile $TMP/ssh/authorized
		PidFile none
		PermitRootLogin prohibit-password
		StrictModes no
		UsePAM no
		SetEnv SHLVL=1
		END
		printf '%s\n' "$@"
	} >"$TMP/ssh/sshd_config"
	"$(command -v sshd)" -D -f "$TMP/ssh/sshd_config" \
	    2>"$TMP/ssh/log" &
	sshd_pid=$!
	track "$sshd_pid"
	ssh_options="-F none -i $TMP/ssh/user -o BatchMode=yes
	    -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
	    -o LogLevel=ERROR"
	ssh="ssh $ssh_options -p $ssh_port root@127.0.0.1"
	version ssh "$(ssh -V 2>&1)"
	# shellcheck disable=SC2086
	wait_for 10 $ssh true || { note "$(cat "$TMP/ssh/log")"; return 1; }
}

peer_ssh_mux()
{
	ssh_mux="ssh $ssh_options -S $TMP/ssh/mux -p $ssh_port root@127.0.0.1"
	# shellcheck disable=SC2086
	$ssh_mux -M -N &
	track $!
	wait_for 10 test -S "$TMP/ssh/mux"
}
