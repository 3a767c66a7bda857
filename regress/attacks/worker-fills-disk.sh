# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A worker that was taken over writes a log that no LogLimit allows: it is
# ended while the disk has room, and nobody else is.
tid="a worker that fills the disk through a log"
trees=one
. "$SRC/regress/attacks/attack.inc"

attack_worker <<'END'
c.login()
log = None
while log is None:
    name, ident, body, fd = c.read(keep=True)
    if name == "HANDLE_LOG":
        log = fd
    if name == "START":
        handle = members_of(name, body)["handle"]
        c.start_answer(ident, handle)
        c.send("HANDLE_FILES", 7, c.session, handle, False)
for _ in range(100):
    os.write(log, b"x" * (1 << 20))
write_file(TMP + "/written", os.fstat(log).st_size)
END
e2e_hub "NetWorkers 1" "LogLimit 1M"
e2e_tokens 1
agent()
{
	ctl --json agents | json "[a['agent_id'] for a in d['agents']
	    if a['status'] == 'online'][0]" 2>/dev/null
}
wait_up 60 "no device" "$TMP/hub.log" "$hub_pid" agent
ctl run --on "$(agent)" --detach --name w -- true >/dev/null 2>&1
wait_up 60 "it did not write" "$TMP/hub.log" "$hub_pid" \
    test -e "$TMP/written"
wait_up 30 "it is not ended" "$TMP/hub.log" "$hub_pid" grep -q \
    "child=cloopd-net.*larger than they may be" "$TMP/hub.log"
pass "the worker is ended"
run "which file it was is said" grep -q \
    'event=handle-files.*reason="larger' "$TMP/hub.log"
run "the hub serves on" ctl status
