# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-keygen -l, of files and of a server.
tid="cloop-keygen -l shows fingerprints and pins"

K=$BUILD/cloop-keygen
D=$TMP/keys
"$K" -A -n localhost -n 127.0.0.1 -o KeyDirectory="$D" >"$TMP/made" ||
    fatal "no keys"
"$K" -t release -f "$TMP/release.key" >/dev/null || fatal "no release key"
before=$(ls -lR --time-style=full-iso "$D" | sha256sum)

run "-l shows all keys" "$K" -l -o KeyDirectory="$D"
cp "$TMP/run.out" "$TMP/all"
for want in 'mac key' 'kek key' 'certificate, ECDSA P-256' 'pin sha256:' \
    'public key, Ed25519' 'DNS:localhost'; do
	grep -q "$want" "$TMP/all" && pass "-l says $want" ||
	    fail "-l does not say $want"
done
for f in "$TMP/release.pub" "$TMP/release.key" "$D/receipt.key" \
    "$D/tls.key" "$D/mac.key"; do
	run "-l -f $(basename "$f")" "$K" -l -f "$f"
done
one=$("$K" -l -f "$TMP/release.pub" | grep fingerprint)
two=$("$K" -l -f "$TMP/release.key" | grep fingerprint)
[ "$one" = "$two" ] && pass "both halves of a key have one fingerprint" ||
    fail "$one / $two"
secret=$(tail -n 1 "$D/mac.key")
! grep -qF "$secret" "$TMP/all" && pass "no secret is shown" ||
    fail "a secret is shown"
[ "$before" = "$(ls -lR --time-style=full-iso "$D" | sha256sum)" ] &&
    pass "looking changes nothing" || fail "a file changed"

chmod 644 "$D/mac.key"
"$K" -l -f "$D/mac.key" >"$TMP/out" 2>&1
[ $? = 1 ] && grep -q "mac.key.*nobody else" "$TMP/out" &&
    pass "a key that others can read is refused" ||
    fail "$(cat "$TMP/out")"
echo rubbish >"$TMP/rubbish"
for f in "$TMP/rubbish" "$TMP/missing" "$TMP" /dev/null; do
	"$K" -l -f "$f" >"$TMP/out" 2>&1
	[ $? = 1 ] && grep -q "$f" "$TMP/out" && pass "refused: $f" ||
	    fail "not refused: $f"
done

# A server of openssl's, on a port of its own.
port=$(free_port)
openssl s_server -accept "127.0.0.1:$port" -cert "$D/tls.crt" \
    -key "$D/tls.key" -quiet >"$TMP/s_server" 2>&1 </dev/null &
track $!
wait_up 30 "no server" "$TMP/s_server" $! python3 -c "import socket
socket.create_connection(('127.0.0.1', $port), 5)"
run "-l host:port" "$K" -l "127.0.0.1:$port"
pin=$(grep -o 'pin sha256:.*' "$TMP/all")
grep -qF "$pin" "$TMP/run.out" && pass "shows the pin served there" ||
    fail "$pin is not in $(cat "$TMP/run.out")"
run "-l localhost:port sends the name" "$K" -l "localhost:$port"

for bad in 127.0.0.1 :1 x: '127.0.0.1:x' '-x:1' 'a b:1' '[::1:443' \
    'h;id:1'; do
	"$K" -l -- "$bad" >"$TMP/out" 2>&1
	[ $? = 1 ] && grep -q 'not host:port' "$TMP/out" &&
	    pass "not host:port: $bad" || fail "accepted: $bad"
done
PATH=/nonexistent "$K" -l "127.0.0.1:$port" >"$TMP/out" 2>&1
[ $? = 1 ] && grep -q 'openssl is needed' "$TMP/out" &&
    pass "without openssl it says so" || fail "$(cat "$TMP/out")"
ended=1
