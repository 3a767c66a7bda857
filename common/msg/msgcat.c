/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The catalogue as a table, and the one check that every received message
 * passes before anything decodes it.  Runs in every process; the message
 * may come from one that was taken over.
 */
#include "msgcat.h"

#include <string.h>

#include "common/base/err.h"
#include "imsg.h"

#define X(name, number, dir, states, min, max, fd, once)                       \
	_Static_assert((min) <= (max) && (max) <= MSG_BODY_MAX,                \
	    #name ": size bounds");                                            \
	_Static_assert((states) != 0 && ((states) & ~MS_ANY) == 0,             \
	    #name ": states");                                                 \
	_Static_assert(((fd) | 1) == 1 && ((once) | 1) == 1,                   \
	    #name ": fd and once");
MSG_CATALOGUES(X)
#undef X

/* In order of type: msgcat_find() halves it. */
static const struct msg_row msgcat_rows[] = {
#define X(name, number, dir, states, min, max, fd, once)                       \
	{ #name, number, MSG_##dir, states, min, max, fd, once },
	MSG_CATALOGUES(X)
#undef X
};
#define MSGCAT_NROWS (sizeof(msgcat_rows) / sizeof(msgcat_rows[0]))

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
	size_t lo = 0, hi = MSGCAT_NROWS, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (msgcat_rows[mid].type == type)
			return &msgcat_rows[mid];
		if (msgcat_rows[mid].type < type)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
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
	size_t i, len = buf_left(&m->body);
	uint8_t bit;

	*whyp = NULL;
	if ((row = msgcat_find(m->type)) == NULL)
		*whyp = "unknown type";
	else if (row->dir != dir)
		*whyp = "wrong direction";
	else if ((row->states & state) == 0)
		*whyp = "not in this state";
	else if (len < row->min)
		*whyp = "too short";
	else if (len > row->max)
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
