# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A cloopd-ctl that was taken over asks for the list of enrollments 1 500 times,
# or for 20 seconds, and never paces: what the monitor holds for it stays small.
tid="a taken-over cloopd-ctl and the monitor's memory"
trees=one
. "$SRC/regress/attacks/attack.inc"

attack_fake cloopd-ctl <<'END'
c, got = Child("ctl"), set()
while not {"CTL_LISTEN", "CTL_CONFIG"} <= got:
    got.add(c.read()[0])
c.send("CTL_READY", 0, VERSION)
time.sleep(1)
monitor = os.getppid()
c.send("CTL_CLIENT", 0, 7, 0, 1, 2)
for i in range(4000):
    c.send("CTL_MINT", 7 << 32 | i + 1, "t%d" % i, 3600, "", None, "", "")
    c.drain()
c.drain(1)
write_file(TMP + "/before", rss(monitor))
# As many as it is let: the monitor reads it no faster than it reads.
end = time.monotonic() + 20
for i in range(1500):
    c.send("CTL_ENROLLMENTS", 7 << 32 | i + 1)
    if time.monotonic() > end:
        break
c.drain(1)
write_file(TMP + "/sent", "")
c.serve()
END
e2e_hub
is_over()
{
	[ -e "$TMP/sent" ] || grep -q child-kill "$TMP/hub.log"
}
wait_up 120 "it did not come so far" "$TMP/hub.log" "$hub_pid" is_over
[ -s "$TMP/before" ] || not_up "it was ended before" "$TMP/hub.log" "$hub_pid"
grew=$(($(sed -n 's/VmHWM:[^0-9]*\([0-9]*\).*/\1/p' \
    "/proc/$hub_pid/status") - $(cat "$TMP/before")))
note "the monitor grew by $grew KiB"
run "less than 32 MiB for 1 500 requests" test "$grew" -lt 32768
