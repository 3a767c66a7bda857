# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-enroll on the store while no hub runs.
tid="cloop-enroll works on the store under its lock"

"$BUILD/cloop-keygen" -A -n localhost -o KeyDirectory="$TMP/keys" \
    >/dev/null || fatal "no keys"
unset CLOOP_STATE_HMAC_KEY
enroll()
{
	"$BUILD/cloop-enroll" -o StateDirectory="$TMP/state" \
	    -o KeyDirectory="$TMP/keys" -o ControlSocket="$TMP/none" \
	    -o ExternalURL=https://hub.example:7443/some/path?q#f "$@"
}
# member KEY: of the JSON document on standard input.
member()
{
	python3 -c 'import json, sys
d = json.load(sys.stdin)
for k in sys.argv[1].split("."):
    d = d[int(k)] if isinstance(d, list) else d[k]
print(d)' "$1"
}
status()
{
	want=$1
	text=$2
	shift 2
	enroll "$@" >"$TMP/out" 2>"$TMP/err"
	got=$?
	[ $got = "$want" ] && pass "$text" ||
	    fail "$text: status $got: $(cat "$TMP/out" "$TMP/err")"
}

status 0 "mint --json" mint --name edge-1 --label ' room = lab ' \
    --label room=new --workdir-root /srv/w --json
