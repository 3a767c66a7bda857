# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# One small command on a device, from the start of the client to its end, and
# 100 at once: cloopctl beside ssh, with a connection of its own and with one
# that is open already.
. "$SRC/regress/bench/lib.sh"

COUNT=${COUNT:-30}
metric p50 ms lower "run -- true, one after the other"
metric p95 ms lower "the same, the slow ones"
metric many ms lower "100 at once, each of them"
goal p50 mux 0.7
goal p50 ssh 8
goal many mux 0.7
goal many ssh 8
say "mux is ssh over a connection that is open; sshd runs the command as it
is, ours in its sandbox, with its output and exit code kept.  The limit is
fork and exec of the same command."
have sshd || bench_skip "no sshd: make deps-bench"

e2e_hub
e2e_agent edge-1 "MaxConcurrent 128"

peer_ssh "MaxStartups 200" "MaxSessions 200" && peer_ssh_mux ||
    fatal "no sshd"

# many COMMAND...: 100 at once, ms each.
many()
{
	begin=$(now)
	# shellcheck disable=SC2016
	seq 100 | xargs -P 100 -I{} sh -c '"$@" >/dev/null || exit 255' sh \
	    "$@" || fatal "one of 100 failed: $*"
	calc "($(now) - $begin) * 1e3 / 100"
}

# side SIDE COMMAND...
side()
{
	side=$1
	shift
	each "$COUNT" "$@" >"$TMP/each" || fatal "$side: a command failed"
	read -r p50 p95 mean <"$TMP/each"
	note "$side mean $mean"
	sample p50 "$side" "$p50"
	sample p95 "$side" "$p95"
	sample many "$side" "$(many "$@")"
}

for round in $(rounds); do
	side ours cloopctl -s "$TMP/run/cloopd.sock" run --on edge-1 -- true
	# shellcheck disable=SC2086
	side mux $ssh_mux true
	# shellcheck disable=SC2086
	side ssh $ssh true
	side limit true
done
