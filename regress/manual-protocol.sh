# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Style 3.10, 3.14: the frame catalogue and the state tables of
# cloop-protocol(7) are those of the sources.
tid="cloop-protocol(7) says what the tables say"
trees=one

page=man/cloop-protocol.7

same()
{
	if diff "$2" "$3" >"$TMP/diff"; then
		pass "$1: $(wc -l <"$2") lines"
	else
		fail "$1: < sources, > manual"
		note "$(cat "$TMP/diff")"
	fi
}

# frames: "name direction version handle" of net/frame.h.
tr -d '\n\\\\' <net/frame.h | sed 's/X(/\n&/g' |
    sed -n 's/^X([A-Z_]*, "\([a-z_]*\)", *\([A-Z0-9]*\), *\([0-9]*\),[[:space:]]*\([01]\),.*/\1 \2 \3 \4/p' |
    sed 's/ A2H / A>H /; s/ H2A / H>A /; s/ BOTH / both /; s/ 1$/ handle/; s/ 0$/ -/' \
    >"$TMP/want"
sed -n 's/^\([a-z_]*\)  *\(A>H\|H>A\|both\)  *\([0-9]*\)  *\(handle\|-\) .*/\1 \2 \3 \4/p' \
    "$page" >"$TMP/have"
[ "$(wc -l <"$TMP/want")" -eq 39 ] ||
    fail "net/frame.h: $(wc -l <"$TMP/want") frames were found, not 39"
same "frames" "$TMP/want" "$TMP/have"

# table FILE STATE EVENT NEXT: the rows of a table as "STATE EVENT NEXT".
table()
{
	awk -v s="$2" -v e="$3" -v n="$4" '
	match($0, "^\t\\[" s "[A-Z]+\\] = \\{$") {
		state = substr($0, 3 + length(s)); sub(/\].*/, "", state)
	}
	match($0, "^\t\t\\[" e "[A-Z]+\\] = ") {
		event = substr($0, 4 + length(e)); sub(/\].*/, "", event)
		if (!match($0, n "[A-Z]+"))
			next
		after = substr($0, RSTART, RLENGTH)
		sub(".*[^A-Z]", "", after)
		print state, event, after
	}' "$1"
}

table net/hub_session.c HST_ HE_ '[{] HST_' >"$TMP/want"
table agent/fetch_action.c FS_ FE_ ', ' >>"$TMP/want"
sed -n 's/^\([A-Z]*\)  *\([A-Z]*\)  *\([A-Z]*\)$/\1 \2 \3/p' "$page" \
    >"$TMP/have"
same "states and events" "$TMP/want" "$TMP/have"
