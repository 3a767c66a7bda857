# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# AuditSyslog (cloopd.conf(5)): each row of the chain as a datagram on
# /dev/log, a private one here, with no value of a secret in it.
tid="audit rows are copied to syslog"

. "$SRC/regress/e2e-lib.sh"

unshare -m true 2>/dev/null || skip "no mount namespaces here"

# A /dev of our own with a log in it; its socket is in $TMP/syslog.
mkdir "$TMP/dev" "$TMP/syslog"
ln -s "$TMP/syslog/socket" "$TMP/dev/log"
cat >"$TMP/in-dev" <<END
mount --make-rprivate / || exit 1
for d in null zero full random urandom shm; do
	if [ -d /dev/\$d ]; then mkdir -p '$TMP/dev/'\$d
	else : >>'$TMP/dev/'\$d; fi
	mount --rbind /dev/\$d '$TMP/dev/'\$d || exit 1
done
mount --rbind '$TMP/dev' /dev || exit 1
exec "\$@"
END
E2E_HUB_IN="unshare -m sh $TMP/in-dev"

# Writes what comes, a line each.
cat >"$TMP/syslogd.py" <<'END'
import socket, sys
path, out = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(path)
with open(out, "ab", 0) as f:
    while True:
        f.write(s.recv(65536) + b"\n")
END
start_syslogd()
{
	rm -f "$TMP/syslog/socket"
	python3 "$TMP/syslogd.py" "$TMP/syslog/socket" "$TMP/messages" \
	    2>"$TMP/syslogd.err" &
	syslogd=$!
	track "$syslogd"
	wait_up 30 "no syslog" "$TMP/syslogd.err" "$syslogd" \
	    test -S "$TMP/syslog/socket"
}

logged()
{
	grep -q -- "$1" "$TMP/messages"
}

marker=M4rk3r-$$-$(date +%s%N)
start_syslogd
e2e_hub "AuditSyslog yes"
e2e_agent edge
ctl secret put tok >/dev/null <<END
TOK=$marker
END
ctl grant add tok --to any >/dev/null
run "a workload borrows" ctl run --on edge --secret tok -- true
ctl --json audit >"$TMP/audit"
last=$(tail -n 1 "$TMP/audit" | json "d['seq']")
wait_for 30 logged " seq=$last " || fail "row $last did not come"
if python3 - "$TMP/audit" "$TMP/messages" <<'END'
import json, re, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
got = {}
for line in open(sys.argv[2]):
    m = re.match(r"<86>cloopd\[(\d+)\]: audit seq=(\d+) action=(\S+) "
                 r"actor=(\S+) decision=(\S+) subject=(\S+) "
                 r"hash=([0-9a-f]{16}) detail=(\{.*\})$", line)
    assert m, line
    assert m[2] not in got, line
    got[m[2]] = m
assert len(rows) >= 5 and len(got) == len(rows), (len(rows), len(got))
for row in rows:
    m = got[str(row["seq"])]
    assert m[3] == row["action"] and row["hash"].startswith(m[7]), row
    assert m[4].strip('"') == (row["actor"] or ""), row
    assert json.loads(m[8]) == row["detail"], row
END
then
	pass "every row since the hub's first start, once, as it is in the chain"
else
	fail "rows and datagrams differ"
	note "$(cat "$TMP/messages")"
	note "$(cat "$TMP/audit")"
fi
for action in secret.mint secret.grant secret.lease; do
	logged "action=$action " && pass "$action is there" ||
	    fail "no $action"
done
logged "$marker" && fail "the secret is in syslog" ||
    pass "the value is not in any of them"

# Away: counted, not waited for.  Back, at the same place: it goes on.
kill "$syslogd"
wait_for 30 e2e_is_gone "$syslogd"
run "without a syslogd the hub works" ctl grant add tok --to any
wait_for 30 grep -q 'event=audit-syslog.*lost=' "$TMP/hub.log" &&
    pass "and says what was lost" || fail "nothing of it in the log"
start_syslogd
run "with it again" ctl grant add tok --to executor:agent_x --ttl 60s
wait_for 30 logged 'executor:agent_x' && pass "rows come again" ||
    fail "none after syslogd is back"

# Nobody reads it: the hub does not wait.
kill -STOP "$syslogd"
i=0
while [ $i -lt 40 ]; do
	ctl grant add tok --to any >/dev/null || break
	i=$((i + 1))
done
[ $i = 40 ] && pass "a syslogd that hangs holds nothing up" ||
    fail "the hub hangs with it"
kill -CONT "$syslogd"

# The first row after a start is not lost.
wait_for 30 logged 'executor:agent_x'
e2e_stop "$hub_pid"
e2e_start_hub
ctl grant add tok --to executor:agent_y >/dev/null
wait_for 30 logged 'executor:agent_y' &&
    pass "the first row of a new start comes" || fail "it does not come"
run "the chain is whole" ctl audit verify
