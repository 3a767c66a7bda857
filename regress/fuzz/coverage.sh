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
	b64)	echo common/base/b64.c;;
	body)	echo common/msg/msgcat.c common/msg/field.c;;
	buf)	echo common/msg/buf.c;;
	bundle)	echo common/model/bundle.c;;
	canon)	echo common/json/canon.c;;
	conf)	echo common/base/conf.c common/base/conf_value.c;;
	credential) echo agent/monitor/credential.c agent/monitor/handledir.c;;
	ctlmsg)	echo common/msg/field.c common/model/ctlmsg.c common/json/field_json.c;;
	devlease) echo agent/monitor/secretfiles.c agent/monitor/secretfiles_wipe.c \
	    agent/monitor/vault.c common/output/redact.c common/msg/field.c;;
	flatjson) echo common/json/flatjson.c;;
	frame|frame_form) echo net/codec/frame.c net/codec/json.c net/codec/json_decode.c \
	    net/codec/json_value.c common/base/rule.c common/base/rule_net.c \
	    common/model/spec_check.c;;
	http1_request|http1_response) echo net/codec/http1.c net/codec/http1_format.c;;
	json)	echo net/codec/json.c net/codec/json_value.c;;
	keyfile) echo store/db/keyfile.c common/base/signify.c;;
	leasemsg|workmsg) echo common/msg/field.c;;	# the rest is tables
	logindex) echo common/output/logindex.c;;
	monitor) echo priv/monitor/monitor.c priv/monitor/answer_*.c priv/monitor/gates.c \
	    priv/monitor/hello.c priv/monitor/dispatch.c;;
	msgcat)	echo common/msg/msgcat.c common/msg/imsg.c;;
	pin)	echo common/base/pin.c;;
	redact)	echo common/output/redact.c;;
	route)	echo net/hub/hub_route.c net/codec/http1.c;;
	spec)	echo common/model/spec.c common/model/spec_check.c common/model/spec_work.c \
	    common/msg/field.c;;
	spool)	echo common/output/spool.c;;
	token)	echo store/db/token.c;;
	url)	echo common/model/url.c;;
	utf8)	echo common/base/utf8.c;;
	vault)	echo agent/monitor/vault.c;;
	ws|ws_wslay) echo net/codec/ws.c;;
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
