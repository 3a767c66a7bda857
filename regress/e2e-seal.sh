# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# The output of a workload that has ended is sealed by length and digest:
# what anybody changes afterwards shows, in its log and in its index, across
# a restart of the hub, and whatever the time of the file says.
tid="a log that has ended is sealed"
. "$SRC/regress/e2e-lib.sh"

e2e_hub "LogLimit 1M"
e2e_agent edge-1 "HostMode confined"

# sealed HANDLE: prints the digest.
sealed()
{
	ctl --json show -- "$1" | json "d['log_sha256'] or exit(1)"
}
wait_sealed()
{
	wait_up 60 "no seal" "$TMP/hub.log" "$hub_pid" sealed "$1" >/dev/null
}
file()
{
	printf '%s/hub/handles/%s/%s' "${E2E_STATE:-$TMP/hub}" \
	    "$(printf %s "$1" | od -An -tx1 | tr -d ' \n')" "$2"
}

ctl run --on edge-1 --name small -- echo the truth >/dev/null
h=$(e2e_handle small)
wait_sealed "$h"
[ "$(sealed "$h")" = "$(sha256sum <"$(file "$h" log)" | cut -d ' ' -f 1)" ] &&
    pass "the digest is that of the log" ||
    fail "the digest is $(sealed "$h")"
ctl logs -- "$h" >"$TMP/out" 2>"$TMP/err"
[ "$(cat "$TMP/out")" = "the truth" ] && [ ! -s "$TMP/err" ] &&
    pass "it is printed, and nothing is said" ||
    fail "logs: $(cat "$TMP/out" "$TMP/err")"

ctl run --on edge-1 --name none -- true >/dev/null
wait_sealed "$(e2e_handle none)"
ctl logs -- "$(e2e_handle none)" >"$TMP/out" 2>&1
run "no output is sealed too" test ! -s "$TMP/out"

ctl run --on edge-1 --name long -- sh -c 'seq 1 700000' >/dev/null 2>&1
l=$(e2e_handle long)
wait_sealed "$l"
ctl logs -- "$l" >"$TMP/out" 2>"$TMP/err"
grep -q "not kept" "$TMP/err" && ! grep -q changed "$TMP/err" &&
    [ -s "$TMP/out" ] && pass "so is one whose middle is gone" ||
    fail "long: $(cat "$TMP/err")"

e2e_stop "$hub_pid"
e2e_start_hub
# changed HANDLE TEXT: said in a line, and not printed as the log.
changed()
{
	ctl logs -- "$1" >"$TMP/out" 2>"$TMP/err"
	status=$?
	[ $status = 0 ] && [ ! -s "$TMP/out" ] &&
	    [ "$(wc -l <"$TMP/err")" = 1 ] &&
	    grep -q "of $1 was changed after its end: .* sha256 .* expected" \
	    "$TMP/err" && pass "$2" ||
	    fail "$2: status $status, $(cat "$TMP/out" "$TMP/err")"
}
log=$(file "$h" log)
touch -r "$log" "$TMP/time"
printf 'a forgery' | dd of="$log" conv=notrunc 2>/dev/null
touch -r "$TMP/time" "$log"
changed "$h" "other bytes show, whatever the file's time says"
ctl logs --changed -- "$h" >"$TMP/out" 2>/dev/null
run "who insists may see them" grep -qx "a forgery" "$TMP/out"
printf 'the truth' | dd of="$log" conv=notrunc 2>/dev/null
ctl logs -- "$h" >"$TMP/out" 2>"$TMP/err"
run "the same bytes fit again" test ! -s "$TMP/err"
head -c 40 /dev/zero >>"$(file "$h" log.idx)"
changed "$h" "more index shows"
