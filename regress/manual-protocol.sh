# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# cloop-protocol(7) is enough to write a peer from, as far as a machine can
# see that: the frame catalogue, every member of every payload with its type
# and bounds, the state tables, and the limits are those of the sources.
tid="cloop-protocol(7) says what the tables say"
trees=one

page=man/cloop-protocol.7

# sources NAME: our own files of this name, wherever they are.
sources()
{
	find . \( -name .git -o -path ./regress -o -name 'build*' \) -prune \
	    -o -type f -name "$1" -print
}

same()
{
	if diff "$2" "$3" >"$TMP/diff"; then
		pass "$1: $(wc -l <"$2") lines"
	else
		fail "$1: < sources, > manual"
		note "$(cat "$TMP/diff")"
	fi
}

frame_h=$(sources frame.h)
hub_c=$(sources hub_session.c)
hub_h=$(sources hub_session.h)
agent_c=$(sources fetch_session.c)
agent_h=$(sources fetch.h)
for f in "$frame_h" "$hub_c" "$hub_h" "$agent_c" "$agent_h"; do
	[ -f "$f" ] || fatal "not the name of one file: \"$f\""
done

# frames: "name direction version handle" of the catalogue.
tr -d '\n\\\\' <"$frame_h" | sed 's/X(/\n&/g' |
    sed -n 's/^X([A-Z_]*, "\([a-z_]*\)", *\([A-Z0-9]*\), *\([0-9]*\),[[:space:]]*\([01]\),.*/\1 \2 \3 \4/p' |
    sed 's/ A2H / A>H /; s/ H2A / H>A /; s/ BOTH / both /; s/ 1$/ handle/; s/ 0$/ -/' \
    >"$TMP/want"
sed -n 's/^\([a-z_]*\)  *\(A>H\|H>A\|both\)  *\([0-9]*\)  *\(handle\|-\) .*/\1 \2 \3 \4/p' \
    "$page" >"$TMP/have"
[ "$(wc -l <"$TMP/want")" -eq 39 ] ||
    fail "$frame_h: $(wc -l <"$TMP/want") frames were found, not 39"
same "frames" "$TMP/want" "$TMP/have"

# A frame with members has a paragraph of its own.
awk '{ print $1 }' "$TMP/want" | while read -r name; do
	grep -q "^\.Em $name ,\$\|^\.Em $name\$\|^\.Em $name ;\$" "$page" ||
	    echo "$name"
done >"$TMP/lost"
[ ! -s "$TMP/lost" ] && pass "every frame is described" ||
    fail "frames that are not described: $(tr '\n' ' ' <"$TMP/lost")"

# table FILE STATE EVENT NEXT: the rows of a table as "STATE EVENT NEXT".
table()
{
	awk -v s="$2" -v e="$3" -v n="$4" '
	match($0, "^\t\\[" s "[A-Z]+\\] = \\{$") {
		state = substr($0, 3 + length(s)); sub(/\].*/, "", state)
	}
	match($0, "^\t\t\\[" e "[A-Z]+\\] = ") {
		event = substr($0, 4 + length(e)); sub(/\].*/, "", event)
		if (!match($0, n "[A-Z]+"))
			next
		after = substr($0, RSTART, RLENGTH)
		sub(".*[^A-Z]", "", after)
		print state, event, after
	}' "$1"
}

table "$hub_c" HST_ HE_ '[{] HST_' >"$TMP/want"
table "$agent_c" FST_ FEV_ ', ' >>"$TMP/want"
sed -n 's/^\([A-Z]*\)  *\([A-Z]*\)  *\([A-Z]*\)$/\1 \2 \3/p' "$page" \
    >"$TMP/have"
same "states and events" "$TMP/want" "$TMP/have"

# names FILE LIST: the X(NAME) of a list of states or events.
names()
{
	awk -v list="$2(X)" 'index($0, "#define " list) { inside = 1 }
	inside { print }
	inside && !/\\$/ { exit }' "$1" |
	    grep -o 'X([A-Z]*[,)]' | tr -d 'X(),' | grep .
}

for l in "$hub_h HST_STATES" "$hub_h HE_EVENTS" "$agent_h FETCH_STATES" \
    "$agent_h FETCH_EVENTS"; do
	names $l
done >"$TMP/want"
sed -n 's/^\.It Sy \([A-Z]*\)$/\1/p' "$page" >"$TMP/have"
same "names of states and events" "$TMP/want" "$TMP/have"

# members: a program walks the tables from the catalogue on and prints
# "table member left-out type" as the manual has it.
cat >"$TMP/members.c" <<'END'
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "frame_int.h"

