tid="a half-open link is found by both sides within 2.5 beats"
# BC-16: nft drops one direction of a live connection.
trees=one
. "$SRC/regress/torture/rig.inc"

rig_needs
rig_run halfopen.py "$BUILD" 6
