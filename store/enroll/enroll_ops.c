/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll: what commands need from the hub, in two ways.  A running
 * hub is asked through its control socket.  While none runs the store itself
 * is opened; its lock keeps a hub from starting meanwhile, and a running hub
 * keeps us out.  The default store is never made here: the first start of
 * cloopd does that, so that a hub configured for another directory is
 * noticed instead of missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/pin.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "store/db/keyfile.h"
#include "store/db/store.h"
#include "store/db/token.h"
#include "enroll.h"

#define LOCAL_WAIT_MS 2000	/* another cloop-enroll is done sooner */
#define LOCAL_PATH "/api/executors/connect"

/* ---------------------------------------------------------- a running hub */

static int
hub_mint(struct enroll *e, const struct ctl_mint *m, struct ctl_minted *row)
{
	static const struct row_kind kind = { .type = MSG_ROW_MINT,
		.fields = &ctl_minted_table };

	return tool_ask_one(&e->t, TOOL_REQUEST(CTL_MINT, m), -1, &kind,
	    row);
}

static int
hub_revoke(struct enroll *e, const char *id, const char *reason, int forget,
    struct ctl_revoked *row)
{
	struct msg_ctl_end req = { id, reason };

	return tool_ask_one(&e->t, forget ? MSG_CTL_DELETE : MSG_CTL_REVOKE,
	    &req, -1, &enroll_revoked_kind, row);
}

static int
hub_ban(struct enroll *e, const char *what, const char *reason,
    struct ctl_ban *row)
{
	struct msg_ctl_end ban = { what, reason };
	struct msg_name unban = { what };

	if (reason != NULL)
		return tool_ask_one(&e->t, TOOL_REQUEST(CTL_BAN, &ban), -1,
		    &enroll_ban_kind, row);
	return tool_ask_one(&e->t, TOOL_REQUEST(CTL_UNBAN, &unban), -1,
	    &enroll_ban_kind, row);
}

static int
hub_list(struct enroll *e, const struct row_kind *k, row_fn *fn, void *arg)
{
	static const struct msg_name all = { "" };

	return tool_ask(&e->t, k->ask, k->ask == MSG_CTL_AGENTS ? &all : NULL,
	    -1, k, fn, arg);
}

/* ROW_WORKERs follow the ROW_STATUS; only the latter knows the URL. */
static int
hub_server(struct enroll *e, char **serverp)
{
	static const struct row_kind kind = { .type = MSG_ROW_STATUS,
		.fields = &ctl_status_table };
	struct ctl_status st;
	int r;

	*serverp = NULL;
	if ((r = tool_ask_one(&e->t, TOOL_REQUEST(CTL_STATUS, NULL), -1,
	    &kind, &st)) !=
	    EXIT_DONE)
		return r;
	*serverp = st.server;
	st.server = NULL;
	field_clear(&ctl_status_table, &st);
	return EXIT_DONE;
}

static void
hub_close(struct enroll *e)
{
	e->ops = NULL;		/* tool_end() disconnects */
}

static const struct enroll_ops hub_ops = {
	.server = hub_server,
	.mint = hub_mint,
	.revoke = hub_revoke,
	.ban = hub_ban,
	.list = hub_list,
	.close = hub_close,
};

static int
enroll_open_hub(struct enroll *e, struct ctl_error *err)
{
	int r;

	if ((r = ctlclient_open(e->socket, &e->t.client, err)) == CL_OK)
		e->ops = &hub_ops;
	return r;
}

/* -------------------------------------------------------------- the store */

/* https and wss give wss, the rest ws; the path is replaced. */
static int
local_server(struct enroll *e, char **serverp)
{
	const char *url = e->external_url, *host, *scheme = "ws";
	size_t host_len, n;
	char *server;

	*serverp = NULL;
	if (url == NULL)
		return EXIT_DONE;
	if ((host = strstr(url, "://")) == NULL)
		return tool_fail(&e->t, "usage", "", "ExternalURL %s: not a "
		    "URL", tool_clean(url));
	if (strncasecmp(url, "https:", 6) == 0 ||
	    strncasecmp(url, "wss:", 4) == 0)
		scheme = "wss";
	host += 3;
	if ((host_len = strcspn(host, "/?#")) == 0)
		return tool_fail(&e->t, "usage", "", "ExternalURL %s: names no "
		    "host", tool_clean(url));
	n = strlen(scheme) + 3 + host_len + sizeof(LOCAL_PATH);
	if ((server = malloc(n)) == NULL)
		return tool_fail(&e->t, "internal", "", "out of memory");
	snprintf(server, n, "%s://%.*s" LOCAL_PATH, scheme, (int)host_len,
	    host);
	*serverp = server;
	return EXIT_DONE;
}

