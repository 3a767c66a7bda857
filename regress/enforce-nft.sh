tid="enforce nft: the kernel holds off who is penalised"
# cloopd-fence in a network namespace of its own.
trees=one
command -v nft >/dev/null || skip "no nft"
. "$SRC/regress/abuse/netns.inc"
ip netns exec "$NS-h" nft add table inet probe 2>/dev/null ||
    skip "no nftables in a network namespace here"

in_hub()
{
	ip netns exec "$NS-h" "$@"
}
field()
{
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}
no_table()
{
	! in_hub nft list table inet cloopd
}

# One worker: what another one says of an address that has a live session is
# not believed, and this source has one.
ABUSE_WORKERS=1
abuse_hub 1 "PerSourcePenalty auth:6s max:8s enforce nft"
grep -q "event=ready .*enforce=nft" "$TMP/hub.log" &&
    pass "it is said at the start" || fail "the log does not say so"

# The fence has one capability, the monitor does not have it.
fence=
for p in $(e2e_children "$hub_pid"); do
	[ "$(cat "/proc/$p/comm")" = cloopd-fence ] && fence=$p
done
[ -n "$fence" ] || fatal "no cloopd-fence"
for set in CapPrm CapEff CapBnd; do
	[ "$(field "$fence" $set)" = 0000000000001000 ] ||
	    fail "cloopd-fence: $set is $(field "$fence" $set)"
done
[ "$(field "$fence" CapInh)$(field "$fence" CapAmb)" = \
    00000000000000000000000000000000 ] || fail "inherited capabilities"
[ "$(field "$fence" NoNewPrivs)$(field "$fence" Seccomp)" = 12 ] ||
    fail "cloopd-fence is not confined"
[ $((0x$(field "$hub_pid" CapPrm) & 0x1000)) = 0 ] ||
    fail "the monitor keeps CAP_NET_ADMIN"
for fd in /proc/"$fence"/fd/*; do
	case ${fd##*/} in [0-3]) ;; *) fail "descriptor ${fd##*/}" ;; esac
done
[ "$failures" -eq 0 ] && pass "CAP_NET_ADMIN alone, filtered, four descriptors"
in_hub nft list table inet probe >/dev/null &&
    pass "others' tables are left alone" || fail "a table is gone"

abuse_run limits nft

# A fence that ends cannot come back; the hub goes on without.
kill -KILL "$fence"
wait_for 20 grep -q "event=enforce result=off" "$TMP/hub.log" &&
    pass "its end is reported" || fail "nobody says that it ended"
ctl status >/dev/null && pass "the hub goes on" || fail "the hub is gone"
e2e_stop "$hub_pid"

# What a hub left behind is replaced, and taken away at its end.
in_hub nft list table inet cloopd >/dev/null ||
    note "no table was left"
e2e_start_hub
e2e_stop "$hub_pid"
wait_for 20 no_table && pass "SIGTERM takes the table away" ||
    fail "the table stays after SIGTERM"
e2e_start_hub
run "the table is there again" in_hub nft list table inet cloopd
e2e_stop "$hub_pid" KILL
wait_for 20 no_table && pass "so does the end by kill -9" ||
    fail "the table stays after kill -9"

# Without the capability the start fails and says what is missing.
E2E_HUB_IN="$E2E_HUB_IN setpriv --bounding-set -net_admin --inh-caps -net_admin"
$E2E_HUB_IN cloopd -d -f "$TMP/cloopd.conf" >"$TMP/nocap.log" 2>&1
[ $? = 1 ] && grep -q CAP_NET_ADMIN "$TMP/nocap.log" &&
    pass "without CAP_NET_ADMIN it does not start, and says so" || {
	fail "without CAP_NET_ADMIN"
	note "$(cat "$TMP/nocap.log")"
}
