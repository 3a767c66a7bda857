# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# 08 section 1: make install honours DESTDIR and prefix, and running it
# again changes nothing.
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
for file in usr/bin/cloopctl usr/sbin/cloopd usr/sbin/cloop-agentd \
    usr/libexec/cloop/cloopd-net usr/lib/sysusers.d/cloop.conf \
    usr/lib/tmpfiles.d/cloop.conf usr/lib/systemd/system/cloopd.service \
    etc/cloop/cloopd.conf; do
	name=$(basename "$file")
	[ -e "$BUILD/$name" ] || [ -e "etc/$name" ] || continue
	[ -s "$TMP/d/$file" ] || fail "$file is missing"
done
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
