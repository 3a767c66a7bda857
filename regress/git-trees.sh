# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Repositories as they are: submodules, LFS pointers, links, odd names, names
# that differ in case only, SHA-256, and servers that are not spoken to.
# CLOOP_SLOW=1: 20 000 files and a pack of 100 MiB, too.
tid="whatever a repository holds arrives as it is, and goes back"
[ -x "$BUILD/cloop-git" ] || skip "cloop-git is not built"
command -v git >/dev/null && command -v openssl >/dev/null ||
    skip "git and openssl are needed"

export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t
export GIT_COMMITTER_EMAIL=t@x
F=$TMP/forge
mkdir -p "$F/open"
printf '[safe]\n\tdirectory = *\n' >"$F/config"
. "$SRC/regress/fixtures/forge.inc"

# round NAME TEXT: the repository $TMP/NAME comes, and a change goes back.
round()
{
	git clone -q --bare "$TMP/$1" "$F/open/$1.git"
	job "$TMP/w-$1" op=provision kind=git repo="$URL/open/$1.git"
	if [ "$(res outcome)" = ok ] && [ "$(res head)" = \
	    "$(git -C "$TMP/$1" rev-parse HEAD)" ] &&
	    [ -z "$(git -C "$TMP/w-$1" -c core.fileMode=true status \
	    --porcelain)" ]; then
		pass "$2"
	else
		fail "$2"
		note "$(cat "$TMP/res" "$TMP/say"
		    git -C "$TMP/w-$1" status --porcelain | head -n 5)"
	fi
	base=$(res head)
	echo changed >"$TMP/w-$1/changed"
	job "$TMP/w-$1" op=return mode=bundle branch=cloop/x base="$base" \
	    file="$TMP/b-$1"
	[ "$(res outcome) $(res files_changed)" = "ok 1" ] &&
	    git -C "$TMP/$1" fetch -q "$TMP/b-$1" cloop/x &&
	    [ "$(git -C "$TMP/$1" diff --name-status HEAD FETCH_HEAD)" = \
	    "A	changed" ] && pass "and one change goes back" ||
	    fail "$2: back: $(cat "$TMP/res")"
}

git init -q -b main "$TMP/odd"
cd "$TMP/odd" || exit 1
git init -q "$TMP/sub"
git -C "$TMP/sub" commit -q --allow-empty -m sub
git -c protocol.file.allow=always submodule --quiet add "$TMP/sub" sub
git config -f .gitmodules submodule.sub.url "ext::sh -c touch% $TMP/mark"
printf '*.bin filter=lfs diff=lfs merge=lfs -text\n' >.gitattributes
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 9\n' \
    "$(printf %064d 1)" >model.bin
ln -s model.bin link; ln -s /etc/passwd absolute; ln -s nowhere dangling
mkdir -p 'a b/ü/日本'
for odd in 'with space' '-dash' 'new
line' "quote'\"" 'back\slash' '*' "$(printf %0250d 7)" "$(printf '\377\376')" \
    README readme ReadMe; do
	echo "$odd" >"a b/ü/日本/$odd"
done
printf '#!/bin/sh\n' >run; chmod 755 run
: >empty
git add -A
git commit -q -m odd
cd "$SRC" || exit 1
round odd "submodules, LFS pointers, links, odd names, names in two cases"
[ -z "$(ls -A "$TMP/w-odd/sub")" ] && [ ! -e "$TMP/mark" ] &&
    pass "a submodule is not followed" || fail "the submodule"
grep -q '^oid sha256' "$TMP/w-odd/model.bin" &&
    pass "a pointer is not resolved" || fail "the LFS pointer"
[ "$(readlink "$TMP/w-odd/absolute")" = /etc/passwd ] &&
    [ -x "$TMP/w-odd/run" ] && [ "$(ls "$TMP/w-odd/a b/ü/日本" |
    grep -ci '^readme$')" = 3 ] && pass "links, modes and cases are kept" ||
    fail "links, modes, cases"

git init -q -b main --object-format=sha256 "$TMP/sha256"
git -C "$TMP/sha256" commit -q --allow-empty -m one
git clone -q --bare "$TMP/sha256" "$F/open/sha256.git"
job "$TMP/w-sha256" op=provision kind=git repo="$URL/open/sha256.git"
[ "$(res outcome)" = failed ] && res error | grep -q sha256 &&
    [ -z "$(ls -A "$TMP/w-sha256")" ] &&
    pass "a repository of SHA-256 is refused, and why" ||
    fail "SHA-256: $(cat "$TMP/res")"

git init -q -b main "$TMP/none"
git clone -q --bare "$TMP/none" "$F/open/none.git" 2>/dev/null
job "$TMP/w-none" op=provision kind=git repo="$URL/open/none.git"
[ "$(res outcome)" = failed ] && [ -z "$(ls -A "$TMP/w-none")" ] &&
    pass "an empty repository is refused" || fail "empty: $(cat "$TMP/res")"

# What is not https is not even asked.
port=$(free_port)
"$(git --exec-path)/git-daemon" --listen=127.0.0.1 --port="$port" \
    --base-path="$F/open" --export-all --verbose --reuseaddr \
    2>"$TMP/daemon" &
daemon=$!
track $daemon
daemon_answers()
{
	git ls-remote "git://127.0.0.1:$port/odd.git" >/dev/null 2>&1
}
if wait_for 30 daemon_answers; then
	asked=$(grep -c 'Connection from' "$TMP/daemon")
	for url in "git://127.0.0.1:$port/odd.git" "file://$F/open/odd.git" \
	    "$F/open/odd.git" "ext::sh -c touch% $TMP/mark" \
	    "ssh://localhost/r.git" "http://localhost/r.git"; do
		job "$TMP/w-url" op=provision kind=git repo="$url"
		[ "$(res outcome)" = failed ] &&
		    [ -z "$(ls -A "$TMP/w-url")" ] ||
		    fail "$url: $(cat "$TMP/res")"
	done
	[ "$(grep -c 'Connection from' "$TMP/daemon")" = "$asked" ] &&
	    [ ! -e "$TMP/mark" ] &&
	    pass "git daemon, file:, ssh:, ext: and http: are not asked" ||
	    fail "another transport was used"
else
	note "no git daemon here: $(cat "$TMP/daemon")"
fi
kill $daemon 2>/dev/null

if [ -z "${CLOOP_SLOW:-}" ]; then
	kill $FORGE
	exit 0
fi
git init -q -b main "$TMP/many"
python3 - "$TMP/many" <<'PY'
import os, sys
for i in range(20000):
    d = "%s/%d/%d" % (sys.argv[1], i % 40, i % 7)
    os.makedirs(d, exist_ok=True)
    with open("%s/f%d" % (d, i), "w") as f:
        f.write("%d\n" % i)
PY
git -C "$TMP/many" add -A
git -C "$TMP/many" commit -q -m many
round many "20 000 files"
git init -q -b main "$TMP/large"
head -c 60000000 /dev/urandom >"$TMP/large/a"
head -c 50000000 /dev/urandom >"$TMP/large/b"
git -C "$TMP/large" add -A
git -C "$TMP/large" commit -q -m large
round large "a pack of more than 100 MiB"
kill $FORGE
