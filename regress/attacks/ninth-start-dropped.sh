# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Twelve starts of one handle while it is being launched: each is answered, if
# only by "busy"; none is dropped, for its asker would wait for ever.
tid="the ninth start of a handle"
trees=one
. "$SRC/regress/attacks/attack.inc"

attack_device
e2e_stop "$agent_pid"
attack_fetcher <<'END'
for k in range(12):
    c.send_file("DEV_START", k + 1, "FAKE000000000000", len(spec),
                data=spec)
answered, end = set(), time.monotonic() + 20
while time.monotonic() < end and len(answered) < 12:
    got = c.read(0.5)
    if got and got[0] == "DEV_START_ANS":
        answered.add(got[1])
write_file(TMP + "/answered", len(answered))
END
e2e_start_agent edge-1
wait_up 60 "it did not come so far" "$TMP/edge-1.log" "$agent_pid" \
    test -s "$TMP/answered"
note "answered: $(cat "$TMP/answered") of 12"
run "each is answered" test "$(cat "$TMP/answered")" = 12
