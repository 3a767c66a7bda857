# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# The rules that a machine can check.
tid="the sources keep the house rules"
trees=one

find common store sandbox net priv agent regress -name '*.[ch]' \
    ! -path 'regress/fixtures/*' -o -name '*.def' | sort >"$TMP/files"

# Calls in code: lines of a comment begin with " *".
calls()
{
	xargs grep -HnE "\\b($1)[[:space:]]*\\(" | grep -Ev '^[^:]*:[0-9]*:([[:space:]]| )*(/\*|\*)'
}

# check TEXT: $TMP/list holds the violations.
check()
{
	if [ -s "$TMP/list" ]; then
		fail "$1: $(wc -l <"$TMP/list")"
		note "$(head -n 20 "$TMP/list")"
	else
		pass "$1"
	fi
}

# Width is counted in characters with tabs at 8.
LC_ALL=C xargs -a "$TMP/files" awk '
{
	if (length($0) <= 80 && $0 !~ /\t/)
		next
	line = $0; gsub(/[\200-\277]/, "", line)
	col = 0; n = length(line)
	for (i = 1; i <= n; i++)
		col += substr(line, i, 1) == "\t" ? 8 - col % 8 : 1
	if (col > 80)
		print FILENAME ":" FNR ": " col " columns"
}' >"$TMP/list"
check "no line is wider than 80 columns"

xargs -a "$TMP/files" grep -Hn '[[:space:]]$' >"$TMP/list"
check "no white space at the end of a line"
xargs -a "$TMP/files" grep -HnE '^ {8}' >"$TMP/list"
check "tabs indent"
xargs -a "$TMP/files" grep -HnE '^[[:space:]]*//' >"$TMP/list"
check "no // comments"
xargs -a "$TMP/files" grep -HnE 'return \([^()]*\);$' >"$TMP/list"
check "return without parentheses"
xargs -a "$TMP/files" awk 'FNR == 1 { want[FILENAME] }
FNR <= 4 && /SPDX-License-Identifier: ISC/ { delete want[FILENAME] }
END { for (f in want) print f }' >"$TMP/list"
check "every file begins with its licence"
banned='strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|strtok|alloca|system'
banned="$banned|popen|mktemp|tmpnam|rand|srand|usleep"
grep -v '^regress/' "$TMP/files" | calls "$banned" >"$TMP/list"
check "no forbidden calls"
grep '\.c$' "$TMP/files" | grep -v '^regress/' | xargs wc -l |
    awk '$2 != "total" && $1 > 700' >"$TMP/list"
check "no file is longer than 700 lines"
wc -l configure.ac | awk '$1 > 250' >"$TMP/list"
check "configure.ac has at most 250 lines"

# Libraries write debug lines only and do not end the process.
grep -E '^(common|store/db|net/codec)/' "$TMP/files" |
    grep -Ev '^common/base/(log|xmem|idgen)\.' |
    calls 'log_(error|warn|info)|fatal|exit|_exit|abort' >"$TMP/list"
check "libraries neither log nor exit"

