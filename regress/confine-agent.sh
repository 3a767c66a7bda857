tid="the device monitor and its fetcher hold what they need, and no more"

AGENTD=$BUILD/cloop-agentd
TOKEN=clet1.AAECAwQFBgcICQoL.ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8.e57ff68ef8872e73df024eef4475a64b
base=$TMP/a
mkdir "$base" "$base/state" "$base/run"
echo "$TOKEN" >"$base/token"
cat >"$base/conf" <<END
Server wss://127.0.0.1:9/
TokenFile $base/token
StateDirectory $base/state
RuntimeDirectory $base/run
WorkDirRoot $base/work
LogLevel debug
END
chmod 600 "$base/conf" "$base/token"

# The lines "Name:\tvalue" of /proc/PID/status.
status() { awk -v k="$2:" '$1 == k { print $2 }' "/proc/$1/status"; }
children() { cat "/proc/$1/task/$1/children"; }
fetcher()
{
	for child in $(children "$1"); do
		tr '\0' ' ' <"/proc/$child/cmdline" 2>/dev/null |
		    grep -q agentd-fetch && echo "$child" && return 0
	done
	return 1
}
# The fetcher has said so itself, for the N-th time.
confined()
{
	[ "$(grep -c 'agentd-fetch.*event=confined' "$base/log")" -ge "$1" ]
}
is() { [ "$2" = "$3" ] && pass "$1" || { fail "$1"; note "$2, not $3"; }; }
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"; }

"$AGENTD" -d -f "$base/conf" --label a=b >"$base/log" 2>&1 &
agent=$!
track $agent
wait_up 60 "no fetcher" "$base/log" "$agent" confined 1
fetch=$(fetcher $agent)

if [ "$(id -u)" = 0 ]; then
	is "the fetcher is no user of ours" "$(status "$fetch" Uid)" \
	    "$(id -u _cloop-fetch 2>/dev/null || status "$fetch" Uid)"
	[ "$(status "$fetch" Uid)" != 0 ] && pass "the fetcher is not root" ||
	    fail "the fetcher is root"
	is "the fetcher has no capability" "$(status "$fetch" CapPrm)" \
	    0000000000000000
	is "and can get none" "$(status "$fetch" CapBnd)" 0000000000000000
	is "the fetcher's root is empty" \
	    "$(ls -A "/proc/$fetch/root/" | wc -l)" 0
	full=$(awk '$1 == "CapBnd:" { print $2 }' /proc/self/status)
	[ "$(status $agent CapPrm)" != "$full" ] &&
	    pass "the monitor's capabilities are cut" ||
	    fail "the monitor keeps all capabilities"
fi
is "the fetcher gets no new privileges" "$(status "$fetch" NoNewPrivs)" 1
is "the fetcher is under seccomp" "$(status "$fetch" Seccomp)" 2
is "the monitor is under seccomp" "$(status $agent Seccomp)" 2
is "the fetcher's environment is empty" \
    "$(tr '\0' '\n' <"/proc/$fetch/environ" 2>/dev/null |
    grep -cvE '^(LANG|ASAN_OPTIONS|UBSAN_OPTIONS)=|^$')" 0
grep -q "$TOKEN" "/proc/$agent/cmdline" "/proc/$fetch/cmdline" &&
    fail "the token is in a command line" ||
    pass "the token is in no command line"
is "the fetcher's 0 and 1 are /dev/null" \
    "$(readlink "/proc/$fetch/fd/0" "/proc/$fetch/fd/1" | sort -u)" /dev/null
is "and it holds no file" "$(for fd in /proc/$fetch/fd/*; do
	[ "${fd##*/}" -gt 2 ] && readlink "$fd"; done | grep -c ^/)" 0

kill -KILL "$fetch"
wait_for 30 gone "$fetch"
wait_for 20 confined 2 && pass "a killed fetcher is replaced" ||
    fail "a killed fetcher is not replaced"
kill -0 $agent && pass "and the monitor lives" || fail "the monitor died"
kill -USR1 $agent
wait_for 20 grep -q event=state-fetch "$base/log" &&
    pass "SIGUSR1 dumps the state" || fail "no state dump"
kill -HUP $agent
wait_for 20 grep -q "event=reload result=ok" "$base/log" &&
    pass "SIGHUP reads the file again" || fail "no reload"
echo "Frobnicate yes" >>"$base/conf"
kill -HUP $agent
wait_for 20 grep -q "event=reload result=failed" "$base/log" &&
    kill -0 $agent && pass "a bad file changes nothing" ||
    fail "a bad file was not noticed"
sed -i '$d' "$base/conf"

timeout 60 "$AGENTD" -d -f "$base/conf" >"$base/log2" 2>&1
is "a second agent on the same state is refused" $? 1
grep -q "$base/state/agentd.lock" "$base/log2" && pass "with the reason" ||
    fail "without the reason"

fetch=$(fetcher $agent)
kill -KILL $agent
wait_for 30 gone "$fetch" && pass "the fetcher dies with its monitor" ||
    fail "the fetcher outlives its monitor"
"$AGENTD" -d -f "$base/conf" >"$base/log" 2>&1 &
agent=$!
track $agent
wait_up 60 "no start after a kill" "$base/log" "$agent" confined 1
pass "the next one starts at once"
kill -TERM $agent
wait $agent
is "SIGTERM ends it with 0" $? 0
grep -q "$TOKEN" "$base/log" && fail "the token is in the log" ||
    pass "the token is not in the log"
