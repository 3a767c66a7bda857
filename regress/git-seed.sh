# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-seed: what it places and takes, and what it refuses.
tid="a project's documents are placed and taken as what they are"
[ -x "$BUILD/cloop-seed" ] || skip "cloop-seed is not built"

job()
{
	mkdir -p "$1"
	python3 regress/fixtures/gitjob.py "$BUILD/cloop-seed" "$@" \
	    >"$TMP/res" 2>"$TMP/say"
}
# is OUTCOME PATTERN TEXT
is()
{
	if grep -q "^outcome=$1$" "$TMP/res" && grep -q "$2" "$TMP/res"; then
		pass "$3"
	else
		fail "$3"
		note "$(cat "$TMP/res" "$TMP/say")"
	fi
}

printf '{"a":1}' | gzip >"$TMP/good"
printf '[1]' | gzip >"$TMP/list"
printf '{"a":' | gzip >"$TMP/cut"
printf '{"a":1,"a":2}' | gzip >"$TMP/twice"
printf '{"a":1}' >"$TMP/plain"
head -c 20 "$TMP/good" >"$TMP/torn"
{ cat "$TMP/good"; echo x; } >"$TMP/trailing"
{ printf '{"a":"'; head -c 34000000 /dev/zero | tr '\0' x; printf '"}'; } |
    gzip >"$TMP/bomb"

mkdir -p "$TMP/t/.cloop"
touch "$TMP/t/.cloop/state.db" "$TMP/t/.cloop/state.db-wal"
job "$TMP/t" op=seed seed="$TMP/good" record='{"kind":"remote"}'
is ok '' "a seed is placed"
[ "$(cat "$TMP/t/.cloop/state.json")" = '{"a":1}' ] &&
    [ "$(stat -c %a "$TMP/t/.cloop/state.json" "$TMP/t/.cloop" | tr '\n' ' ')" \
    = "600 700 " ] && pass "as the document, private" || fail "the file"
[ ! -e "$TMP/t/.cloop/state.db" ] && [ ! -e "$TMP/t/.cloop/state.db-wal" ] &&
    pass "stale databases are gone" || fail "a stale database is there"
grep -q remote "$TMP/t/.cloop/sandbox-run.json" &&
    pass "with its record" || fail "no record"
for bad in list cut twice plain torn trailing bomb; do
	job "$TMP/bad" op=seed seed="$TMP/$bad"
	is failed 'error=it ' "$bad: refused"
	[ -e "$TMP/bad/.cloop/state.json" ] && fail "$bad was placed"
done
ln -s "$TMP/t" "$TMP/l"; mkdir "$TMP/link"; ln -s "$TMP/t" "$TMP/link/.cloop"
job "$TMP/link" op=seed seed="$TMP/good"
is failed 'is no directory' "a .cloop that is a link is refused"
mkdir "$TMP/file"; touch "$TMP/file/.cloop"
job "$TMP/file" op=seed seed="$TMP/good"
is failed 'is no directory' "a .cloop that is a file is refused"

job "$TMP/t" op=project file="$TMP/out0"
is failed 'no project result was left by the workload' "no result"
cp "$TMP/good" "$TMP/t/.cloop/result.json.gz"
job "$TMP/t" op=project file="$TMP/out1"
is ok "bytes=$(wc -c <"$TMP/good")" "a result is taken"
cmp -s "$TMP/good" "$TMP/out1" && pass "as it is" || fail "it differs"
ln -sf /etc/passwd "$TMP/t/.cloop/result.json.gz"
job "$TMP/t" op=project file="$TMP/out2"
is failed 'no regular file' "a link is not followed"
rm "$TMP/t/.cloop/result.json.gz"
head -c 700000 /dev/urandom >"$TMP/t/.cloop/result.json.gz"
job "$TMP/t" op=project file="$TMP/out3"
is failed 'too big' "640 KiB at most"
for bad in list plain torn bomb; do
	cp "$TMP/$bad" "$TMP/t/.cloop/result.json.gz"
	job "$TMP/t" op=project file="$TMP/out4"
	is failed 'error=it ' "$bad: refused"
done
