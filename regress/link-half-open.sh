tid="a half-open link is found by both sides within 2.5 beats"
# BC-16, 01 §5.8: nft drops one direction of a live connection.
trees=one

[ "$(id -u)" = 0 ] || skip "needs root for network namespaces"
for tool in ip nft nsenter; do
	command -v $tool >/dev/null || skip "no $tool"
done
ip netns add cloop-probe-h 2>/dev/null || skip "no network namespaces here"
ip netns exec cloop-probe-h nft add table inet cut 2>/dev/null && probe=yes
ip netns del cloop-probe-h
[ "${probe:-}" = yes ] || skip "no nftables in a network namespace here"

python3 "$SRC/regress/torture/halfopen.py" "$BUILD" >"$TMP/out" 2>"$TMP/err"
while read -r verdict text; do
	case $verdict in
	ok) pass "$text" ;;
	no) fail "$text" ;;
	esac
done <"$TMP/out"
[ "$(grep -c '^ok\|^no' "$TMP/out")" = 6 ] || {
	fail "not all of it ran"
	note "$(tail -n 20 "$TMP/err")"
}
