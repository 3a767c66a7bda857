# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# The samples in etc/ show each keyword commented out with its default, and
# the manuals have each keyword once, in alphabetical order, with its default.
tid="samples and manuals agree with the programs"
trees=one

# keywords FILE: of the entries of a configuration manual.
keywords()
{
	awk '
	/^\.Bl / { depth++ }
	/^\.El/ { depth-- }
	depth == 1 && /^\.It Cm / && $3 != "Include" { print $3 }' "$1"
}

# entry FILE KEYWORD: the text of one entry, on one line.
entry()
{
	awk -v want="$2" '
	/^\.Bl / { depth++ }
	/^\.El/ { depth-- }
	depth == 1 && /^\.It / { on = $3 == want }
	depth == 0 { on = 0 }
	on { sub(/^\.[A-Z][a-z] /, ""); printf "%s ", $0 }' "$1"
}

same()
{
	if diff "$2" "$3" >"$TMP/diff"; then
		pass "$1"
	else
		fail "$1"
		note "$(cat "$TMP/diff")"
	fi
}

# check_pair PROGRAM NAME
check_pair()
{
	prog=$BUILD/$1 sample=etc/$2 manual=man/$2.5 name=$2
	: >"$TMP/empty.conf"
	HOME=/root "$prog" -T -f "$TMP/empty.conf" >"$TMP/defaults" ||
	    fatal "$1 -T fails on an empty file"
	sed -n 's/^#\([A-Z][A-Za-z0-9]* \)/\1/p' "$sample" >"$TMP/open.conf"
	run "$name: uncommented, it is right" "$prog" -t -f "$TMP/open.conf"
	sort "$TMP/defaults" >"$TMP/want"
	sort "$TMP/open.conf" >"$TMP/have"
	same "$name: every keyword of -T with its default, and no other" \
	    "$TMP/want" "$TMP/have"
	"$prog" -T -f "$TMP/open.conf" >"$TMP/again" 2>&1
	same "$name: -T of it is -T of nothing" "$TMP/defaults" "$TMP/again"
	"$prog" -T -f "$TMP/again" >"$TMP/third" 2>&1
	same "$name: -T parses to itself" "$TMP/again" "$TMP/third"
	grep -v '^#\|^$' "$sample" >"$TMP/active"
	[ ! -s "$TMP/active" ] && pass "$name: nothing in it is active" ||
	    fail "$name: active lines: $(cat "$TMP/active")"

	cut -d' ' -f1 "$TMP/defaults" | sort -u >"$TMP/want"
	keywords "$manual" >"$TMP/order"
	sort "$TMP/order" >"$TMP/have"
	same "$name(5): an entry for each keyword, and no other" \
	    "$TMP/want" "$TMP/have"
	sort -f "$TMP/order" >"$TMP/sorted"
	same "$name(5): in alphabetical order" "$TMP/sorted" "$TMP/order"
	while read -r keyword value; do
		text=$(entry "$manual" "$keyword")
		case $text in
		*"default is "*"$value"*) ;;
		*) echo "$keyword: default $value is not in: $text" ;;
		esac
	done <"$TMP/defaults" >"$TMP/bad"
	[ ! -s "$TMP/bad" ] && pass "$name(5): every entry has the default" ||
	    { fail "$name(5): defaults differ"; note "$(cat "$TMP/bad")"; }
}

[ "$(id -u)" = 0 ] || skip "the defaults are those of root"
umask 077
check_pair cloopd cloopd.conf
check_pair cloop-agentd cloop-agentd.conf
