/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Taken-over children against the hub's monitor: whatever cloopd-net,
 * cloopd-ctl (operators' requests) and cloopd-key may say, in any order, to
 * the real handlers with real store and tables.  Structure-aware: a record
 * is (child, type, id, descriptor, body), the body a list of typed values,
 * among them sessions, handles and names that exist.  A row that has a struct
 * gets them as its members, within their bounds, or else (from 128) as bytes
 * too.  A refused message would end the child; here it stays, so that the
 * next record counts.
 */
#include "regress/unit/priv/monitor/montest.h"
#include "regress/unit/msgbody.h"
#include "fuzz.h"

#define RUNS 300		/* then the monitor starts afresh */
#define NCLIENTS 3

static struct mt_device device[2];
static uint64_t last_id[4];	/* last message each child heard */

struct program {
	const uint8_t *p;
	size_t left;
};

static uint8_t
next(struct program *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

static uint64_t
next_number(struct program *in, size_t nbytes)
{
	uint64_t v = 0;

	while (nbytes-- > 0)
		v = v << 8 | next(in);
	return v;
}

/* A text the monitor knows, or may. */
static const char *
known_text(uint8_t which)
{
	static const char *const words[] = { "edge-1", "edge-2", "any",
		"name=edge-1", "room=a", "secret", "env", "file", "git",
		"uid:1000", "project:p", "executor:edge-1", "label:room=a",
		"A_NAME", "w1", "because", "clet1.x.y", "00ff", "" };
	const size_t nwords = sizeof(words) / sizeof(words[0]);
	struct handle *h = NULL;
	uint8_t i;

	which %= 32;
	if (which < nwords)
		return words[which];
	which -= (uint8_t)nwords;
	if (which < 2)
		return device[which].agent_id;
	if (which < 4)
		return device[which - 2].credential;
	for (i = 3; i < which; i++)
		if ((h = handles_next(&mt.handles, h)) == NULL)
			return "";
	return h == NULL ? "" : h->row.handle_id;
}

static uint64_t
known_number(uint8_t which)
{
	struct handle *h = NULL;
	uint8_t i;

	if (which < 2)
		return device[which].session;
	for (i = 1; i < which % 8; i++)
		if ((h = handles_next(&mt.handles, h)) == NULL)
			break;
	return h == NULL ? mt.handles.last_number : h->row.number;
}

/* One value of a body: a number of so many bytes, or a text (nbytes 0). */
struct value {
	size_t nbytes;
	uint64_t number;
	char text[128];
};

static void
next_value(struct program *in, struct value *v, uint32_t fd_len)
{
	size_t n, i;

	memset(v, 0, sizeof(*v));
	switch (next(in) % 10) {
	case 0:
		v->nbytes = 1;
		v->number = next(in);
		break;
	case 1:
		v->nbytes = 2;
		v->number = next_number(in, 2);
		break;
	case 2:
		v->nbytes = 4;
		v->number = next(in);
		break;
	case 3:
		v->nbytes = 4;
		v->number = next_number(in, 4);
		break;
	case 4:
		v->nbytes = 8;
		v->number = next(in);
		break;
	case 5:
		v->nbytes = 8;
		v->number = next_number(in, 8);
		break;
	case 6:
		for (n = next(in) % 64, i = 0; i < n; i++)
			v->text[i] = (char)next(in);
		break;
	case 7:
		snprintf(v->text, sizeof(v->text), "%s",
		    known_text(next(in)));
		break;
	case 8:
		v->nbytes = n = next(in);
		if (n < 128) {
			v->nbytes = 8;
			v->number = known_number((uint8_t)n);
		}
		break;
	default:
		v->nbytes = 4;
		v->number = fd_len;
	}
}

static void
put_value(struct program *in, struct buf *b, uint32_t fd_len)
{
	static const uint8_t zero[256];
	struct value v;

	next_value(in, &v, fd_len);
	switch (v.nbytes) {
	case 0:
		buf_put_str(b, v.text);
		break;
	case 1:
		buf_put_u8(b, (uint8_t)v.number);
		break;
	case 2:
		buf_put_u16(b, (uint16_t)v.number);
		break;
	case 4:
		buf_put_u32(b, (uint32_t)v.number);
		break;
	case 8:
		buf_put_u64(b, v.number);
		break;
	default:
		buf_put_raw(b, zero, v.nbytes);
	}
}

/* What is left of a record for the members of a struct. */
struct filler {
	struct program *in;
	size_t left;		/* values */
	uint32_t fd_len;
};

static void fill(struct filler *, const struct field_table *, void *);

/* The next value, of either kind; 0 and "" when there is none. */
static void
take(struct filler *fl, struct value *v)
{
	memset(v, 0, sizeof(*v));
	if (fl->left > 0) {
		fl->left--;
		next_value(fl->in, v, fl->fd_len);
	}
}

static int64_t
take_int(struct filler *fl, const struct field *f)
{
	struct value v;
	uint64_t range = f->max - (uint64_t)f->min;
	int64_t i;

	take(fl, &v);
	i = (int64_t)v.number;
	if (i < f->min || (i > 0 && (uint64_t)i > f->max))
		i = (int64_t)((uint64_t)f->min + v.number % (range + 1));
	return i;
}

static char *
take_text(struct filler *fl, size_t max)
{
	struct value v;

	take(fl, &v);
	if (strlen(v.text) > max)
		v.text[max] = '\0';
	return strdup(v.text);
}

static void
fill_item(struct filler *fl, const struct field *f, void *items, size_t i)
{
	struct field_pair *pair;

	switch (f->kind) {
	case FIELD_STRS:
		((char **)items)[i] = take_text(fl, f->max);
		break;
	case FIELD_INTS:
		((int64_t *)items)[i] = take_int(fl, f);
		break;
	case FIELD_MAP:
		pair = (struct field_pair *)items + i;
		pair->key = take_text(fl, f->max);
		pair->value = take_text(fl, f->max);
		break;
	default:
		fill(fl, f->sub, (char *)items + i * f->sub->size);
	}
}

static void
fill_list(struct filler *fl, const struct field *f, void *v)
{
	size_t size = f->kind == FIELD_STRS ? sizeof(char *) :
	    f->kind == FIELD_INTS ? sizeof(int64_t) :
	    f->kind == FIELD_MAP ? sizeof(struct field_pair) : f->sub->size;
	struct value count;
	size_t n, i;
	void *items;

	take(fl, &count);
	n = (size_t)(count.number % (f->nmax < 8 ? f->nmax + 1 : 8));
	if ((items = calloc(n + 1, size)) == NULL)
		abort();
	MSGBODY_AT(void *, v, f->off) = items;
	MSGBODY_AT(size_t, v, f->noff) = n;
	for (i = 0; i < n; i++)
		fill_item(fl, f, items, i);
}

static void
fill_member(struct filler *fl, const struct field *f, void *v)
{
	struct value x;
	char *text;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_CSTR:
	case FIELD_RAW:
		MSGBODY_AT(char *, v, f->off) = take_text(fl, f->max);
		break;
	case FIELD_SECRET:
	case FIELD_SBYTES:
		text = take_text(fl, f->max);
		(void)secret_init(&MSGBODY_AT(struct secret, v, f->off), text,
		    strlen(text), f->max);
		free(text);
		break;
	case FIELD_TEXT:
	case FIELD_BYTES:
		text = take_text(fl, f->max);
		MSGBODY_AT(char *, v, f->off) = text;
		if (f->kind == FIELD_TEXT)
			MSGBODY_AT(struct field_text, v, f->off).len =
			    strlen(text);
		else
			MSGBODY_AT(size_t, v, f->noff) = strlen(text);
		break;
	case FIELD_UINT:
		take(fl, &x);
		MSGBODY_AT(uint64_t, v, f->off) = x.number <= f->max ?
		    x.number : x.number % (f->max + 1);
		break;
	case FIELD_BOOL:
		take(fl, &x);
		MSGBODY_AT(int, v, f->off) = (int)(x.number & 1);
		break;
	case FIELD_INT:
		MSGBODY_AT(int64_t, v, f->off) = take_int(fl, f);
		break;
	case FIELD_OPTINT:
		MSGBODY_AT(struct field_optint, v, f->off).v =
		    take_int(fl, f);
		MSGBODY_AT(struct field_optint, v, f->off).set = 1;
		break;
	case FIELD_TIME:
		take(fl, &x);
		MSGBODY_AT(int64_t, v, f->off) = (int64_t)x.number;
		break;
	case FIELD_OBJ:
		fill(fl, f->sub, (char *)v + f->off);
		break;
	case FIELD_PTR:
		break;
	default:
		fill_list(fl, f, v);
	}
}

static void
fill(struct filler *fl, const struct field_table *t, void *v)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	field_init(t, v);
	for (i = 0; i < n; i++)
		fill_member(fl, &rows[i], v);
}

