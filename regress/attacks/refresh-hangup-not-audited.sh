# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# An operator refreshes a lease and hangs up before the answer: the new value
# goes to the device, so there is a row of the audit.
tid="a refresh whose operator hangs up"
trees=one
. "$SRC/regress/attacks/attack.inc"

audited()
{
	ctl --json audit | grep -o '"action":"[^"]*"' | grep -c renew
}
# Output says the new value backwards: else it would be redacted.
delivered()
{
	ctl logs "$(e2e_handle w)" 2>/dev/null |
	    grep -q "$(echo second-secret-value | rev)"
}
lease()
{
	ctl lease ls | grep -o 'lease_[0-9a-f]*' | head -n 1
}

e2e_hub
e2e_agent edge-1
attack_secret kube kubeconfig 'apiVersion: v1
# first-secret-value
'
ctl run --on edge-1 --detach --secret kube --name w -- \
    sh -c 'for i in $(seq 60); do tail -n 1 "$KUBECONFIG" | rev; sleep 1
	done' >/dev/null || fatal "it does not start"
wait_for 20 sh -c "cloopctl -s '$TMP/run/cloopd.sock' lease ls |
    grep -q lease_" || fatal "no lease"
lease=$(lease)
printf 'apiVersion: v1\n# second-secret-value\n' >"$TMP/second"
chmod 600 "$TMP/second"
ctl secret put --kind kubeconfig --file "$TMP/second" kube >/dev/null
note "rows before: $(audited)"
attack_points python3 - "$lease" <<'END'
from wire import *

o = Operator()
o.send("CTL_LEASE_REFRESH", 2, sys.argv[1])
o.sock.close()
END
if wait_for 10 delivered; then
	run "it was delivered and audited" test "$(audited)" -gt 0
else
	pass "it was not delivered"
fi
ctl lease refresh "$lease" >/dev/null
run "one that waits is audited" test "$(audited)" -gt 0