/* The pin of the certificate the hub will show; "" when it has none.  There
 * but unreadable is an error, never a silently unpinned bundle. */
static int
local_pin(struct enroll *e, char dst[PIN_TEXT_LEN + 1])
{
	unsigned char md[EVP_MAX_MD_SIZE], *der = NULL;
	struct secret text = SECRET_INIT;
	X509 *cert = NULL;
	BIO *bio;
	struct pin pin;
	char err[512];
	int len = 0, r;

	*dst = '\0';
	r = keyfile_load_public(e->key_dir, KEYFILE_CERT, &text, err,
	    sizeof(err));
	if (r == CL_NOTFOUND)
		return EXIT_DONE;
	if (r != CL_OK)
		return tool_fail(&e->t, "internal", "", "%s", err);
	if ((bio = BIO_new_mem_buf(text.data, (int)text.len)) != NULL)
		cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	if (cert != NULL)
		len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
	if (len > 0 && EVP_Digest(der, (size_t)len, md, NULL, EVP_sha256(),
	    NULL) == 1) {
		memcpy(pin.digest, md, sizeof(pin.digest));
		pin_format(&pin, dst);
	}
	OPENSSL_free(der);
	X509_free(cert);
	BIO_free(bio);
	secret_clear(&text);
	return *dst != '\0' ? EXIT_DONE : tool_fail(&e->t, "internal", "",
	    "%s/" KEYFILE_CERT ": no certificate in it", e->key_dir);
}

static int
local_fail_store(struct enroll *e)
{
	return tool_fail(&e->t, "internal", "", "the store: %s",
	    store_error(e->store));
}

/* Commit when all went well so far. */
static int
local_end_turn(struct enroll *e, int ok)
{
	if (!ok) {
		store_abort_turn(e->store);
		return EXIT_REFUSED;
	}
	return store_commit_turn(e->store) == CL_OK ? EXIT_DONE :
	    local_fail_store(e);
}

static const char *
local_actor(void)
{
	static char actor[32];

	snprintf(actor, sizeof(actor), "uid:%ld", (long)getuid());
	return actor;
}

static int
local_mint_row(struct enroll *e, const struct secret *key,
    const struct ctl_mint *m, struct ctl_minted *row)
{
	const struct store_labels labels = { m->labels, m->nlabels };
	const struct token_mint tm = { .name = m->name, .ttl_s = m->ttl_s,
		.workdir_root = m->workdir_root, .labels = &labels,
		.created_by = local_actor(), .now = util_wall_ns() };
	struct store_enrollment en;
	const char *why;
	int r;

	if (store_begin_turn(e->store) != CL_OK)
		return local_fail_store(e);
	r = token_mint(e->store, key, &tm, &row->token, &en, &why);
	if (r != CL_OK) {
		store_abort_turn(e->store);
		if (r == CL_DB)
			return local_fail_store(e);
		return tool_fail(&e->t, r == CL_DENIED ? "revoked" : "usage",
		    "", "%s", why);
	}
	row->enrollment_id = strdup(en.id);
	row->name = strdup(en.name);
	row->workdir_root = strdup(en.workdir_root);
	row->created_at = en.created_at;
	row->expires_at = en.expires_at;
	store_enrollment_clear(&en);
	return local_end_turn(e, row->enrollment_id != NULL &&
	    row->name != NULL && row->workdir_root != NULL);
}

static int
local_mint(struct enroll *e, const struct ctl_mint *m,
    struct ctl_minted *row)
{
	struct secret key = SECRET_INIT;
	char pin[PIN_TEXT_LEN + 1], err[512];
	int r;

