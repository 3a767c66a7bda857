# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# An agentd-fetch that was taken over starts and acknowledges workloads without
# end: ended ones do not take the monitor's descriptors, and the real one works
# after a restart.
tid="a taken-over agentd-fetch and the monitor's descriptors"
trees=one
. "$SRC/regress/attacks/attack.inc"

attack_device
e2e_stop "$agent_pid"
attack_fetcher <<'END'
def start(k):
    """False when it is refused."""
    c.send_file("DEV_START", k + 1, "FAKE%012d" % k, len(spec), data=spec)
    while True:
        name, ident, body = c.read()
        if name == "DEV_START_ANS" and members_of(name, body)["result"]:
            return False
        if name == "DEV_EXIT":
            c.send("DEV_TOLD", 0, members_of(name, body)["slot"])
            return True


k = refused = most = 0
end = time.monotonic() + 45
while k < 400 and refused < 20 and time.monotonic() < end:
    if start(k):
        k += 1
    else:
        refused += 1
        time.sleep(0.1)
    most = max(most, len(os.listdir("/proc/%d/fd" % os.getppid())))
write_file(TMP + "/started", "%d %d" % (k, most))
END
# shellcheck disable=SC3045
ulimit -n 512
e2e_start_agent edge-1
wait_up 90 "it did not come so far" "$TMP/edge-1.log" "$agent_pid" \
    test -s "$TMP/started"
read -r started most <"$TMP/started"
note "$started started, the monitor had $most descriptors at most"
run "ended workloads leave at most 200 descriptors" test "$most" -le 200
e2e_stop "$agent_pid" KILL
attack_real
e2e_start_agent edge-1
is_back()
{
	for i in 1 2 3 4 5 6; do
		ctl_in 15 run --on edge-1 --workdir x -- true && return 0
		sleep 1
	done
	return 1
}
run "the real one works after a restart" is_back
