# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# 08 section 7: every manual is clean mdoc and has the sections of style
# 3.15; every installed program has one.
tid="manuals are lint-clean"
trees=one

command -v mandoc >/dev/null || skip "mandoc is not installed"
for page in man/*.[1-9]; do
	[ -e "$page" ] || skip "no manual yet"
	name=$(basename "$page")
	# A .Dd of today or a reference to a page of another package is fine.
	mandoc -T lint -W style "$page" 2>&1 |
	    grep -v 'referenced manual not found' >"$TMP/lint"
	for section in NAME SYNOPSIS DESCRIPTION; do
		case $name:$section in *.7:SYNOPSIS) continue ;; esac
		grep -q "^\\.Sh $section\$" "$page" ||
		    echo "section $section is missing" >>"$TMP/lint"
	done
	if [ -s "$TMP/lint" ]; then
		fail "$name"
		note "$(head -n 15 "$TMP/lint")"
	else
		pass "$name"
	fi
done
