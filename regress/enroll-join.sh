# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-enroll join places a bundle on a device.
tid="cloop-enroll join checks and places a bundle"

B=cloopenroll1.eyJzZXJ2ZXIiOiJ3c3M6Ly9odWIuZXhhbXBsZS9hcGkvZXhlY3V0b3JzL2Nvbm5lY3QiLCJ0b2tlbiI6ImNsZXQxLkFBRUNBd1FGQmdjSUNRb0wuSUNFaUl5UWxKaWNvS1NvckxDMHVMekF4TWpNME5UWTNPRGs2T3p3OVBqOC5lNTdmZjY4ZWY4ODcyZTczZGYwMjRlZWY0NDc1YTY0YiIsImVucm9sbG1lbnRfaWQiOiJBQUVDQXdRRkJnY0lDUW9MIiwibmFtZSI6ImVkZ2UtMSIsImV4cGlyZXNfYXQiOiIyMDI2LTAxLTAyVDAzOjA0OjA1WiJ9
F=$TMP/etc/cloop/enroll.bundle
C=$TMP/agent.json
join()
{
	"$BUILD/cloop-enroll" -o TokenFile="$F" -o CredentialFile="$C" \
	    join "$@"
}
# bundle JSON: its text form.
bundle()
{
	printf 'cloopenroll1.'
	printf '%s' "$1" | base64 -w0 | tr '+/' '-_' | tr -d '='
}

umask 0
run "the vector of 02 5" join "$B"
grep -q 'edge-1 at wss://hub.example/api/executors/connect' "$TMP/run.out" &&
    grep -q 'systemctl enable --now cloop-agentd' "$TMP/run.out" &&
    pass "it says where to, and how to start" || fail "$(cat "$TMP/run.out")"
grep -q 'no pin' "$TMP/run.out" && pass "it warns without a pin" ||
    fail "no warning"
grep -q 'expired at 2026-01-02T03:04:05Z' "$TMP/run.out" &&
    pass "an expiry in the past is only a warning (BC-39)" || fail "expiry"
[ "$(cat "$F")" = "$B" ] && [ "$(stat -c %a "$F")" = 600 ] &&
    pass "the file holds the bundle, 0600" || fail "file"
rm "$F"
run "from standard input, with white space" sh -c "
    printf '  %s\r\n\n' '$B' | '$BUILD/cloop-enroll' -o TokenFile='$F' \
    -o CredentialFile='$C' join -"
[ "$(cat "$F")" = "$B" ] && pass "white space is dropped" || fail "file"
run "--json" sh -c "'$BUILD/cloop-enroll' -o TokenFile='$F' \
    -o CredentialFile='$C' --json join '$B' 2>/dev/null |
    python3 -c 'import json, sys; d = json.load(sys.stdin)
assert d[\"name\"] == \"edge-1\" and d[\"pin\"] is None, d'"
rm "$F"

t=clet1.AAECAwQFBgcICQoL.ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8.e57ff68ef8872e73df024eef4475a64b
refused()
{
	join "$2" >"$TMP/out" 2>&1
	[ $? = 1 ] && [ ! -e "$F" ] && pass "refused: $1" ||
	    fail "accepted: $1: $(cat "$TMP/out")"
}
refused "a bare token" "$t"
refused "a cut bundle" "$(echo "$B" | cut -c1-80)"
refused "no server" "$(bundle "{\"token\":\"$t\"}")"
refused "a blank token" "$(bundle '{"server":"wss://h/","token":" "}')"
refused "an http server" "$(bundle "{\"server\":\"http://h/\",\"token\":\"$t\"}")"
refused "a credential" "$(bundle '{"server":"wss://h/","token":"clac1.a.b.c"}')"
refused "a bad pin" "$(bundle "{\"server\":\"wss://h/\",\"token\":\"$t\",\"pin\":\"sha1:xx\"}")"
refused "a pin on plaintext" "$(bundle "{\"server\":\"ws://h/\",\"token\":\"$t\",\"pin\":\"sha256:XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyfNM=\"}")"
refused "a member twice" "$(bundle "{\"server\":\"wss://h/\",\"server\":\"wss://i/\",\"token\":\"$t\"}")"
refused "an array" "$(bundle '[]')"
refused "nesting" "$(bundle "{\"server\":\"wss://h/\",\"token\":\"$t\",\"x\":{}}")"
refused "nothing" ""
run "unknown members are ignored" join \
    "$(bundle "{\"server\":\"wss://h/\",\"token\":\"$t\",\"x\":\"y\"}")"
rm -f "$F"

echo '{}' >"$C"
join "$B" >"$TMP/out" 2>&1
[ $? = 1 ] && [ ! -e "$F" ] && grep -q "$C" "$TMP/out" &&
    pass "an enrolled device is told which file to remove first" ||
    fail "$(cat "$TMP/out")"
rm "$C"

# --now with a stand-in for systemctl: the agent "enrolls".
mkdir "$TMP/bin"
printf '#!/bin/sh\necho "$@" >"%s/systemctl.args"\necho chatter\n(sleep 1; echo {} >"%s") &\n' \
    "$TMP" "$C" >"$TMP/bin/systemctl"
chmod 755 "$TMP/bin/systemctl"
PATH=$TMP/bin:$PATH join --now --json "$B" >"$TMP/out" 2>/dev/null
[ $? = 0 ] && grep -q '"enrolled":true' "$TMP/out" &&
    [ "$(cat "$TMP/systemctl.args")" = "enable --now cloop-agentd" ] &&
    pass "--now starts the unit and waits for the credential" ||
    fail "--now: $(cat "$TMP/out")"
! grep -q chatter "$TMP/out" && pass "and prints one document" || fail "chatter"
rm -f "$C"
printf '#!/bin/sh\nexit 5\n' >"$TMP/bin/systemctl"
PATH=$TMP/bin:$PATH join --now "$B" >"$TMP/out" 2>&1
[ $? = 1 ] && grep -q 'systemctl.*failed' "$TMP/out" && [ -e "$F" ] &&
    pass "a start that fails says so, the bundle stays" ||
    fail "$(cat "$TMP/out")"
ended=1
