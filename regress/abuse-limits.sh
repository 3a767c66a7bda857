tid="MaxPending, MaxPerSource, PerSourcePenalty, at the bound and past it"
# From several addresses of both families.
trees=one
# Its penalties are seconds.
alone=yes
. "$SRC/regress/abuse/netns.inc"

# `max' is less than four times `auth'.
penalty="PerSourcePenalty auth:3s protocol:5s crash:5s max:6s"

abuse_hub 1 "$penalty" "TrustedProxy $NET4.9" "MaxPending 12" \
    "MaxPerSource 4"
sed -i 's/^NetWorkers 2/NetWorkers 1/' "$TMP/cloopd.conf"
e2e_stop "$hub_pid"
e2e_start_hub
abuse_run limits bounds
e2e_stop "$hub_pid"

sed -i -e 's/^NetWorkers 1/NetWorkers 2/' -e 's/^MaxP.*//' "$TMP/cloopd.conf"
e2e_start_hub
abuse_run limits crash
e2e_stop "$hub_pid"

# 160 descriptors for a worker: 64 of them are for running workloads.
sed -i 's/^NetWorkers 2/NetWorkers 1/' "$TMP/cloopd.conf"
E2E_HUB_IN="$E2E_HUB_IN prlimit --nofile=160:160"
e2e_start_hub
cloop-enroll -s "$TMP/run/cloopd.sock" mint --name spare --json |
    grep -o 'clet1\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[0-9a-f]*' | head -n 1 \
    >"$TMP/tokens"
abuse_run limits reserve
