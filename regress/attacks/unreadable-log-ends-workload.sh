# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# The hub cannot open a running workload's log at the moment (EACCES of an
# administrator's mistake, ENOSPC, EIO): the device is not told to end it.
tid="a log that cannot be opened for a moment"
trees=one
. "$SRC/regress/attacks/attack.inc"

"$(attack_tool spec)" >"$TMP/spec.bin"
e2e_hub
e2e_tokens 2
attack_points python3 - <<'END'
import glob

from device import *

load_tokens()
h = Host()
h.serve()
if run_on([h]) != 1:
    raise SystemExit("no workload")
h.hang_up()
time.sleep(1)
log, = glob.glob(TMP + "/hub/**/handles/*/log", recursive=True)
os.rename(log, log + ".away")
os.mkdir(log)                   # root passes permissions, not this
h.dial()
h.resume()
try:
    verdicts = h.verdicts()
except (OSError, EOFError):
    verdicts = []               # come back later: fine
note("verdicts: %s" % verdicts)
point(all(v["action"] != "terminate" for v in verdicts),
      "it is not ended", verdicts)
END
