# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A message with a descriptor reaches a process that has no number left for it:
# MSG_CTRUNC is the receiver's shortage and not a violation by the sender.
tid="no descriptor left in the receiver"
trees=one
. "$SRC/regress/attacks/attack.inc"

run "the sender has not broken a rule" "$(attack_tool full)"