/* A table by its name in the manual: frame_hello is "hello". */
static const char *
get_name(const struct field_table *t)
{
	static char name[64];

	if (strncmp(t->name, "frame_", 6) == 0)
		return t->name + 6;
	if (sscanf(t->name, "lease_%63s", name) == 1 ||
	    sscanf(t->name, "dev_%63s", name) == 1) {
		if (strncmp(name, "refresh", 7) == 0)
			snprintf(name, sizeof(name), "secret_%s",
			    strstr(t->name, "refresh"));
		return name;
	}
	return strcmp(t->name, "spec_start") == 0 ? "start" : t->name;
}

/* "int 0..", "str 128", "[16] {spec_mount}" */
static void
put_type(const struct field *f)
{
	const char *str = f->flags & FIELD_PROSE ? "text" : "str";

	if (f->kind == FIELD_STRS || f->kind == FIELD_INTS ||
	    f->kind == FIELD_LIST)
		printf("[%zu] ", f->nmax);
	if (f->kind == FIELD_MAP)
		printf("map [%zu] ", f->nmax);
	switch (f->kind) {
	case FIELD_INT: case FIELD_OPTINT: case FIELD_INTS:
		printf("int");
		if (f->min != INT64_MIN)
			printf(" %lld..", (long long)f->min);
		if (f->min != INT64_MIN && f->max != INT64_MAX)
			printf("%llu", (unsigned long long)f->max);
		return;
	case FIELD_UINT:
		printf(f->max == UINT64_MAX ? "uint" : "uint %llu",
		    (unsigned long long)f->max);
		return;
	case FIELD_BOOL: case FIELD_TIME:
		printf(f->kind == FIELD_BOOL ? "bool" : "time");
		return;
	case FIELD_OBJ: case FIELD_PTR: case FIELD_LIST:
		printf("{%s}", get_name(f->sub));
		return;
	case FIELD_RAW:
		str = "any";
		break;
	case FIELD_BYTES: case FIELD_SBYTES:
		str = "bytes";
		break;
	default:
		break;
	}
	printf("%s", str);
	/* What the message bounds has no bound of its own. */
	if (f->max < MAX_FRAME_LEN || f->kind == FIELD_BYTES)
		printf(" %llu", (unsigned long long)f->max);
}

static void
put_table(const struct field_table *t)
{
	static const struct field_table *seen[512];
	static size_t n;
	size_t nrows, i;
	const struct field *rows = t->get_rows(&nrows), *f;

	for (i = 0; i < n; i++)
		if (seen[i] == t)
			return;
	seen[n++] = t;
	for (i = 0; i < nrows; i++) {
		f = &rows[i];
		if (f->flags & FIELD_HIDDEN)
			continue;
		/* Objects within and times are always written. */
		printf("%s %s %s ", get_name(t), f->key, f->flags &
		    FIELD_OMIT && f->kind != FIELD_OBJ &&
		    f->kind != FIELD_TIME ? "?" : "-");
		put_type(f);
		putchar('\n');
	}
	for (i = 0; i < nrows; i++)
		if (rows[i].sub != NULL)
			put_table(rows[i].sub);
}

int
main(void)
{
	int i;

	for (i = FRAME_UNKNOWN + 1; i < FRAME_NTYPES; i++)
		put_table(frame_get_row(i)->table);
	return 0;
}
END

# Only tables are looked at: no function is called but the catalogue's.
tables=$(sources '*.c' | grep -E '^./(common|net)/' |
    xargs grep -lE 'def_table.h|^static .* frame_rows\[')
dirs=$(sources '*.h' | sed 's,/[^/]*$,,' | sort -u | sed 's/^/-I/')
run "the tables are found" ${CC:-cc} -std=c17 -D_GNU_SOURCE -I. $dirs -no-pie \
    -Wl,--unresolved-symbols=ignore-all -o "$TMP/members" "$TMP/members.c" \
    $tables
[ -x "$TMP/members" ] || exit 1
"$TMP/members" | sort -s -k1,1 >"$TMP/want"
[ "$(wc -l <"$TMP/want")" -gt 300 ] ||
    fail "$(wc -l <"$TMP/want") members were found, not above 300"
sed 's/[[:space:]]*$//' "$page" | awk '
/^\.\\" table / { name = $3 }
/^\.El/ { name = "" }
name != "" && /^\.It Va / {
	type = $0; sub(/.* Li /, "", type); gsub(/"/, "", type)
	print name, $3, $4 == "?" ? "?" : "-", type
}' | sort -s -k1,1 >"$TMP/have"
same "members" "$TMP/want" "$TMP/have"

# limits: `.It NUMBER \" CONSTANT`.
sed -n 's/^\.It \([0-9]*\) \\" \([A-Z_0-9]*\)$/\2 \1/p' "$page" \
    >"$TMP/have"
sources '*.h' | xargs cat >"$TMP/headers"
while read -r name number; do
	# The value is a number, without expressions.
	awk -v n="$name" '$1 == "#define" && $2 == n { print n, $3; exit }' \
	    "$TMP/headers"
done <"$TMP/have" >"$TMP/want"
same "limits" "$TMP/want" "$TMP/have"
