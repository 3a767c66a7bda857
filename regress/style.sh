# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Style 3.4, 3.5, 3.7: what a machine can see.
tid="the sources keep the house rules"
trees=one

find common store sandbox net priv agent regress -name '*.[ch]' \
    ! -path 'regress/fixtures/*' | sort >"$TMP/files"

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

# What libraries must not do (3.6): only debug lines, no end of the process.
grep -E '^(common|store|net/(ws|http1|json|frame|tlsio))' "$TMP/files" |
    grep -Ev '^common/(log|xmem|idgen)\.|^store/(cloop_|keygen|enroll)' |
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
grep -v '^#' regress/bug-cases | while IFS='	' read -r case file text; do
	case $file in
	later|none)
		[ -n "$text" ] || echo "$case: $file, and no reason" ;;
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
[ ! -e ../shared/bug-cases.md ] ||
    sed -n 's/^\*\*\(BC-[0-9]*\) .*/\1/p' ../shared/bug-cases.md |
    while read -r case; do
	grep -q "^$case	" regress/bug-cases || echo "$case"
done >"$TMP/list"
check "regress/bug-cases knows every case"

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
