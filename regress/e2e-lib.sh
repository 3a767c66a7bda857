# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Read by regress scripts that need a hub and devices:
#
#	. "$SRC/regress/e2e-lib.sh"
#	e2e_hub [LINE...]	start a hub; lines of cloopd.conf are added
#	e2e_agent NAME [LINE...]	enroll and start a device, wait for it
#	ctl ARGUMENT...		cloopctl with the hub's socket
#	e2e_start_hub, e2e_start_agent NAME	start again with the same files
#	e2e_online NAME		until the device started last is there
#	e2e_tokens COUNT	enrollment tokens in $TMP/tokens
#	e2e_stop PID [SIGNAL]	end a daemon and wait
#	e2e_handle NAME		handle of the newest workload of that name
#	e2e_children PID	pids of its children
#	is_online NAME, is_offline NAME
#	json EXPRESSION		of the document d on standard input
#
# E2E_HOST: what devices dial, 127.0.0.1 unless said; E2E_HUB_IN, E2E_IN: a
# command in front of the hub and of the agent, such as "ip netns exec NAME";
# E2E_AGENT_OPTIONS: further words behind the agent's;
# E2E_STATE, E2E_AGENT_STATE: other state directories.  The pids are in hub_pid
# and agent_pid (of the device started last), logs in $TMP/hub.log and
# $TMP/NAME.log.  At the end everything is stopped, shims included.

E2E_HOST=127.0.0.1
E2E_IN= E2E_HUB_IN= E2E_AGENT_OPTIONS=
hub_pid= agent_pid=
PATH=$BUILD:$PATH
export PATH CLOOP_LIBEXEC

[ "$(id -u)" = 0 ] || skip "the hub needs root"
for p in cloopd cloopd-net cloopd-key cloopd-ctl cloop-agentd agentd-fetch \
    cloop-shim cloop-keygen cloop-enroll cloopctl; do
	[ -x "$BUILD/$p" ] || skip "$p is not built"
done

ctl()
{
	cloopctl -s "$TMP/run/cloopd.sock" "$@"
}

json()
{
	python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"
}

# e2e_fatal TEXT FILE: with the end of a log.
e2e_fatal()
{
	fail "$1"
	note "$(tail -n 15 "$2")"
	bail_out "$1"
}

# How often PATTERN is in the file is more than COUNT.
e2e_has_more()
{
	[ "$(grep -c -- "$2" "$1")" -gt "$3" ]
}

e2e_start_hub()
{
	e2e_ready=$(grep -c event=ready "$TMP/hub.log" 2>/dev/null)
	# shellcheck disable=SC2086
	$E2E_HUB_IN cloopd -d -f "$TMP/cloopd.conf" >>"$TMP/hub.log" 2>&1 &
	hub_pid=$!
	track "$hub_pid"
	wait_up 60 "the hub does not start" "$TMP/hub.log" "$hub_pid" \
	    e2e_has_more "$TMP/hub.log" event=ready "${e2e_ready:-0}"
}

e2e_hub()
{
	E2E_PORT=$(free_port)
	mkdir -p "$TMP/hub" "$TMP/run"
	[ -e "$TMP/keys" ] || cloop-keygen -A -n localhost -n "$E2E_HOST" \
	    -o "KeyDirectory=$TMP/keys" >"$TMP/keygen.out" 2>&1 ||
	    e2e_fatal "no keys" "$TMP/keygen.out"
	{
		echo "ListenAgents ${E2E_LISTEN:-$E2E_HOST}:$E2E_PORT"
		echo "ListenStatus none"
		echo "ExternalURL https://$E2E_HOST:$E2E_PORT"
		echo "ControlSocket $TMP/run/cloopd.sock"
		echo "StateDirectory ${E2E_STATE:-$TMP/hub}"
		echo "RuntimeDirectory $TMP/run"
		echo "KeyDirectory $TMP/keys"
		for line in "$@"; do echo "$line"; done
	} >"$TMP/cloopd.conf"
	chmod 600 "$TMP/cloopd.conf"
	e2e_start_hub
}

is_online()
{
	ctl --json agents "$1" | grep -q '"status":"online"'
}

is_offline()
{
	! is_online "$1"
}

