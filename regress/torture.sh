tid="100 cuts: no byte lost or doubled, one start, nothing left over"
# Once: it has a build of its own, with points at which a process ends.
trees=one
. "$SRC/regress/torture/rig.inc"

rig_needs tc
rig_hooks

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
