/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Refusals as an operator reads them: a code in snake case, a sentence, and
 * what can be done about it.
 */
#ifndef PRIV_REFUSE_H
#define PRIV_REFUSE_H

#include "common/base/limits.h"

struct refusal {
	const char *code;		/* constant; NULL: no refusal */
	char message[MAX_CTL_ERROR_LEN + 1];
	char remedy[MAX_CTL_REMEDY_LEN + 1];
};

/* Fill in; the remedy is the one of the code. */
void refuse_set(struct refusal *r, const char *code, const char *fmt, ...)
    __attribute__((__format__(__printf__, 3, 4)));
/* Replace the remedy. */
void refuse_set_remedy(struct refusal *r, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/*
 * Why a request to a device failed: RES_* of msgcat.h, and for
 * RES_ERROR_FRAME the frame's code.  `agent` is its name.
 */
void refuse_set_result(struct refusal *r, int result, const char *code,
    const char *text, const char *agent);

#endif
