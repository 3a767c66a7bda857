# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Who may include whose headers, and which library headers.  Both tables
# stand here; a row is the longest prefix that fits the file.
tid="includes cross the tree only where the tables allow it"
trees=one

# file prefix	headers it may use (prefixes of paths)
cat >"$TMP/may" <<'END'
common/			common/
store/			common/ store/
sandbox/		common/ sandbox/
net/			common/ net/ sandbox/self.h
net/frame		common/ net/frame net/json
net/json		common/ net/json
net/ws			common/ net/ws
net/http1		common/ net/http1
net/tlsio		common/ net/tlsio net/tlskey
net/tlskey		common/ net/tlskey net/tlsio
priv/			common/ priv/ sandbox/ store/store store/token store/seal
priv/cloopd_ctl		common/ sandbox/self.h priv/ctl_client
priv/ctl_client		common/ sandbox/self.h priv/ctl_client
priv/cloopd_key		common/ sandbox/self.h priv/cloopd_key
priv/cloopctl		common/ priv/cloopctl priv/bundlevet.h priv/gitjob.h
agent/			common/ agent/ sandbox/
agent/agent_fetch	common/ agent/ net/tls net/http1 net/ws net/json net/frame sandbox/self.h
agent/fetch_		common/ agent/ net/tls net/http1 net/ws net/json net/frame sandbox/self.h
sandbox/cloop_shim	common/ sandbox/
END

# library header	files that may include it (prefixes)
cat >"$TMP/fence" <<'END'
sqlite3.h		store/
json-c/			net/json.c net/frame.c
zlib.h			agent/fetch_seed.c
openssl/ssl.h		net/tlsio net/tlskey net/cloopd_net.c agent/agent_fetch.c store/cloop_keygen
seccomp.h		sandbox/
cap-ng.h		sandbox/
event2/			net/ priv/ agent/
END

# Pure codecs and the monitor's tools know nothing of the event loop.
no_loop="net/http1 net/ws net/json net/frame"

find common store sandbox net priv agent -name '*.[ch]' | sort >"$TMP/files"
xargs grep -Hn '^[[:space:]]*#[[:space:]]*include' <"$TMP/files" |
    sed 's/:\([0-9]*\):[^<"]*\([<"]\)\([^>"]*\).*/ \1 \2 \3/' >"$TMP/includes"

awk -v no_loop="$no_loop" '
function starts(s, prefix) { return substr(s, 1, length(prefix)) == prefix }
function any(s, list,	n, a, i) {
	n = split(list, a, " ")
	for (i = 1; i <= n; i++)
		if (starts(s, a[i]))
			return 1
	return 0
}
FILENAME ~ /may$/ {
	key = $1; $1 = ""; may[key] = $0; next
}
FILENAME ~ /fence$/ {
	key = $1; $1 = ""; fence[key] = $0; next
}
{
	file = $1; place = $1 ":" $2; inc = $4
	if ($3 == "<") {
		for (h in fence)
			if (starts(inc, h) && !any(file, fence[h]))
				print place ": <" inc "> is fenced off"
		if (starts(inc, "event2/") && any(file, no_loop))
			print place ": a codec without a loop includes <" inc ">"
		next
	}
	dir = file; sub(/[^\/]*$/, "", dir)
	if (starts(inc, "../"))
		inc = substr(inc, 4)
	else
		inc = dir inc
	best = ""
	for (p in may)
		if (starts(file, p) && length(p) > length(best))
			best = p
	if (!any(inc, may[best]))
		print place ": " file " may not include " inc
	else if (inc ~ /_int\.h$/ && !starts(inc, dir))
		print place ": " inc " is private to its directory"
}' "$TMP/may" "$TMP/fence" "$TMP/includes" >"$TMP/wrong"

[ -s "$TMP/includes" ] || fatal "no includes found: the test is broken"
if [ -s "$TMP/wrong" ]; then
	fail "$(wc -l <"$TMP/wrong") includes"
	note "$(head -n 40 "$TMP/wrong")"
fi
