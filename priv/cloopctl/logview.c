/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: the kept output of a handle as the hub wrote it (logindex.h),
 * read through two passed descriptors.  The index is the truth: a DATA
 * record's bytes are in the log before the record is, so whatever the index
 * names can be printed, and nothing else is.
 */
#include <sys/stat.h>
#include <sys/types.h>

#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/output/logindex.h"
#include "cloopctl.h"

#define LOGVIEW_BATCH 256	/* index records read at once */
#define LOGVIEW_BLOCK 65536	/* log bytes read at once */

struct logview {
	int log_fd;
	int index_fd;
	off_t index_off;	/* next record to print */
	off_t scanned;		/* records looked at for holes */
	uint64_t hole_start;	/* file range that LogLimit punched out */
	uint64_t hole_end;
	uint64_t told_end;	/* file offset up to which that was said */
	uint64_t start;		/* file offset: print nothing below */
	uint64_t from;		/* wire offset: the same */
	int64_t since;		/* record time: the same */
};

struct logview *
logview_new(int log_fd, int index_fd)
{
	struct logview *v = xcalloc(1, sizeof(*v));

	v->log_fd = log_fd;
	v->index_fd = index_fd;
	v->since = INT64_MIN;
	return v;
}

void
logview_free(struct logview *v)
{
	if (v == NULL)
		return;
	close(v->log_fd);
	close(v->index_fd);
	free(v);
}

void
logview_set_since(struct logview *v, int64_t wall_ns)
{
	v->since = wall_ns;
}

void
logview_set_from(struct logview *v, uint64_t wire_off)
{
	v->from = wire_off;
}

/* Read whole records at off; *np = 0 at the end. */
static int
logview_get_records(struct logview *v, off_t off,
    struct logindex_record rec[LOGVIEW_BATCH], size_t *np)
{
	uint8_t raw[LOGVIEW_BATCH * LOGINDEX_RECORD_LEN];
	ssize_t n;
	size_t i;
	int r;

	*np = 0;
	if ((n = pread(v->index_fd, raw, sizeof(raw), off)) == -1)
		return errno == EINTR ? CL_OK : CL_SYSTEM;
	for (i = 0; i < (size_t)n / LOGINDEX_RECORD_LEN; i++)
		if ((r = logindex_parse(raw + i * LOGINDEX_RECORD_LEN,
		    &rec[i])) != CL_OK)
			return r;
	*np = i;
	return CL_OK;
}

/* Learn of holes before anything is printed from inside one. */
static int
logview_find_holes(struct logview *v, uint64_t *endp)
{
	struct logindex_record rec[LOGVIEW_BATCH];
	size_t i, n;
	int r;

	for (;;) {
		if ((r = logview_get_records(v, v->scanned, rec, &n)) != CL_OK)
			return r;
		if (n == 0)
			return CL_OK;
		for (i = 0; i < n; i++) {
			if (rec[i].kind == LOGINDEX_DATA && endp != NULL)
				*endp = rec[i].file_off + rec[i].file_len;
			if (rec[i].kind != LOGINDEX_CUT ||
			    rec[i].file_len == 0)
				continue;
			if (v->hole_end == 0)
				v->hole_start = rec[i].file_off;
			if (rec[i].file_off + rec[i].file_len > v->hole_end)
				v->hole_end = rec[i].file_off +
				    rec[i].file_len;
		}
		v->scanned += (off_t)(n * LOGINDEX_RECORD_LEN);
	}
}

static void
logview_print_gap(struct tool *t, const char *kind, uint64_t off, uint64_t len)
{
	if (t->json) {
		tool_open_doc(t);
		jsonw_put_key(&t->doc, "offset");
		jsonw_put_uint(&t->doc, off);
		jsonw_put_key(&t->doc, kind);
		jsonw_put_uint(&t->doc, len);
		(void)tool_close_doc(t, EXIT_DONE);
	} else if (!t->quiet) {
		fflush(stdout);
		fprintf(stderr, "cloopctl: %llu bytes of output at offset "
		    "%llu %s\n", (unsigned long long)len,
		    (unsigned long long)off, strcmp(kind, "gap") == 0 ?
		    "never arrived" : "were not kept (LogLimit)");
	}
}

static const char *
logview_stream(uint8_t stream)
{
	switch (stream) {
	case LOGINDEX_STDOUT:
		return "stdout";
	case LOGINDEX_STDERR:
		return "stderr";
	default:
		return "combined";
	}
}

