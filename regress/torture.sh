tid="100 cuts: no byte lost or doubled, one start, nothing left over"
# 00 §3.2, §5; 01 §10; 05 §14, §15.  Once: it has a build of its own, with
# points at which a process ends.
trees=one

[ "$(id -u)" = 0 ] || skip "needs root for network namespaces"
for tool in ip nft tc nsenter; do
	command -v $tool >/dev/null || skip "no $tool"
done
ip netns add cloop-probe 2>/dev/null || skip "no network namespaces here"
ip netns exec cloop-probe nft add table inet cut 2>/dev/null && probe=yes
ip netns del cloop-probe
[ "${probe:-}" = yes ] || skip "no nftables in a network namespace here"
hooks=${CLOOP_HOOKS_BUILD:-$BUILD/hooks}
[ -x "$hooks/cloopd" ] || skip "$hooks is not built (make check-build)"

# Seeds of failures that were found, and how much of each.
while read -r seed cuts what; do
	case $seed in ''|'#'*) continue ;; esac
	run "seed $seed: $what" python3 "$SRC/regress/torture/torture.py" \
	    --seed "$seed" --cuts "$cuts" "$hooks"
done <"$SRC/regress/torture/seeds"
run "${CLOOP_CUTS:-100} cuts with a new seed" \
    python3 "$SRC/regress/torture/torture.py" --cuts "${CLOOP_CUTS:-100}" \
    "$hooks"
note "$(grep seed "$TMP/run.out")"
