/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The error codes of every library function in the tree.  A function that can
 * fail for more than one reason returns one of these; CL_OK is 0, everything
 * else is negative.
 */
#ifndef CLOOP_ERR_H
#define CLOOP_ERR_H

#define CL_ERRORS(X)                                                           \
	X(INTERNAL, -1, "internal error")                                      \
	X(NOMEM, -2, "out of memory")                                          \
	X(INCOMPLETE, -3, "more data needed")                                  \
	X(FORMAT, -4, "malformed")                                             \
	X(TOOBIG, -5, "too big")                                               \
	X(TRAILING, -6, "trailing data")                                       \
	X(STATE, -7, "not allowed in this state")                              \
	X(DENIED, -8, "permission denied")                                     \
	X(NOTFOUND, -9, "not found")                                           \
	X(EXISTS, -10, "already exists")                                       \
	X(SYSTEM, -11, "system error") /* errno is valid */                    \
	X(CRYPTO, -12, "cryptographic failure")                                \
	X(DB, -13, "database error")                                           \
	X(TIMEOUT, -14, "timed out")                                           \
	X(LIMIT, -15, "limit reached")                                         \
	X(VERSION, -16, "version not supported")                               \
	X(EOF, -17, "end of file")                                             \
	X(UNSUPPORTED, -18, "not supported")

enum cl_err {
	CL_OK = 0,
#define X(name, value, text) CL_##name = value,
	CL_ERRORS(X)
#undef X
};

/*
 * The text of an error code; for CL_SYSTEM the text of errno.  Never NULL.
 * The pointer is valid until errno's text changes (use it at once).
 */
const char *cl_strerror(int r);

/* The name of a code without the prefix ("FORMAT"), for logs and tests. */
const char *cl_errname(int r);

#endif