/* A struct of the row, from n values. */
static void
put_body(struct program *in, const struct msg_row *row, size_t n,
    uint32_t fd_len, struct buf *b)
{
	struct filler fl = { in, n, fd_len };
	union msg_any v;

	fill(&fl, row->body, &v);
	/* A key twice, a NUL inside: it is not sent. */
	(void)msg_put(row->type, &v, b);
	msg_clear(row->type, &v);
}

/* A sealed memfd of the forms that handlers read, or of raw bytes. */
static int
make_fd(struct program *in, uint32_t *lenp)
{
	static char *argv[] = { (char *)(uintptr_t)"true" };
	uint8_t raw[256], how = next(in);
	struct hello_blob hello;
	struct spec spec;
	struct caps caps;
	size_t n, i;
	int fd = -1;

	*lenp = 0;
	switch (how % 5) {
	case 0:
		spec_init(&spec);
		spec.argv = argv;
		spec.nargv = how >= 128 ? 0 : 1;
		return mt_memfd(&spec_start_table, &spec, lenp);
	case 1:
		hello_blob_init(&hello);
		hello.protocol_version = how / 5 % 30;
		hello.agent_id = device[how & 1].agent_id;
		hello.caps.os = (char *)(uintptr_t)"linux";
		return mt_memfd(&hello_blob_table, &hello, lenp);
	case 2:
		field_init(&caps_table, &caps);
		caps.max_concurrent = how;
		return mt_memfd(&caps_table, &caps, lenp);
	default:
		n = next(in);
		for (i = 0; i < n; i++)
			raw[i] = next(in);
		FUZZ_CHECK(util_make_memfd(raw, n, &fd) == CL_OK);
		*lenp = (uint32_t)n;
		return fd;
	}
}

