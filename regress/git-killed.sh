# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A branch goes to a device, its work comes back, and at each step of that
# the hub or the device is killed, or the link is cut: the work lands once
# and whole, or the run failed and says so; no budget stays pinned, no file
# stays behind.  CLOOP_SLOW=1: all of it, else a part.
tid="work that is cut off on its way resumes or fails clean"
trees=one
. "$SRC/regress/e2e-lib.sh"

command -v git >/dev/null || skip "git is not installed"
[ -x "$BUILD/cloop-git" ] || skip "cloop-git is not built"
GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t
GIT_COMMITTER_EMAIL=t@e GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME \
    GIT_COMMITTER_EMAIL GIT_CONFIG_GLOBAL

# The link is slow enough that a transfer is seen while it lasts.
E2E_LISTEN=127.0.0.2
e2e_hub
python3 regress/fixtures/relay.py "$E2E_HOST" "$E2E_LISTEN" "$E2E_PORT" \
    3000000 "$TMP/relay" 2>"$TMP/relay.err" &
relay=$!
track $relay
wait_for 30 test -e "$TMP/relay" || fatal "no relay: $(cat "$TMP/relay.err")"
e2e_agent edge-1

# What the workload makes of the tree is known here, too.
repo=$TMP/repo
change='tr "\000-\377" "\001-\377\000" <seed >blob; echo x >new'
git init -q -b main "$repo"
cd "$repo" || exit 1
head -c 1500000 /dev/urandom >seed
git add -A && git commit -q -m base
git checkout -q -b cloop/task
head -c 1500000 /dev/urandom >more
git add -A && git commit -q -m task
sent=$(git rev-parse HEAD)
sh -c "$change"
git add -A
want=$(git write-tree)
git reset -q --hard
git checkout -q main
cd "$SRC" || exit 1

# moved DOWN UP: so many bytes since the mark.
moved()
{
	read -r down up <"$TMP/relay"
	[ $((down - down0)) -ge "$1" ] && [ $((up - up0)) -ge "$2" ]
}
jobs_more()
{
	e2e_has_more "$TMP/edge-1.log" 'event=job-start.*cloop-git' \
	    $((jobs0 + $1))
}
handle_is()
{
	h=$(e2e_handle "$name" 2>/dev/null) && [ -n "$h" ]
}
# Neither daemon has a file of a return or of a shipped branch.
no_files()
{
	[ -z "$(find "$TMP/hub" "$TMP/edge-1/state" -name 'bundle*' -o \
	    -name '.incoming-*' -o -name '.branch-*')" ]
}
nothing_pinned()
{
	[ "$(ctl --json status | json "d['budget']['pinned']")" = 0 ]
}

observe()
{
	case $1 in
	shipping) wait_for 30 moved 400000 0 ;;
	building) wait_for 30 jobs_more 0 ;;
	running) wait_for 30 grep -q ready "$TMP/out" ;;
	collecting) wait_for 30 jobs_more 1 ;;
	returning) wait_for 30 moved 0 400000 ;;
	held) wait "$run"; status=$?; run= ;;
	esac
}
harm()
{
	case $1 in
	hub)
		e2e_stop "$hub_pid" KILL
		e2e_start_hub
		;;
	agent)
		e2e_stop "$agent_pid" KILL
		e2e_start_agent edge-1
		;;
	link) kill -USR1 $relay ;;
	esac
}

# It must land, as one commit, as the tree that was expected, once.
landed()
{
	ctl -q result --into "$repo" -- "$h" >"$TMP/out" 2>&1 || return 1
	[ "$(git -C "$repo" rev-parse 'cloop/task^{tree}')" = "$want" ] &&
	    [ "$(git -C "$repo" rev-list --count "$sent..cloop/task")" = 1 ] ||
	    return 1
	! ctl -q result --into "$repo" -- "$h" >>"$TMP/out" 2>&1
}

# cut STEP VICTIM
cut()
{
	name=$1-$2
	read -r down0 up0 <"$TMP/relay"
	jobs0=$(grep -c 'event=job-start.*cloop-git' "$TMP/edge-1.log")
	wait_for 30 is_online edge-1 || fatal "edge-1 is not there"
	: >"$TMP/out"
	ctl -q run --on edge-1 --name "$name" --write-back bundle \
	    --workdir "$name" --branch-bundle "$repo:cloop/task" -- \
	    sh -c "echo ready; $change" >"$TMP/out" 2>"$TMP/err" &
	run=$!
	observe "$1" || fail "$name: the step is not seen"
	harm "$2"
	wait_for 30 is_online edge-1 || fail "$name: edge-1 stays away"
	[ -z "$run" ] || { wait "$run"; status=$?; }
	h=
	handle_is && timeout 60 cloopctl -s "$TMP/run/cloopd.sock" wait -- \
	    "$h" >/dev/null 2>&1
	if [ -n "$h" ] && [ "$(ctl --json show -- "$h" | json \
	    "d['result'] and d['result']['held']")" = True ]; then
		landed && pass "$name: it lands once" ||
		    fail "$name: landing: $(cat "$TMP/out")"
	else
		# Before its command ran there was nothing to lose.
		case $1 in
		shipping|building)
			[ $status != 0 ] && [ -s "$TMP/err" ] &&
			    pass "$name: it failed, and says so" ||
			    fail "$name: status $status, nothing landed" ;;
		*)
			fail "$name: the work is lost: $(ctl --json show -- \
			    "$h" | json "d['state'], d['result']")" ;;
		esac
		[ "$(git -C "$repo" rev-parse cloop/task)" = "$sent" ] ||
		    fail "$name: something landed all the same"
	fi
	wait_for 20 nothing_pinned || fail "$name: budget is pinned"
	wait_for 20 no_files ||
	    fail "$name: left $(find "$TMP/hub" "$TMP/edge-1/state" -name \
	    'bundle*' -o -name '.incoming-*')"
	git -C "$repo" update-ref refs/heads/cloop/task "$sent"
}

if [ -z "${CLOOP_SLOW:-}" ]; then
	cut shipping link
	steps=returning
else
	steps="shipping building running collecting returning held"
fi
for step in $steps; do
	for victim in link agent hub; do
		cut $step $victim
	done
done
