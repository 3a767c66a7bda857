/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Tokens and credentials: known vectors, the order of the checks, races.
 */
#include <sys/wait.h>

#include "store/db/keyfile.h"
#include "store/db/token.h"
#include "store_tmp.h"

#define ID "AAECAwQFBgcICQoL"
#define SECRET "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8"
#define BODY ID "." SECRET "."
#define HASH "cf0931e168b49e987503caf18af6fe253b6b3d82a81008c3e8e1ee67c7c8dc55"
#define S(n) ((n) * 1000000000LL)

static struct secret key, empty;

static void
set_up(void)
{
	if (key.data == NULL) {
		ASSERT_ERR(secret_init(&key, "test-hmac-key", 13, 64), CL_OK);
		ASSERT_ERR(secret_init(&empty, "", 0, 64), CL_OK);
	}
}

static void
test_vectors(void)
{
	static const char *const want[][2] = {
		{ "clet1." BODY "e57ff68ef8872e73df024eef4475a64b",
		  "clet1." BODY "e6acc4375f2f2b700aee04190264e87e" },
		{ "clac1." BODY "3e5b5a4e4004f6c4a1bb41a9f3d900a7",
		  "clac1." BODY "68dfe2299e99b0d84dbb28b10f4e8473" },
	};
	static const char *const prefix[] = { "clet1", "clac1" };
	char text[MAX_TOKEN_LEN + 1], hash[TOKEN_HASH_LEN + 1];
	struct token_parts p;
	int i, j;

	TEST_START("known tokens, with and without a key");
	set_up();
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			const struct secret *k = j == 0 ? &empty : &key;

			ASSERT_ERR(token_format(k, prefix[i], ID, SECRET,
			    text), CL_OK);
			ASSERT_STRING_EQ(text, want[i][j]);
			ASSERT_SIZE_T_EQ(strlen(text), TOKEN_LEN);
			ASSERT_ERR(token_parse(k, prefix[i], text, &p),
			    CL_OK);
			ASSERT_STRING_EQ(p.id, ID);
			ASSERT_STRING_EQ(p.secret, SECRET);
			ASSERT_ERR(token_parse(k, prefix[!i], text, &p),
			    CL_FORMAT);
			ASSERT_ERR(token_parse(j == 0 ? &key : &empty,
			    prefix[i], text, &p), CL_FORMAT);
		}
	}

	TEST_START("the hash is of the characters as written");
	ASSERT_ERR(token_hash(SECRET, hash), CL_OK);
	ASSERT_STRING_EQ(hash, HASH);
}

static void
test_parse(void)
{
	static const char good[] =
	    "clet1." BODY "e57ff68ef8872e73df024eef4475a64b";
	static const char *const bad[] = {
		"", "   ", ".", "...", "....", "clet1", "clet1." BODY,
		"clet1." BODY "e57ff68ef8872e73df024eef4475a64",
		"clet1." BODY "e57ff68ef8872e73df024eef4475a64bb",
		"clet1." BODY "E57FF68EF8872E73DF024EEF4475A64B",
		"clet1." BODY "e57ff68ef8872e73df024eef4475a64c",
		"clet1." BODY "e57ff68ef8872e73df024eef4475a64b.",
		"CLET1." BODY "e57ff68ef8872e73df024eef4475a64b",
		"clet1.." SECRET ".e57ff68ef8872e73df024eef4475a64b",
		"clet1." ID "..e57ff68ef8872e73df024eef4475a64b",
		"clet1." ID " ." SECRET ".e57ff68ef8872e73df024eef4475a64b",
	};
	char text[2048], c;
	struct token_parts p;
	size_t i, len = strlen(good);

	TEST_START("white space around is trimmed");
	set_up();
	snprintf(text, sizeof(text), " \t\r\n%s\n ", good);
	ASSERT_ERR(token_parse(&empty, "clet1", text, &p), CL_OK);

	TEST_START("everything else is invalid");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		ASSERT_ERR(token_parse(&empty, "clet1", bad[i], &p),
		    CL_FORMAT);
	}

	TEST_START("any changed character is noticed");
	for (i = 0; i < len; i++) {
		snprintf(text, sizeof(text), "%s", good);
		c = text[i];
		text[i] = c == 'x' ? 'y' : 'x';
		unit_note("position %zu", i);
		ASSERT_ERR(token_parse(&empty, "clet1", text, &p), CL_FORMAT);
	}

	TEST_START("the cap of 512 bytes comes first");
	memset(text, ' ', sizeof(text));
	memcpy(text, good, len);
	text[512] = '\0';
	ASSERT_ERR(token_parse(&empty, "clet1", text, &p), CL_OK);
	text[512] = ' ';
	text[513] = '\0';
	ASSERT_ERR(token_parse(&empty, "clet1", text, &p), CL_TOOBIG);
}

