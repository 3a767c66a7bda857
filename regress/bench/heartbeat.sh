# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# CPU of a beat: each agent sends the next one when the last was answered,
# so that all are one frame in, one frame out, from another session.
. "$SRC/regress/bench/lib.sh"

AGENTS=${AGENTS:-5000}
SECONDS_EACH=2

metric beat us lower "server CPU per heartbeat and its answer, $AGENTS agents"
metric rate beats/s higher "answered, generator on the same machine"
goal beat ws 4
say "limit: echo.c, an epoll loop with OpenSSL that looks at no byte."

# beat SIDE LOAD
beat()
{
	load_ask "$2" "beat $SECONDS_EACH"
	[ "$(load_get up)" = "$AGENTS" ] || fail "$1 lost agents: $answer"
	[ "$(load_get acks)" -gt 0 ] || fatal "$1 answers no beat: $answer"
	sample beat "$1" "$(calc "$(load_get cpu) / $(load_get acks) * 1e6")"
	sample rate "$1" "$(calc "$(load_get acks) / $(load_get seconds)")"
}

e2e_hub "MaxPending 10000"
fleet "$AGENTS"
load_agents 1 "$AGENTS" -t 15000
with_ws=
if peer_ws; then
	with_ws=yes
	load_start 2 -a "127.0.0.1:$peer_port" -n "$AGENTS" -t 15000
	load_ask 2 "pids $peer_pid"
fi
peer_port=$(free_port)
peer_run "$(bench_tool echo)" "$peer_port" "$TMP/keys/tls.crt" \
    "$TMP/keys/tls.key" || fatal "the echo does not start"
load_start 3 -a "127.0.0.1:$peer_port" -n "$AGENTS" -t 15000
load_ask 3 "pids $peer_pid"
for round in $(rounds); do
	beat ours 1
	[ -z "$with_ws" ] || beat ws 2
	beat limit 3
done
