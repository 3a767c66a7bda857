/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/pin: text of SPKI pins.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/pin.h"
#include "common/base/util.h"

/* A pin and its digest. */
#define VECTOR "sha256:XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyfNM="
#define BODY "XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyfNM"
#define DIGEST                                                                 \
	"5cd252fb0ce8932436faf8ccd1040981b89ee4ad6b9fe9e2a2b7e71aacb27cd3"

static void
test_format(void)
{
	struct pin p;
	char text[PIN_TEXT_LEN + 1];

	TEST_START("the vector's digest is written with prefix and padding");
	ASSERT_ERR(util_parse_hex(DIGEST, p.digest, sizeof(p.digest)), CL_OK);
	pin_format(&p, text);
	ASSERT_STRING_EQ(text, VECTOR);
}

static void
test_parse(void)
{
	static const char *const good[] = {
		VECTOR, BODY, BODY "=", "SHA256:" BODY, "Sha256:" BODY "=",
		"sha256:XNJS-wzokyQ2-vjM0QQJgbie5K1rn-niorfnGqyyfNM",
		"XNJS-wzokyQ2-vjM0QQJgbie5K1rn-niorfnGqyyfNM=",
	};
	uint8_t want[PIN_DIGEST_LEN];
	struct pin p;
	size_t i;

	TEST_START("prefix optional, both alphabets, padded or not");
	ASSERT_ERR(util_parse_hex(DIGEST, want, sizeof(want)), CL_OK);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		unit_note("%s", good[i]);
		ASSERT_ERR(pin_parse(good[i], strlen(good[i]), &p, NULL),
		    CL_OK);
		ASSERT_MEM_EQ(p.digest, want, sizeof(want));
	}
}

static void
test_parse_bad(void)
{
	static const char *const bad[] = {
		"", "sha256:", "sha1:" BODY, ":" BODY, "sha256:sha256:" BODY,
		"sha256 :" BODY, BODY "==", BODY "A", "XNJS",
		"XNJS+wzokyQ2-vjM0QQJgbie5K1rn+niorfnGqyyfNM",
		"XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyf\nM",
		"XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyf=M",
		"XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyf*M",
		"sha256:XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyfNMAA=",
	};
	const char *why;
	struct pin p;
	size_t i;

	TEST_START("other prefixes, lengths and characters are errors with a "
	    "reason");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		why = NULL;
		ASSERT_ERR(pin_parse(bad[i], strlen(bad[i]), &p, &why),
		    CL_FORMAT);
		ASSERT_TRUE(why != NULL);
	}
}

static void
test_list(void)
{
	struct pin pins[2];
	size_t n;

	TEST_START("lists: commas and white space in any number");
	ASSERT_ERR(pin_parse_list(" ," VECTOR ",\t\r\n" BODY ", ", pins, 2, &n,
	    NULL), CL_OK);
	ASSERT_SIZE_T_EQ(n, 2);
	ASSERT_MEM_EQ(pins[0].digest, pins[1].digest, PIN_DIGEST_LEN);

	TEST_START("empty text is no pinning");
	ASSERT_ERR(pin_parse_list("", pins, 2, &n, NULL), CL_OK);
	ASSERT_SIZE_T_EQ(n, 0);
	ASSERT_ERR(pin_parse_list(NULL, pins, 2, &n, NULL), CL_OK);

	TEST_START("text without a pin is an error");
	ASSERT_ERR(pin_parse_list(" , ", pins, 2, &n, NULL), CL_FORMAT);

	TEST_START("one bad pin spoils the list");
	ASSERT_ERR(pin_parse_list(VECTOR " x", pins, 2, &n, NULL), CL_FORMAT);
	ASSERT_SIZE_T_EQ(n, 0);

	TEST_START("exactly max pins are taken, one more is refused");
	ASSERT_ERR(pin_parse_list(BODY " " BODY, pins, 2, &n, NULL), CL_OK);
	ASSERT_ERR(pin_parse_list(BODY " " BODY " " BODY, pins, 2, &n, NULL),
	    CL_LIMIT);
}

static void
test_has(void)
{
	struct pin pins[2];
	uint8_t other[PIN_DIGEST_LEN] = { 1 };
	size_t n;

	TEST_START("one match in the list suffices");
	ASSERT_ERR(pin_parse_list(BODY, &pins[1], 1, &n, NULL), CL_OK);
	memset(&pins[0], 0, sizeof(pins[0]));
	ASSERT_TRUE(pin_has_digest(pins, 2, pins[1].digest));
	ASSERT_FALSE(pin_has_digest(pins, 1, pins[1].digest));
	ASSERT_FALSE(pin_has_digest(pins, 2, other));
	ASSERT_FALSE(pin_has_digest(NULL, 0, other));
}

UNIT_MAIN(test_format, test_parse, test_parse_bad, test_list, test_has)
