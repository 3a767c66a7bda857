# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Who may include whose headers, and which library headers: a row per folder.
# A folder is one privilege; its own headers go by bare name, all others by
# their path from the root of the tree, and NAME_int.h stays in its folder.
tid="includes cross the tree only where the tables allow it"
trees=one

# folder		folders whose headers it may use, and single headers
cat >"$TMP/may" <<'END'
common/base		common/base
common/msg		common/base common/msg common/model
common/json		common/base common/msg common/json
common/model		common/base common/msg common/json common/model
common/output		common/base common/msg common/output
common/client		common
store/db		common store/db
store/keygen		common store/db store/keygen
store/enroll		common store/db store/enroll
sandbox/self		common sandbox/self
sandbox/box		common sandbox/self sandbox/box
sandbox/rules		common sandbox/rules
sandbox/shim		common sandbox/self sandbox/box sandbox/shim
sandbox/shimd		common sandbox/self sandbox/box sandbox/shimd
net/codec		common net/codec
net/conn		common net/codec net/conn
net/hub			common sandbox/self net/codec net/conn net/hub
priv/monitor		common store/db sandbox/self sandbox/box sandbox/rules priv/monitor
priv/fence		common sandbox/self sandbox/rules priv/fence
priv/key		common sandbox/self priv/key
priv/ctl		common sandbox/self priv/ctl
priv/cloopctl		common sandbox/self priv/cloopctl
agent/monitor		common sandbox/self sandbox/box agent/monitor
agent/fetch		common sandbox/self net/codec net/conn agent/fetch
agent/job		common sandbox/self sandbox/box net/codec/json.h net/codec/json_int.h agent/job
END

# library header	folders (or files) that may include it
cat >"$TMP/fence" <<'END'
sqlite3.h		store/db
json-c/			net/codec
zlib.h			agent/job
openssl/ssl.h		net/codec net/hub agent/fetch store/keygen
seccomp.h		sandbox
cap-ng.h		sandbox
event2/			net/conn net/hub priv/monitor priv/key priv/ctl priv/fence agent/monitor agent/fetch net/codec/tlsio common/msg/chan_event.c
END

find common store sandbox net priv agent -name '*.[ch]' | sort >"$TMP/files"
xargs grep -Hn '^[[:space:]]*#[[:space:]]*include' <"$TMP/files" |
    sed 's/:\([0-9]*\):[^<"]*\([<"]\)\([^>"]*\).*/ \1 \2 \3/' >"$TMP/includes"

awk '
# path is below one of the folders, or one of the files, of the list.
function in_any(path, list,	n, a, i) {
	n = split(list, a, " ")
	for (i = 1; i <= n; i++)
		if (path == a[i] || index(path, a[i] "/") == 1 ||
		    index(path, a[i] ".") == 1 || index(path, a[i] "_") == 1)
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
			if (index(inc, h) == 1 && !in_any(file, fence[h]))
				print place ": <" inc "> is fenced off"
		next
	}
	folder = file; sub(/\/[^\/]*$/, "", folder)
	if (inc ~ /\.\./)
		print place ": " inc ": name it from the root of the tree"
	else if (inc !~ /\//)
		inc = folder "/" inc
	else if (index(inc, folder "/") == 1)
		print place ": " inc ": the own folder goes by bare name"
	if (!(folder in may))
		print place ": " folder " has no row here"
	else if (!in_any(inc, may[folder]))
		print place ": " file " may not include " inc
	else if (inc ~ /_int\.h$/ && index(inc, folder "/") != 1)
		print place ": " inc " is private to its folder"
}' "$TMP/may" "$TMP/fence" "$TMP/includes" >"$TMP/wrong"

# The Makefile links by the same table.
sed -n 's/^USES_\([^ ]*\) = .*/\1/p' Makefile | sort >"$TMP/linked"
awk '{ print $1 }' "$TMP/may" | sort >"$TMP/folders"
find common store sandbox net priv agent -name '*.c' | sed 's,/[^/]*$,,' |
    sort -u >"$TMP/there"
for list in linked there; do
	comm -3 "$TMP/folders" "$TMP/$list" |
	    sed "s/^[[:space:]]*/$list: not alike: /" >>"$TMP/wrong"
done

[ -s "$TMP/includes" ] || fatal "no includes found: the test is broken"
if [ -s "$TMP/wrong" ]; then
	fail "$(wc -l <"$TMP/wrong") includes"
	note "$(head -n 40 "$TMP/wrong")"
fi
