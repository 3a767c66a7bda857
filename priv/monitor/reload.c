/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Reload, in the monitor.  The new file is read and checked as a whole
 * before the first value is taken over; keywords that need a restart are
 * named in the log and keep their old value.
 */
#include "reload.h"

#include <stdio.h>
#include <time.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "monitor.h"
#include "setup.h"

void
reload_log(struct monitor *mon)
{
	int level = config_log_level(&mon->conf);

	if (mon->quiet)
		level = LOGL_ERROR;
	else if (mon->ndebug > 1)
		level = LOGL_DEBUG;
	log_init("cloopd", (enum log_level)level, mon->conf.log_format == 1 ?
	    LOGF_JSON : LOGF_TEXT);
}

static void
reload_notify(void)
{
	struct timespec ts;
	char text[80];

	clock_gettime(CLOCK_MONOTONIC, &ts);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
	(void)util_notify(text);
}

int
reload_conf(struct monitor *mon, char *err, size_t errlen)
{
	struct hub_conf next;
	struct config_penalty p;
	const char *fixed;
	size_t i;
	int r;

	reload_notify();
	if ((r = config_load(&mon->args, &next, err, errlen)) != CL_OK) {
		log_error("reload", "result=failed reason=%s "
		    "kept=old-configuration", log_q(err));
		(void)util_notify("READY=1");
		return r;
	}
	config_set_reloadable(&mon->conf, &next, &fixed);
	config_clear(&next);
	if (fixed != NULL)
		log_warn("reload", "keyword=%s reason=\"takes effect at the "
		    "next start\"", fixed);
	(void)config_parse_penalty(mon->conf.penalty, &p);
	if (p.enforce && mon->enforce.child == NULL)
		log_warn("reload", "keyword=PerSourcePenalty reason=\"enforce "
		    "nft takes effect at the next start\"");
	reload_log(mon);
	auditlog_start(mon);
	for (i = 0; i < mon->nchildren; i++)
		setup_reconfigure(&mon->children[i]);
	log_info("reload", "result=ok file=%s", mon->args.file);
	(void)util_notify("READY=1");
	return CL_OK;
}
