# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# The shipped units under a real systemd: what make install puts there
# starts, enrolls, runs work and outlives a restart with every directive on.
# The machine is this one's file system below an overlay, booted by
# systemd-nspawn; inside, boot-units.inside speaks TAP.
tid="the units under systemd"
trees=one

[ "$(id -u)" = 0 ] || skip "needs root"
command -v systemd-nspawn >/dev/null || skip "systemd-nspawn is not here"
[ -x /lib/systemd/systemd ] || skip "systemd is not here"

machine=$TMP/machine
mkdir "$machine" "$TMP/out"
mount -t tmpfs -o size=512m none "$machine" ||
    skip "cannot mount a tmpfs"
booted=
boot_finish()
{
	boot_status=$?
	trap - EXIT
	[ -z "$booted" ] || kill -KILL "$booted" 2>/dev/null
	umount "$machine/root" 2>/dev/null || umount -l "$machine/root"
	umount "$machine" 2>/dev/null || umount -l "$machine"
	(exit "$boot_status")
	finish
}
trap boot_finish EXIT
mkdir "$machine/up" "$machine/work" "$machine/root"
mount -t overlay overlay -o \
    "lowerdir=/,upperdir=$machine/up,workdir=$machine/work" \
    "$machine/root" || skip "cannot mount an overlay"

root=$machine/root
# What another cloop of this machine left must not be found.
rm -rf "$root/etc/cloop" "$root/var/lib/cloop"
make -C "$SRC" -s B="${BUILD#"$SRC"/}" install DESTDIR="$root" prefix=/usr \
    sysconfdir=/etc >"$TMP/install" 2>&1 ||
    { note "$(cat "$TMP/install")"; fatal "make install"; }
cp regress/boot-units.inside "$root/usr/local/bin/boot-units"
units=$root/etc/systemd/system
cat >"$units/boot-units.service" <<UNIT
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/sh /usr/local/bin/boot-units
StandardOutput=file:/out/tap
StandardError=file:/out/errors
TimeoutStartSec=120
ExecStopPost=/bin/sh -c 'journalctl -b -o short >/out/journal 2>&1'
ExecStopPost=/bin/systemctl --no-block poweroff
UNIT
mkdir -p "$units/multi-user.target.wants"
ln -s ../boot-units.service "$units/multi-user.target.wants/"
# Nothing of this machine's own services.
for unit in "$units"/multi-user.target.wants/*; do
	[ "${unit##*/}" = boot-units.service ] || rm -f "$unit"
done

# nspawn's own filter would hide them.
landlock="landlock_create_ruleset landlock_add_rule landlock_restrict_self"
systemd-nspawn -q -D "$root" --boot --machine="cloop-boot-$$" \
    --register=no --keep-unit --private-network --capability=all \
    --system-call-filter="$landlock" \
    --bind="$TMP/out:/out" systemd.unit=multi-user.target \
    </dev/null >"$TMP/console" 2>&1 &
booted=$!
boot_over() { ! kill -0 "$booted" 2>/dev/null; }
wait_for "${CLOOP_BOOT_WAIT:-150}" boot_over ||
    fail "the machine does not power off"
if [ ! -s "$TMP/out/tap" ]; then
	note "$(tail -n 20 "$TMP/console")"
	[ -e "$TMP/out/errors" ] && fatal "nothing was tested"
	skip "systemd does not boot here"
fi
booted=
while IFS= read -r line; do
	case $line in
	"ok "*)	pass "${line#ok }";;
	"not ok "*) fail "${line#not ok }";;
	"end") over=yes;;
	*)	note "$line";;
	esac
done <"$TMP/out/tap"
[ -n "$over" ] || fail "it did not come to its end"
[ "$failures" -eq 0 ] || {
	note "$(grep -v audit "$TMP/out/journal" | grep -E 'cloop|boot-units' |
	    tail -n "${CLOOP_LOG_LINES:-40}")"
	note "$(tail -n 10 "$TMP/out/errors")"
}
