# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Devices racing for enrollment tokens: 64 at once, each token offered twice.
# LONG=1: 100 000 tokens in one round, which takes minutes.
. "$SRC/regress/bench/lib.sh"

tool=$(bench_tool enroll) || exit 1
metric redeemed tokens/s higher "64 clients over TLS, each token offered twice"
goal redeemed sqlite 0.5
metric doubles tokens lower "redeemed more than once"
goal_value doubles 0
metric lost tokens lower "never redeemed"
goal_value lost 0
say "sqlite is a loop of single inserts with synchronous=FULL on the same disk;
every redemption is two TLS handshakes, two upgrades, and rows in three
tables."
version sqlite3 "$(dpkg-query -W -f '${Version}' libsqlite3-0)"

COUNT=600
[ -z "$LONG" ] || COUNT=100000 ROUNDS=1

e2e_hub "PerSourcePenalty no" "MaxPerSource 256"
for round in $(rounds); do
	e2e_stop "$hub_pid"
	"$tool" mint "$TMP/keys" "$TMP/hub" "$COUNT" >"$TMP/tokens" ||
	    fatal "no tokens"
	e2e_start_hub
	"$tool" race "$E2E_PORT" "$TMP/tokens" 64 >"$TMP/race"
	read -r rate redeemed refused doubles lost <"$TMP/race" ||
	    fatal "the race did not end"
	note "redeemed $redeemed refused $refused"
	sample redeemed ours "$rate"
	sample doubles ours "$doubles"
	sample lost ours "$lost"
	rm -f "$TMP/limit.db"*
	sample redeemed sqlite "$("$tool" insert "$TMP/limit.db" 600)"
done
