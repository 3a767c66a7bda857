# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# make install honours DESTDIR and prefix, and running it again changes
# nothing; the units carry the sandboxing that matches the programs.
tid="make install"
trees=one

# listing DIR: path, mode and content of everything below.
listing()
{
	(cd "$1" && find . -printf '%p %m %l\n' | sort &&
	    find . -type f -exec sha256sum {} + | sort -k 2)
}

tree=${BUILD#"$SRC"/}
run "into an empty DESTDIR" \
    make -C "$SRC" -s B="$tree" install DESTDIR="$TMP/d"
[ "$failures" -eq 0 ] || exit 1
cd "$SRC" || exit 1
# wanted MODE FILE...: they are there, with that mode and something in them.
wanted()
{
	mode=$1
	shift
	for file in "$@"; do
		[ -s "$TMP/d/$file" ] || { fail "$file is missing"; continue; }
		have=$(stat -c %a "$TMP/d/$file")
		[ "$have" = "$mode" ] || fail "$file has mode $have, not $mode"
	done
}
programs()
{
	sed -e ':a' -e '/\\$/N' -e 's/\\\n//' -e ta Makefile |
	    sed -n "s/^$1_PROGS = //p" | xargs
}
wanted 755 $(programs BIN | sed 's,[^ ]*,usr/bin/&,g') \
    $(programs SBIN | sed 's,[^ ]*,usr/sbin/&,g') \
    $(programs LIBEXEC | sed 's,[^ ]*,usr/libexec/cloop/&,g')
for page in man/*.[1-9]; do
	wanted 644 "usr/share/man/man${page##*.}/${page#man/}"
done
for unit in etc/*.service etc/*.socket; do
	wanted 644 "usr/lib/systemd/system/${unit#etc/}"
done
wanted 644 usr/lib/sysusers.d/cloop.conf usr/lib/tmpfiles.d/cloop.conf \
    etc/cloop/cloopd.conf etc/cloop/cloop-agentd.conf \
    usr/share/cloop/enforce-nft.conf \
    usr/share/bash-completion/completions/cloopctl \
    usr/share/zsh/vendor-completions/_cloopctl \
    usr/share/fish/vendor_completions.d/cloopctl.fish
[ "$failures" -eq 0 ] && pass "$(find "$TMP/d" -type f | wc -l) files, as wanted"
bash -n "$TMP/d/usr/share/bash-completion/completions/cloopctl" &&
    pass "the completion is a script" || fail "the completion is no script"
[ "$(stat -c %a "$TMP/d/etc/cloop/keys")" = 700 ] ||
    fail "the key directory is open"
listing "$TMP/d" >"$TMP/first"

echo '# mine' >>"$TMP/d/etc/cloop/cloopd.conf"
run "again" make -C "$SRC" -s B="$tree" install DESTDIR="$TMP/d"
grep -q '^# mine' "$TMP/d/etc/cloop/cloopd.conf" &&
    pass "the administrator's configuration stays" ||
    fail "the administrator's configuration was overwritten"
sed -i '/^# mine/d' "$TMP/d/etc/cloop/cloopd.conf"
listing "$TMP/d" | cmp -s - "$TMP/first" &&
    pass "the second time changes nothing" ||
    fail "the second time changed something"
[ -z "$(find "$TMP/d" -perm /022 ! -type l)" ] ||
    fail "something is writable by others"

run "with another prefix" make -C "$SRC" -s B="$tree" install \
    DESTDIR="$TMP/p" sbindir=/opt/cloop/sbin bindir=/opt/cloop/bin
[ -x "$TMP/p/opt/cloop/sbin/cloopd" ] && grep -q \
    '^ExecStart=/opt/cloop/sbin/cloopd ' \
    "$TMP/p/usr/lib/systemd/system/cloopd.service" &&
    pass "units name the installed paths" ||
    fail "units name other paths than were installed"

# capabilities WHO: of the table in self_caps.c.
capabilities()
{
	sed -n "s/^.{ W_$1, \(CAP_[A-Z_]*\),.*/\1/p" sandbox/self/self_caps.c |
	    sort -u
}
for pair in cloopd:HUB cloop-agentd:DEVICE cloop-shimd:SHIMS; do
	unit=$TMP/d/usr/lib/systemd/system/${pair%:*}.service
	capabilities "${pair#*:}" >"$TMP/want"
	sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr ' ' '\n' | sort \
	    >"$TMP/have"
	cmp -s "$TMP/want" "$TMP/have" && [ -s "$TMP/want" ] &&
	    pass "${pair%:*}.service: the capabilities of self_caps.c" ||
	    { fail "${pair%:*}.service: other capabilities than self_caps.c"
	    note "$(diff "$TMP/want" "$TMP/have")"; }
done

[ "$(sed -n 's/^CapabilityBoundingSet=//p' etc/enforce-nft.conf)" = \
    "$(capabilities FENCE)" ] &&
    pass "enforce-nft.conf: the capability of self_caps.c" ||
    fail "enforce-nft.conf: another capability than self_caps.c"

command -v systemd-analyze >/dev/null || skip "systemd-analyze is not here"
# The services need them beside them.
cp "$TMP/d/usr/lib/systemd/system/cloopd.socket" \
    "$TMP/d/usr/lib/systemd/system/cloop-shimd.socket" "$TMP/"
# The bounds only fall; what is left is explained in the units.
for pair in cloopd:13 cloop-agentd:30 cloop-shimd:38; do
	name=${pair%:*}.service
	# Programs are looked up: those in DESTDIR, not on this machine.
	sed "s,=/usr/sbin/,=$TMP/d/usr/sbin/,
	    s,=/usr/libexec/,=$TMP/d/usr/libexec/," \
	    "$TMP/d/usr/lib/systemd/system/$name" >"$TMP/$name"
	SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no \
	    "$TMP/$name" >"$TMP/verify" 2>&1
	grep -v '/bin/kill is not executable' "$TMP/verify" |
	    grep "$name" >"$TMP/wrong"
	[ ! -s "$TMP/wrong" ] && pass "$name passes systemd-analyze verify" ||
	    { fail "$name: systemd-analyze verify"; note "$(cat "$TMP/wrong")"; }
	level=$(systemd-analyze security --offline=true "$TMP/$name" \
	    2>/dev/null | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')
	[ -n "$level" ] && [ "$(echo "$level" | tr -d .)" -le "${pair#*:}" ] &&
	    pass "$name: exposure $level" ||
	    fail "$name: exposure ${level:-unknown}, more than ${pair#*:}/10"
done
