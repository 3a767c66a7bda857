# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# make fuzz-coverage: which part of the lines of each decoder's file the
# corpus reaches, without any mutation.  coverage.sh DIR TARGET...
dir=$1
shift
status=0
# files TARGET: the decoder, and what it stands on.
files()
{
	case ${1#fuzz_} in
	b64)	echo common/b64.c;;
	buf)	echo common/buf.c;;
	bundle)	echo common/bundle.c;;
	canon)	echo common/canon.c;;
	conf)	echo common/conf.c common/conf_value.c;;
	credential) echo agent/credential.c agent/handledir.c;;
	ctlmsg)	echo common/field.c common/ctlmsg.c common/field_json.c;;
	devlease) echo agent/secretfiles.c agent/secretfiles_wipe.c \
	    agent/vault.c common/redact.c common/field.c;;
	flatjson) echo common/flatjson.c;;
	frame|frame_form) echo net/frame.c net/json.c net/json_decode.c \
	    net/json_value.c common/rule.c common/rule_net.c \
	    common/spec_check.c;;
	http1_request|http1_response) echo net/http1.c net/http1_format.c;;
	json)	echo net/json.c net/json_value.c;;
	keyfile) echo store/keyfile.c common/signify.c;;
	leasemsg|workmsg) echo common/field.c;;	# the rest is tables
	logindex) echo common/logindex.c;;
	monitor) echo priv/monitor.c priv/answer_*.c priv/gates.c \
	    priv/hello.c priv/dispatch.c;;
	msgcat)	echo common/msgcat.c common/imsg.c;;
	pin)	echo common/pin.c;;
	redact)	echo common/redact.c;;
	route)	echo net/hub_route.c net/http1.c;;
	spec)	echo common/spec.c common/spec_check.c common/spec_work.c \
	    common/field.c;;
	spool)	echo common/spool.c;;
	token)	echo store/token.c;;
	url)	echo agent/url.c;;
	utf8)	echo common/utf8.c;;
	vault)	echo agent/vault.c;;
	ws|ws_wslay) echo net/ws.c;;
	*)	n=${1#fuzz_}
		ls common/$n.c net/$n.c agent/$n.c store/$n.c 2>/dev/null;;
	esac
}

for target; do
	name=${target#fuzz_}
	raw=$dir/$name.raw
	LLVM_PROFILE_FILE=$raw "$dir/$target" -s "regress/corpus/$name" \
	    >"$dir/$name.tap" 2>&1 || { cat "$dir/$name.tap"; status=1; }
	llvm-profdata merge -sparse "$raw" -o "$dir/$name.prof" || exit 1
	printf '%-16s %3d seeds ' "$name" \
	    "$(ls "regress/corpus/$name" | wc -l)"
	# Columns of the report: file, 3 of regions, 3 of functions, lines.
	llvm-cov report "$dir/$target" -instr-profile "$dir/$name.prof" \
	    $(files "$target") 2>/dev/null | awk -v n="$(files "$target" |
	    wc -w)" '
	    /^[^ ]*\.c / { sub(/.*\//, "", $1); printf " %s %s", $1, $10 }
	    END { print "" }'
done
exit $status