static void
test_key(void)
{
	const char *dir = tmp_new();
	struct secret k = SECRET_INIT;
	char err[512], path[512], text[KEYFILE_RAW_MAX];
	uint8_t raw[KEYFILE_RAW_LEN];

	TEST_START("the MAC key: environment first, then the file");
	ASSERT_INT_EQ(unsetenv("CLOOP_STATE_HMAC_KEY"), 0);
	ASSERT_ERR(token_load_key(dir, &k, err, sizeof(err)), CL_NOTFOUND);
	ASSERT_TRUE(strstr(err, "mac.key") != NULL);
	memset(raw, 7, sizeof(raw));
	snprintf(path, sizeof(path), "%s/mac.key", dir);
	ASSERT_ERR(keyfile_save_new(path, 0600, text,
	    keyfile_format_raw("mac", raw, text), err, sizeof(err)), CL_OK);
	ASSERT_INT_EQ(setenv("CLOOP_STATE_HMAC_KEY", "", 1), 0);
	ASSERT_ERR(token_load_key(dir, &k, err, sizeof(err)), CL_OK);
	ASSERT_BYTES_EQ(k.data, k.len, raw, sizeof(raw));
	secret_clear(&k);
	ASSERT_INT_EQ(setenv("CLOOP_STATE_HMAC_KEY", " k\n", 1), 0);
	ASSERT_ERR(token_load_key(dir, &k, err, sizeof(err)), CL_OK);
	ASSERT_BYTES_EQ(k.data, k.len, " k\n", (size_t)3);
	secret_clear(&k);
	ASSERT_INT_EQ(unsetenv("CLOOP_STATE_HMAC_KEY"), 0);
}

/* Mint in a turn of its own. */
static void
mint(struct store *s, int64_t now, int64_t ttl, char text[MAX_TOKEN_LEN + 1],
    char id[64])
{
	struct token_mint m = { .name = " edge ", .ttl_s = ttl,
		.created_by = "root", .now = now };
	struct store_enrollment e;
	struct secret token = SECRET_INIT;
	const char *why;

	ASSERT_ERR(store_begin_turn(s), CL_OK);
	ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why), CL_OK);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	ASSERT_SIZE_T_EQ(token.len, TOKEN_LEN);
	snprintf(text, MAX_TOKEN_LEN + 1, "%s", (char *)token.data);
	snprintf(id, 64, "%s", e.id);
	ASSERT_STRING_EQ(e.name, "edge");
	secret_clear(&token);
	store_enrollment_clear(&e);
}

static enum token_result
redeem(struct store *s, const char *text, int64_t now, char cred[128],
    char agent_id[64])
{
	struct secret credential = SECRET_INIT;
	struct store_agent a;
	enum token_result t;

	ASSERT_ERR(store_begin_turn(s), CL_OK);
	t = token_redeem(s, &key, text, "192.0.2.1", now, &credential, &a);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	if (t == TOKEN_OK) {
		snprintf(cred, 128, "%s", (char *)credential.data);
		snprintf(agent_id, 64, "%s", a.agent_id);
	}
	secret_clear(&credential);
	store_agent_clear(&a);
	return t;
}

static enum token_result
authenticate(struct store *s, const char *text)
{
	struct store_agent a;
	enum token_result t = token_authenticate(s, &key, text, &a);

	store_agent_clear(&a);
	return t;
}

/* The same token with another secret and a MAC that fits. */
static void
with_secret(const char *prefix, const char *id, char dst[MAX_TOKEN_LEN + 1])
{
	ASSERT_ERR(token_format(&key, prefix, id, SECRET, dst), CL_OK);
}

