# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A unit test stands in the folder of what it is about and links what a
# program there may.  A fuzz target says here where its decoder is, when it
# is not in common/.

IN_fuzz_frame = net/codec
IN_fuzz_frame_form = net/codec
IN_fuzz_http1_request = net/codec
IN_fuzz_http1_response = net/codec
IN_fuzz_json = net/codec
IN_fuzz_ws = net/codec
IN_fuzz_ws_wslay = net/codec
IN_fuzz_route = net/hub
IN_fuzz_keyfile = store/db
IN_fuzz_token = store/db
IN_fuzz_monitor = priv/monitor
IN_fuzz_credential = agent/monitor
IN_fuzz_vault = agent/monitor
IN_fuzz_devlease = agent/monitor

# The differential target does nothing where libwslay is not installed.
ifneq ($(wildcard /usr/include/wslay/wslay.h),)
LIBS_fuzz_ws_wslay = -lwslay
endif
