#!/bin/sh
# SPDX-License-Identifier: ISC
# make demo: a hub and a device on loopback as their real users, one real
# workload through the whole path, and what it left behind.
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
cloop-keygen -t tls -n localhost -n 127.0.0.1 \
    -o "KeyDirectory=$base/keys" >/dev/null
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

say "A repository with a task on a branch, and a secret to lend"
# Nothing of the caller's git takes part.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=demo GIT_AUTHOR_EMAIL=demo@localhost
export GIT_COMMITTER_NAME=demo GIT_COMMITTER_EMAIL=demo@localhost
cp -R "$here/fixtures/roman" "$base/roman"
cd "$base/roman"
git init -q -b main .
echo roman >.gitignore
git add -A
git commit -q -m "Roman numerals"
git checkout -q -b cloop/task
cat >task.sh <<'EOF'
set -e
echo "in a sandbox on $(uname -n) as $(id -un), with the token $DEMO_TOKEN"
make test
printf '\t@test "$$(./roman 2026)" = MMXXVI && echo "ok 2026 is MMXXVI"\n' \
    >>Makefile
make test
EOF
git add -A
git commit -q -m "Task: test another year"
git checkout -q main
show git log --oneline --all
git --no-pager log --oneline --all
printf 'DEMO_TOKEN=tok-%s\n' "$(od -An -tx8 -N8 /dev/urandom | tr -d ' ')" |
    ctl -q secret put demo-token
ctl -q grant add demo-token --to label:room=demo

say "Work: the branch goes to the device, its commits come back"
show "cloopctl run --on edge-1 --secret demo-token --branch-bundle roman:cloop/task --write-back bundle -- sh task.sh"
status=0
ctl run --on edge-1 --name roman --secret demo-token --write-back bundle \
    --branch-bundle "$base/roman:cloop/task" -- sh task.sh || status=$?
echo "${dim}exit code $status${off}"
[ $status = 0 ] || die "the workload failed"
handle=$(ctl --json ps -a | sed -n 's/.*"handle_id":"\([^"]*\)".*/\1/p')
show "cloopctl result --into roman $handle"
ctl result --into "$base/roman" -- "$handle"
show git diff cloop/task~1 cloop/task
if [ -n "$bold" ]; then colour=always; else colour=never; fi
git --no-pager diff --color=$colour cloop/task~1 cloop/task
git show cloop/task:Makefile | grep -q MMXXVI || die "the commit is not there"
cd /

say "Exit codes are exact, signals too"
show "cloopctl run --on label:room=demo -- sh -c 'id -un; kill -TERM \$\$'"
ctl run --on label:room=demo -- sh -c 'id -un; kill -TERM $$' || status=$?
echo "${dim}exit code $status (128 + SIGTERM)${off}"
[ $status = 143 ] || die "expected 143"

say "A lease that is taken back while it is held"
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
