tid="failing disks and full spools lose nothing that was acknowledged"
# BC-01, BC-07, BC-09.  Once: it has a build of its own, into which faults
# are injected (regress/hooks/faultio.c).
trees=one
. "$SRC/regress/torture/rig.inc"

rig_needs
rig_hooks
rig_run faults.py "$hooks" 16