cp "$TMP/out" "$TMP/minted"
[ "$(member server <"$TMP/minted")" = \
    wss://hub.example:7443/api/executors/connect ] &&
    pass "the server follows from ExternalURL (02 5)" ||
    fail "server: $(member server <"$TMP/minted")"
pin=$("$BUILD/cloop-keygen" -l -f "$TMP/keys/tls.crt" | sed -n 's/.*pin //p')
[ "$(member pin <"$TMP/minted")" = "$pin" ] &&
    pass "the pin follows from the certificate" || fail "pin"
id=$(member enrollment_id <"$TMP/minted")
token=$(member token <"$TMP/minted")
run "the bundle opens to the same" python3 - "$TMP/minted" <<'END'
import base64, json, sys
d = json.load(open(sys.argv[1]))
text = d["bundle"].partition(".")[2]
inside = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
assert list(inside) == ["server", "token", "pin", "enrollment_id", "name",
                        "workdir_root", "expires_at"], list(inside)
for key in ("server", "token", "pin", "enrollment_id", "name"):
    assert inside[key] == d[key], key
assert d["command"] == "cloop-agentd --server %s --token %s --pin %s" % (
    d["server"], d["token"], d["pin"]), d["command"]
END
status 0 "list --json" list --json
[ "$(member enrollments.0.labels.room <"$TMP/out")" = new ] &&
    pass "labels are trimmed, the last of a key counts" || fail "labels"
[ "$(member enrollments.0.enrollment_id <"$TMP/out")" = "$id" ] &&
    pass "list shows the token's id" || fail "id"
! grep -qF "$token" "$TMP/out" && pass "and not the token" || fail "token"
secret=$(echo "$token" | cut -d. -f3)
! grep -rqF "$secret" "$TMP/state" && pass "no file holds the secret" ||
    fail "the secret is in a file"

status 0 "mint in words" mint --name edge-2
for want in '^id ' '^expires ' '(in 15m)' '^pin ' 'cloop-enroll join' \
    'cloop-agentd --server' 'shown this once' 'cloop-enroll revoke'; do
	grep -q -- "$want" "$TMP/out" && pass "it says $want" ||
	    fail "it does not say $want: $(cat "$TMP/out")"
done
status 0 "an own server and pin" mint --name x --json \
    --server 'wss://h/?a=1&b=c' --pin "$pin"
status 2 "a server that is no WebSocket URL" mint --name x --server http://h
status 2 "a bad pin" mint --name x --pin sha256:xx
status 0 "a server with characters of the shell" mint --name x --json \
    --server 'wss://h/x;y?$z'
[ "$(member command <"$TMP/out" | cut -d' ' -f3)" = "'wss://h/x;y?\$z'" ] &&
    pass "is quoted in the command" || fail "$(member command <"$TMP/out")"
status 0 "a plaintext server" mint --name x --json --server ws://127.0.0.1:1/
[ "$(member pin <"$TMP/out")" = None ] && pass "gets no pin" || fail "pin"

status 0 "--bundle-file" mint --name x --json --bundle-file "$TMP/bundle"
[ "$(cat "$TMP/bundle")" = "$(member bundle <"$TMP/out")" ] &&
    [ "$(stat -c %a "$TMP/bundle")" = 600 ] &&
    pass "holds the bundle, 0600" || fail "bundle file"
before=$(enroll list --json | grep -o enrollment_id | wc -l)
status 1 "a bundle file that cannot be written" mint --name x \
    --bundle-file "$TMP/no/such/dir/bundle"
grep -q "no/such/dir" "$TMP/err" && pass "is named" || fail "not named"
[ "$before" = "$(enroll list --json | grep -o enrollment_id | wc -l)" ] &&
    pass "and leaves no valid token" || fail "a token nobody has is valid"

for ttl in 1s 90 1h30m 24h; do
	status 0 "--ttl $ttl" mint --name x --ttl $ttl
done
for ttl in 24h1s 720h 30d; do
	status 1 "--ttl $ttl is refused" mint --name x --ttl $ttl --json
	grep -q '"error"' "$TMP/out" && ! grep -q clet1 "$TMP/out" &&
	    pass "without a token" || fail "$(cat "$TMP/out")"
done
for ttl in '' x 1 h m15 1.5h -1 15mm 99999999999h 0; do
	[ "$ttl" = 1 ] && continue
	status 2 "--ttl '$ttl' is no duration" mint --name x --ttl "$ttl"
done
status 1 "a blank name" mint --name '  '
status 2 "no name" mint
status 2 "a label without =" mint --name x --label nokey
status 2 "a label with a blank key" mint --name x --label ' =v'
status 2 "an unknown option" mint --name x --foo
status 2 "a stray operand" mint --name x y
status 2 "an unknown command" frobnicate
status 2 "no command"

status 0 "show ID" show "$id"
status 0 "show --json" show --json -- "$id"
[ "$(member enrollment.name <"$TMP/out")" = edge-1 ] && pass "its name" ||
    fail "$(cat "$TMP/out")"
status 0 "agents" agents
status 0 "revoke" revoke --reason "lost it" --json -- "$id"
[ "$(member kind <"$TMP/out")" = enrollment ] && pass "its kind" ||
    fail "$(cat "$TMP/out")"
status 1 "revoke of an unknown id" revoke --json AAAAAAAAAAAAAAAA
[ "$(member error.code <"$TMP/out")" = agent_not_found ] &&
    pass "agent_not_found" || fail "$(cat "$TMP/out")"
status 1 "an id that begins with -" revoke -AAAAAAAAAAAAAAA
status 1 "an id that begins with --" revoke --AAAAAAAAAAAAAA
status 1 "and after --" revoke -- -AAAAAAAAAAAAAAA
status 2 "a blank id" revoke ' '
status 2 "no id" revoke
status 2 "two ids" revoke a b

# Somebody else has the store.
python3 -c "
import sqlite3, sys, time
db = sqlite3.connect('$TMP/state/hub/cloop.db', isolation_level=None)
db.execute('BEGIN EXCLUSIVE')
print('locked', flush=True)
time.sleep(60)" >"$TMP/locked" &
track $!
wait_for 30 grep -q locked "$TMP/locked" || fatal "no lock"
status 1 "the store is in use" list --json
member error.message <"$TMP/out" | grep -q 'in use' && pass "and says so" ||
    fail "$(cat "$TMP/out")"

"$BUILD/cloop-enroll" -s "$TMP/none" list --json >"$TMP/out" 2>&1
[ $? = 1 ] && grep -q hub_unreachable "$TMP/out" &&
    pass "-s alone never falls back to the default store" ||
    fail "$(cat "$TMP/out")"
ended=1
