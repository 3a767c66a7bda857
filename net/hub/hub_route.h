/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What one HTTP request to the agents' port gets: the checks that need no
 * secret, in their order, and the texts of the answers.  Pure: the caller
 * asks the monitor about the credential and writes the answer.
 */
#ifndef CLOOP_HUB_ROUTE_H
#define CLOOP_HUB_ROUTE_H

#include <stddef.h>

#include "common/base/limits.h"

struct http1_head;
struct hub_addr;
struct hub_conf;

#define HR_PATH "/api/executors/connect"
#define HR_ANSWER_MAX 512

struct hr_request {
	const struct http1_head *head;
	const struct hub_conf *conf;
	const struct hub_addr *peer;
	int tls;
};

/* Why a request is answered, besides the status. */
enum hr_why { HR_OK, HR_PATH_UNKNOWN, HR_ORIGIN, HR_UPGRADE, HR_NO_TOKEN };

/*
 * Check path, origin, form of the upgrade and presence of a credential, in
 * this order.  HR_OK: bearer[MAX_TOKEN_LEN + 1] holds it.  Otherwise
 * *statusp is the answer's status.  A refused request changed nothing.
 */
enum hr_why hr_check_request(const struct hr_request *q, char *bearer,
    unsigned int *statusp);

/*
 * 1 when the request's Origin is allowed, or it has none.  *originp borrows
 * the refused value, for the report.
 */
int hr_check_origin(const struct hr_request *q, const char **originp);

/*
 * A whole answer of this status, every 401 with the same bytes.  Returns
 * its length, 0 when dst is too small.
 */
size_t hr_format_answer(char dst[HR_ANSWER_MAX], unsigned int status);

#endif
