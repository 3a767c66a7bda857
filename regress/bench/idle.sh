# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Memory of agents that only beat: all of the server's processes, divided by
# the connections.  Each round starts the server anew.
. "$SRC/regress/bench/lib.sh"

SIZES=${SIZES:-"5000 15000"}
BEAT=15000

for n in $SIZES; do
	metric "idle$n" KiB lower \
	    "PSS per agent, $n over TLS 1.3, a beat every 15 s"
	goal "idle$n" lws 1.0
	goal "idle$n" ws 2.5
done
say "lws is pinged every 15 s, since its test server echoes no text to one" \
    "client alone."

# hold SIDE COUNT LOAD: one beat of each, and then its memory.
hold()
{
	load_ask "$3" "hold 16"
	[ "$(load_get up)" = "$2" ] || fail "$1 lost agents: $answer"
	sample "idle$2" "$1" "$(calc "$(load_get pss) / $2")"
}

e2e_hub "MaxPending 10000"
fleet "$(for n in $SIZES; do echo "$n"; done | sort -n | tail -n 1)"
for round in $(rounds); do
	for n in $SIZES; do
		e2e_stop "$hub_pid"
		e2e_start_hub
		load_agents 1 "$n" -t $BEAT
		hold ours "$n" 1
		load_stop 1
		if peer_lws; then
			load_start 1 -a "127.0.0.1:$peer_port" -n "$n" \
			    -s lws-mirror-protocol -b ping -t $BEAT
			load_ask 1 "pids $peer_pid"
			hold lws "$n" 1
			load_stop 1
			peer_stop
		fi
		if peer_ws; then
			load_start 1 -a "127.0.0.1:$peer_port" -n "$n" \
			    -t $BEAT
			load_ask 1 "pids $peer_pid"
			hold ws "$n" 1
			load_stop 1
			peer_stop
		fi
	done
done
