tid="a revoke with kill is reported when nothing is left"

/usr/bin/python3 -c "import websockets" 2>/dev/null ||
    skip "no python3-websockets"
export BUILD TMP
broke=
timeout 300 /usr/bin/python3 "$SRC/regress/secret-device.py" kill \
    >"$TMP/points" \
    2>"$TMP/errors" || broke=yes
points_of "$TMP/points"
[ -z "$broke" ] || not_up "it broke off" "$TMP/errors"
