# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# One small command on a device, from the start of the client to its end, and
# 60 at once: cloopctl beside ssh, with a connection of its own and with one
# that is open already.
. "$SRC/regress/bench/lib.sh"

COUNT=${COUNT:-30}
metric p50 ms lower "run -- true, one after the other"
metric p95 ms lower "the same, the slow ones"
metric many ms lower "60 at once, each of them"
goal p50 mux 0.7
goal p50 ssh 8
goal many mux 0.7
goal many ssh 8
say "mux is ssh over a connection that is open; sshd runs the command as it
is, ours in its sandbox, with its output and exit code kept.  The limit is
fork and exec of the same command.  60 and not 100: the hub serves at most 64
operators at once."
have sshd || bench_skip "no sshd: make deps-bench"
version OpenSSH "$(ssh -V 2>&1)"

e2e_hub
e2e_agent edge-1 "MaxConcurrent 128"

ssh_port=$(e2e_port)
ssh-keygen -q -t ed25519 -N '' -f "$TMP/host" &&
    ssh-keygen -q -t ed25519 -N '' -f "$TMP/user" || fatal "no ssh keys"
cp "$TMP/user.pub" "$TMP/authorized"
chmod 600 "$TMP/authorized"
cat >"$TMP/sshd.conf" <<END
Port $ssh_port
ListenAddress 127.0.0.1
HostKey $TMP/host
AuthorizedKeysFile $TMP/authorized
PidFile $TMP/sshd.pid
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
MaxStartups 200
MaxSessions 200
END
cat >"$TMP/ssh.conf" <<END
Host edge-1
	HostName 127.0.0.1
	Port $ssh_port
	User root
	IdentityFile $TMP/user
	IdentitiesOnly yes
	StrictHostKeyChecking no
	UserKnownHostsFile $TMP/known
	LogLevel ERROR
END
mkdir -p /run/sshd
"$(command -v sshd)" -D -f "$TMP/sshd.conf" 2>"$TMP/sshd.log" &
track $!
one_ssh() { ssh -F "$TMP/ssh.conf" edge-1 true; }
wait_for 10 one_ssh || fatal "sshd does not answer: $(tail -n 3 \
    "$TMP/sshd.log")"
ssh -F "$TMP/ssh.conf" -M -N -S "$TMP/mux" edge-1 &
track $!
wait_for 10 ssh -F "$TMP/ssh.conf" -S "$TMP/mux" -O check edge-1 ||
    fatal "no multiplexed connection"

# many COMMAND...: 60 at once, ms each.
many()
{
	begin=$(now)
	# shellcheck disable=SC2016
	seq 60 | xargs -P 60 -I{} sh -c '"$@" >/dev/null || exit 255' sh \
	    "$@" || fatal "one of 60 failed: $*"
	calc "($(now) - $begin) * 1e3 / 60"
}

# side SIDE COMMAND...
side()
{
	side=$1
	shift
	each "$COUNT" "$@" >"$TMP/each" || fatal "$side: a command failed"
	read -r p50 p95 mean <"$TMP/each"
	note "$side mean $mean"
	sample p50 "$side" "$p50"
	sample p95 "$side" "$p95"
	sample many "$side" "$(many "$@")"
}

for round in $(rounds); do
	side ours cloopctl -s "$TMP/run/cloopd.sock" run --on edge-1 -- true
	side mux ssh -F "$TMP/ssh.conf" -S "$TMP/mux" edge-1 true
	side ssh ssh -F "$TMP/ssh.conf" edge-1 true
	side limit true
done
