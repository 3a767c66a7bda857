# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A link that is cut over and over while 200 MiB of kept output cross it:
# nothing that the hub has is sent again, and the first byte after a cut comes
# as soon as ssh brings one of a remote file.
# RESUME_DEVICES=1: all cuts on one link; a device waits a second before each
# connection, so that takes most of an hour.
. "$SRC/regress/bench/lib.sh"

devices=${RESUME_DEVICES:-40} cuts=${RESUME_CUTS:-2000} mib=200
ncuts=5 each_mib=2

metric beyond bytes lower \
    "sent again although the hub had it, $mib MiB, $cuts cuts"
goal_value beyond 0
metric resent ratio lower "all that was sent, per byte of output"
metric first ms lower "first new byte at the operator, from the welcome"
goal first ssh 1
metric dial ms lower "the same from the new TCP connection, TLS included"
goal dial ssh 1

RELAY=$(free_port)
e2e_mint()
{
	cloop-enroll -s "$TMP/run/cloopd.sock" mint --name "$1" \
	    --server "wss://127.0.0.1:$RELAY" \
	    --bundle-file "$TMP/$1.bundle" >"$TMP/mint.out" 2>&1 ||
	    e2e_fatal "no token" "$TMP/mint.out"
}

# ------------------------------------------------------------ ours
e2e_hub "LogLimit 1G" "PerSourcePenalty no" "MaxPerSource 1000"
mkfifo "$TMP/tasks" "$TMP/answers"
python3 "$SRC/regress/bench/resume_link.py" -l "$RELAY" -p "$E2E_PORT" \
    -k "$TMP/keys" -s "$TMP/run/cloopd.sock" -t "$TMP" \
    <"$TMP/tasks" >"$TMP/answers" 2>"$TMP/relay.log" &
relay_pid=$!
track "$relay_pid"
exec 5>"$TMP/tasks" 6<"$TMP/answers"
read -r line <&6 || fatal "the relay does not start: $(cat "$TMP/relay.log")"
for i in $(seq "$devices"); do
	e2e_agent "d$i" "SpoolLimit 1G"
done

# task WORD...: its answer in $line.
task()
{
	echo "$*" >&5
	read -r line <&6 || fatal "task $*: $(cat "$TMP/relay.log")"
}

# first_byte COMMAND...: milliseconds, median of some, until it says one.
first_byte()
{
	python3 - "$ncuts" "$@" <<'END'
import subprocess
import sys
import time
took = []
for _ in range(int(sys.argv[1])):
    began = time.monotonic()
    process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, bufsize=0)
    if not process.stdout.read(1):
        sys.exit("nothing came")
    took.append(time.monotonic() - began)
    process.communicate()
print("%.3f" % (sorted(took)[len(took) // 2] * 1e3))
END
}

file=$TMP/kept
seq 100000000 $((100000000 + mib * 1048576 / 10)) >"$file"
at=$((mib * 1048576 - 65536))
peer=
peer_ssh && peer_ssh_mux && peer=yes ||
    say "No sshd here: $(tail -n 1 "$TMP/ssh/log" 2>/dev/null)"
for round in $(rounds); do
	task first "$each_mib" "$ncuts" "$round"
	# shellcheck disable=SC2086
	set -- $line
	sample dial ours "$1"
	sample first ours "$2"
	if [ "$peer" ]; then
		# shellcheck disable=SC2086
		ms=$(first_byte $ssh_mux tail -c +$at "$file")
		sample first ssh "$ms"
		sample dial ssh "$ms"
	fi
	ms=$(first_byte tail -c +$at "$file")
	sample first limit "$ms"
	sample dial limit "$ms"
done
rm "$file"

task cut "$devices" $((mib / devices)) "$cuts" 1
# shellcheck disable=SC2086
set -- $line
sample beyond ours "$2"
sample resent ours "$(calc "1 + $4 / ($mib * 1048576)")"
say "$1 cuts in $5 s, half of them resets, most inside a frame: $2 bytes" \
    "were sent again although the hub had them; $3 had reached the hub's" \
    "socket only; $4 had left the device and not the cut link."
say "ssh: \`tail -c +N' over a connection that stands; limit: the same" \
    "without ssh.  Ours passes a relay in Python that ends TLS twice."
exec 5>&- 6<&-
