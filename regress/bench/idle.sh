# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Memory of agents that only beat: all of the server's processes, divided by
# the connections.  Each server keeps its own agents through all rounds.
. "$SRC/regress/bench/lib.sh"

SIZES=${SIZES:-"5000 15000"}
BEAT=15000

for n in $SIZES; do
	metric "idle$n" KiB lower \
	    "PSS per agent, $n over TLS 1.3, a beat every 15 s"
	goal "idle$n" lws 1.0
	goal "idle$n" ws 2.5
done
say "lws is pinged, since its test server echoes no text to one client alone."
say "Shared pages are divided among all users, load generators included."

# join LOAD SIDE OPTION...: the agents of a peer that has just started.
join()
{
	join_nr=$1 join_side=$2
	shift 2
	load_start "$join_nr" -a "127.0.0.1:$peer_port" -n "$n" -t $BEAT "$@"
	load_ask "$join_nr" "pids $peer_pid"
	sides="$sides $join_side:$join_nr:$peer_pid"
}

# Each agent has beaten at least once before the first sample.
settle()
{
	for side in $sides; do
		nr=${side#*:}
		load_ask "${nr%:*}" "beat 1"
		[ "$(load_get acks)" -gt 0 ] || fatal "$side answers no beat"
	done
}

e2e_hub "MaxPending 10000"
for n in $SIZES; do
	# A hub that knows these and no others.
	e2e_stop "$hub_pid"
	rm -rf "$TMP/hub"
	mkdir "$TMP/hub"
	e2e_start_hub
	fleet "$n"
	load_agents 1 "$n" -t $BEAT
	sides="ours:1:"
	peer_lws && join 2 lws -s lws-mirror-protocol -b ping
	peer_ws && join 3 ws
	settle
	for round in $(rounds); do
		for side in $sides; do
			nr=${side#*:}
			load_ask "${nr%:*}" "hold 1"
			[ "$(load_get up)" = "$n" ] || fail "$side: $answer"
			sample "idle$n" "${side%%:*}" \
			    "$(calc "$(load_get pss) / $n")"
		done
	done
	for side in $sides; do
		nr=${side#*:}
		load_stop "${nr%:*}"
		[ -z "${nr#*:}" ] || e2e_stop "${nr#*:}"
	done
done
