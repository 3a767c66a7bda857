# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A branch goes to a device, its work comes back and lands; what the hub
# holds of it, and for how long.
tid="work comes back and lands in the repository"
. "$SRC/regress/e2e-lib.sh"

command -v git >/dev/null || skip "git is not installed"
[ -x "$BUILD/cloop-git" ] || skip "cloop-git is not built"
GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t
GIT_COMMITTER_EMAIL=t@e GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME \
    GIT_COMMITTER_EMAIL GIT_CONFIG_GLOBAL

e2e_hub "WriteBackBudget 2M" "WriteBackTotal 4M"
e2e_agent edge-1

repo=$TMP/repo
git init -q -b main "$repo"
echo base >"$repo/README"
git -C "$repo" add -A && git -C "$repo" commit -q -m base
git -C "$repo" checkout -q -b cloop/task
echo todo >"$repo/task"
git -C "$repo" add -A && git -C "$repo" commit -q -m task
git -C "$repo" checkout -q main
sent=$(git -C "$repo" rev-parse cloop/task)

# work NAME SCRIPT: a run on the branch whose work comes back.
work()
{
	work_name=$1
	shift
	ctl -q run --on edge-1 --name "$work_name" --write-back bundle \
	    --branch-bundle "$repo:cloop/task" -- sh -c "$@" \
	    >"$TMP/out" 2>"$TMP/err"
	work_status=$?
	h=$(e2e_handle "$work_name")
}
# of the document of show: member EXPRESSION
member()
{
	ctl --json show -- "$h" | json "$1"
}
pinned()
{
	ctl --json status | json "d['budget']['pinned']"
}
# refused CODE ARGUMENT...: cloopctl result ends with 1 and this code.
refused()
{
	want=$1
	shift
	ctl --json result "$@" >"$TMP/out" 2>"$TMP/err"
	got=$?
	code=$(json "d['error']['code']" <"$TMP/out")
	[ $got = 1 ] && [ "$code" = "$want" ] && return 0
	note "status $got, $(cat "$TMP/out" "$TMP/err")"
	return 1
}

work first 'cat task; echo done >task; echo new >new; exit 0'
[ $work_status = 0 ] && [ "$(cat "$TMP/out")" = todo ] &&
    pass "the tree is the branch" ||
    fail "the run: status $work_status, $(cat "$TMP/out" "$TMP/err")"
[ "$(member "d['result']['mode'], d['result']['branch'],
    d['result']['error'], d['result']['held']")" = \
    "bundle cloop/task None True" ] &&
    pass "show tells what came back" || fail "show: $(member "d['result']")"
bytes=$(member "d['result']['bundle_bytes']")
[ "$(pinned)" -gt "$bytes" ] && pass "it counts against the budget" ||
    fail "pinned $(pinned), bundle $bytes"

# A hub that dies keeps it.
e2e_stop "$hub_pid" KILL
e2e_start_hub
wait_for 30 is_online edge-1
[ "$(pinned)" -gt "$bytes" ] && pass "a killed hub has it all the same" ||
    fail "after a restart pinned is $(pinned)"

mkdir "$TMP/plain"
refused write_back_refused --into "$TMP/plain" -- "$h" &&
    pass "not a repository: refused" || fail "landing in a directory"
git init -q "$TMP/other"
refused write_back_refused --into "$TMP/other" -- "$h" &&
    grep -q 'fetch it first' "$TMP/err" &&
    pass "a repository without the base: refused, with what to do" ||
    fail "landing without the base"
ctl result --into "$repo" -- "$h" >"$TMP/out" 2>"$TMP/err" &&
    grep -q '^ new  *| 1 +' "$TMP/out" &&
    pass "it lands, and a diffstat says what it changes" ||
    fail "landing: $(cat "$TMP/out" "$TMP/err")"
[ "$(git -C "$repo" rev-parse cloop/task~1)" = "$sent" ] &&
    [ "$(git -C "$repo" show cloop/task:task)" = "done" ] &&
    [ "$(git -C "$repo" rev-parse --abbrev-ref HEAD)" = main ] &&
    pass "the branch is there, nothing is checked out" ||
    fail "the repository: $(git -C "$repo" log --all --oneline)"
refused write_back_unavailable --into "$repo" -- "$h" &&
    pass "a second collection is refused" || fail "a second collection"
[ "$(pinned)" = 0 ] && pass "and nothing is held any more" ||
    fail "pinned $(pinned)"

# -o
work second 'echo more >>task'
mkdir "$TMP/saved"
ctl -q result -o "$TMP/saved" -- "$h" >"$TMP/out" 2>&1 &&
    git -C "$repo" bundle verify "$TMP/saved/$h.bundle" \
    >/dev/null 2>&1 &&
    pass "-o saves the bundle" || fail "-o: $(cat "$TMP/out")"

# The bounds of the budget: the run itself is not touched.
work third 'head -c 2100000 /dev/urandom >blob'
[ $work_status = 0 ] && member "d['result']['error']" |
    grep -q WriteBackBudget && [ "$(pinned)" = 0 ] &&
    pass "more than WriteBackBudget: an error, the exit code is 0" ||
    fail "status $work_status, $(member "d['result']"), pinned $(pinned)"

ctl -q run --on edge-1 --name small --write-back bundle --max-bundle 1M \
    --branch-bundle "$repo:cloop/task" -- sh -c \
    'head -c 1100000 /dev/urandom >blob' >"$TMP/out" 2>&1
h=$(e2e_handle small)
member "d['result']['error']" | grep -q 'bytes' && [ "$(pinned)" = 0 ] &&
    pass "more than --max-bundle: an error" ||
    fail "--max-bundle: $(member "d['result']")"

# Nothing to return, and nothing asked for.
work fourth 'true'
refused write_back_unavailable -- "$h" &&
    pass "nothing changed, nothing to land" || fail "an unchanged tree"
ctl -q run --on edge-1 --name fifth -- true
h=$(e2e_handle fifth)
[ "$(member "d['result']")" = None ] &&
    refused write_back_unavailable -- "$h" &&
    pass "nothing was asked for" || fail "a run without --write-back"

# What operators cannot do.
for options in "--branch cloop/x" "--depth 3" "--write-back maybe" \
    "--branch-bundle $repo" "--branch-bundle $repo:main" \
    "--max-bundle 1M" "--max-bundle 1M --write-back push" \
    "--max-bundle 129M --write-back bundle" \
    "--write-back bundle"; do
	# shellcheck disable=SC2086
	ctl run --on edge-1 $options -- true >"$TMP/out" 2>&1
	got=$?
	[ $got = 2 ] && pass "run $options is wrong usage" ||
	    fail "run $options: status $got: $(cat "$TMP/out")"
done
ctl run --on edge-1 --branch-bundle "$repo:cloop/none" -- true \
    >"$TMP/out" 2>&1
[ $? = 1 ] && grep -q cloop/none "$TMP/out" &&
    pass "a branch that is not there is named" ||
    fail "no such branch: $(cat "$TMP/out")"

ctl --json audit >"$TMP/audit"
grep -q 'workspace.provision_start' "$TMP/audit" &&
    grep -q 'workload.result_collected' "$TMP/audit" &&
    ctl audit verify >/dev/null &&
    pass "the audit trail has all of it" || fail "audit"
