# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A lent secret is where it must be and nowhere else, during the run and
# after it.
tid="a secret on loan is nowhere it need not be"

. "$SRC/regress/e2e-lib.sh"

marker=M4rk3r-$$-$(date +%s%N)
e2e_hub
e2e_agent edge

# Files below our directories, and environment and command line of every
# process but those of the workload itself, that hold the marker.
found()
{
	grep -rlaF "$marker" "$TMP" 2>/dev/null |
	    grep -v -e "^$TMP/value" -e "^$TMP/work.pid"
	for p in /proc/[0-9]*; do
		case $(cat "$p/comm" 2>/dev/null) in
		cloop*|agentd*)
			grep -qaF "$marker" "$p/environ" "$p/cmdline" \
			    2>/dev/null && echo "$p" ;;
		esac
	done
	return 0
}

# pids_of NAME: of the hub's children.
pids_of()
{
	for p in $(e2e_children "$hub_pid"); do
		[ "$(cat "/proc/$p/comm")" != "$1" ] || echo "$p"
	done
}

# Writable memory and memfds of the monitor and those children that have no
# business with a value.
memory_is_clean()
{
	# shellcheck disable=SC2046
	if python3 "$SRC/regress/memsearch.py" "$marker" "$hub_pid" \
	    $(pids_of cloopd-ctl) $(pids_of cloopd-key) >"$TMP/memory"
	then
		[ -s "$TMP/memory" ] ||
		    { pass "$1: nor has memory"; return; }
	fi
	fail "$1: $(cat "$TMP/memory")"
	rm -f "$TMP/memory"
}

printf 'API_TOKEN=%s-env\n' "$marker" >"$TMP/value.env"
printf 'kind: Config\npassword: %s-file\n' "$marker" >"$TMP/value.kube"
run "secrets are put" sh -c "
	cloopctl -s '$TMP/run/cloopd.sock' secret put tok --kind env \
	    <'$TMP/value.env' &&
	cloopctl -s '$TMP/run/cloopd.sock' secret put kube \
	    --kind kubeconfig --file '$TMP/value.kube' &&
	cloopctl -s '$TMP/run/cloopd.sock' grant add tok --to any &&
	cloopctl -s '$TMP/run/cloopd.sock' grant add kube --to any"
[ -z "$(found)" ] && pass "sealed: no file, no process has it" ||
    fail "found after put: $(found)"
memory_is_clean sealed

ctl --json run --detach --on edge --secret tok --secret kube --name w -- \
    sh -c 'echo "$API_TOKEN"; cat "$KUBECONFIG"; echo ready; sleep 60' \
    >"$TMP/run.json"
h=$(json "d['handle_id']" <"$TMP/run.json")
lease=$(json "d['leases'][0]" <"$TMP/run.json")
wait_for 20 sh -c "cloopctl -s '$TMP/run/cloopd.sock' logs -- '$h' |
    grep -q ready" || fail "the workload prints nothing"
ctl logs -- "$h" >"$TMP/kept"
grep -q '\[redacted\]' "$TMP/kept" && pass "the output is redacted" ||
    fail "no marker in: $(cat "$TMP/kept")"
left=$(found)
[ -z "$left" ] && pass "lent: no file of ours, no process of ours has it" ||
    fail "found while lent: $left"
memory_is_clean lent
# The process that redacts has it: the search finds what is there.
# shellcheck disable=SC2046
python3 "$SRC/regress/memsearch.py" "$marker" $(pids_of cloopd-net) |
    grep -q memory && pass "the network process, which redacts, has it" ||
    fail "the search finds nothing anywhere"
for p in "$hub_pid" $(e2e_children "$hub_pid") "$agent_pid" \
    $(e2e_children "$agent_pid"); do
	awk '/^Max core file size/ { exit $5 != 0 || $6 != 0 }' \
	    "/proc/$p/limits" || cat "/proc/$p/comm"
done >"$TMP/cores"
[ -s "$TMP/cores" ] && fail "may dump core: $(cat "$TMP/cores")" ||
    pass "no process of ours may dump core"

run "it is taken back" ctl lease revoke --kill -- "$lease"
ctl wait -- "$h" >/dev/null 2>&1
left=$(found)
[ -z "$left" ] && pass "taken back: nowhere" ||
    fail "found after the revocation: $left"
grep -rlaF "$marker" /dev/shm /run/cloop /tmp/cloop-lease-* 2>/dev/null |
    grep -v "^$TMP" >"$TMP/left"
[ -s "$TMP/left" ] && fail "left behind: $(cat "$TMP/left")" ||
    pass "no lease directory is left"

ctl --json audit >"$TMP/audit"
for action in secret.mint secret.grant secret.lease lease.revoke_sent \
    lease.revoke_acked; do
	grep -q "\"$action\"" "$TMP/audit" && pass "audited: $action" ||
	    fail "no $action in the audit"
done
run "the audit chain is whole" ctl audit verify

e2e_stop "$hub_pid"
run "the key-encryption key is rotated" cloop-keygen -r kek \
    -o KeyDirectory="$TMP/keys" -o StateDirectory="$TMP/hub"
e2e_start_hub
wait_for 30 is_online edge || fail "the device does not come back"
ctl run --on edge --secret tok -- sh -c 'echo "${#API_TOKEN}"' >"$TMP/len"
[ "$(cat "$TMP/len")" = $((${#marker} + 4)) ] &&
    pass "what was sealed before opens after" ||
    fail "the length is $(cat "$TMP/len")"

run "a deleted secret" ctl secret rm tok
ctl run --on edge --secret tok -- true >/dev/null 2>&1 &&
    fail "is lent all the same" || pass "is not lent any more"
