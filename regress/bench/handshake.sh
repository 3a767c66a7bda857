# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Full TLS 1.3 handshakes of the running hub beside openssl's own server, and
# what it costs that the key is in a process of its own.
. "$SRC/regress/bench/lib.sh"

SECONDS_EACH=${SECONDS_EACH:-2}
tool=$(bench_tool handshake) || exit 1
metric wall handshakes/s higher "16 connections at once, client beside it"
goal wall s_server 0.8
metric cpu ms lower "CPU time of the server for one"
metric isolation handshakes/s higher \
    "key in cloopd-key, beside the key in the same server"
goal isolation inside 0.9
say "ours in wall and cpu is the hub; in isolation a server that has only its
TLS code, once with cloopd-key and once without.  The limit is client and
server without sockets, in a process for each processor."
version openssl "$(openssl version)"

# The address is not punished for connections that ask for nothing.
e2e_hub "PerSourcePenalty no"
crt=$TMP/keys/tls.crt key=$TMP/keys/tls.key

# drive METRIC SIDE PORT [PID...]: with the CPU time of these.
drive()
{
	drive_metric=$1 drive_side=$2 drive_port=$3
	shift 3
	begin=$(cpu_of "$@")
	rate=$("$tool" drive "$drive_port" "$SECONDS_EACH" 16) ||
	    fatal "$drive_side does not serve"
	sample "$drive_metric" "$drive_side" "$rate"
	[ "$drive_metric" = isolation ] || sample cpu "$drive_side" \
	    "$(calc "($(cpu_of "$@") - $begin) * 1e3 / \
	    ($rate * $SECONDS_EACH)")"
}

apart_port=$(free_port)
"$tool" serve apart "$apart_port" "$crt" "$key" 2>"$TMP/apart.log" &
apart=$!
track "$apart"
inside_port=$(free_port)
"$tool" serve inside "$inside_port" "$crt" "$key" 2>"$TMP/inside.log" &
inside=$!
track "$inside"
peer_port=$(free_port)
openssl s_server -accept "127.0.0.1:$peer_port" -cert "$crt" -key "$key" \
    -tls1_3 -num_tickets 0 -www -quiet >"$TMP/peer.log" 2>&1 </dev/null &
peer=$!
track "$peer"
is_there()
{
	python3 -c "import socket
socket.create_connection(('127.0.0.1', $1)).close()"
}
wait_up 30 "no server apart" "$TMP/apart.log" "$apart" is_there "$apart_port"
wait_up 30 "no server inside" "$TMP/inside.log" "$inside" \
    is_there "$inside_port"
wait_up 30 "no s_server" "$TMP/peer.log" "$peer" is_there "$peer_port"

for round in $(rounds); do
	# shellcheck disable=SC2046
	drive wall ours "$E2E_PORT" $(hub_pids)
	drive wall s_server "$peer_port" "$peer"
	sample wall limit "$("$tool" limit "$SECONDS_EACH" "$crt" "$key")"
	drive isolation ours "$apart_port" $$
	drive isolation inside "$inside_port" $$
done
