tid="failing disks and full spools lose nothing that was acknowledged"
# BC-01, BC-07, BC-09; 08 §8; 00 §5.  Once: it has a build of its own, into
# which faults are injected (regress/hooks/faultio.c).
trees=one

[ "$(id -u)" = 0 ] || skip "needs root for network namespaces"
for tool in ip nft nsenter; do
	command -v $tool >/dev/null || skip "no $tool"
done
ip netns add cloop-probe-f 2>/dev/null || skip "no network namespaces here"
ip netns del cloop-probe-f
hooks=${CLOOP_HOOKS_BUILD:-$BUILD/hooks}
[ -x "$hooks/cloopd" ] || skip "$hooks is not built (make check-build)"

python3 "$SRC/regress/torture/faults.py" "$hooks" >"$TMP/out" 2>"$TMP/err"
while read -r verdict text; do
	case $verdict in
	ok) pass "$text" ;;
	no) fail "$text" ;;
	esac
done <"$TMP/out"
[ "$(grep -c '^ok\|^no' "$TMP/out")" -ge 16 ] || {
	fail "not all cases ran"
	note "$(tail -n 20 "$TMP/err")"
}
