tid="a wall clock that is set matters to no deadline"
# Once: it preloads a clock of its own (regress/hooks/wallclock.c) into the
# programs of build/hooks.
trees=one
. "$SRC/regress/torture/rig.inc"

rig_needs
rig_hooks
rig_run clock.py "$hooks" 8
