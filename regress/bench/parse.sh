# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Reading frames on one core: ours with every check, json-c's tokener alone.
. "$SRC/regress/bench/lib.sh"

parse=$(bench_tool parse) || exit 1
metric small messages/s higher "heartbeats and lines of a build"
goal small json-c 2
metric large MB/s higher "log chunks of 32 KiB"
goal large json-c 1
say "The limit is one memchr and one memcpy over the same bytes."
version json-c "$(dpkg-query -W -f '${Version}' libjson-c-dev)"

"$parse" record small "$TMP/small"
"$parse" record large "$TMP/large"
for round in $(rounds); do
	for side in ours json-c limit; do
		sample small "$side" "$(taskset -c 0 "$parse" "$side" \
		    "$TMP/small" 0.5 | cut -d' ' -f1)"
		sample large "$side" "$(taskset -c 0 "$parse" "$side" \
		    "$TMP/large" 0.5 | cut -d' ' -f2)"
	done
done
