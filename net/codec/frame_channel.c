/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Payloads of the multiplexed channels: terminals and forwarded devices.
 * Runs where frame.c runs.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "frame_int.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_CHANNEL_DATA_LEN 32768
#define MAX_ATTACH_ARGS 4096

static const struct field frame_attach_open_table_rows[] = {
	F_STR(struct frame_attach_open, session_id, "session_id", 0,
	    MAX_ID_LEN),
	F_STRS(struct frame_attach_open, command, "command", O,
	    MAX_ATTACH_ARGS, MAX_FRAME_LEN),
	F_BOOL(struct frame_attach_open, tty, "tty", O),
	F_BOOL(struct frame_attach_open, use_stdin, "stdin", O),
	F_UINT(struct frame_attach_open, rows, "rows", O, UINT16_MAX),
	F_UINT(struct frame_attach_open, cols, "cols", O, UINT16_MAX),
	F_STRS(struct frame_attach_open, env, "env", O, MAX_ATTACH_ARGS,
	    MAX_FRAME_LEN),
};
F_TABLE(frame_attach_open_table, struct frame_attach_open);

static const struct field frame_attach_opened_table_rows[] = {
	F_STR(struct frame_attach_opened, session_id, "session_id", 0,
	    MAX_ID_LEN),
	F_BOOL(struct frame_attach_opened, tty, "tty", 0),
};
F_TABLE(frame_attach_opened_table, struct frame_attach_opened);

static const struct field frame_attach_data_table_rows[] = {
	F_STR(struct frame_attach_data, session_id, "session_id", 0,
	    MAX_ID_LEN),
	F_BYTES(struct frame_attach_data, data, "data", 0,
	    MAX_CHANNEL_DATA_LEN),
};
F_TABLE(frame_attach_data_table, struct frame_attach_data);

static const struct field frame_attach_resize_table_rows[] = {
	F_STR(struct frame_attach_resize, session_id, "session_id", 0,
	    MAX_ID_LEN),
	F_UINT(struct frame_attach_resize, rows, "rows", 0, UINT16_MAX),
	F_UINT(struct frame_attach_resize, cols, "cols", 0, UINT16_MAX),
};
F_TABLE(frame_attach_resize_table, struct frame_attach_resize);

static const struct field frame_attach_close_table_rows[] = {
	F_STR(struct frame_attach_close, session_id, "session_id", 0,
	    MAX_ID_LEN),
	F_STR(struct frame_attach_close, reason, "reason", PROSE,
	    FRAME_TEXT_MAX),
	F_INT64(struct frame_attach_close, exit_code, "exit_code", O),
};
F_TABLE(frame_attach_close_table, struct frame_attach_close);

static const struct field frame_device_open_table_rows[] = {
	F_STR(struct frame_device_open, channel_id, "channel_id", 0,
	    MAX_ID_LEN),
	F_STR(struct frame_device_open, kind, "kind", 0, FRAME_WORD_MAX),
	F_STR(struct frame_device_open, name, "name", 0, FRAME_WORD_MAX),
	F_STR(struct frame_device_open, label, "label", PROSE,
	    FRAME_TEXT_MAX),
	F_STR(struct frame_device_open, forwarder_id, "forwarder_id", PROSE,
	    FRAME_TEXT_MAX),
	F_STR(struct frame_device_open, binding_id, "binding_id", PROSE,
	    FRAME_TEXT_MAX),
	F_STR(struct frame_device_open, bus_id, "bus_id", O, FRAME_WORD_MAX),
	F_PTR(struct frame_device_open, interface, "interface", O,
	    &spec_interface_table),
};
F_TABLE(frame_device_open_table, struct frame_device_open);

static const struct field frame_device_opened_table_rows[] = {
	F_STR(struct frame_device_opened, channel_id, "channel_id", 0,
	    MAX_ID_LEN),
	F_INT64(struct frame_device_opened, vhci_port, "vhci_port", O),
	F_STR(struct frame_device_opened, local_bus_id, "local_bus_id", PROSE,
	    FRAME_WORD_MAX),
	F_STR(struct frame_device_opened, node, "node", PROSE,
	    FRAME_TEXT_MAX),
	F_STR(struct frame_device_opened, tap, "tap", PROSE, FRAME_WORD_MAX),
};
F_TABLE(frame_device_opened_table, struct frame_device_opened);

static const struct field frame_device_data_table_rows[] = {
	F_STR(struct frame_device_data, channel_id, "channel_id", 0,
	    MAX_ID_LEN),
	F_BYTES(struct frame_device_data, data, "data", 0,
	    MAX_CHANNEL_DATA_LEN),
};
F_TABLE(frame_device_data_table, struct frame_device_data);

static const struct field frame_device_close_table_rows[] = {
	F_STR(struct frame_device_close, channel_id, "channel_id", 0,
	    MAX_ID_LEN),
	F_STR(struct frame_device_close, reason, "reason", PROSE,
	    FRAME_TEXT_MAX),
};
F_TABLE(frame_device_close_table, struct frame_device_close);

/* The id is the first member of every payload here but device_open's. */
_Static_assert(offsetof(struct frame_attach_open, session_id) == 0 &&
    offsetof(struct frame_attach_opened, session_id) == 0 &&
    offsetof(struct frame_attach_data, session_id) == 0 &&
    offsetof(struct frame_attach_resize, session_id) == 0 &&
    offsetof(struct frame_attach_close, session_id) == 0 &&
    offsetof(struct frame_device_opened, channel_id) == 0 &&
    offsetof(struct frame_device_data, channel_id) == 0 &&
    offsetof(struct frame_device_close, channel_id) == 0, "id is first");

int
frame_check_channel(struct jx *x, void *payload)
{
	const char *id = *(char **)payload;

	if (rule_is_blank(id))
		return jx_fail(x, CL_FORMAT, "session_id or channel_id: blank");
	return CL_OK;
}

/* The shape decides; the word is ours from here on. */
static int
frame_set_device_kind(struct jx *x, struct frame_device_open *p)
{
	const char *kind = p->interface != NULL ? "l2" : "usb";
	char *copy;

	if (rule_is_equal(p->kind, kind))
		return CL_OK;
	if ((copy = strdup(kind)) == NULL)
		return jx_fail(x, CL_NOMEM, "kind: out of memory");
	free(p->kind);
	p->kind = copy;
	return CL_OK;
}

int
frame_check_device_open(struct jx *x, void *payload)
{
	struct frame_device_open *p = payload;
	char *why = NULL;
	int r;

	if (p->channel_id == NULL || !rule_is_charset(p->channel_id,
	    strlen(p->channel_id), "._:-", MAX_ID_LEN))
		return jx_fail(x, CL_FORMAT, "channel_id: not an id");
	if (!rule_is_device_name(p->name))
		return jx_fail(x, CL_FORMAT, "name: not a device name");
	if ((p->interface != NULL) == !rule_is_empty(p->bus_id))
		return jx_fail(x, CL_FORMAT,
		    "needs either bus_id or interface");
	if (p->interface == NULL && !rule_is_usb_port(p->bus_id))
		return jx_fail(x, CL_FORMAT, "bus_id: not a USB port");
	if (p->interface != NULL && (r = spec_check_interface("interface",
	    p->interface, 1, &why)) != 0)
		return frame_take_why(x, r, why);
	return frame_set_device_kind(x, p);
}
