/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Enrolls a fleet for the bench while no hub runs: tokens minted and
 * redeemed by the hub's own code, all in one turn of the store, so that
 * thousands take seconds.  fleet KEYDIR STATEDIR COUNT prints a line for
 * each agent: its id and its credential.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/util.h"
#include "store/db/store.h"
#include "store/db/token.h"

static void
enroll_one(struct store *s, const struct secret *key, int number)
{
	struct secret token = SECRET_INIT, credential = SECRET_INIT;
	struct token_mint m = { .created_by = "bench" };
	struct store_enrollment e;
	struct store_agent a;
	enum token_result t;
	const char *why;
	char name[32];

	snprintf(name, sizeof(name), "bench-%05d", number);
	m.name = name;
	m.now = util_wall_ns();
	if (token_mint(s, key, &m, &token, &e, &why) != CL_OK)
		errx(1, "mint: %s", why != NULL ? why : store_error(s));
	t = token_redeem(s, key, (const char *)token.data, "127.0.0.1:1",
	    m.now, &credential, &a);
	if (t != TOKEN_OK)
		errx(1, "redeem: %s", token_format_result(t));
	printf("%s %s\n", a.agent_id, (const char *)credential.data);
	store_enrollment_clear(&e);
	store_agent_clear(&a);
	secret_clear(&token);
	secret_clear(&credential);
}

int
main(int argc, char **argv)
{
	struct secret key = SECRET_INIT;
	const char *why = "missing";
	struct store *s;
	char text[512];
	int i, n = 0;

	if (argc == 4)
		n = (int)strtonum(argv[3], 1, 1000000, &why);
	if (n == 0)
		errx(1, "usage: fleet KEYDIR STATEDIR COUNT (%s)", why);
	if (token_load_key(argv[1], &key, text, sizeof(text)) != CL_OK ||
	    store_open(argv[2], 1000, &s, text, sizeof(text)) != CL_OK)
		errx(1, "%s", text);
	if (store_begin_turn(s) != CL_OK)
		errx(1, "%s", store_error(s));
	for (i = 0; i < n; i++)
		enroll_one(s, &key, i);
	if (store_commit_turn(s) != CL_OK)
		errx(1, "%s", store_error(s));
	store_close(s);
	secret_clear(&key);
	return fflush(stdout) == 0 ? 0 : 1;
}
