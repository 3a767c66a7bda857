tid="a crash of the agent leaves no plaintext of the dead"
# BC-59.

/usr/bin/python3 -c "import websockets" 2>/dev/null ||
    skip "no python3-websockets"
export BUILD TMP
timeout 120 /usr/bin/python3 "$SRC/regress/secret-device.py" crash \
    >"$TMP/points" \
    2>"$TMP/errors" || { cat "$TMP/errors" "$TMP/log"; fatal "it broke off"; }
while read -r verdict text; do
	case $verdict in
	pass) pass "$text" ;;
	*) fail "$text" ;;
	esac
done <"$TMP/points"