static void
test_mint(void)
{
	struct store *s = tmp_open(tmp_new());
	struct token_mint m = { .name = "x", .now = S(100) };
	struct store_labels l = { NULL, 0 };
	struct store_enrollment e;
	struct secret token = SECRET_INIT;
	const char *why;
	char big[300];
	static const struct {
		const char *name;
		int64_t ttl;
		int r;
	} cases[] = {
		{ "", 0, CL_FORMAT }, { " \t ", 0, CL_FORMAT },
		{ NULL, 0, CL_FORMAT }, { "a\nb", 0, CL_FORMAT },
		{ "a\xff", 0, CL_FORMAT }, { "x", 86401, CL_TOOBIG },
		{ "x", 30 * 86400, CL_TOOBIG },
	};
	size_t i;

	TEST_START("bad names and long lifetimes are refused");
	set_up();
	ASSERT_ERR(store_begin_turn(s), CL_OK);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m.name = cases[i].name;
		m.ttl_s = cases[i].ttl;
		ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why),
		    cases[i].r);
		ASSERT_TRUE(why != NULL && *why != '\0');
		ASSERT_TRUE(token.data == NULL);
	}

	TEST_START("a name of 128 bytes is taken, 129 are not");
	memset(big, 'n', sizeof(big));
	big[129] = '\0';
	m.name = big;
	m.ttl_s = 0;
	ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why), CL_TOOBIG);
	big[128] = '\0';
	ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why), CL_OK);

	TEST_START("the default lifetime is 15 minutes, the longest a day");
	ASSERT_INT_EQ(e.expires_at - e.created_at, S(900));
	store_enrollment_clear(&e);
	secret_clear(&token);
	m.ttl_s = 86400;
	ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why), CL_OK);
	ASSERT_INT_EQ(e.expires_at - e.created_at, S(86400));
	store_enrollment_clear(&e);
	secret_clear(&token);

	TEST_START("labels: a blank key and control characters are refused");
	m.labels = &l;
	ASSERT_ERR(store_labels_add(&l, " ", "v"), CL_OK);
	ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why), CL_FORMAT);
	store_labels_clear(&l);
	ASSERT_ERR(store_labels_add(&l, "k", "a\x1b[0m"), CL_OK);
	ASSERT_ERR(token_mint(s, &key, &m, &token, &e, &why), CL_FORMAT);
	store_labels_clear(&l);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	store_close(s);
}

static void
test_redeem(void)
{
	struct store *s = tmp_open(tmp_new());
	char text[MAX_TOKEN_LEN + 1], other[MAX_TOKEN_LEN + 1];
	char cred[128] = "", cred2[128], id[64], agent[64] = "", a2[64];
	struct store_enrollment e;

	TEST_START("a damaged, foreign or unknown token is invalid");
	set_up();
	mint(s, S(100), 60, text, id);
	ASSERT_INT_EQ(redeem(s, "rubbish", S(101), cred, agent),
	    TOKEN_INVALID);
	with_secret("clet1", "unknown-unknown-", other);
	ASSERT_INT_EQ(redeem(s, other, S(101), cred, agent), TOKEN_INVALID);
	with_secret("clac1", id, other);
	ASSERT_INT_EQ(redeem(s, other, S(101), cred, agent), TOKEN_INVALID);

	TEST_START("a wrong secret with a right MAC does not burn the token");
	with_secret("clet1", id, other);
	ASSERT_INT_EQ(redeem(s, other, S(101), cred, agent), TOKEN_INVALID);
	ASSERT_INT_EQ(redeem(s, text, S(160), cred, agent), TOKEN_OK);
	ASSERT_TRUE(strncmp(cred, "clac1.", 6) == 0);
	ASSERT_SIZE_T_EQ(strlen(cred), TOKEN_LEN);
	ASSERT_MEM_EQ(cred + 6, agent, (size_t)16);

	TEST_START("replay: already used, also when it would have expired");
	ASSERT_INT_EQ(redeem(s, text, S(101), cred2, a2), TOKEN_ALREADY_USED);
	ASSERT_INT_EQ(redeem(s, text, S(999), cred2, a2), TOKEN_ALREADY_USED);
	ASSERT_INT_EQ(redeem(s, other, S(101), cred2, a2),
	    TOKEN_ALREADY_USED);
	ASSERT_ERR(store_find_enrollment(s, id, &e), CL_OK);
	ASSERT_STRING_EQ(e.redeemed_agent_id, agent);
	ASSERT_STRING_EQ(e.redeemed_peer, "192.0.2.1");
	store_enrollment_clear(&e);

	TEST_START("expired: strictly after expires_at");
	mint(s, S(100), 60, text, id);
	ASSERT_INT_EQ(redeem(s, text, S(160) + 1, cred2, a2), TOKEN_EXPIRED);
	ASSERT_INT_EQ(redeem(s, text, S(160), cred2, a2), TOKEN_OK);

	TEST_START("the credential authenticates, the token does not");
	ASSERT_INT_EQ(authenticate(s, cred), TOKEN_OK);
	ASSERT_INT_EQ(authenticate(s, text), TOKEN_CREDENTIAL_INVALID);
	with_secret("clac1", agent, other);
	ASSERT_INT_EQ(authenticate(s, other), TOKEN_CREDENTIAL_INVALID);
	with_secret("clac1", "unknown-unknown-", other);
	ASSERT_INT_EQ(authenticate(s, other), TOKEN_AGENT_NOT_FOUND);
	ASSERT_INT_EQ(authenticate(s, ""), TOKEN_CREDENTIAL_INVALID);
	store_close(s);
}

