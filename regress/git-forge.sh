# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-git against a forge over TLS: clone, pin, push, credential, limits
# (BC-61, BC-65).
tid="trees come from a forge and go back to it"
[ -x "$BUILD/cloop-git" ] || skip "cloop-git is not built"
command -v git >/dev/null && command -v openssl >/dev/null ||
    skip "git and openssl are needed"

export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t
export GIT_COMMITTER_EMAIL=t@x
TOKEN=tok-sentinel-5d1f0c77
F=$TMP/forge
mkdir -p "$F/open" "$F/closed"
echo "[safe]
	directory = *
[http]
	receivepack = true
[uploadpack]
	allowReachableSHA1InWant = true" >"$F/config"
echo "x-access-token:$TOKEN secret.git" >"$F/tokens"

git init -q -b main "$TMP/src"
cd "$TMP/src" || exit 1
echo one >a; mkdir d; echo two >d/b; ln -s a link
git add -A; git commit -q -m one; FIRST=$(git rev-parse HEAD)
echo three >c; git add -A; git commit -q -m two; HEAD=$(git rev-parse HEAD)
git clone -q --bare . "$F/open/r.git"
git clone -q --bare . "$F/closed/secret.git"
git clone -q --bare . "$F/closed/other.git"
cd "$SRC" || exit 1
. "$SRC/regress/fixtures/forge.inc"

ok()
{
	if [ "$(res outcome)" = ok ]; then
		pass "$1"
	else
		fail "$1"
		note "$(cat "$TMP/res" "$TMP/say")"
	fi
}
# refused TEXT PATTERN
refused()
{
	if [ "$(res outcome)" = failed ] && res error | grep -q "$2"; then
		pass "$1"
	else
		fail "$1"
		note "$(cat "$TMP/res" "$TMP/say")"
	fi
}

job "$TMP/w1" op=provision kind=git repo="$URL/open/r.git"
ok "the default branch"
[ "$(cat "$TMP/w1/c")" = three ] && [ -L "$TMP/w1/link" ] &&
    [ "$(res head)" = "$HEAD" ] && pass "its files" || fail "its files"
grep -q '^workspace: ' "$TMP/say" && pass "the output says so" ||
    fail "no line of progress"
echo stray >"$TMP/w1/untracked"
job "$TMP/w1" op=provision kind=git repo="$URL/open/r/" ref=main
ok "again into the same directory, the URL spelled otherwise"
[ -e "$TMP/w1/untracked" ] && pass "what was there stays" ||
    fail "files are gone"
job "$TMP/w1" op=provision kind=git repo="$URL/open/x.git"
refused "another repository in the same directory" 'x.git was asked for'
job "$TMP/w2" op=provision kind=git repo="$URL/open/r.git" ref="$FIRST"
ok "a pinned commit"
[ "$(res head)" = "$FIRST" ] && [ ! -e "$TMP/w2/c" ] &&
    pass "is what is there" || fail "another commit"
job "$TMP/w3" op=provision kind=git repo="$URL/open/r.git" depth=1
ok "depth 1"
[ -s "$TMP/w3/.git/shallow" ] && pass "is shallow" || fail "not shallow"
job "$TMP/w4" op=provision kind=git repo="$URL/open/r.git" ref=nowhere
refused "a ref that is not there" 'git fetch failed: .*nowhere'
[ -z "$(ls -A "$TMP/w4")" ] && pass "leaves nothing" || fail "left files"
job "$TMP/w5" op=provision kind=git repo="$URL/moved/r.git"
refused "a redirect is not followed" 'fetch failed'
grep -q ' /open/r.git.*auth=yes' "$F/log" && fail "a credential leaked"

# What a git that was taken over could say to whom.
cat >"$TMP/git" <<END
#!/bin/sh
for word; do
	case \$word in
	fetch) perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0);
	    connect(S, sockaddr_in(1, INADDR_LOOPBACK)); print "fetch: \$!\n"'
		;;
	checkout) perl -e 'socket(S, 2, 1, 0); print "checkout: has one\n"'
		echo "checkout: \$?"
		;;
	esac >>"$TMP/tried"
