# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A bundle on its way from the device to the hub: from the end of the git
# job that made it to the whole file at the hub, its digest compared and on
# disk; beside scp of a file of that length.
. "$SRC/regress/bench/lib.sh"

MIB=${MIB:-64}

metric bundle MB/s higher "a bundle of $MIB MiB, device to hub, one machine"
goal bundle scp 0.6
say "scp: aes128-gcm; its connection is part of it.  limit: cp of the file."

have git || bench_skip "git is needed"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t
export GIT_COMMITTER_EMAIL=t@x

git init -q -b main "$TMP/repo"
cd "$TMP/repo" || exit 1
echo base >README
git add -A; git commit -q -m base
git checkout -q -b cloop/task; git commit -q --allow-empty -m task
git checkout -q main
cd "$SRC" || exit 1
e2e_hub
e2e_agent edge-1
with_scp=
have scp && peer_ssh "Subsystem sftp internal-sftp" && with_scp=yes

# rate SECONDS
rate()
{
	calc "$(stat -c %s "$bundle") / 1e6 / ($1)"
}

for round in 0 $(rounds); do
	python3 "$SRC/regress/bench/watch.py" "$TMP/edge-1.log" \
	    'event=write-back .*outcome=returned' "$TMP/hub.log" \
	    'event=result ' >"$TMP/took" &
	watch=$!
	wait_for 10 grep -q ready "$TMP/took"
	ctl -q run --on edge-1 --name "b$round" --write-back bundle \
	    --workdir "w$round" --max-bundle 128M --branch-bundle \
	    "$TMP/repo:cloop/task" -- sh -c \
	    "head -c $((MIB * 1048576)) /dev/urandom >blob" \
	    >"$TMP/out" 2>&1 || fatal "run: $(cat "$TMP/out")"
	wait $watch || fatal "no bundle came"
	h=$(e2e_handle "b$round")
	mkdir "$TMP/saved"
	ctl -q result -o "$TMP/saved" -- "$h" >"$TMP/out" 2>&1 ||
	    fatal "result: $(cat "$TMP/out")"
	bundle=$TMP/saved/$h.bundle
	if [ "$round" = 0 ]; then
		cat "$bundle" >/dev/null	# the first warms caches
		rm -rf "$TMP/saved" "$TMP/edge-1/work/w$round"
		continue
	fi
	sample bundle ours "$(rate "$(tail -n 1 "$TMP/took")")"
	if [ -n "$with_scp" ]; then
		begin=$(now)
		# shellcheck disable=SC2086
		scp -q $ssh_options -P "$ssh_port" \
		    -c aes128-gcm@openssh.com "$bundle" "root@127.0.0.1:$TMP/ssh/y" ||
		    fatal "scp failed"
		sample bundle scp "$(rate "$(now) - $begin")"
	fi
	begin=$(now)
	cp "$bundle" "$TMP/ssh/z"
	sample bundle limit "$(rate "$(now) - $begin")"
	rm -rf "$TMP/saved" "$TMP/ssh/y" "$TMP/ssh/z" \
	    "$TMP/edge-1/work/w$round"
done