/* The types this child may send; now and then one of another's. */
static const struct msg_row *
choose_row(size_t child, uint8_t which)
{
	static const enum msg_dir dirs[4] = { MSG_K2M, MSG_C2M, MSG_N2M,
		MSG_N2M };
	const struct msg_row *rows, *mine[128];
	size_t nrows, i, n = 0;

	rows = msgcat_get_rows(&nrows);
	if (which == 255)
		return &rows[nrows / 2];
	for (i = 0; i < nrows && n < 128; i++)
		if (rows[i].dir == dirs[child])
			mine[n++] = &rows[i];
	return mine[which % n];
}

static uint64_t
choose_id(struct program *in, size_t child)
{
	uint8_t how = next(in);

	if (how < 64)
		return last_id[child];
	if (child == 1)
		return MT_ID(1 + how % NCLIENTS, how);
	return how;
}

/* The message in memory of exactly its size. */
static void
say(size_t child, const struct msg_row *row, uint64_t id, struct buf *b,
    int fd)
{
	struct imsg m = { .type = row->type, .id = id, .fd = fd };
	uint8_t *exact = malloc(b->len + 1);

	if (exact == NULL)
		abort();
	if (b->len > 0)
		memcpy(exact, b->data, b->len);
	buf_init_read(&m.body, exact, b->len);
	/* Else each is refused as sent twice. */
	memset(&mt.children[child].chan.seen, 0,
	    sizeof(mt.children[child].chan.seen));
	mon_on_message(&mt.children[child], &m);
	imsg_free(&m);
	free(exact);
	mon_end_turn(&mt);
}

static void
hear_all(void)
{
	struct imsg m;
	size_t i;

	for (i = 0; i < 4; i++)
		while (mt_hear(i, &m) != 0) {
			last_id[i] = m.id;
			imsg_free(&m);
		}
}

static void
run_record(struct program *in)
{
	size_t child = next(in) % 4;
	const struct msg_row *row = choose_row(child, next(in));
	uint64_t id = choose_id(in, child);
	uint8_t how = next(in);
	uint32_t fd_len = 0;
	struct buf b;
	int fd = -1;
	size_t n;

	if (row->fd != (how >= 250))
		fd = make_fd(in, &fd_len);
	buf_init(&b, MSG_BODY_MAX);
	n = how % 16;
	if (how < 128)
		put_body(in, row, n, fd_len, &b);
	else
		for (; n > 0; n--)
			put_value(in, &b, fd_len);
	if (buf_error(&b) == CL_OK)
		say(child, row, id, &b, fd);
	else if (fd != -1)
		close(fd);
	buf_clear(&b);
	hear_all();
}

/* Nobody is really killed, and nobody has to be started again. */
static void
start_monitor(void)
{
	static char conf[300];
	uint32_t i;

	mt_start();
	/* CTL_RELOAD reads it again. */
	snprintf(conf, sizeof(conf), "%s/conf", tmp_dir);
	mt.args.file = conf;
	for (i = 0; i < 4; i++) {
		kill(mt.children[i].pid, SIGKILL);
		waitpid(mt.children[i].pid, NULL, 0);
		mt.children[i].pid = 0;
	}
	for (i = 1; i <= NCLIENTS; i++)
		mt_operator(i, i == NCLIENTS ? ROLE_VIEWER : ROLE_OPERATOR);
	mt_connect(&device[0], MT_NET1, "edge-1", "a");
	mt_connect(&device[1], MT_NET2, "edge-2", "b");
	mt_run(MT_ID(1, 1), "edge-1", 0);
	mt_run(MT_ID(2, 1), "edge-2", 1);
	hear_all();
}

int
fuzz_is_slow(void)
{
	return 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static unsigned int nruns;
	static int started;
	struct program in = { data, len };

	/* A failed assertion of the fixture comes back here. */
	if (setjmp(unit.out) != 0)
		abort();
	if (!started || nruns >= RUNS) {
		if (started)
			mt_stop();
		start_monitor();
		started = 1;
		nruns = 0;
	}
	nruns++;
	while (in.left > 0)
		run_record(&in);
	FUZZ_CHECK(mt.children[0].state != CHILD_DOWN && !mt.done);
	return 0;
}