static enum token_result
do_revoke(struct store *s, const char *id, struct token_revoked *rv)
{
	enum token_result t;

	ASSERT_ERR(store_begin_turn(s), CL_OK);
	t = token_revoke(s, id, "because", "root", S(200), rv);
	ASSERT_ERR(store_commit_turn(s), CL_OK);
	return t;
}

static void
test_revoke(void)
{
	struct store *s = tmp_open(tmp_new());
	char text[MAX_TOKEN_LEN + 1], cred[128], id[64], agent[64], spaced[80];
	struct token_revoked rv;

	TEST_START("an unused token: kind enrollment");
	set_up();
	mint(s, S(100), 60, text, id);
	ASSERT_INT_EQ(do_revoke(s, id, &rv), TOKEN_OK);
	ASSERT_STRING_EQ(rv.kind, "enrollment");
	ASSERT_TRUE(rv.agent_id == NULL);
	token_revoked_clear(&rv);
	ASSERT_INT_EQ(redeem(s, text, S(101), cred, agent), TOKEN_REVOKED);

	TEST_START("a used one takes its agent along");
	mint(s, S(100), 60, text, id);
	ASSERT_INT_EQ(redeem(s, text, S(101), cred, agent), TOKEN_OK);
	snprintf(spaced, sizeof(spaced), " %s\n", id);
	ASSERT_INT_EQ(do_revoke(s, spaced, &rv), TOKEN_OK);
	ASSERT_STRING_EQ(rv.kind, "enrollment+agent");
	ASSERT_STRING_EQ(rv.agent_id, agent);
	ASSERT_STRING_EQ(rv.enrollment_id, id);
	token_revoked_clear(&rv);
	ASSERT_INT_EQ(authenticate(s, cred), TOKEN_REVOKED);
	/* Revoked is reported before "already used". */
	ASSERT_INT_EQ(redeem(s, text, S(101), cred, agent), TOKEN_REVOKED);

	TEST_START("an agent by its id");
	mint(s, S(100), 60, text, id);
	ASSERT_INT_EQ(redeem(s, text, S(101), cred, agent), TOKEN_OK);
	ASSERT_INT_EQ(do_revoke(s, agent, &rv), TOKEN_OK);
	ASSERT_STRING_EQ(rv.kind, "agent");
	ASSERT_TRUE(rv.enrollment_id == NULL);
	token_revoked_clear(&rv);
	ASSERT_INT_EQ(authenticate(s, cred), TOKEN_REVOKED);

	TEST_START("nothing by an unknown or blank id");
	ASSERT_INT_EQ(do_revoke(s, "nobody", &rv), TOKEN_AGENT_NOT_FOUND);
	ASSERT_INT_EQ(do_revoke(s, "  ", &rv), TOKEN_AGENT_NOT_FOUND);
	token_revoked_clear(&rv);
	store_close(s);
}

static int
on_audit(const struct store_audit *a, void *arg)
{
	char *text = arg;
	size_t n = strlen(text);

	snprintf(text + n, 8192 - n, "%s %s %s %s\n", a->action, a->decision,
	    a->subject, a->detail);
	return 0;
}