	field_init(&ctl_minted_table, row);
	/* Everything that can fail before the token exists. */
	if (*m->server != '\0')
		row->server = strdup(m->server);
	else if ((r = local_server(e, &row->server)) != EXIT_DONE)
		goto out;
	if (*m->pin != '\0')
		row->pin = strdup(m->pin);
	else if ((r = local_pin(e, pin)) != EXIT_DONE)
		goto out;
	else
		row->pin = strdup(pin);
	if (token_load_key(e->key_dir, &key, err, sizeof(err)) != CL_OK)
		r = tool_fail(&e->t, "internal", "make the key with "
		    "cloop-keygen -A", "%s", err);
	else
		r = local_mint_row(e, &key, m, row);
 out:
	secret_clear(&key);
	if (r != EXIT_DONE)
		field_clear(&ctl_minted_table, row);
	return r;
}

/* Revoke, or delete: then the rows go in the same turn. */
static int
local_revoke(struct enroll *e, const char *id, const char *reason,
    int forget, struct ctl_revoked *row)
{
	struct token_revoked rv;
	enum token_result t;
	int r;

	field_init(&ctl_revoked_table, row);
	memset(&rv, 0, sizeof(rv));
	if (store_begin_turn(e->store) != CL_OK)
		return local_fail_store(e);
	t = (forget ? token_delete : token_revoke)(e->store, id, reason,
	    local_actor(), util_wall_ns(), &rv);
	/* Its files go when the next hub starts. */
	if (t == TOKEN_OK && forget &&
	    store_del_agent(e->store, rv.agent_id) != CL_OK)
		t = TOKEN_FAILED;
	if (t == TOKEN_OK) {
		row->kind = strdup(rv.kind);
		row->enrollment_id = rv.enrollment_id;
		row->agent_id = rv.agent_id;
		row->name = rv.name;
		rv.enrollment_id = rv.agent_id = rv.name = NULL;
		r = local_end_turn(e, row->kind != NULL);
	} else {
		store_abort_turn(e->store);
		r = t == TOKEN_FAILED ? local_fail_store(e) :
		    tool_fail(&e->t, token_format_result(t),
		    "cloop-enroll list and cloop-enroll agents show the ids",
		    "no token and no agent has the id %s", tool_clean(id));
	}
	token_revoked_clear(&rv);
	if (r != EXIT_DONE)
		field_clear(&ctl_revoked_table, row);
	return r;
}

/* The row has b's strings. */
static void
local_fill_ban(struct ctl_ban *row, const struct store_ban *b)
{
	field_init(&ctl_ban_table, row);
	row->name = b->name;
	row->reason = b->reason;
	row->actor = b->actor;
	row->at = b->at;
}

static int
local_refuse_ban(struct enroll *e, const char *what, int ban)
{
	if (ban)
		return tool_fail(&e->t, "usage", "", "%s: not a name that a "
		    "token could have", tool_clean(what));
	return tool_fail(&e->t, "agent_not_found", "cloop-enroll bans shows "
	    "which are", "the name %s is not banned", tool_clean(what));
}

static int
local_ban(struct enroll *e, const char *what, const char *reason,
    struct ctl_ban *row)
{
	const int64_t now = util_wall_ns();
	struct store_ban b;
	enum token_result t;
	unsigned int n = 0;
	int r;

	field_init(&ctl_ban_table, row);
	if (store_begin_turn(e->store) != CL_OK)
		return local_fail_store(e);
	t = reason != NULL ? token_ban(e->store, what, reason, local_actor(),
	    now, &b, &n) : token_unban(e->store, what, local_actor(), now,
	    &b);
	if (t == TOKEN_OK) {
		local_fill_ban(row, &b);
		memset(&b, 0, sizeof(b));
		row->nagents = n;
		r = local_end_turn(e, 1);
	} else {
		store_abort_turn(e->store);
		r = t == TOKEN_FAILED ? local_fail_store(e) :
		    local_refuse_ban(e, what, reason != NULL);
	}
	store_ban_clear(&b);
	if (r != EXIT_DONE)
		field_clear(&ctl_ban_table, row);
	return r;
}

struct local_walk {
	struct enroll *e;
	row_fn *fn;
	void *arg;
};