static int
logview_print_block(struct tool *t, const struct logindex_record *rec,
    uint64_t wire_off, const void *p, size_t len)
{
	struct jsonw *w = &t->doc;

	if (!t->json)
		return fwrite(p, 1, len, stdout) == len ? CL_OK : CL_SYSTEM;
	tool_open_doc(t);
	if (t->command != NULL && strcmp(t->command, "run") == 0) {
		jsonw_put_key(w, "event");
		jsonw_put_str(w, "output");
	}
	jsonw_put_key(w, "offset");
	jsonw_put_uint(w, wire_off);
	jsonw_put_key(w, "stream");
	jsonw_put_str(w, logview_stream(rec->stream));
	tool_put_time(w, "time", rec->time);
	jsonw_put_key(w, "text");
	jsonw_put_text(w, p, len);
	return tool_close_doc(t, EXIT_DONE) == EXIT_DONE ? CL_OK : CL_SYSTEM;
}

/* Said once for each part of the hole: it grows while we follow. */
static void
logview_skip_hole(struct tool *t, struct logview *v, uint64_t wire_off,
    uint64_t off)
{
	uint64_t told = v->told_end > off ? v->told_end - off : 0;
	uint64_t len = v->hole_end - off;

	if (told >= len)
		return;
	logview_print_gap(t, "cut", wire_off + told, len - told);
	v->told_end = v->hole_end;
}

/* Log bytes at off; *np = 0 when the hub punched them out meanwhile. */
static int
logview_read_block(struct logview *v, uint64_t off, char *block, size_t len,
    size_t *np)
{
	ssize_t n = pread(v->log_fd, block, len, (off_t)off);
	int r;

	*np = 0;
	if (n == -1)
		return CL_SYSTEM;
	if (n == 0)
		return CL_FORMAT;	/* index beyond the log */
	/* The record of a cut comes before the hole: zeroes are only read
	 * where one is found now. */
	if ((r = logview_find_holes(v, NULL)) != CL_OK)
		return r;
	if (off >= v->hole_end || off + (uint64_t)n <= v->hole_start)
		*np = (size_t)n;
	return CL_OK;
}

/* Where in the record's bytes printing begins; file_len: nowhere. */
static uint64_t
logview_get_skip(const struct logview *v, const struct logindex_record *rec)
{
	uint64_t skip = 0, n;

	if (rec->time < v->since)
		return rec->file_len;
	if (v->start > rec->file_off)
		skip = v->start - rec->file_off;
	if (v->from >= rec->wire_off + rec->wire_len && rec->wire_len > 0)
		return rec->file_len;
	/* Inside a record the offsets map when no byte was replaced. */
	if (v->from > rec->wire_off && rec->wire_len == rec->file_len) {
		n = v->from - rec->wire_off;
		if (n > skip)
			skip = n;
	}
	return skip < rec->file_len ? skip : rec->file_len;
}

static int
logview_print_data(struct tool *t, struct logview *v,
    const struct logindex_record *rec, size_t *np)
{
	char block[LOGVIEW_BLOCK];
	uint64_t pos = logview_get_skip(v, rec), off;
	size_t want, n;
	int r;

	while (pos < rec->file_len) {
		off = rec->file_off + pos;
		want = rec->file_len - pos;
		if (off >= v->hole_start && off < v->hole_end) {
			logview_skip_hole(t, v, rec->wire_off + pos, off);
			pos += v->hole_end - off;
			continue;
		}
		if (off < v->hole_start && want > v->hole_start - off)
			want = v->hole_start - off;
		if (want > sizeof(block))
			want = sizeof(block);
		if ((r = logview_read_block(v, off, block, want, &n)) !=
		    CL_OK || (n > 0 && (r = logview_print_block(t, rec,
		    rec->wire_off + pos, block, n)) != CL_OK))
			return r;
		pos += n;
		*np += n;
	}
	return CL_OK;
}

int
logview_print(struct tool *t, struct logview *v, size_t *np)
{
	struct logindex_record rec[LOGVIEW_BATCH];
	size_t i, n;
	int r;

	*np = 0;
	if ((r = logview_find_holes(v, NULL)) != CL_OK)
		return r;
	for (;;) {
		if ((r = logview_get_records(v, v->index_off, rec, &n)) !=
		    CL_OK)
			return r;
		for (i = 0; i < n; i++) {
			if (rec[i].kind == LOGINDEX_DATA)
				r = logview_print_data(t, v, &rec[i], np);
			else if (rec[i].file_len == 0)
				logview_print_gap(t, rec[i].kind ==
				    LOGINDEX_GAP ? "gap" : "cut",
				    rec[i].wire_off, rec[i].wire_len);
			if (r != CL_OK)
				return r;
			v->index_off += LOGINDEX_RECORD_LEN;
		}
		if (n == 0)
			return fflush(stdout) == 0 ? CL_OK : CL_SYSTEM;
	}
}

