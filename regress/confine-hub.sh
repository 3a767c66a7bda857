# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Live processes of the hub as the kernel sees them: user, capabilities,
# no-new-privs, filter, root, descriptors; and an orderly stop that leaves
# nothing.
tid="confinement of the hub's processes"
. "$SRC/regress/fixtures/hub.inc"

hub_make
hub_start

field()
{
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}

# What each child may have open besides 0 to 3.
allowed()
{
	case $1 in
	cloopd-net) echo 'socket:|anon_inode:\[event|memfd:|pipe:|/log' ;;
	cloopd-ctl) echo 'socket:|anon_inode:\[event|pipe:' ;;
	cloopd-key) echo 'socket:|anon_inode:\[event|pipe:' ;;
	esac
}

for program in cloopd-net cloopd-key cloopd-ctl; do
	pids=$(hub_children $program)
	[ -n "$pids" ] || fatal "no $program"
	for pid in $pids; do
		[ "$(field $pid Uid | cut -f 1)" != 0 ] ||
		    fail "$program runs as root"
		[ "$(field $pid Uid | tr '\t' '\n' | sort -u | wc -l)" = 1 ] ||
		    fail "$program has several uids"
		for set in CapInh CapPrm CapEff CapAmb; do
			[ "$(field $pid $set)" = 0000000000000000 ] ||
			    fail "$program: $set is $(field $pid $set)"
		done
		[ "$(field $pid NoNewPrivs)" = 1 ] ||
		    fail "$program may gain privileges"
		[ "$(field $pid Seccomp)" = 2 ] ||
		    fail "$program has no system-call filter"
		[ -z "$(field $pid Groups | tr -d ' ')" ] ||
		    fail "$program has groups: $(field $pid Groups)"
		[ -z "$(ls -A "/proc/$pid/root/" 2>/dev/null)" ] ||
		    fail "$program: its root is not empty"
		[ "$(readlink "/proc/$pid/fd/0")" = /dev/null ] ||
		    fail "$program: descriptor 0"
		[ "$(readlink "/proc/$pid/fd/1")" = /dev/null ] ||
		    fail "$program: descriptor 1"
		for fd in /proc/$pid/fd/*; do
			[ "${fd##*/}" -gt 3 ] || continue
			readlink "$fd" | grep -qE "$(allowed $program)" ||
			    fail "$program has $(readlink "$fd") open"
		done
	done
	pass "$program"
done

users=$(for p in cloopd-net cloopd-key cloopd-ctl; do
	field "$(hub_children $p | head -n 1)" Uid | cut -f 1; done | sort -u |
	wc -l)
[ "$users" = 3 ] && pass "three users" || fail "the children share a user"

# SETGID SETUID SETPCAP SYS_CHROOT
caps=$(field $hub CapEff)
[ $((0x$caps & ~0x401c0)) = 0 ] && pass "the monitor's capabilities" ||
    fail "the monitor keeps $caps"
[ "$(stat -c %a "$TMP/run/cloopd.sock")" = 666 ] &&
    pass "everybody may knock" || fail "mode of the control socket"
[ "$(stat -c %a "$TMP/state/hub")" = 700 ] &&
    pass "the state is closed" || fail "mode of the state directory"

pids=$(cat /proc/$hub/task/$hub/children)
hub_stop
[ "$hub_status" = 0 ] && pass "SIGTERM ends it with 0" ||
    fail "SIGTERM: status $hub_status"
for pid in $pids; do
	wait_for 20 sh -c "! kill -0 $pid 2>/dev/null" ||
	    fail "process $pid stays"
done
[ ! -e "$TMP/run/cloopd.sock" ] && pass "no socket is left" ||
    fail "the control socket is left"

# kill -9 of the monitor takes the children along.
hub_start
pids=$(cat /proc/$hub/task/$hub/children)
kill -KILL "$hub"
for pid in $pids; do
	wait_for 20 sh -c "! kill -0 $pid 2>/dev/null" ||
	    fail "process $pid outlives its monitor"
done
pass "children end with a killed monitor"
hub_start
pass "and it starts again on what was left"
