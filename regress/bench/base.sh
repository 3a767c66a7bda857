# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# What every other row stands on: a hub with nobody there.
. "$SRC/regress/bench/lib.sh"

metric start ms lower "hub start to ready"
metric rest KiB lower "PSS of all hub processes, no agent"
say "The limit of start is a program that does nothing."

begin=$(now)
e2e_hub
sample start ours "$(calc "($(now) - $begin) * 1e3")"
for round in $(rounds); do
	sample rest ours "$(pss_of $(hub_pids))"
	e2e_stop "$hub_pid"
	begin=$(now)
	e2e_start_hub
	sample start ours "$(calc "($(now) - $begin) * 1e3")"
	sample start limit "$(each 20 /bin/true | cut -d' ' -f1)"
done
