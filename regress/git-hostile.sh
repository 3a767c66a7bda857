# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Trees and repositories that a workload prepared: nothing of them runs when
# cloop-git works on them, outside of any sandbox here (BC-60, BC-63,
# BC-65).
tid="nothing that a tree brings along is run"
[ -x "$BUILD/cloop-git" ] || skip "cloop-git is not built"
command -v git >/dev/null || skip "git is needed"

export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t
export GIT_COMMITTER_EMAIL=t@x
MARK=$TMP/mark
RUN="touch $MARK"

job()
{
	python3 regress/fixtures/gitjob.py "$BUILD/cloop-git" "$@" \
	    >"$TMP/res" 2>"$TMP/say"
}
res()
{
	sed -n "s/^$1=//p" "$TMP/res"
}
# tree: a fresh repository with a commit in $T.
tree()
{
	T=$TMP/t$((n += 1))
	git init -q -b main "$T"
	echo one >"$T/a"
	git -C "$T" add -A
	git -C "$T" commit -q -m one
	BASE=$(git -C "$T" rev-parse HEAD)
	echo changed >"$T/a"
}
# back TEXT [ok|failed|skipped]
back()
{
	job "$T" op=return mode=bundle branch=cloop/x base="$BASE" \
	    file="$TMP/b$n"
	if [ -e "$MARK" ]; then
		fail "$1: something ran"
		rm -f "$MARK"
	elif [ "$(res outcome)" != "${2:-ok}" ]; then
		fail "$1: $(res outcome)"
		note "$(cat "$TMP/res" "$TMP/say")"
	else
		pass "$1"
	fi
}
n=0

for key in core.fsmonitor core.sshCommand core.pager core.editor \
    diff.external gpg.program core.askPass uploadpack.packObjectsHook \
    core.gitProxy core.alternateRefsCommand sequence.editor \
    gpg.ssh.program trailer.x.command merge.x.driver; do
	tree
	git -C "$T" config "$key" "$RUN"
	git -C "$T" config commit.gpgSign true
	back "$key"
done
for filter in clean smudge process; do
	tree
	git -C "$T" config filter.evil.$filter "$RUN; cat"
	git -C "$T" config filter.evil.required true
	echo '* filter=evil diff=evil merge=evil' >"$T/.gitattributes"
	git -C "$T" config diff.evil.textconv "$RUN; cat"
	git -C "$T" config diff.evil.command "$RUN"
	back "filter.$filter of .gitattributes"
done
tree
printf '[filter "evil"]\n\tclean = "%s; cat"\n[core]\n\tfsmonitor = %s\n' \
    "$RUN" "$RUN" >"$T/evil"
git -C "$T" config include.path ../evil
echo '* filter=evil' >"$T/.git/info/attributes"
back "include.path, info/attributes"
tree
mkdir "$T/h"
for hook in applypatch-msg commit-msg fsmonitor-watchman post-checkout \
    post-commit post-index-change pre-commit pre-push prepare-commit-msg \
    reference-transaction update post-rewrite pre-auto-gc; do
	printf '#!/bin/sh\n%s\n' "$RUN" >"$T/.git/hooks/$hook"
	chmod +x "$T/.git/hooks/$hook"
	cp "$T/.git/hooks/$hook" "$T/h/"
done
back "every hook (BC-65)"
tree
cp -r "$TMP/t$((n - 1))/h" "$T/h"
git -C "$T" config core.hooksPath h
back "core.hooksPath"
tree
git -C "$T" config extensions.worktreeConfig true
printf '[core]\n\tfsmonitor = %s\n' "$RUN" >"$T/.git/config.worktree"
back "config.worktree"
tree
printf '[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch%% %s\n' \
    "$MARK" >"$T/.gitmodules"
git init -q "$T/s"
git -C "$T/s" config core.fsmonitor "$RUN"
(cd "$T/s" && echo x >x && git add x && git -c core.fsmonitor=false \
    commit -q -m x) 2>/dev/null
