/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * store/db/token: any text is refused or is a token whose parts make the same
 * token again.  A text without a valid MAC is given one, so that the code
 * behind the MAC is reached.
 */
#include "store/db/token.h"
#include "fuzz.h"

static void
check(const struct secret *key, const char *text)
{
	char again[MAX_TOKEN_LEN + 1], hash[TOKEN_HASH_LEN + 1];
	struct token_parts p;
	size_t lead;

	if (token_parse(key, TOKEN_ENROLL, text, &p) != 0)
		return;
	FUZZ_CHECK(*p.id != '\0' && *p.secret != '\0');
	FUZZ_CHECK(strchr(p.id, '.') == NULL && strchr(p.secret, '.') == NULL);
	FUZZ_CHECK(token_format(key, TOKEN_ENROLL, p.id, p.secret,
	    again) == 0);
	lead = strspn(text, " \t\r\n\v\f");
	FUZZ_CHECK(strncmp(again, text + lead, strlen(again)) == 0);
	FUZZ_CHECK(token_hash(p.secret, hash) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct secret key = SECRET_INIT;
	char text[1024], made[MAX_TOKEN_LEN + 1], *dot;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	if (secret_init(&key, "", 0, 1) != 0)
		return 0;
	check(&key, text);
	if ((dot = strchr(text, '.')) != NULL) {
		*dot = '\0';
		if (token_format(&key, TOKEN_ENROLL, text, dot + 1,
		    made) == 0)
			check(&key, made);
	}
	secret_clear(&key);
	return 0;
}
