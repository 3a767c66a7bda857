# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-keygen makes the hub's keys.
tid="cloop-keygen makes keys once, with their modes"

K=$BUILD/cloop-keygen
D=$TMP/keys
mode() { stat -c %a "$1"; }
umask 0

run "-t tls with names (08 4)" "$K" -t tls -n localhost -n 127.0.0.1 \
    -n ::1 -d 30 -o KeyDirectory="$D"
[ "$(mode "$D")" = 700 ] && pass "the directory is made 0700" ||
    fail "mode of the directory is $(mode "$D")"
openssl x509 -in "$D/tls.crt" -noout -text >"$TMP/text"
for want in 'prime256v1' 'DNS:localhost, IP Address:127.0.0.1' \
    'TLS Web Server Authentication' 'CA:FALSE' 'ecdsa-with-SHA256'; do
	grep -q "$want" "$TMP/text" && pass "the certificate has $want" ||
	    fail "the certificate lacks $want"
done
run "it is valid for its names" openssl verify -CAfile "$D/tls.crt" \
    -verify_hostname localhost "$D/tls.crt"
run "it began before now" sh -c "
    start=\$(date -d \"\$(openssl x509 -in '$D/tls.crt' -noout -startdate |
    cut -d= -f2)\" +%s) && [ \$start -le \$((\$(date +%s) - 3500)) ]"
run "it lasts the days asked for" sh -c "
    openssl x509 -in '$D/tls.crt' -noout -checkend $((29 * 86400)) &&
    ! openssl x509 -in '$D/tls.crt' -noout -checkend $((31 * 86400))"

cp -p "$D/tls.key" "$TMP/tls.key"
run "-A makes what is missing" "$K" -A -o KeyDirectory="$D" \
    -o StateDirectory="$TMP/state"
cmp -s "$D/tls.key" "$TMP/tls.key" && pass "and overwrites nothing" ||
    fail "tls.key was overwritten"
pin=sha256:$(openssl x509 -in "$D/tls.crt" -noout -pubkey |
    openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary |
    base64 -w0)
grep -q "pin $pin" "$TMP/run.out" && pass "it prints the pin" ||
    fail "the pin $pin is not in: $(cat "$TMP/run.out")"
for f in tls.key mac.key kek.key receipt.key; do
	[ "$(mode "$D/$f")" = 600 ] && pass "$f is 0600" ||
	    fail "$f is $(mode "$D/$f")"
done
[ ! -e "$D/release.key" ] && pass "the release key is not the hub's" ||
    fail "-A made a release key"
before=$(cat "$D"/* | sha256sum)
run "-A again" "$K" -A -o KeyDirectory="$D"
[ "$before" = "$(cat "$D"/* | sha256sum)" ] &&
    pass "changes nothing" || fail "-A changed a file"

for t in tls mac kek receipt; do
	"$K" -t $t -o KeyDirectory="$D" >"$TMP/out" 2>&1
	[ $? = 1 ] && grep -q 'not overwritten' "$TMP/out" &&
	    pass "-t $t refuses to overwrite" || fail "-t $t overwrote"
done
[ "$before" = "$(cat "$D"/* | sha256sum)" ] &&
    pass "and leaves all files as they were" || fail "a file changed"
[ -z "$(ls -A "$D" | grep '^\.')" ] && pass "no temporary file is left" ||
    fail "left: $(ls -A "$D")"

run "-t tls -R: a request for the key that is there" "$K" -t tls -R \
    -n hub.example -o KeyDirectory="$D"
run "the request is well-formed" openssl req -in "$D/tls.csr" -noout -verify
rm "$D/tls.crt"
run "-A makes a certificate for a key without one" "$K" -A \
    -o KeyDirectory="$D"
grep -q "pin $pin" "$TMP/run.out" && pass "the pin stays the same" ||
    fail "the pin changed"
rm "$D/tls.key"
"$K" -A -o KeyDirectory="$D" >"$TMP/out" 2>&1
[ $? = 1 ] && pass "a certificate without its key is an error" ||
    fail "a certificate without its key passed: $(cat "$TMP/out")"

for bad in '-t tls -n -x' '-t tls -n a..b' '-t tls -n a/b' \
    '-t tls -n ../x -f '"$TMP/bad.key"; do
	# shellcheck disable=SC2086
	"$K" $bad -o KeyDirectory="$TMP/bad" >/dev/null 2>&1
	[ $? = 1 ] && [ ! -e "$TMP/bad/tls.key" ] &&
	    pass "refused: $bad" || fail "not refused: $bad"
done
for bad in '' '-t' '-t foo' '-A -l' '-t mac -n x' '-t tls -d 0' \
    '-t tls -d 9999' '-A x' '-o Foo=1 -A' '-Y foo -f x y' '-p' '-Y sign x'; do
	# shellcheck disable=SC2086
	"$K" $bad >"$TMP/out" 2>&1
	[ $? = 2 ] && pass "usage, status 2: '$bad'" ||
	    fail "no usage error: '$bad'"
done

mkdir -m 755 "$TMP/file"
"$K" -t mac -f "$TMP/none/x.key" >"$TMP/out" 2>&1
[ $? = 1 ] && grep -q "$TMP/none/x.key" "$TMP/out" &&
    pass "an error names the file" || fail "error: $(cat "$TMP/out")"
ended=1