rm -f "$MARK"
back "a submodule with ext:: and a repository of its own"
tree
git -C "$T" config url."ext::sh -c '$RUN'".insteadOf https://
git -C "$T" config alias.add "!$RUN"
git -C "$T" config alias.bundle "!$RUN"
back "url.insteadOf, aliases"

tree
mkdir "$TMP/out"; echo secret >"$TMP/out/file"
echo "$TMP/out" >"$T/.git/objects/info/alternates"
back "alternates"
[ -e "$T/.git/objects/info/alternates" ] && fail "alternates are left"
tree
rm -rf "$T/.git"; echo "gitdir: $TMP/t1/.git" >"$T/.git"
back "a .git that is a file" failed
tree
mv "$T/.git" "$TMP/moved"; ln -s "$TMP/moved" "$T/.git"
back "a .git that is a link" failed
tree
mv "$T/.git/objects" "$TMP/objects$n"; ln -s "$TMP/objects$n" "$T/.git/objects"
back "objects that are a link" failed
tree
ln -sf /etc/passwd "$T/.git/HEAD"
back "a HEAD that is a link" failed
tree
echo "ref: ../../../../etc/passwd" >"$T/.git/HEAD"
back "a HEAD that leads out" failed
tree
rm -rf "$T/.git"; mkdir "$T/.git"
back "a .git that is empty" failed
tree
mkdir "$T/.GIT" "$T/.git/x"; printf '[core]\n\tfsmonitor = %s\n' "$RUN" \
    >"$T/.GIT/config"
echo ref >"$T/.GIT/HEAD"
back ".GIT in another case" failed
tree
ln -s /etc/shadow "$T/link"
back "a link out of the tree comes back as a link"
git -C "$T" show "$(res head):link" | grep -q '^/etc/shadow$' ||
    fail "its contents came back"
tree
tr=$(printf '100644 blob %s\t.git/hooks/post-checkout\n' \
    "$(git -C "$T" hash-object -w a)" | git -C "$T" mktree 2>/dev/null)
c=$(git -C "$T" commit-tree -p HEAD -m x "${tr:-$BASE^{tree}}")
git -C "$T" update-ref HEAD "$c"
back "a commit with .git/hooks in its tree" "$([ -n "$tr" ] &&
    echo failed || echo ok)"

# A directory that is used again: its configuration is not believed.
git init -q --bare "$TMP/evil.git"
tree
git -C "$T" remote add origin https://localhost:1/r.git
git -C "$T" config core.fsmonitor "$RUN"
git -C "$T" config core.sshCommand "$RUN"
git -C "$T" config remote.origin.uploadpack "$RUN"
git -C "$T" config url."$TMP/evil.git".insteadOf https://localhost:1/r.git
git -C "$T" config url."ext::sh -c '$RUN' #".insteadOf https://
git -C "$T" config credential.helper "!$RUN"
git -C "$T" config http.proxy http://127.0.0.1:9
job "$T" op=provision kind=git repo=https://localhost:1/r.git
if [ -e "$MARK" ]; then
	fail "a used directory: something ran"
elif res error | grep -q 'localhost.*port 1'; then
	pass "a used directory: the forge itself is asked"
else
	fail "a used directory: $(cat "$TMP/res")"
fi

# Shipped bundles that are none, and one whose tree has .git in it.
tree
for bad in garbage empty; do
	D=$TMP/d$bad; mkdir "$D"
	[ $bad = garbage ] && head -c 5000 /dev/urandom >"$TMP/bad" ||
	    printf x >"$TMP/bad"
	job "$D" op=provision kind=bundle branch=cloop/x head="$BASE" \
	    bytes="$(wc -c <"$TMP/bad")" file="$TMP/bad" \
	    sha256="$(sha256sum "$TMP/bad" | cut -c1-64)"
	[ "$(res outcome)" = failed ] && [ -z "$(ls -A "$D")" ] &&
	    pass "a bundle that is $bad" || fail "a bundle that is $bad"
done
[ ! -e "$MARK" ] && pass "and nothing ran" || fail "something ran"
