# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Every manual is clean mdoc and has its sections in this order, with three
# examples at least; every installed program has one.
tid="manuals are lint-clean"
trees=one

order="NAME SYNOPSIS DESCRIPTION PRIVILEGE_SEPARATION FILES EXIT_STATUS"
order="$order EXAMPLES SEE_ALSO"

# sections PAGE: what is wrong with its sections.
sections()
{
	sed -n 's/^\.Sh //p' "$1" | tr ' ' _ >"$TMP/have"
	for s in $order; do
		grep -x "$s" "$TMP/have"
	done >"$TMP/want"
	cmp -s "$TMP/have" "$TMP/want" ||
	    echo "sections are not in the order $order"
	for s in $order; do
		case $1:$s in
		*:PRIVILEGE_*|*.7:SYNOPSIS|*.7:FILES|*.7:EXIT_STATUS)
			continue ;;
		esac
		grep -qx "$s" "$TMP/have" || echo "section $s is missing"
	done
	[ "$(sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$1" |
	    grep -c '^\.Bd\|^\.Dl')" -ge 3 ] ||
	    echo "there are fewer than three examples"
}

command -v mandoc >/dev/null || skip "mandoc is not installed"
for page in man/*.[1-9]; do
	[ -e "$page" ] || skip "no manual yet"
	name=$(basename "$page")
	# A .Dd of today or a reference to a page of another package is fine.
	mandoc -T lint -W style "$page" 2>&1 |
	    grep -v 'referenced manual not found\|outdated mandoc.db' >"$TMP/lint"
	sections "$page" >>"$TMP/lint"
	if [ -s "$TMP/lint" ]; then
		fail "$name"
		note "$(head -n 15 "$TMP/lint")"
	else
		pass "$name"
	fi
done

# References among our own pages lead somewhere.
sed -n 's/^\.Xr \(cloop[a-z.-]*\) \([1-9]\).*/\1.\2/p' man/*.[1-9] | sort -u |
while read -r name; do
	[ -e "man/$name" ] || echo "$name"
done >"$TMP/lost"
[ ! -s "$TMP/lost" ] && pass "every reference to a page of ours exists" ||
    fail "pages that do not exist: $(tr '\n' ' ' <"$TMP/lost")"

for p in $(sed -n 's/^S\?BIN_PROGS = //p' Makefile); do
	[ -e "man/$p.8" ] && pass "$p has a manual" || fail "$p has no manual"
done
