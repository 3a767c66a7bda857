# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Slow tier.  memcheck on everything that lives: the hub, its children, the
# agent, its fetcher and the shims of an ordinary day (enroll, output, a
# lease, a kill, both stopped).  No error, no definite
# leak.  The programs are those of build/valgrind: valgrind needs system calls
# that the allow-lists of the confined processes do not have, so these load
# none (they say so: missing=seccomp); user, root, capabilities, Landlock and
# limits are as ever.
tid="no error and no leak under valgrind"
trees=one
[ -n "$CLOOP_SLOW" ] || skip "slow tier: make check-slow"
command -v valgrind >/dev/null || skip "valgrind is not here"

BUILD=$BUILD/valgrind
CLOOP_LIBEXEC=$BUILD
. "$SRC/regress/e2e-lib.sh"

mkdir "$TMP/vg"
chmod 1777 "$TMP/vg"
# Each program that is exec'd has a log of its own; a workload's programs run
# as they are.
memcheck="valgrind --tool=memcheck --leak-check=full --trace-children=yes
    --errors-for-leak-kinds=definite --show-leak-kinds=definite
    --num-callers=24 --child-silent-after-fork=yes --run-libc-freeres=yes
    --trace-children-skip=/bin/*,/usr/bin/*,/usr/lib/git-core/*
    --suppressions=$SRC/regress/fixtures/valgrind.supp
    --log-file=$TMP/vg/%p.log"
E2E_HUB_IN=$memcheck E2E_IN=$memcheck

e2e_hub
# valgrind 3.19 has no open_tree(2), mount_setattr(2): a sandbox's mounts fail,
# and with them the jobs of git, which ASan and LeakSanitizer look at instead
# (git-*.sh).
e2e_agent edge-1 "HostMode plain"
run "output and an exit code" sh -c \
    "cloopctl -s $TMP/run/cloopd.sock run --on edge-1 -- \
	sh -c 'seq 1 20000; exit 7' >$TMP/seq; [ \$? = 7 ] &&
	[ \$(wc -l <$TMP/seq) = 20000 ]"
printf 'kind: Config\npassword: valgrind-0123\n' >"$TMP/value"
run "a secret" sh -c "cloopctl -s $TMP/run/cloopd.sock secret put kube \
    --kind kubeconfig <$TMP/value"
run "a grant" ctl grant add kube --to any
run "a lease" ctl run --on edge-1 --secret kube -- \
    sh -c 'test -s "$KUBECONFIG"'

ctl run --detach --on edge-1 --name long -- sleep 600 >/dev/null 2>&1
run "a kill" ctl kill -- "$(e2e_handle long)"
run "its end" sh -c "cloopctl -s $TMP/run/cloopd.sock wait -- \
    $(e2e_handle long); true"
run "status, agents, audit" sh -c "for c in status agents 'ps -a' \
    'audit verify'; do cloopctl -s $TMP/run/cloopd.sock \$c || exit 1; done"
run "a device's requests" ctl inventory edge-1
run "reload" ctl reload
e2e_stop "$agent_pid"
e2e_stop "$hub_pid"

# program LOG
program() { sed -n 's/^==[0-9]*== Command: //p' "$1" | head -n 1; }
seen=
for log in "$TMP"/vg/*.log; do
	what=$(program "$log")
	what=$(basename "${what%% *}")
	seen="$seen $what"
	# The hub does not wait for these two at its end: the kernel kills
	# them with it.  Errors are told as they happen, leaks at the end.
	if ! grep -q 'ERROR SUMMARY' "$log"; then
		unended="$unended $what"
		case $what in cloopd-key|cloopd-ctl) ;; *) continue ;; esac
		grep -q '==    at 0x' "$log" || clean="$clean $what"
		continue
	fi
	if grep -q 'ERROR SUMMARY: 0 errors' "$log"; then
		clean="$clean $what"
	else
		fail "$what"
		note "$(grep -v 'Reading syms\|  object ' "$log" |
		    sed 's/^==[0-9]*== //' | tail -n "${CLOOP_LOG_LINES:-60}")"
	fi
done
for what in cloopd cloopd-net cloopd-key cloopd-ctl cloop-agentd \
    agentd-fetch cloop-shim; do
	case " $clean " in
	*" $what "*) pass "$what: no error, no definite leak";;
	*) fail "$what did not come to its end under valgrind"
	note "seen:$seen; without a summary:$unended";;
	esac
done
# What valgrind itself cannot run shows here, not as silence.
note "$(cat "$TMP"/vg/*.log | grep -h 'unhandled\|WARNING' |
    sed 's/^--[0-9]*-- //' | sort | uniq -c | head -n 12)"
