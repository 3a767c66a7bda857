# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A tree from a forge over TLS: what a device does for run --git, from the
# start of the job to the line that names its HEAD, beside git clone of the
# same repository.  The same git, the same server, on one machine.
. "$SRC/regress/bench/lib.sh"

FILES=${FILES:-4000}

metric tree s lower "clone over TLS, $FILES files, 32 MiB"
goal tree git 0.8
say "ours checks every object (transfer.fsckObjects), git clone does not."

have git && have openssl || bench_skip "git and openssl are needed"
version git "$(git --version)"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t
export GIT_COMMITTER_EMAIL=t@x

mkdir -p "$TMP/forge/open"
git init -q -b main "$TMP/src"
python3 - "$TMP/src" "$FILES" <<'PY'
import os, random, sys
top, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(1)
for i in range(count):
    d = "%s/d%d" % (top, i % 64)
    os.makedirs(d, exist_ok=True)
    with open("%s/f%d" % (d, i), "wb") as f:
        f.write(b"".join(b"line %d\n" % rng.getrandbits(60)
                         for _ in range(150)))
        f.write(rng.randbytes(4800))
PY
git -C "$TMP/src" add -A
git -C "$TMP/src" commit -q -m tree
git clone -q --bare "$TMP/src" "$TMP/forge/open/r.git"
git -C "$TMP/forge/open/r.git" repack -q -a -d
printf '[safe]\n\tdirectory = *\n' >"$TMP/forge/config"
F=$TMP/forge
cd "$SRC" || exit 1
. "$SRC/regress/fixtures/forge.inc"
url=$URL/open/r.git
GIT_SSL_CAINFO=$TMP/crt
export GIT_SSL_CAINFO
e2e_hub
e2e_agent edge-1

for round in 0 $(rounds); do
	python3 "$SRC/regress/bench/watch.py" "$TMP/edge-1.log" \
	    'event=job-start program=cloop-git' "$TMP/edge-1.log" \
	    'event=workspace ' >"$TMP/took" &
	watch=$!
	wait_for 10 grep -q ready "$TMP/took"
	ctl -q run --on edge-1 --workdir "w$round" --git "$url" -- true \
	    >"$TMP/out" 2>&1 || fatal "run: $(cat "$TMP/out")"
	wait $watch || fatal "no tree"
	begin=$(now)
	git clone -q "$url" "$TMP/c$round"
	took=$(calc "$(now) - $begin")
	# The first of each warms the caches.
	if [ "$round" != 0 ]; then
		sample tree ours "$(tail -n 1 "$TMP/took")"
		sample tree git "$took"
	fi
	rm -rf "$TMP/c$round" "$TMP/edge-1/work/w$round"
done
