# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Output of 16 workloads at once, in log_chunk frames of 32 KiB over TLS,
# parsed, checked for their offset, appended to the log and acknowledged;
# beside 16 ssh connections that write the same text to a file.
. "$SRC/regress/bench/lib.sh"

AGENTS=16
MIB=${MIB:-8}			# of each agent, each round
BYTES=$((MIB * 1048576))

metric cpu MB/s higher "output per server CPU second, $AGENTS agents"
metric wall MB/s higher "output per second, both ends on this machine"
goal cpu ssh 0.6
goal wall ssh 0.6
goal cpu ssh1 0.6
goal wall ssh1 0.6
say "ssh1: as much text through one connection; 16 sshd at once take ten times
as long for it on this machine."
say "limit: write(2) of the same text in 32 KiB to $AGENTS files, one process."

# rates SIDE BYTES SECONDS CPU
rates()
{
	sample wall "$1" "$(calc "$2 / 1e6 / $3")"
	sample cpu "$1" "$(calc "$2 / 1e6 / ($4)")"
}

# ssh_round SIDE CONNECTIONS TEXT
ssh_round()
{
	mkdir -p "$TMP/ssh/out"
	side=$1 connections=$2 text=$3
	# shellcheck disable=SC2086
	set -- $(python3 "$SRC/regress/bench/ingest-ssh.py" "$connections" \
	    "$text" "$TMP/ssh/out" "$sshd_pid" "$BENCH_DIR/measure" \
	    ssh -c aes128-gcm@openssh.com ${ssh#ssh })
	[ $# = 2 ] || fatal "ssh: $*"
	rates "$side" $((AGENTS * BYTES)) "$1" "$2"
	cmp -s "$text" "$TMP/ssh/out/0" || fail "ssh lost text"
	rm -f "$TMP"/ssh/out/*
}

e2e_hub "MaxPending 10000" "LogLimit 64G"
fleet $AGENTS
load_agents 1 $AGENTS -t 15000
while read -r id credential; do
	ctl run --on "$id" --name out --detach -- cat >"$TMP/run.out" 2>&1 ||
	    e2e_fatal "no workload starts" "$TMP/run.out"
done <"$TMP/fleet"
mkdir "$TMP/limit"
load_ask 1 "write $TMP/limit $BYTES"
cp "$TMP/limit/0" "$TMP/text"
for i in $(seq $AGENTS); do cat "$TMP/text"; done >"$TMP/all"
with_ssh=
peer_ssh "MaxStartups 100" && with_ssh=yes
for round in $(rounds); do
	load_ask 1 "ingest $BYTES"
	[ "$(load_get agents) $(load_get missing)" = "$AGENTS 0" ] ||
	    fatal "not all output arrived: $answer"
	rates ours "$(load_get bytes)" "$(load_get seconds)" "$(load_get cpu)"
	if [ "$with_ssh" ]; then
		ssh_round ssh $AGENTS "$TMP/text"
		ssh_round ssh1 1 "$TMP/all"
	fi
	load_ask 1 "write $TMP/limit $BYTES"
	rates limit "$(load_get bytes)" "$(load_get seconds)" \
	    "$(load_get cpu)"
done
stored=$(find "$TMP/hub" -path "*/handles/*" -name log -size +0 | wc -l)
[ "$stored" = $AGENTS ] || fail "$stored logs of $AGENTS"
