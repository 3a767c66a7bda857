# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Every keyword of cloopd.conf(5) with a bad value, and files that are wrong
# as a whole: exit 1, one line `file:line: message` that names keyword and
# value, nothing started.
tid="errors in cloopd.conf"

conf=$TMP/cloopd.conf

# refuse TEXT WANT: this file is refused on line 2, naming WANT
refuse()
{
	printf '# first line\n%s\n' "$1" >"$conf"
	chmod 600 "$conf"
	if "$BUILD/cloopd" -t -f "$conf" >"$TMP/out" 2>"$TMP/err"; then
		fail "accepted: $1"
		return
	fi
	[ "$(wc -l <"$TMP/err")" = 1 ] && grep -qF "$conf:2: " "$TMP/err" &&
	    grep -qF -e "$2" "$TMP/err" && [ ! -s "$TMP/out" ] &&
	    pass "$1" || {
		fail "$1"
		note "$(cat "$TMP/err")"
	}
}

while IFS='|' read -r line want; do
	[ -z "$line" ] || refuse "$line" "$want"
done <<'EOF2'
ListenAgents nowhere|nowhere
ListenAgents 0.0.0.0:7480 plaintext|plaintext
ListenAgents 127.0.0.1:99999|99999
ListenStatus 192.0.2.1:80|192.0.2.1:80
ControlSocket relative/path|relative/path
StateDirectory relative|relative
RuntimeDirectory relative|relative
KeyDirectory relative|relative
ExternalURL hub.example|hub.example
ExternalURL ftp://hub.example|ftp://hub.example
ExternalURL https://user@hub.example|user@hub.example
AllowedOrigin https://a/path|https://a/path
TrustedProxy 10.0.0.0/33|10.0.0.0/33
TrustedProxy proxy.example|proxy.example
NetWorkers 0|NetWorkers
NetWorkers 17|17
NetWorkers many|many
MaxAgents 0|MaxAgents
MaxAgents -1|-1
MaxPending x|MaxPending
MaxPerSource 1.5|1.5
PerSourcePenalty auth:never|never
PerSourcePenalty sometimes|sometimes
PerSourcePenalty enforce ipfw|enforce
HandleRetention forever|forever
HandleRetention 0 per agent|HandleRetention
LogLimit 1K|LogLimit
LogLimit 12Q|12Q
LogLevel loud|loud
LogFormat xml|xml
NoSuchKeyword 1|NoSuchKeyword
MaxAgents 5 6|MaxAgents
MaxAgents|MaxAgents
LogLevel "info|LogLevel
EOF2

printf '# first line\nMaxAgents 5\nMaxAgents 6\n' >"$conf"
"$BUILD/cloopd" -t -f "$conf" 2>"$TMP/err" && fail "a duplicate is accepted"
grep -qF "$conf:3: " "$TMP/err" && pass "a duplicate" || {
	fail "a duplicate"
	note "$(cat "$TMP/err")"
}

echo 'MaxAgents 5' >"$conf"
chmod 622 "$conf"
"$BUILD/cloopd" -t -f "$conf" 2>"$TMP/err" &&
    fail "a file others may write is accepted" ||
    pass "a file others may write"
"$BUILD/cloopd" -t -f "$TMP/missing" 2>"$TMP/err" &&
    fail "a missing file is accepted"
grep -qF "$TMP/missing" "$TMP/err" && pass "a missing file" ||
    fail "a missing file is not named"
chmod 600 "$conf"
"$BUILD/cloopd" -t -f "$conf" -o MaxAgents=0 2>"$TMP/err" &&
    fail "a bad -o is accepted" || pass "a bad -o"
"$BUILD/cloopd" -T -f "$conf" -o MaxAgents=7 >"$TMP/one" &&
    grep -qx 'MaxAgents 7' "$TMP/one" && pass "-o wins over the file" ||
    fail "-o does not win"
chmod 600 "$TMP/one"
"$BUILD/cloopd" -T -f "$TMP/one" | cmp -s - "$TMP/one" &&
    pass "-T, parsed and dumped again, is the same" ||
    fail "-T does not parse to itself"