e2e_start_agent()
{
	# shellcheck disable=SC2086
	$E2E_IN cloop-agentd -d -f "$TMP/$1.conf" $E2E_AGENT_OPTIONS \
	    >>"$TMP/$1.log" 2>&1 &
	agent_pid=$!
	track "$agent_pid"
}

# e2e_online NAME: the device started last comes online, or the script ends.
e2e_online()
{
	wait_up 60 "$1 does not come online" "$TMP/$1.log" "$agent_pid" \
	    is_online "$1"
}

# e2e_mint NAME: a bundle in $TMP/NAME.bundle.
e2e_mint()
{
	cloop-enroll -s "$TMP/run/cloopd.sock" mint --name "$1" \
	    --label "name=$1" --bundle-file "$TMP/$1.bundle" \
	    >"$TMP/mint.out" 2>&1 || e2e_fatal "no token" "$TMP/mint.out"
}

# e2e_tokens COUNT: in $TMP/tokens.  One process a token, four at a time: the
# order does not matter.
e2e_tokens()
{
	seq "$1" | xargs -P 4 -I @ cloop-enroll \
	    -s "$TMP/run/cloopd.sock" mint --name "a@" --json \
	    >"$TMP/minted" 2>"$TMP/mint.err"
	grep -o 'clet1\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[0-9a-f]*' \
	    "$TMP/minted" | sort -u >"$TMP/tokens.new"
	[ "$(wc -l <"$TMP/tokens.new")" -ge "$1" ] ||
	    e2e_fatal "not $1 tokens" "$TMP/mint.err"
	mv "$TMP/tokens.new" "$TMP/tokens"
}

e2e_agent()
{
	e2e_name=$1
	shift
	e2e_mint "$e2e_name"
	mkdir -p "$TMP/$e2e_name"
	{
		echo "StateDirectory ${E2E_AGENT_STATE:-$TMP/$e2e_name/state}"
		echo "RuntimeDirectory $TMP/$e2e_name/run"
		echo "WorkDirRoot $TMP/$e2e_name/work"
		echo "TokenFile $TMP/$e2e_name.bundle"
		echo "CAFile $TMP/keys/tls.crt"
		for line in "$@"; do echo "$line"; done
	} >"$TMP/$e2e_name.conf"
	chmod 600 "$TMP/$e2e_name.conf"
	e2e_start_agent "$e2e_name"
	e2e_online "$e2e_name"
}

e2e_is_gone()
{
	! kill -0 "$1" 2>/dev/null
}

e2e_stop()
{
	kill "-${2:-TERM}" "$1" 2>/dev/null
	wait_for 30 e2e_is_gone "$1" || fail "process $1 does not end"
	wait "$1" 2>/dev/null
	return 0
}

e2e_handle()
{
	ctl --json ps -a | json "[h['handle_id'] for h in sorted(
	    d['handles'], key=lambda h: h['started_at'] or '')
	    if h['name'] == '$1'][-1]"
}

e2e_children()
{
	cat "/proc/$1/task/$1/children" 2>/dev/null
}

# Shims outlive their agent; those of this test have its files open.
e2e_kill_shims()
{
	for p in $(pgrep -x cloop-shim); do
		find "/proc/$p/fd" -lname "$TMP/*" 2>/dev/null | grep -q . &&
		    kill -KILL "$p" 2>/dev/null
	done
	return 0
}

e2e_finish()
{
	e2e_status=$?
	trap - EXIT
	[ "$failures" -eq 0 ] || for log in "$TMP"/*.log; do
		[ -e "$log" ] || continue
		note "-- $(basename "$log")"
		note "$(grep -v 'event=\(child-ready\|child-start\)' "$log" |
		    tail -n "${CLOOP_LOG_LINES:-12}")"
	done
	type e2e_on_finish >/dev/null 2>&1 && e2e_on_finish
	for p in $tracked; do
		kill "$p" 2>/dev/null
	done
	e2e_kill_shims
	for p in $tracked; do
		wait_for 15 e2e_is_gone "$p" || kill -KILL "$p" 2>/dev/null
		wait "$p" 2>/dev/null
	done
	e2e_kill_shims
	(exit "$e2e_status")
	finish
}
trap e2e_finish EXIT
