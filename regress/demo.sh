#!/bin/sh
# SPDX-License-Identifier: ISC
# make demo: a hub and a device on loopback as their real users, one real
# workload through the whole path, and what it left behind (08 §1).
# DEMO_KEEP=1 keeps it up and says how to talk to it.
set -eu

build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
base=$(mktemp -d /var/lib/cloop-demo.XXXXXX)
chmod 755 "$base"
export CLOOP_LIBEXEC="$build" PATH="$build:$PATH"
hub_pid= agent_pid=

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$(printf '\033[1;36m') dim=$(printf '\033[2m') off=$(printf '\033[0m')
else
	bold= dim= off=
fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$off"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$off"; }

stop() {
	for pid in $agent_pid $hub_pid; do
		kill "$pid" 2>/dev/null || :
	done
	for pid in $agent_pid $hub_pid; do
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$base"
}
trap 'status=$?; trap - EXIT; stop; exit $status' EXIT
trap 'exit 130' INT TERM

die() {
	echo "demo: $*" >&2
	tail -n 5 "$base"/*.log >&2 2>/dev/null || :
	exit 1
}

# wait_for WHAT COMMAND...: at most 15 s.
wait_for() {
	what=$1
	shift
	n=0
	until "$@" >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 150 ] || die "$what did not happen in 15 s"
		sleep 0.1
	done
}

[ "$(id -u)" = 0 ] || { echo "demo: run it as root: the hub needs root" >&2; exit 1; }

# A port nobody listens on.
port=7443
while ss -Hltn "sport = :$port" 2>/dev/null | grep -q .; do
	port=$((port + 1))
done

say "Keys for this demo, in $base"
mkdir -p "$base/keys" "$base/hub" "$base/run" "$base/device" "$base/device-run" "$base/work"
chmod 700 "$base/keys"
cloop-keygen -t tls -n localhost -n 127.0.0.1 -o "KeyDirectory=$base/keys"
cloop-keygen -A -o "KeyDirectory=$base/keys" -o "StateDirectory=$base/hub"

cat >"$base/cloopd.conf" <<EOF
ListenAgents 127.0.0.1:$port
ListenStatus none
ExternalURL https://127.0.0.1:$port
ControlSocket $base/run/cloopd.sock
StateDirectory $base/hub
RuntimeDirectory $base/run
KeyDirectory $base/keys
EOF
cat >"$base/cloop-agentd.conf" <<EOF
StateDirectory $base/device
RuntimeDirectory $base/device-run
CredentialFile $base/device/agent.json
TokenFile $base/bundle
CAFile $base/keys/tls.crt
WorkDirRoot $base/work
EOF
chmod 600 "$base"/*.conf

say "The hub: a root monitor and its unprivileged children"
cloopd -d -f "$base/cloopd.conf" >"$base/cloopd.log" 2>&1 &
hub_pid=$!
ctl() { cloopctl -s "$base/run/cloopd.sock" "$@"; }
wait_for "the hub's start" ctl status
show cloopctl status
ctl status

say "The device: enrolled with a one-time bundle, it dials out"
cloop-enroll -s "$base/run/cloopd.sock" mint --name edge-1 --label room=demo \
    --bundle-file "$base/bundle" >/dev/null
cloop-agentd -d -f "$base/cloop-agentd.conf" >"$base/agentd.log" 2>&1 &
agent_pid=$!
wait_for "the enrollment" sh -c \
    "cloopctl -s '$base/run/cloopd.sock' --json agents edge-1 | grep -q online"
show cloopctl agents
ctl agents

say "Work: compile and test a small C program on the device"
cp -R "$here/fixtures/roman" "$base/work/roman"
chown -R --reference="$base/work" "$base/work/roman"
id _cloop-work >/dev/null 2>&1 && chown -R _cloop-work: "$base/work/roman"
show cloopctl run --on edge-1 --workdir roman --name roman -- make test
status=0
ctl run --on edge-1 --workdir roman --name roman -- make test || status=$?
echo "${dim}exit code $status${off}"
[ $status = 0 ] || die "the workload failed"

show "cloopctl run --on label:room=demo -- sh -c 'id -un; kill -TERM \$\$'"
ctl run --on label:room=demo -- sh -c 'id -un; kill -TERM $$' || status=$?
echo "${dim}exit code $status (128 + SIGTERM)${off}"
[ $status = 143 ] || die "expected 143"

say "A secret on loan: sealed on the hub, lent for this run, taken back"
printf 'DEMO_TOKEN=tok-%s\n' "$(od -An -tx8 -N8 /dev/urandom | tr -d ' ')" |
    ctl -q secret put demo-token
ctl -q grant add demo-token --to label:room=demo
show "cloopctl run --detach --on edge-1 --secret demo-token -- sh -c 'echo my token is \$DEMO_TOKEN; sleep 60'"
handle=$(ctl run --detach --on edge-1 --secret demo-token --name borrower -- \
    sh -c 'echo "my token is $DEMO_TOKEN"; sleep 60')
wait_for "the workload's output" sh -c \
    "cloopctl -s '$base/run/cloopd.sock' logs -- '$handle' | grep -q token"
show "cloopctl logs $handle"
ctl logs -- "$handle"
show cloopctl lease ls
ctl lease ls
lease=$(ctl --json show -- "$handle" | sed -n 's/.*"leases":\["\([^"]*\)".*/\1/p')
show "cloopctl lease revoke --kill $lease"
ctl lease revoke --kill -- "$lease"
ctl wait -- "$handle" >/dev/null || true

say "What the hub remembers"
show cloopctl ps -a
ctl ps -a
show cloopctl audit
ctl audit
show cloopctl audit verify
ctl audit verify

if [ "${DEMO_KEEP:-0}" = 1 ]; then
	say "Still up.  Talk to it:"
	echo "  export PATH=$build:\$PATH CLOOP_LIBEXEC=$build"
	echo "  cloopctl -s $base/run/cloopd.sock run --on edge-1 -- uname -a"
	echo "Ctrl-C here stops everything and removes $base."
	wait
fi
say "Done; stopping everything, nothing stays behind"
