/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The catalogue as a table, and the one check that every received message
 * passes before anything decodes it.  Runs in every process; the message
 * may come from one that was taken over.
 */
#include "msgcat.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/pin.h"
#include "common/base/util.h"
#include "common/model/url.h"
#include "imsg.h"

#define DEF_FILE "common/msg/catalogue.def"
#include "def_table.h"

#define MSG_TYPES 0x800		/* types are below */

#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	_Static_assert((states) != 0 && ((states) & ~MS_ANY) == 0,             \
	    #name ": states");                                                 \
	_Static_assert(((fd) | 1) == 1 && ((once) | 1) == 1,                   \
	    #name ": fd and once");                                            \
	_Static_assert((number) < MSG_TYPES, #name ": number");
#define DEF_FILE "common/msg/catalogue.def"
#include "def_rows.h"

static const struct msg_row msgcat_rows[] = {
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	{ #name, number, MSG_##dir, states, &body##_table, fd, once, rate,     \
	    open },
#define DEF_FILE "common/msg/catalogue.def"
#include "def_rows.h"
};
#define MSGCAT_NROWS (sizeof(msgcat_rows) / sizeof(msgcat_rows[0]))

/* Which row a type is. */
enum {
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	MSGCAT_AT_##name,
#define DEF_FILE "common/msg/catalogue.def"
#include "def_rows.h"
};

/* By type: the row's place + 1. */
static const uint8_t msgcat_index[MSG_TYPES] = {
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	[number] = MSGCAT_AT_##name + 1,
#define DEF_FILE "common/msg/catalogue.def"
#include "def_rows.h"
};

_Static_assert(MSGCAT_NROWS < MSGCAT_MAX_ROWS,
    "msgcat_index counts in one byte");
_Static_assert(MSGCAT_NROWS <= 8 * sizeof(((struct msgcat_seen *)0)->bits),
    "msgcat_seen has a bit for each row");

const struct msg_row *
msgcat_get_rows(size_t *np)
{
	*np = MSGCAT_NROWS;
	return msgcat_rows;
}

const struct msg_row *
msgcat_find(uint32_t type)
{
	if (type >= MSG_TYPES || msgcat_index[type] == 0)
		return NULL;
	return &msgcat_rows[msgcat_index[type] - 1];
}

void
msgcat_find_bounds(const struct msg_row *row, size_t *minp, size_t *maxp)
{
	field_find_bounds(row->body, minp, maxp);
	if (*maxp > MSG_BODY_MAX)
		*maxp = MSG_BODY_MAX;
}

int
msg_put(uint32_t type, const void *v, struct buf *b)
{
	const struct msg_row *row = msgcat_find(type);
	size_t n = 0;

	if (row == NULL)
		return CL_INTERNAL;
	(void)row->body->get_rows(&n);
	if (n > 0 && v == NULL)
		return CL_INTERNAL;
	if (n > 0)
		field_put(row->body, v, b);
	return buf_error(b);
}

int
msg_get(uint32_t type, struct buf *b, void *v)
{
	const struct msg_row *row = msgcat_find(type);
	int r;

	if (row == NULL)
		return CL_INTERNAL;
	if ((r = field_get(row->body, b, v)) != CL_OK)
		return r;
	if ((r = buf_end(b)) != CL_OK)
		field_clear(row->body, v);
	return r;
}

void
msg_clear(uint32_t type, void *v)
{
	const struct msg_row *row = msgcat_find(type);

	if (row != NULL)
		field_clear(row->body, v);
}

size_t
msgcat_get_place(const struct msg_row *row)
{
	return (size_t)(row - msgcat_rows);
}

int
msg_make_memfd(const struct field_table *t, const void *v, size_t max,
    int *fdp, uint64_t *lenp)
{
	struct buf b;
	int r;

	buf_init(&b, max);
	field_put(t, v, &b);
	*lenp = b.len;
	if ((r = buf_error(&b)) == CL_OK)
		r = util_make_memfd(b.data, b.len, fdp);
	buf_clear(&b);		/* wipes */
	return r;
}

int
msg_load_memfd(int fd, uint64_t len, size_t max, const struct field_table *t,
    void *v)
{
	uint8_t *data;
	struct buf b;
	int r;

	if ((r = util_load_memfd(fd, (size_t)len, max, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, (size_t)len);
	if ((r = field_get(t, &b, v)) == CL_OK && (r = buf_end(&b)) != CL_OK)
		field_clear(t, v);
	explicit_bzero(data, (size_t)len);
	free(data);
	return r;
}

const char *
msgcat_name(uint32_t type)
{
	const struct msg_row *row = msgcat_find(type);

	return row == NULL ? "?" : row->name;
}

int
msgcat_check(enum msg_dir dir, unsigned int state, const struct imsg *m,
    struct msgcat_seen *seen, const char **whyp)
{
	const struct msg_row *row;
	size_t i, min = 0, max = 0, len = buf_left(&m->body);
	uint8_t bit;

	*whyp = NULL;
	if ((row = msgcat_find(m->type)) != NULL)
		msgcat_find_bounds(row, &min, &max);
	if (row == NULL)
		*whyp = "unknown type";
	else if (row->dir != dir)
		*whyp = "wrong direction";
	else if ((row->states & state) == 0)
		*whyp = "not in this state";
	else if (len < min)
		*whyp = "too short";
	else if (len > max)
		*whyp = "too long";
	else if (row->fd && m->fd == -1)
		*whyp = "descriptor missing";
	else if (!row->fd && m->fd != -1)
		*whyp = "unexpected descriptor";
	if (*whyp != NULL)
		return CL_FORMAT;
	if (!row->once)
		return 0;
	i = (size_t)(row - msgcat_rows);
	bit = (uint8_t)(1 << i % 8);
	if (seen->bits[i / 8] & bit) {
		*whyp = "sent twice";
		return CL_FORMAT;
	}
	seen->bits[i / 8] |= bit;
	return 0;
}

int
msgcat_role(uint32_t type)
{
	const struct msg_row *row = msgcat_find(type);

	if (row == NULL || row->dir != MSG_C2M)
		return ROLE_NONE;
	switch ((enum msg_type)type) {
	case MSG_CTL_READY:
	case MSG_CTL_CLIENT:
	case MSG_CTL_GONE:
	case MSG_CTL_PACE_ANS:
		return ROLE_NONE;	/* cloopd-ctl's own, nobody else's */
	case MSG_CTL_HELLO:
	case MSG_CTL_STATUS:
	case MSG_CTL_AGENTS:
	case MSG_CTL_PS:
	case MSG_CTL_SHOW:
	case MSG_CTL_WAIT:
	case MSG_CTL_LOGS:
	case MSG_CTL_AUDIT:
	case MSG_CTL_VERIFY:
	case MSG_CTL_ENROLLMENTS:
	case MSG_CTL_BANS:
	case MSG_CTL_SECRETS:
	case MSG_CTL_GRANTS:
	case MSG_CTL_LEASES:
	case MSG_CTL_QUIT:
		return ROLE_VIEWER;
	default:
		return ROLE_OPERATOR;
	}
}