done
exec git "\$@"
END
chmod 755 "$TMP/git"
job "$TMP/n1" op=provision kind=git repo="$URL/open/r.git" git="$TMP/git"
ok "a git with a wrapper"
abi=$(python3 -c 'import ctypes
print(ctypes.CDLL(None).syscall(444, None, 0, 1))')
if [ "$abi" -ge 4 ]; then
	grep -q '^fetch: Permission denied$' "$TMP/tried" &&
	    pass "connects to the forge's port only" ||
	    fail "another port: $(cat "$TMP/tried")"
fi
grep -q '^checkout: 159$' "$TMP/tried" &&
    pass "one that works on the tree dies of a socket" ||
    fail "a socket: $(cat "$TMP/tried")"

# The size limit.
cd "$TMP/src" || exit 1
head -c 3000000 /dev/urandom >big; git add -A; git commit -q -m big
git push -q "$F/open/r.git" main; cd "$SRC" || exit 1
job "$TMP/w6" op=provision kind=git repo="$URL/open/r.git" size_limit_mb=2
refused "a tree over its limit" 'limit of 2 MiB'
[ -z "$(ls -A "$TMP/w6")" ] && pass "is removed" || fail "left files"

# The credential.
job "$TMP/p1" op=provision kind=git repo="$URL/closed/secret.git"
refused "a closed repository without a credential" 'fetch failed'
job "$TMP/p2" op=provision kind=git repo="$URL/closed/secret.git" \
    password="$TOKEN" ref="$HEAD"
ok "and with it"
job "$TMP/p3" op=provision kind=git repo="$URL/closed/other.git" \
    password="$TOKEN"
refused "the credential is not good for another repository" 'fetch failed'
cat "$TMP/res" "$TMP/say" | grep -q "$TOKEN" && fail "the token is told"
job "$TMP/p4" op=provision kind=git repo="$URL/closed/secret.git" \
    password=wrong-sentinel-1234
refused "a wrong one" 'fetch failed'

# Who looks at the processes meanwhile sees no token.
mkdir "$F/slow"
python3 - "$TMP" "$TOKEN" >"$TMP/watch" <<'PY' &
import os, sys, time
tmp, token = sys.argv[1], sys.argv[2].encode()
seen = set()
end = time.time() + 6
while time.time() < end and not os.path.exists(tmp + "/watched"):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            command = open("/proc/%s/cmdline" % pid, "rb").read()
            if b"git" not in command or b"gitjob.py" in command \
                    or b"forge.py" in command:
                continue
            seen.add(b"git" in command)
            for name in ("cmdline", "environ"):
                if token in open("/proc/%s/%s" % (pid, name), "rb").read():
                    print("token in", name, "of", command)
        except OSError:
            pass
print("looked at git" if seen else "saw nothing")
PY
watch=$!
for i in 1 2 3 4; do
	rm -rf "$TMP/p2"
	job "$TMP/p2" op=provision kind=git repo="$URL/closed/secret.git" \
	    password="$TOKEN" ref="$HEAD"
done
touch "$TMP/watched"
wait $watch
grep -q 'looked at git' "$TMP/watch" && ! grep -q token "$TMP/watch" &&
    pass "no argument and no environment has the token" || {
	fail "process table"
	note "$(sort -u "$TMP/watch" | head -n 5)"
}

# Work goes back by push.
echo new >"$TMP/p2/new"; echo more >>"$TMP/p2/a"
job "$TMP/p2" op=return mode=push repo="$URL/closed/secret.git" \
    password="$TOKEN" branch=cloop/t1 base="$HEAD" message="the work"
ok "a push"
[ "$(res pushed)$(res commits)$(res files_changed)" = 112 ] &&
    pass "is counted" || fail "counts: $(cat "$TMP/res")"
G="git -C $F/closed/secret.git"
[ "$($G rev-parse cloop/t1)" = "$(res head)" ] &&
    [ "$($G show cloop/t1:new)" = new ] &&
    [ "$($G log -1 --format='%an <%ae> %s' cloop/t1)" = \
    "cloop <cloop@localhost> the work" ] &&
    pass "and has arrived" || fail "the branch differs"
job "$TMP/p2" op=return mode=push repo="$URL/closed/other.git" \
    password="$TOKEN" branch=cloop/t1 base="$HEAD"
refused "a push elsewhere" 'push failed'
grep -rqs --exclude=tokens --exclude=watch "$TOKEN" "$TMP" && {
	fail "the token is on disk"
	note "$(grep -rls "$TOKEN" "$TMP" | head -n 5)"
} || pass "the token is nowhere on disk (BC-61)"

# A base from the forge, a branch on top of it from the hub.
cd "$TMP/src" || exit 1
git checkout -q -b cloop/t2 "$HEAD"; echo s >shipped; git add -A
git commit -q -m shipped; TIP=$(git rev-parse HEAD)
git bundle create -q "$TMP/b" "$HEAD..cloop/t2"; cd "$SRC" || exit 1
LEN=$(wc -c <"$TMP/b") SUM=$(sha256sum "$TMP/b" | cut -c1-64)
job "$TMP/g1" op=provision kind=git repo="$URL/open/r.git" ref="$HEAD" \
    branch=cloop/t2 head="$TIP" bytes="$LEN" sha256="$SUM" file="$TMP/b" \
    hide_cloop=1
ok "a shipped branch on the forge's commit"
[ "$(git -C "$TMP/g1" symbolic-ref --short HEAD)" = cloop/t2 ] &&
    [ -e "$TMP/g1/shipped" ] && pass "is checked out" || fail "is not there"
job "$TMP/g2" op=provision kind=git repo="$URL/open/r.git" ref="$HEAD" \
    branch=cloop/t2 head="$HEAD" hide_cloop=1
ok "a branch that is the commit itself"
job "$TMP/g3" op=provision kind=git repo="$URL/open/r.git" ref="$HEAD" \
    branch=cloop/t2 head="$TIP" bytes="$LEN" sha256="${SUM%?}x" file="$TMP/b"
refused "another digest" SHA-256

# Stopped from outside, and by the clock.
kill -STOP $FORGE
job "$TMP/c1" op=provision kind=git repo="$URL/open/r.git" cancel=0.5
refused "a signal cancels the fetch" 'cancelled by a signal'
job "$TMP/c2" op=provision kind=git repo="$URL/open/r.git" timeout_s=1
refused "time is limited" 'not done within'
kill -CONT $FORGE
[ -z "$(ls -A "$TMP/c1" "$TMP/c2" | grep -v :)" ] &&
    pass "and nothing is left" || fail "left files"
kill $FORGE
