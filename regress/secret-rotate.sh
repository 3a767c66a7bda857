# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A rotation of the key-encryption key that was killed after any of its
# steps.  The states are put together from those before and after a whole
# one: its steps are single renames and one transaction.
tid="a rotation of the key-encryption key goes on where it was killed"

. "$SRC/regress/e2e-lib.sh"

value=value-$$-0123456789
e2e_hub
e2e_agent edge
printf 'TOK=%s\n' "$value" | ctl -q secret put tok
ctl grant add tok --to any >/dev/null

# opens: the secret can be lent.
opens()
{
	ctl run --on edge --secret tok -- sh -c 'echo "${#TOK}"' \
	    >"$TMP/len" 2>"$TMP/err"
	[ "$(cat "$TMP/len")" = "${#value}" ]
}

rotate()
{
	cloop-keygen -r kek -o KeyDirectory="$TMP/keys" \
	    -o StateDirectory="$TMP/hub" >"$TMP/rotate" 2>&1
}

run "the secret is lent" opens
rotate && fail "it rotates under a running hub" ||
    pass "not while the hub runs: $(tail -n 1 "$TMP/rotate")"
e2e_stop "$hub_pid"
cp -a "$TMP/hub" "$TMP/hub.before"
cp -a "$TMP/keys" "$TMP/keys.before"
run "a rotation" rotate
cmp -s "$TMP/keys/kek.key" "$TMP/keys.before/kek.key" &&
    fail "the key is the old one" || pass "makes another key"
cp -a "$TMP/hub" "$TMP/hub.after"
cp -a "$TMP/keys/kek.key" "$TMP/new.key"

# state STORE: the old key, the next one beside it, and that store.
state()
{
	rm -rf "$TMP/hub" "$TMP/keys"
	cp -a "$1" "$TMP/hub"
	cp -a "$TMP/keys.before" "$TMP/keys"
	cp -a "$TMP/new.key" "$TMP/keys/kek.key.new"
}

for step in before after; do
	state "$TMP/hub.$step"
	e2e_start_hub
	wait_for 30 is_online edge || fail "the device does not come back"
	run "killed $step the rewrapping: a hub opens everything" opens
	e2e_stop "$hub_pid"
	rotate && grep -q 'unfinished rotation goes on' "$TMP/rotate" &&
	    pass "it goes on" || fail "$(cat "$TMP/rotate")"
	[ ! -e "$TMP/keys/kek.key.new" ] &&
	    cmp -s "$TMP/keys/kek.key" "$TMP/new.key" &&
	    pass "with the key it had begun with" || fail "$(ls "$TMP/keys")"
	e2e_start_hub
	wait_for 30 is_online edge || fail "the device does not come back"
	run "and the secret is lent" opens
	run "the audit chain is whole" ctl audit verify
	e2e_stop "$hub_pid"
done

cp -a "$TMP/keys.before/kek.key" "$TMP/keys/kek.key"
e2e_start_hub
wait_for 30 is_online edge || fail "the device does not come back"
opens && fail "the old key still opens it" ||
    pass "the old key opens nothing any more"