/* The rows borrow the store's strings. */
static int
local_on_ban(const struct store_ban *b, void *arg)
{
	struct local_walk *w = arg;
	struct ctl_ban row;

	local_fill_ban(&row, b);
	return w->fn(&w->e->t, &row, -1, w->arg);
}

static int
local_on_agent(const struct store_agent *a, void *arg)
{
	struct local_walk *w = arg;
	struct ctl_agent row;
	struct store_ban ban;

	field_init(&ctl_agent_table, &row);
	row.agent_id = a->agent_id;
	row.name = a->name;
	row.status = AGENT_OFFLINE;
	row.last_seen = a->last_seen;
	row.created_at = a->created_at;
	row.revoked_at = a->revoked_at;
	row.confirmed_at = a->confirmed_at;
	if (token_is_banned(w->e->store, a->name, &ban) == 1) {
		row.banned = 1;
		store_ban_clear(&ban);
	}
	row.enrollment_id = a->enrollment_id;
	row.workdir_root = a->workdir_root;
	row.labels = a->labels.v;
	row.nlabels = a->labels.n;
	return w->fn(&w->e->t, &row, -1, w->arg);
}

static int
local_on_enrollment(const struct store_enrollment *en, void *arg)
{
	struct local_walk *w = arg;
	struct ctl_enrollment row;

	field_init(&ctl_enrollment_table, &row);
	row.enrollment_id = en->id;
	row.name = en->name;
	row.created_at = en->created_at;
	row.expires_at = en->expires_at;
	row.created_by = en->created_by;
	row.workdir_root = en->workdir_root;
	row.labels = en->labels.v;
	row.nlabels = en->labels.n;
	return w->fn(&w->e->t, &row, -1, w->arg);
}

static int
local_list(struct enroll *e, const struct row_kind *k, row_fn *fn, void *arg)
{
	struct local_walk w = { .e = e, .fn = fn, .arg = arg };
	int r;

	if (k == &enroll_ban_kind)
		r = store_list_bans(e->store, local_on_ban, &w);
	else if (k == &enroll_agent_kind)
		r = store_list_agents(e->store, local_on_agent, &w);
	else
		r = store_list_enrollments(e->store, util_wall_ns(),
		    local_on_enrollment, &w);
	return r == CL_OK ? EXIT_DONE : local_fail_store(e);
}

static void
local_close(struct enroll *e)
{
	store_close(e->store);
	e->store = NULL;
	e->ops = NULL;
}

static const struct enroll_ops local_ops = {
	.server = local_server,
	.mint = local_mint,
	.revoke = local_revoke,
	.ban = local_ban,
	.list = local_list,
	.close = local_close,
};

static int
enroll_open_local(struct enroll *e)
{
	char path[MAX_PATH_LEN], err[MAX_PATH_LEN + 512];
	int n;

	n = snprintf(path, sizeof(path), "%s/hub/cloop.db", e->state_dir);
	if (n < 0 || (size_t)n >= sizeof(path) ||
	    (!e->own_state && access(path, F_OK) != 0))
		return tool_fail(&e->t, "hub_unreachable", "start cloopd, or "
		    "name its directory with -o StateDirectory=",
		    "cloopd is not running at %s, and %s/hub/cloop.db %s",
		    e->socket, e->state_dir, n >= 0 &&
		    (size_t)n < sizeof(path) ? cl_strerror(CL_SYSTEM) :
		    "is too long");
	if (store_open(e->state_dir, LOCAL_WAIT_MS, &e->store, err,
	    sizeof(err)) != CL_OK)
		return tool_fail(&e->t, "internal", "", "%s", err);
	e->ops = &local_ops;
	return EXIT_DONE;
}

int
enroll_open(struct enroll *e)
{
	struct ctl_error err = { .code = "hub_unreachable" };
	int r;

	if (e->ops != NULL)
		return EXIT_DONE;
	if ((r = enroll_open_hub(e, &err)) == CL_OK)
		return EXIT_DONE;
	/* A socket of one's own names a hub: do not fall back to the default
	 * store, which is another one's. */
	if (r != CL_NOTFOUND || (e->own_socket && !e->own_state))
		return tool_print_error(&e->t, &err);
	return enroll_open_local(e);
}
