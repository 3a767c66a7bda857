# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A worker that was taken over keeps the descriptor of a log: it may not make
# the file larger than its limit by one fallocate, nor change what a workload
# said once that has ended.
tid="a log's descriptor in a taken-over worker"
trees=one
. "$SRC/regress/attacks/attack.inc"

attack_worker <<'END'
c.login()
log = index = handle = None
while index is None:
    name, ident, body, fd = c.read(keep=True)
    if name == "HANDLE_LOG":
        log = fd
    if name == "HANDLE_INDEX":
        index = fd
    if name == "START":
        handle = members_of(name, body)["handle"]
        c.start_answer(ident, handle)
        c.send("HANDLE_FILES", 7, c.session, handle, False)
try:
    os.posix_fallocate(log, 0, 64 << 20)
except OSError as why:
    c.say(why)
write_file(TMP + "/size", os.fstat(log).st_size)
try:
    os.ftruncate(log, 1 << 40)
except OSError as why:
    c.say(why)
write_file(TMP + "/length", os.fstat(log).st_size)
try:
    os.ftruncate(log, 0)
    os.write(log, b"the truth\n")
    os.write(index, struct.pack(">QQqIIBBIH", 0, 0, time.time_ns(), 10, 10,
                                1, 1, 0, 0))
except OSError as why:
    c.say(why)
c.send("HANDLE_PROGRESS", 0, handle, 10, False)
c.status(handle, 3, 0, "", 10)
time.sleep(1)
try:
    os.ftruncate(log, 0)
    os.write(log, b"a forgery\n")
except OSError as why:
    c.say(why)
write_file(TMP + "/sent", "")
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
wait_up 60 "it did not come so far" "$TMP/hub.log" "$hub_pid" \
    test -e "$TMP/sent"
run "nor is its length, on any account, more than 4 GiB" \
    test "$(cat "$TMP/length")" -le 4294967296
run "the log never is larger than 4 MiB" test "$(cat "$TMP/size")" -le 4194304
ctl logs -- "$(e2e_handle w)" >"$TMP/log" 2>&1
note "the log: $(cat "$TMP/log")"
attack_held "a forgery is not shown as the log" grep -qx "a forgery" "$TMP/log"
grep -q "log of .* was changed after its end" "$TMP/log" &&
    pass "it is said that it was changed" ||
    fail "nobody says that it was changed: $(cat "$TMP/log")"
ctl logs --changed -- "$(e2e_handle w)" >"$TMP/log" 2>/dev/null
run "who insists may see what is there" grep -qx "a forgery" "$TMP/log"