static void
test_audit(void)
{
	const char *dir = tmp_new();
	struct store *s = tmp_open(dir);
	char text[MAX_TOKEN_LEN + 1], cred[128], c2[128], id[64], agent[64];
	char a2[64], log[8192] = "", path[512], secret[44];
	struct token_revoked rv;
	uint8_t *data;
	size_t len;
	int fd;

	TEST_START("mint, redeem, replay and revoke leave rows (BC-37)");
	set_up();
	mint(s, S(100), 60, text, id);
	ASSERT_INT_EQ(redeem(s, text, S(101), cred, agent), TOKEN_OK);
	ASSERT_INT_EQ(redeem(s, text, S(102), c2, a2), TOKEN_ALREADY_USED);
	ASSERT_INT_EQ(do_revoke(s, agent, &rv), TOKEN_OK);
	token_revoked_clear(&rv);
	ASSERT_ERR(store_list_audit(s, 0, UTIL_TIME_ZERO, 10, on_audit, log),
	    CL_OK);
	ASSERT_TRUE(strstr(log, "\"action\":\"mint\"") != NULL);
	ASSERT_TRUE(strstr(log, "executor.enroll deny") != NULL);
	ASSERT_TRUE(strstr(log, "\"first_peer\":\"192.0.2.1\"") != NULL);
	ASSERT_TRUE(strstr(log, "\"first_at\":\"1970-01-01T00:01:41Z\"") !=
	    NULL);
	ASSERT_TRUE(strstr(log, "\"reason\":\"token_already_used\"") != NULL);
	ASSERT_TRUE(strstr(log, "executor.revoke allow") != NULL);
	store_close(s);

	TEST_START("no secret is in the file");
	snprintf(path, sizeof(path), "%s/hub/cloop.db", dir);
	ASSERT_ERR(util_open_file(path, 0, &fd, NULL), CL_OK);
	ASSERT_ERR(util_load_fd(fd, 1 << 24, &data, &len), CL_OK);
	close(fd);
	snprintf(secret, sizeof(secret), "%.43s", text + 23);
	ASSERT_TRUE(memmem(data, len, id, strlen(id)) != NULL);
	ASSERT_TRUE(memmem(data, len, secret, 43) == NULL);
	ASSERT_TRUE(memmem(data, len, cred + 23, 43) == NULL);
	free(data);
}

/* Eight processes, one token: each waits for the store's lock. */
static int
race_round(const char *dir, const char *text)
{
	char cred[128], agent[64], err[512];
	struct store *s;
	pid_t pids[8];
	int i, status, won = 0, other = 0;

	fflush(stdout);
	for (i = 0; i < 8; i++) {
		if ((pids[i] = fork()) != 0)
			continue;
		if (store_open(dir, 30000, &s, err, sizeof(err)) != 0)
			_exit(100);
		i = redeem(s, text, S(101), cred, agent);
		store_close(s);
		_exit(i);
	}
	for (i = 0; i < 8; i++) {
		ASSERT_INT_EQ(waitpid(pids[i], &status, 0), pids[i]);
		if (status == 0)
			won++;
		else if (WEXITSTATUS(status) != TOKEN_ALREADY_USED)
			other++;
	}
	return other == 0 ? won : -1;
}

static void
test_race(void)
{
	const char *dir = tmp_new();
	struct store *s = tmp_open(dir);
	char text[MAX_TOKEN_LEN + 1], cred[128], agent[64], id[64];
	int i, j, won, rounds = getenv("SLOW") != NULL ? 1000 : 5;

	TEST_START("eight redeemers in one turn, a thousand times: one wins");
	set_up();
	for (i = 0; i < 1000; i++) {
		mint(s, S(100), 60, text, id);
		ASSERT_ERR(store_begin_turn(s), CL_OK);
		for (won = 0, j = 0; j < 8; j++) {
			snprintf(agent, sizeof(agent), "agent-%d", j);
			won += store_redeem_enrollment(s, id, agent, "",
			    S(101)) == CL_OK;
		}
		store_abort_turn(s);
		ASSERT_INT_EQ(won, 1);
	}
	ASSERT_INT_EQ(redeem(s, text, S(101), cred, agent), TOKEN_OK);

	TEST_START("eight processes: one wins, the others: already used");
	for (i = 0; i < rounds; i++) {
		mint(s, S(100), 60, text, id);
		store_close(s);
		unit_note("round %d", i);
		ASSERT_INT_EQ(race_round(dir, text), 1);
		s = tmp_open(dir);
	}
	store_close(s);
}

static void
test_hints(void)
{
	int t;

	TEST_START("every refusal has its word and its hint");
	ASSERT_STRING_EQ(token_format_result(TOKEN_OK), "");
	ASSERT_STRING_EQ(token_find_hint(TOKEN_OK), "");
	ASSERT_STRING_EQ(token_find_hint(TOKEN_FAILED), "");
	for (t = TOKEN_INVALID; t < TOKEN_FAILED; t++) {
		ASSERT_TRUE(token_format_result(t)[0] != '\0');
		ASSERT_TRUE(token_find_hint(t)[0] != '\0');
	}
}

UNIT_MAIN(test_vectors, test_parse, test_key, test_mint, test_redeem,
    test_revoke, test_audit, test_race, test_hints)