int
logview_set_tail(struct logview *v, uint64_t nlines)
{
	char block[LOGVIEW_BLOCK];
	uint64_t end = 0, pos, want;
	ssize_t n, i;
	int r;

	if ((r = logview_find_holes(v, &end)) != CL_OK)
		return r;
	v->start = v->hole_end;
	if (nlines == 0)
		v->start = end;
	for (pos = end; pos > v->start && nlines > 0; pos -= want) {
		want = pos - v->start < sizeof(block) ? pos - v->start :
		    sizeof(block);
		if ((n = pread(v->log_fd, block, want, (off_t)(pos - want))) !=
		    (ssize_t)want)
			return CL_SYSTEM;
		for (i = n; i > 0; i--) {
			/* The line feed that ends the last line ends no
			 * line before it. */
			if (block[i - 1] != '\n' || pos - want + (uint64_t)i ==
			    end)
				continue;
			if (--nlines == 0) {
				v->start = pos - want + (uint64_t)i;
				return CL_OK;
			}
		}
	}
	return CL_OK;
}

/* ------------------------------------------------------------------ seals */

struct logview_digest {
	SHA2_CTX ctx[2];	/* LOGINDEX_IN_* */
	uint64_t len[2];
	char hex[2][2 * SHA256_DIGEST_LENGTH + 1];
};

static int
logview_add(void *arg, int at, const void *data, size_t len)
{
	struct logview_digest *d = arg;

	SHA256Update(&d->ctx[at], data, len);
	return CL_OK;
}

static int
logview_hash(struct logview *v, struct logview_digest *d)
{
	uint8_t md[SHA256_DIGEST_LENGTH];
	struct logindex_scan scan;
	int i, r;

	for (i = 0; i < 2; i++)
		SHA256Init(&d->ctx[i]);
	if ((r = logindex_scan_start(&scan, v->log_fd, v->index_fd,
	    UINT64_MAX)) != CL_OK)
		return r;
	while ((r = logindex_scan_run(&scan, SIZE_MAX, logview_add, d)) ==
	    CL_INCOMPLETE)
		;
	for (i = 0; i < 2; i++) {
		SHA256Final(md, &d->ctx[i]);
		util_format_hex(md, sizeof(md), d->hex[i]);
		d->len[i] = scan.len[i];
	}
	return r;
}

/* Without a digest, of when it was written last. */
static int
logview_check_time(int fd, const char *what, const struct ctl_log *f)
{
	struct stat st;
	int64_t at;

	if (f->modified_at == UTIL_TIME_ZERO)
		return 1;
	if (fstat(fd, &st) == -1)
		return 0;
	at = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if ((uint64_t)st.st_size == f->bytes && at == f->modified_at)
		return 1;
	fprintf(stderr, "cloopctl: the %s of %s was changed after its end: "
	    "%llu bytes, expected %llu, written %lld ms later\n", what,
	    f->handle_id, (unsigned long long)st.st_size,
	    (unsigned long long)f->bytes,
	    (long long)((at - f->modified_at) / 1000000));
	return 0;
}

static int
logview_check_digest(const struct logview_digest *d, int at, const char *what,
    const struct ctl_log *f)
{
	if (d->len[at] == f->bytes && strcmp(d->hex[at], f->sha256) == 0)
		return 1;
	fprintf(stderr, "cloopctl: the %s of %s was changed after its end: "
	    "%llu bytes, sha256 %s, expected %llu, %s\n", what, f->handle_id,
	    (unsigned long long)d->len[at], d->hex[at],
	    (unsigned long long)f->bytes, f->sha256);
	return 0;
}

int
logview_check(struct logview *v, const struct ctl_log *log,
    const struct ctl_log *index)
{
	struct logview_digest d;
	int r;

	if (rule_is_empty(log->sha256) || rule_is_empty(index->sha256))
		return logview_check_time(v->log_fd, "log", log) &&
		    logview_check_time(v->index_fd, "index", index);
	if ((r = logview_hash(v, &d)) != CL_OK) {
		fprintf(stderr, "cloopctl: the log of %s: %s\n",
		    log->handle_id, cl_strerror(r));
		return 0;
	}
	return logview_check_digest(&d, LOGINDEX_IN_INDEX, "index", index) &&
	    logview_check_digest(&d, LOGINDEX_IN_LOG, "log", log);
}
