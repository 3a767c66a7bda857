# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Detached signatures in signify's form, passphrases.
tid="cloop-keygen signs, verifies and keeps passphrases"

K=$BUILD/cloop-keygen
cd "$TMP" || exit 1
"$K" -t release -f r.key >/dev/null || fatal "no release key"
"$K" -t release -f other.key >/dev/null || fatal "no other key"
echo "manifest" >m
: >empty
head -c 300000 /dev/urandom >big

run "-Y sign of several files" "$K" -Y sign -f r.key m empty big
run "-Y verify of several files" "$K" -Y verify -f r.pub m empty big
run "-Y verify with -s" "$K" -Y verify -f r.pub -s m.sig m
run "a second signature does not replace the first" sh -c \
    "! '$K' -Y sign -f r.key m"

bad()
{
	text=$1
	shift
	"$K" "$@" >out 2>&1
	[ $? = 1 ] && pass "refused: $text" || fail "accepted: $text"
}
cp m m2
cp m.sig m2.sig
echo x >>m2
bad "a changed file" -Y verify -f r.pub m2
bad "another key" -Y verify -f other.pub m
bad "one bad file among good ones" -Y verify -f r.pub m m2 empty
bad "the signature of another file" -Y verify -f r.pub -s big.sig m
bad "a file as signature" -Y verify -f r.pub -s m m
bad "a private key in place of the public one" -Y verify -f r.key m
bad "a missing signature" -Y verify -f r.pub -s nix m
python3 - <<'END' || fatal "no tampered signatures"
import base64
head, body = open("m.sig").read().splitlines()
raw = bytearray(base64.b64decode(body))
for bit in range(10 * 8, len(raw) * 8, 37):
    raw[bit // 8] ^= 1 << bit % 8
    with open("t%d.sig" % bit, "w") as f:
        f.write(head + "\n" + base64.b64encode(raw).decode() + "\n")
    raw[bit // 8] ^= 1 << bit % 8
END
n=0
for s in t*.sig; do
	"$K" -Y verify -f r.pub -s "$s" m >/dev/null 2>&1 && n=$((n + 1))
done
[ $n = 0 ] && pass "no bit of a signature can be changed" ||
    fail "$n changed signatures verify"

if command -v signify-openbsd >/dev/null; then
	run "signify verifies ours" signify-openbsd -V -p r.pub -m m -x m.sig
	signify-openbsd -G -n -p s.pub -s s.sec
	signify-openbsd -S -s s.sec -m big -x s.sig
	run "we verify signify's" "$K" -Y verify -f s.pub -s s.sig big
	run "and show its key" "$K" -l -f s.pub
else
	note "signify-openbsd is not installed: its half was not compared"
fi

# Passphrases come from standard input when that is no terminal.
print=$("$K" -l -f r.pub | grep fingerprint)
run "-p sets a passphrase" sh -c \
    "printf 'one\none\n' | '$K' -p -f r.key"
grep -q 'BEGIN ENCRYPTED PRIVATE KEY' r.key &&
    pass "the key is encrypted" || fail "the key is not encrypted"
[ "$(stat -c %a r.key)" = 600 ] && pass "and still 0600" || fail "mode"
openssl asn1parse -in r.key | grep -q scrypt && pass "under scrypt" ||
    fail "not under scrypt"
printf 'one\n' | "$K" -l -f r.key >out 2>/dev/null
grep -qF "$print" out && pass "the passphrase opens it" || fail "$(cat out)"
run "a wrong passphrase does not" sh -c \
    "! printf 'two\n' | '$K' -l -f r.key"
rm m2.sig
run "it signs with its passphrase" sh -c \
    "printf 'one\n' | '$K' -Y sign -f r.key m2"
cp -p r.key before.key
run "two different new passphrases change nothing" sh -c \
    "! printf 'one\nx\ny\n' | '$K' -p -f r.key && cmp r.key before.key"
run "a wrong old passphrase changes nothing" sh -c \
    "! printf 'no\nx\nx\n' | '$K' -p -f r.key && cmp r.key before.key"
run "an empty one takes it away" sh -c \
    "printf 'one\n\n\n' | '$K' -p -f r.key && '$K' -l -f r.key </dev/null"
"$K" -t tls -n x -f t.key >/dev/null || fatal "no TLS key"
run "a daemon's key gets none" sh -c \
    "! printf 'one\none\n' | '$K' -p -f t.key"
ended=1
