tid="a wall clock that is set matters to no deadline"
# 01 §5.8, §5.10; 04 §6.1; 05 §18.2.  Once: it preloads a clock of its own
# (regress/hooks/wallclock.c) into the programs of build/hooks.
trees=one

[ "$(id -u)" = 0 ] || skip "needs root for network namespaces"
for tool in ip nft nsenter; do
	command -v $tool >/dev/null || skip "no $tool"
done
ip netns add cloop-probe-c 2>/dev/null || skip "no network namespaces here"
ip netns del cloop-probe-c
hooks=${CLOOP_HOOKS_BUILD:-$BUILD/hooks}
[ -x "$hooks/cloopd" ] || skip "$hooks is not built (make check-build)"

python3 "$SRC/regress/torture/clock.py" "$hooks" >"$TMP/out" 2>"$TMP/err"
while read -r verdict text; do
	case $verdict in
	ok) pass "$text" ;;
	no) fail "$text" ;;
	esac
done <"$TMP/out"
[ "$(grep -c '^ok\|^no' "$TMP/out")" -ge 8 ] || {
	fail "not all was looked at"
	note "$(tail -n 20 "$TMP/err")"
}