# BC-96: a signal handler counts or sets a flag; the rest is the loop's.
for handler in $(grep -v '^regress/' "$TMP/files" | xargs grep -h \
    'sa_handler = \|sa_sigaction = ' | sed 's/.*= \([a-zA-Z_]*\).*/\1/' |
    grep -v '^SIG_' | sort -u); do
	grep '\.c$' "$TMP/files" | xargs awk -v h="$handler" '
	index($0, h "(int") == 1 { inside = 1; next }
	inside && /^}/ { inside = 0; found = 1 }
	inside && !/^{$|^\t\(void\)[a-z]+;$|^\t[a-z_]+(\+\+| = 1);$/ {
		print FILENAME ":" FNR ": " $0
	}
	END { if (!found) print h " is not found" }'
done >"$TMP/list"
check "signal handlers only set a flag (BC-96)"
grep -v '^regress/' "$TMP/files" | calls 'signal' |
    grep -v 'SIG_IGN\|SIG_DFL' >"$TMP/list"
check "no handler is set by signal(3)"

# regress/bug-cases: what it names is there, and no case is missing.
peer=${CLOOP_PEER:-../shared/peer}
grep -v '^#\|^$' regress/bug-cases |
    while IFS='	' read -r case file text; do
	case $file in
	fault|source|later|none)
		[ -n "$text" ] || echo "$case: $file, and no text" ;;
	peer/*)
		[ ! -d "$peer" ] || grep -qF -- "$text" \
		    "$peer/t/${file#peer/}" 2>/dev/null ||
		    echo "$case: $file has no \"$text\"" ;;
	*)
		[ -n "$text" ] && grep -qF -- "$text" "$file" 2>/dev/null ||
		    echo "$case: $file has no \"$text\"" ;;
	esac
done >"$TMP/list"
check "regress/bug-cases names what there is"
awk -F'\t' '/^#/ || /^$/ { next }
{ seen[$1] }
$1 !~ /^BC-[0-9]+$/ || NF != 3 { print FILENAME ":" FNR ": " $0 }
$2 == "fault" { fault[$1]++; next }
$2 == "source" { source[$1] += $3 ~ /^https:[^ ]+( https:[^ ]+)*$/; next }
{ shown[$1] }
END {
	for (c in seen)
		if (fault[c] != 1 || source[c] != 1 || !(c in shown))
			print c ": not one fault, one source, and what shows it"
}' regress/bug-cases >"$TMP/list"
check "each case of regress/bug-cases has a fault, a source and a test"

# All that is tracked, but for the fuzzers' input.
{ git ls-files -z 2>/dev/null || find . -type f ! -path './build/*' \
    ! -path './.git/*' -print0; } | grep -zv '^\(\./\)\?regress/corpus/' |
    xargs -0 grep -lIsZ '' >"$TMP/tracked"

cases=../shared/bug-cases
{
	xargs -0 -a "$TMP/tracked" grep -ohE 'BC-[0-9]+'
	[ ! -e "$cases.md" ] ||
	    sed -n 's/^\*\*\(BC-[0-9]*\) .*/\1/p' "$cases.md"
} | sort -u | while read -r case; do
	grep -q "^$case	" regress/bug-cases || echo "$case"
done >"$TMP/list"
check "regress/bug-cases knows every case"

# A section sign (s) is an RFC's, named on its line or at the end of the one
# before it.  A chapter from 00 to 08 is always one of something private.
LC_ALL=C xargs -0 -a "$TMP/tracked" awk -v s="$(printf '\302\247')" '
BEGIN {
	bad = "(^|[^0-9])0[0-8],? ?" s "|(^|[^0-9])0[0-8]-[a-z-]+[.]md"
	bad = bad "|(^|[^0-9])0[0-8] ([Ss]ection|[Aa]ppendix)"
	bad = bad "|(^|[^0-9.:-])0[0-8] [0-9]+[.][0-9]"
	bad = bad "|[Ss]tyle (section )?[0-9]"
	bad = bad "|(anchors|bug-cases|style|testing)[.]md|peer/READ[M]E"
}
FNR == 1 { rfc = 0 }
index($0, s) && !rfc && !/RFC [0-9]/ || $0 ~ bad {
	print FILENAME ":" FNR ": " $0
}
{ rfc = /RFC [0-9]+[,;]?$/ }' >"$TMP/list"
check "nothing cites a document that is not in the tree"

tool=../shared/tools/house-check
if [ -e "$tool" ]; then
	python3 "$tool" . >"$TMP/house" 2>&1 && r=0 || r=$?
	if [ "$r" -ne 0 ]; then
		fail "house-check"
		note "$(grep -v '^warning' "$TMP/house")"
	else
		pass "house-check: $(tail -n 1 "$TMP/house")"
	fi
fi
