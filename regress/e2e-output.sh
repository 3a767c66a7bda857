# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Output from end to end: much of it, without line ends, with bytes that are
# no UTF-8 (BC-05), as it comes (BC-04), and more than is kept (BC-09).
tid="output arrives byte-exact, as it comes"
. "$SRC/regress/e2e-lib.sh"

MUCH=200 LONG=512
case $BUILD in *asan*) MUCH=24 LONG=48 ;; esac
left=$(df -Pm "$TMP" | awk 'NR == 2 { print $4 }')
[ "$left" -ge $((MUCH + LONG * 2 + 512)) ] ||
    skip "$left MiB are free for tests, too few"

e2e_hub "LogLimit 2G"
e2e_agent edge-1
work=$TMP/edge-1/work

# Text that does not repeat, made in the same way here and there.
cat >"$work/make-text" <<'END'
exec 2>/dev/null	# both complain when head has enough
head -c ${1}M /dev/zero |
    openssl enc -aes-128-ctr -K 00112233445566778899aabbccddeeff -iv 0 |
    base64 -w 100 | head -c ${1}M
END
chmod 644 "$work/make-text"
want=$(sh "$work/make-text" $MUCH | sha256sum)
ctl run --on edge-1 --name much -- sh make-text $MUCH 2>"$TMP/err" |
    sha256sum >"$TMP/have"
[ "$want" = "$(cat "$TMP/have")" ] &&
    pass "$MUCH MiB: the follower's digest is right" ||
    { fail "$MUCH MiB: another digest"; note "$(cat "$TMP/err")"; }
h=$(e2e_handle much)
ctl --json show -- "$h" >"$TMP/show"
bytes=$(json "d['log_bytes']" <"$TMP/show")
[ "$bytes" -ge $((MUCH * 1048576)) ] ||
    fail "$bytes bytes are recorded, fewer than came"
json "d['gapped']" <"$TMP/show" | grep -q False ||
    fail "the log has a gap"
[ "$(ctl logs -- "$h" | head -c ${MUCH}M | sha256sum)" = "$want" ] &&
    pass "$MUCH MiB: the kept log's digest is right" ||
    fail "$MUCH MiB: the kept log has another digest"

# One line without an end.
ctl run --on edge-1 --name long -- \
    sh -c "head -c ${LONG}M /dev/zero | tr '\\0' x; printf END" 2>"$TMP/err" |
    python3 -c '
import sys
n, end = 0, b""
while block := sys.stdin.buffer.read(1 << 20):
    n, end = n + len(block), (end + block)[-4:]
print(n, end.decode())' >"$TMP/have"
[ "$(cat "$TMP/have")" = "$((LONG * 1048576 + 3)) xEND" ] &&
    pass "$LONG MiB in one line: every byte, and END is its end" ||
    { fail "$LONG MiB in one line: $(cat "$TMP/have")"
    note "$(cat "$TMP/err")"; }

# Bytes at random, and every awkward sequence there is.
python3 - >"$work/bytes" <<'END'
import itertools
import random
random.seed(20261129)
some = [b"", b"a", b"\x80", b"\xbf", b"\xc2", b"\xc3\xa4", b"\xe2\x82",
        b"\xe2\x82\xac", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80",
        b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\x00", b"\xe0\x80",
        b"\xef\xbf\xbd", b"\x1b[31m"]
out = b"".join(b"".join(p) + b"\n" for p in itertools.product(some, repeat=3))
out += random.randbytes(3000000)
out += b"".join(random.choice(some) for _ in range(400000))
# What ends in the middle of a character.
import sys
sys.stdout.buffer.write(out + b"\xe2\x82")
END
chmod 644 "$work/bytes"
ctl run --on edge-1 --name bytes -- cat bytes >"$TMP/have" 2>"$TMP/err"
python3 - "$work/bytes" "$TMP/have" >"$TMP/diff" <<'END'
import sys
want = open(sys.argv[1], "rb").read().decode("utf-8", "replace").encode()
have = open(sys.argv[2], "rb").read()
if want != have:
    at = next((i for i, (a, b) in enumerate(zip(want, have)) if a != b),
              min(len(want), len(have)))
    print("%d bytes wanted, %d came; at %d: wanted %r, came %r" % (
        len(want), len(have), at, want[at:at + 12], have[at:at + 12]))
