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
#	have COMMAND	whether it can be found

. "$SRC/regress/e2e-lib.sh"

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

calc()
{
	python3 -c "from math import *; print('%.6g' % ($1))"
}

[ -x "$BENCH_DIR/measure" ] || skip "the bench is not built: make bench"
