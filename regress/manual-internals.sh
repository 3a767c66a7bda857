# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-internals(7) has the catalogue that the processes run by: its section
# is what build/catalogue prints, and the sentences around it name states,
# programs, users and numbers that are in the sources.
tid="cloop-internals(7) says what the sources say"
trees=one

page=man/cloop-internals.7
print=$BUILD/catalogue

[ -x "$print" ] || skip "$print is not built (make catalogue)"

# The section between its two comments.
"$print" -m >"$TMP/want" || fatal "$print -m failed"
sed -n '/^\.\\" catalogue: begin/,/^\.\\" catalogue: end/p' "$page" |
    grep -v '^\.\\" catalogue: ' >"$TMP/have"
rows=$(grep -c '^\.It Sy ' "$TMP/want")
[ "$rows" -eq "$("$print" | grep -c '^[A-Z]')" ] ||
    fail "$print -m prints $rows rows, and without -m another number"
if diff "$TMP/want" "$TMP/have" >"$TMP/diff"; then
	pass "catalogue: $rows rows"
else
	fail "catalogue: < sources, > manual; run make man-catalogue"
	note "$(head -n 30 "$TMP/diff")"
fi

# sources PATTERN: our own lines that match.
sources()
{
	find . \( -name .git -o -path ./regress -o -name 'build*' \) -prune \
	    -o -type f -name '*.[ch]' -print | xargs grep -hE "$1"
}

# states: a list behind a comment "states PREFIX" has an item for each
# enumerator of that prefix.
sed -n 's/^\.\\" states \([A-Z_]*\) \([a-z_]*\)$/\1 \2/p' "$page" \
    >"$TMP/lists"
[ -s "$TMP/lists" ] || fail "no list of states was found"
while read -r prefix enum; do
	sources . | awk -v e="enum $enum {" -v p="$prefix" '
	index($0, e) == 1 { inside = 1 }
	inside {
		line = $0
		gsub(/\/\*.*/, "", line)
		while (match(line, p "[A-Z]+")) {
			print substr(line, RSTART + length(p),
			    RLENGTH - length(p))
			line = substr(line, RSTART + RLENGTH)
		}
	}
	inside && /}/ { exit }' | sort -u >"$TMP/want"
	awk -v c=".\\\\\" states $prefix $enum" '
	$0 == c { inside = 1 }
	inside && /^\.El/ { exit }
	inside && /^\.It Sy / { print $3 }' "$page" | sort -u >"$TMP/have"
	[ -s "$TMP/want" ] || fail "enum $enum has no ${prefix}*"
	if diff "$TMP/want" "$TMP/have" >"$TMP/diff"; then
		pass "states of $enum: $(wc -l <"$TMP/want")"
	else
		fail "states of $enum: < sources, > manual"
		note "$(cat "$TMP/diff")"
	fi
done <"$TMP/lists"

# numbers: `.It NUMBER \" CONSTANT`, or a sentence's line `.\" CONSTANT NUMBER`.
sed -n -e 's/^\.It \([0-9]*\) \\" \([A-Z_0-9]*\)$/\2 \1/p' \
    -e 's/^\.\\" number \([A-Z_0-9]*\) \([0-9]*\)$/\1 \2/p' "$page" \
    >"$TMP/have"
[ -s "$TMP/have" ] || fail "no number was found"
sources '^#define [A-Z_0-9]+ [(]?[0-9]' >"$TMP/defines"
while read -r name number; do
	awk -v n="$name" '$2 == n { print n, $3; exit }' "$TMP/defines"
done <"$TMP/have" >"$TMP/want"
if diff "$TMP/want" "$TMP/have" >"$TMP/diff"; then
	pass "numbers: $(wc -l <"$TMP/have")"
else
	fail "numbers: < sources, > manual"
	note "$(cat "$TMP/diff")"
fi
