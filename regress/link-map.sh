# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# What each built program links, read from the file, not from the Makefile.
# Root never has a TLS, HTTP, WebSocket or JSON parser; what talks to the
# network has no SQLite.
tid="the built programs contain what their process may have"
trees=one

# program	libraries it may need besides libc and libbsd
cat >"$TMP/libs" <<'END'
cloopd		libevent_core libsqlite3 libcrypto libseccomp libcap-ng
cloopd-net	libevent_core libssl libcrypto libjson-c libseccomp libcap-ng
cloopd-key	libevent_core libcrypto libseccomp libcap-ng
cloopd-fence	libevent_core libseccomp libcap-ng
cloopd-ctl	libevent_core libseccomp libcap-ng
cloop-agentd	libevent_core libcrypto libseccomp libcap-ng
agentd-fetch	libevent_core libssl libcrypto libjson-c libseccomp libcap-ng
cloop-shim	libcap-ng
cloop-shimd	libseccomp libcap-ng
cloop-git	libcrypto libseccomp
cloop-seed	libjson-c libz
cloop-keygen	libsqlite3 libcrypto libssl
cloop-enroll	libsqlite3 libcrypto
cloopctl	libseccomp
END

# Prefixes of functions that parse what comes from outside.
parsers='(ws|http1|jx|frame|tlsio|json_object|json_tokener|SSL)_'

while read -r program allowed; do
	file=$BUILD/$program
	if [ ! -e "$file" ]; then
		note "$program is not built"
		continue
	fi
	readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*/\1/p' |
	    sed 's/-2\.1$//' >"$TMP/needed"
	wrong=
	for lib in $(cat "$TMP/needed"); do
		case " libc libbsd libmd libm ld-linux-x86-64 $allowed " in
		*" $lib "*) ;;
		*) wrong="$wrong $lib" ;;
		esac
	done
	nm "$file" 2>/dev/null | awk '{ print $NF }' | sed 's/@.*//' |
	    sort -u >"$TMP/symbols"
	[ -s "$TMP/symbols" ] || fatal "$program has no symbols: not readable"
	case " $allowed " in
	*" libjson-c "*)
		if grep -Eq '^(sqlite3|store)_' "$TMP/symbols"; then
			wrong="$wrong $(grep -E '^(sqlite3|store)_' \
			    "$TMP/symbols" | head -n 5 | tr '\n' ' ')"
		fi
		;;
	*)
		case $program in cloop-keygen) only='^(ws|http1|jx|frame)_' ;;
		*) only="^$parsers" ;; esac
		grep -E "$only" "$TMP/symbols" |
		    grep -v '^frame_dummy' >"$TMP/bad" &&
		    wrong="$wrong $(head -n 5 "$TMP/bad" | tr '\n' ' ')"
		;;
	esac
	if [ -n "$wrong" ]; then
		fail "$program contains$wrong"
	else
		pass "$program links only $allowed"
	fi

	# Hardening: position-independent, full RELRO, no executable stack.
	readelf -hW "$file" | grep -q 'Type:.*DYN' &&
	    readelf -dW "$file" | grep -q 'BIND_NOW\|Flags:.*NOW' &&
	    readelf -lW "$file" | grep -q GNU_RELRO &&
	    readelf -lW "$file" | grep GNU_STACK | grep -qv E ||
	    fail "$program is not fully hardened"
done <"$TMP/libs"
[ "$points" -gt 0 ] || fatal "no program is built"
