# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# From asking for a confined program to its first byte and until all of it is
# reaped: cloop-shim as cloop-agentd runs it, bubblewrap, runc, a bare fork.
. "$SRC/regress/bench/lib.sh"

tool=$(bench_tool sandbox) || exit 1
COUNT=${COUNT:-30}
for m in first:ms:lower:"start to first byte, median" \
    one:ms:lower:"start to reaped, median" \
    eight:starts/s:higher:"8 at once, start to reaped"; do
	IFS=: read -r name unit better text <<-END
		$m
	END
	metric "$name" "$unit" "$better" "$text"
done
for name in one eight; do
	goal "$name" bwrap 1
	goal "$name" runc 4
done
say "bwrap --unshare-all with a read-only root, /dev, /proc and an empty /tmp;
runc run of a bundle of the same directories.  Ours adds to namespaces and
mounts a user of its own, Landlock, seccomp, a cgroup, redaction, the spool
and the exit record.  The limit is fork and exec of the same program."

bundle=$TMP/bundle
make_bundle()
{
	mkdir -p "$bundle/rootfs/usr" "$bundle/rootfs/tmp" || return 1
	for d in bin sbin lib lib64; do
		[ ! -L "/$d" ] || ln -s "usr/$d" "$bundle/rootfs/$d"
	done
	(cd "$bundle" && runc spec) || return 1
	python3 - "$bundle/config.json" <<-'END'
		import json, sys
		path = sys.argv[1]
		d = json.load(open(path))
		d["process"]["terminal"] = False
		d["process"]["args"] = ["/bin/echo", "hi"]
		d["mounts"].append({"destination": "/usr", "source": "/usr",
		                    "type": "bind", "options": ["rbind", "ro"]})
		json.dump(d, open(path, "w"))
	END
	runc --root "$TMP/runc" run -b "$bundle" try | grep -q hi
}

# side SIDE HOW PROGRAM...
side()
{
	side=$1 how=$2
	shift 2
	# shellcheck disable=SC2046
	set -- $("$tool" "$how" "$COUNT" 1 "$@") -- \
	    $("$tool" "$how" $((COUNT / 5 + 1)) 8 "$@")
	sample first "$side" "$1"
	sample one "$side" "$2"
	sample eight "$side" "$7"
}

if have bwrap; then
	version bubblewrap "$(bwrap --version)"
else
	say "bwrap is missing: make deps-bench"
fi
if ! have runc; then
	say "runc is missing: make deps-bench"
elif make_bundle >"$TMP/runc.log" 2>&1; then
	has_runc=yes
	version runc "$(runc --version | head -n 1)"
else
	say "runc cannot run here: $(tail -n 1 "$TMP/runc.log")"
fi
for round in $(rounds); do
	side ours shim /bin/echo hi
	have bwrap && side bwrap exec "$(command -v bwrap)" --unshare-all \
	    --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp /bin/echo hi
	[ -z "$has_runc" ] || side runc exec "$(command -v runc)" \
	    --root "$TMP/runc" run -b "$bundle" %d
	side limit exec /bin/echo hi
done
