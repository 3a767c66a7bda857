tid="cloop-agentd says in one line what is wrong, and starts nothing"

AGENTD=$BUILD/cloop-agentd
TOKEN=clet1.AAECAwQFBgcICQoL.ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8.e57ff68ef8872e73df024eef4475a64b
mkdir "$TMP/state" "$TMP/run"

conf()
{
	{
		echo "StateDirectory $TMP/state"
		echo "RuntimeDirectory $TMP/run"
		echo "WorkDirRoot $TMP/work"
		echo "TokenFile $TMP/token"
		for line in "$@"; do echo "$line"; done
	} >"$TMP/conf"
	chmod 600 "$TMP/conf"
}

# refused STATUS TEXT-IN-MESSAGE WHAT [FLAG...]
refused()
{
	want=$1 text=$2 what=$3
	shift 3
	timeout 60 "$AGENTD" -d -f "$TMP/conf" "$@" >"$TMP/out" 2>&1
	got=$?
	if [ "$got" -ne "$want" ]; then
		fail "$what: status $got, expected $want"
		note "$(cat "$TMP/out")"
	elif ! grep -qF -- "$text" "$TMP/out"; then
		fail "$what: the message does not name $text"
		note "$(cat "$TMP/out")"
	elif grep -qF "clet1." "$TMP/out"; then
		fail "$what: the message holds the token"
	else
		pass "$what"
	fi
}

conf "Server wss://127.0.0.1:9/" "Frobnicate yes"
refused 1 "$TMP/conf:6:" "an unknown keyword, with file and line" -t
conf "Server wss://127.0.0.1:9/" "Server wss://127.0.0.1:9/"
refused 1 "$TMP/conf:6:" "a keyword given twice" -t
conf "Server ftp://127.0.0.1/"
refused 1 "ftp://127.0.0.1/" "-t looks at the URL, too" -t
conf "RetainUnacked 1G" "SpoolLimit 1M"
refused 1 RetainUnacked "a window larger than the spool" -t
conf "ShimSocket /$(printf %0107d 0)"
refused 1 "longer than 107 bytes" "a socket's path of 108 bytes" -t
conf "Server wss://127.0.0.1:9/" "ShimSocket /$(printf %0106d 0)"
refused 1 "$TMP/token" "one of 107 is good"
conf "Server wss://127.0.0.1:9/"
refused 2 usage "an unknown flag" --frobnicate
refused 1 "$TMP/token" "a missing token file"
: >"$TMP/token"; chmod 600 "$TMP/token"
refused 1 "$TMP/token" "an empty token file"
echo "no token at all" >"$TMP/token"
refused 1 "$TMP/token" "a token file with something else"
rm "$TMP/token"
refused 1 --bundle "a damaged bundle" --bundle cloopenroll1.e30
refused 1 "ws://192.0.2.1/" "plaintext to another host" \
    --server ws://192.0.2.1/ --token $TOKEN
refused 1 "the server URL is plaintext" "a pin without TLS" --server ws://127.0.0.1:9/ \
    --token $TOKEN --pin sha256:XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyfNM=
refused 1 Pin "a malformed pin" --token $TOKEN --pin sha256:AAAA
echo none >"$TMP/ca.pem"
refused 1 "$TMP/ca.pem" "a CA file without a certificate" \
    --token $TOKEN --ca-file "$TMP/ca.pem"
refused 1 "$TMP/nothing" "a CA file that is not there" \
    --token $TOKEN --ca-file "$TMP/nothing"
echo '{' >"$TMP/state/agent.json"
refused 1 "$TMP/state/agent.json" "a broken credential file" --token $TOKEN
ln -sf "$TMP/conf" "$TMP/state/agent.json"
refused 1 "$TMP/state/agent.json" "a credential file that is a link" \
    --token $TOKEN
rm "$TMP/state/agent.json"
refused 1 "$TMP/conf/agent.json" "a credential that cannot be kept" \
    --token $TOKEN --credential "$TMP/conf/agent.json"
echo file >"$TMP/file"
refused 1 "$TMP/file" "a work root that is a file" --token $TOKEN \
    --workdir-root "$TMP/file"
[ "$(id -u)" != 0 ] || {
	conf "Server wss://127.0.0.1:9/" "WorkloadUser no-such-user-4711"
	refused 1 no-such-user-4711 "a workload user that does not exist" \
	    --token $TOKEN
	conf "Server wss://127.0.0.1:9/" "WorkloadUser root"
	refused 1 WorkloadUser "root as workload user" --token $TOKEN
}
# The sample shows every default: with them spelled out nothing changes.
sed 's/^#\([A-Z]\)/\1/' "$SRC/etc/cloop-agentd.conf" >"$TMP/sample"
: >"$TMP/empty"
chmod 600 "$TMP/sample" "$TMP/empty"
run "the sample configuration parses" "$AGENTD" -t -f "$TMP/sample"
[ "$(id -u)" != 0 ] || run "and holds the defaults" sh -c \
    "'$AGENTD' -T -f '$TMP/sample' >'$TMP/s'; \
    '$AGENTD' -T -f '$TMP/empty' | diff '$TMP/s' -"
conf "Server wss://127.0.0.1:9/" "Label a=b" "Pin x, y"
run "-T prints" sh -c "'$AGENTD' -T -f '$TMP/conf' -o Pin=none >'$TMP/dump'"
chmod 600 "$TMP/dump"
run "what parses to itself" sh -c \
    "'$AGENTD' -T -f '$TMP/dump' | cmp - '$TMP/dump'"
[ ! -e "$TMP/state/agent.json" ] || fail "a credential was written"
run "no handle directory is left" sh -c "! ls -A $TMP/state/handles 2>/dev/null | grep ."