END
[ ! -s "$TMP/diff" ] &&
    pass "$(stat -c %s "$work/bytes") bytes, what is no UTF-8 replaced" ||
    fail "normalised otherwise: $(cat "$TMP/diff")"
h=$(e2e_handle bytes)
ctl logs -- "$h" | cmp -s - "$TMP/have" &&
    pass "the kept log is what was followed" || fail "the kept log differs"

# Dots without a line end: the first within a second, then steadily.
python3 - "$TMP/run/cloopd.sock" >"$TMP/dots" 2>&1 <<'END'
import subprocess
import sys
import time
p = subprocess.Popen(["cloopctl", "-s", sys.argv[1], "--json", "run", "--on",
    "edge-1", "--name", "dots", "--", "sh", "-c",
    "while :; do printf .; sleep 0.1; done"], stdout=subprocess.PIPE)
started = first = last = None
gap = n = 0
for line in p.stdout:
    now = time.monotonic()
    if b'"event":"started"' in line:
        started = now
    if b'"event":"output"' not in line:
        continue
    first = first or now
    gap = max(gap, now - (last or now))
    last = now
    n += 1
    if now - first > 4:
        break
p.terminate()
p.wait(20)
print("first %.2f s, longest gap %.2f s, %d times" % (
    first - started, gap, n))
sys.exit(first - started > 1 or gap > 1 or n < 8)
END
[ $? -eq 0 ] && pass "dots appear at once: $(tail -n 1 "$TMP/dots")" ||
    fail "dots do not appear in time: $(cat "$TMP/dots")"

# More than is kept: nobody is hurt, and what is missing is said.
sed -i 's/^LogLimit.*/LogLimit 1M/' "$TMP/cloopd.conf"
run "the limit is lowered by a reload" ctl reload
ctl run --on edge-1 --name cut -- sh -c 'seq 1 700000' >"$TMP/have" 2>"$TMP/err"
status=$?
[ $status -eq 0 ] && pass "5 MiB against a limit of 1 MiB: exit code 0" ||
    fail "5 MiB against a limit of 1 MiB: exit code $status"
seq 1 700000 >"$TMP/want"

# account WHAT: output and notices of $TMP/have, $TMP/err are all of want.
account()
{
	python3 - "$TMP/want" "$TMP/have" "$TMP/err" >"$TMP/diff" <<'END'
import re
import sys
want, have = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read()
cuts = [(int(o), int(n)) for n, o in re.findall(
    r"(\d+) bytes of output at offset (\d+) were not kept",
    open(sys.argv[3]).read())]
rest = want
for off, n in reversed(cuts):
    rest = rest[:off] + rest[off + n:]
if rest != have:
    print("%d bytes, %d came, cuts %r" % (len(want), len(have), cuts))
print("%d bytes in %d cuts" % (sum(n for _, n in cuts), len(cuts)))
sys.exit(rest != have)
END
	[ $? -eq 0 ] && pass "$1: $(tail -n 1 "$TMP/diff"), all said" ||
	    fail "$1: $(cat "$TMP/diff")"
}

account "what the follower got"
h=$(e2e_handle cut)
ctl logs -- "$h" >"$TMP/have" 2>"$TMP/err"
account "what was kept"
kept=$(stat -c %s "$TMP/have")
[ "$kept" -le $((1048576 + 262144)) ] && [ "$kept" -ge 524288 ] &&
    pass "$kept bytes are kept" || fail "$kept bytes are kept"
[ "$(head -n 1 "$TMP/have")" = 1 ] &&
    [ "$(tail -n 1 "$TMP/have")" = 700000 ] &&
    pass "beginning and end are among them" || fail "an end is missing"
