# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Runs one regress script: `sh test-exec.sh SCRIPT`, TAP on stdout.  The
# script is read by this shell, sets tid="what it claims" first and then
# just does things; it may use
#
#	$SRC $BUILD $TMP	source tree, build tree, a directory of its own
#	pass TEXT		one point holds
#	fail TEXT		one point does not; the script goes on
#	fatal TEXT		the same, and the script ends
#	skip REASON		the rest cannot be decided here; the script ends
#	note TEXT		diagnostics of the points around it
#	track PID		a process that must be gone at the end
#	wait_for SECONDS COMMAND...	until it succeeds; status 1 when late
#	wait_up SECONDS TEXT LOG PID COMMAND...	the same for a daemon that was
#			started: when it ends or is late, the point TEXT fails
#			with why (whether it lives, how it ended, its log),
#			and the script ends; PID "": nothing to look at
#	not_up TEXT LOG [PID]	the same, at once
#	free_port	prints a TCP port that nobody else gets
#	points_of FILE	its lines "pass TEXT", "fail TEXT", "note TEXT" are ours
#	run TEXT COMMAND...	a point: the command succeeds
#
# A script without points of its own is one point: tid.  `trees=one` on a
# line of its own: the tree does not matter, run it for the first only.
# A script with daemons starts them itself and tracks them.

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
CLOOP_LIBEXEC=${CLOOP_LIBEXEC:-$BUILD}
export SRC BUILD CLOOP_LIBEXEC
SCRIPT=$1
NAME=$(basename "$SCRIPT" .sh)
TMP=$(mktemp -d "${CLOOP_TEST_DIR:-/tmp}/cloop-$NAME.XXXXXX") || exit 1
chmod 755 "$TMP"

points=0
failures=0
tracked=
tid=$NAME
ended=

pass()
{
	points=$((points + 1))
	echo "ok $points - $*"
}

note()
{
	printf '%s\n' "$*" | sed 's/^/# /'
}

fail()
{
	points=$((points + 1))
	failures=$((failures + 1))
	echo "not ok $points - $tid: $*"
}

fatal()
{
	fail "$@"
	bail_out "$@"
}

# The script ends, and says that it came to no verdict.
bail_out()
{
	echo "Bail out! $*"
	exit 1
}

skip()
{
	points=$((points + 1))
	echo "ok $points - $tid # SKIP $*"
	exit 0
}

track()
{
	tracked="$tracked $*"
}

run()
{
	run_text=$1
	shift
	if "$@" >"$TMP/run.out" 2>&1; then
		pass "$run_text"
	else
		run_status=$?
		fail "$run_text"
		note "status $run_status of: $*"
		note "$(tail -n 60 "$TMP/run.out")"
	fi
}

wait_for()
{
	wait_left=$(($1 * 20))
	shift
	until "$@" >/dev/null 2>&1; do
		wait_left=$((wait_left - 1))
		[ "$wait_left" -gt 0 ] || return 1
		sleep 0.05
	done
}

# not_up TEXT LOG [PID]
not_up()
{
	up_status=
	[ -z "${3:-}" ] || kill -0 "$3" 2>/dev/null || {
		wait "$3"
		up_status=$?
	}
	fail "$1"
	# shellcheck disable=SC2086
	note "$(python3 "$SRC/regress/daemons.py" why "$2" ${3:-} $up_status)"
	bail_out "$1"
}

# wait_up SECONDS TEXT LOG PID COMMAND...
wait_up()
{
	up_left=$(($1 * 20)) up_text=$2 up_log=$3 up_pid=$4
	shift 4
	until "$@" >/dev/null 2>&1; do
		up_left=$((up_left - 1))
		[ -z "$up_pid" ] || kill -0 "$up_pid" 2>/dev/null ||
		    not_up "$up_text" "$up_log" "$up_pid"
		[ "$up_left" -gt 0 ] ||
		    not_up "$up_text: not in time" "$up_log" "$up_pid"
		sleep 0.05
	done
}

free_port()
{
	python3 "$SRC/regress/daemons.py" port
}

points_of()
{
	while read -r verdict text; do
		case $verdict in
		pass|ok) pass "$text" ;;
		fail|no) fail "$text" ;;
		note) note "$text" ;;
		esac
	done <"$1"
}

finish()
{
	status=$?
	trap - EXIT
	for pid in $tracked; do
		kill "$pid" 2>/dev/null
	done
	for pid in $tracked; do
		wait_for 10 sh -c "! kill -0 $pid 2>/dev/null" ||
		    kill -KILL "$pid" 2>/dev/null
	done
	# A script that stopped anywhere but at its end has failed.
	if [ -z "$ended" ] && [ "$status" -ne 0 ] && [ "$failures" -eq 0 ]
	then
		fail "ended with status $status"
	fi
	[ "$points" -gt 0 ] || pass "$tid"
	echo "1..$points"
	[ -n "$CLOOP_KEEP" ] || rm -rf "$TMP"
	[ "$failures" -eq 0 ]
	exit $?
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

cd "$SRC" || exit 1
. "$SCRIPT"
ended=yes
exit 0
