/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sealed blobs: bound to key, kind and record.
 */
#include "store/db/keyfile.h"
#include "store/db/seal.h"
#include "store_tmp.h"

static void
test_seal(void)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 4096, SEAL_MAX_LEN };
	struct secret key = SECRET_INIT, plain = SECRET_INIT;
	struct secret out = SECRET_INIT;
	uint8_t *blob, *data;
	size_t i, len;

	TEST_START("what was sealed opens, at every size");
	ASSERT_ERR(seal_new_key(&key), CL_OK);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ASSERT_TRUE((data = calloc(1, sizes[i] + 1)) != NULL);
		memset(data, 'p', sizes[i]);
		ASSERT_ERR(secret_init(&plain, data, sizes[i], sizes[i]),
		    CL_OK);
		ASSERT_ERR(seal_put(&key, "sec_1", &plain, &blob, &len),
		    CL_OK);
		ASSERT_SIZE_T_EQ(len, sizes[i] + SEAL_OVERHEAD);
		ASSERT_ERR(seal_get(&key, "sec_1", blob, len, &out), CL_OK);
		ASSERT_TRUE(secret_is_equal(&plain, &out));
		secret_clear(&plain);
		secret_clear(&out);
		free(blob);
		free(data);
	}

	TEST_START("one byte more than the bound is refused");
	ASSERT_TRUE((data = calloc(1, SEAL_MAX_LEN + 1)) != NULL);
	ASSERT_ERR(secret_init(&plain, data, SEAL_MAX_LEN + 1,
	    SEAL_MAX_LEN + 1), CL_OK);
	ASSERT_ERR(seal_put(&key, "sec_1", &plain, &blob, &len), CL_TOOBIG);
	secret_clear(&plain);
	free(data);
	secret_clear(&key);
}

static void
test_bound(void)
{
	struct secret key = SECRET_INIT, key2 = SECRET_INIT;
	struct secret plain = SECRET_INIT, out = SECRET_INIT;
	uint8_t *blob, *blob2;
	size_t i, len, len2;

	TEST_START("no bit of a blob can be changed");
	ASSERT_ERR(seal_new_key(&key), CL_OK);
	ASSERT_ERR(seal_new_key(&key2), CL_OK);
	ASSERT_ERR(secret_init(&plain, "hunter2", 7, 7), CL_OK);
	ASSERT_ERR(seal_put(&key, "sec_1", &plain, &blob, &len), CL_OK);
	for (i = 0; i < len * 8; i++) {
		blob[i / 8] ^= (uint8_t)(1 << i % 8);
		ASSERT_TRUE(seal_get(&key, "sec_1", blob, len, &out) !=
		    CL_OK);
		ASSERT_TRUE(out.data == NULL);
		blob[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (i = 0; i < len; i++)
		ASSERT_TRUE(seal_get(&key, "sec_1", blob, i, &out) != CL_OK);

	TEST_START("another record, another key: refused");
	ASSERT_ERR(seal_get(&key, "sec_2", blob, len, &out), CL_DENIED);
	ASSERT_ERR(seal_get(&key2, "sec_1", blob, len, &out), CL_DENIED);
	ASSERT_ERR(seal_get(&key, "", blob, len, &out), CL_FORMAT);
	ASSERT_ERR(seal_get(&plain, "sec_1", blob, len, &out), CL_FORMAT);

	TEST_START("the same text sealed twice looks different");
	ASSERT_ERR(seal_put(&key, "sec_1", &plain, &blob2, &len2), CL_OK);
	ASSERT_SIZE_T_EQ(len, len2);
	ASSERT_TRUE(memcmp(blob, blob2, len) != 0);
	free(blob2);

	TEST_START("a wrapped data key opens as such, and as nothing else");
	ASSERT_ERR(seal_put_key(&key2, "sec_1", &key, &blob2, &len2), CL_OK);
	ASSERT_ERR(seal_get_key(&key2, "sec_1", blob2, len2, &out), CL_OK);
	ASSERT_TRUE(secret_is_equal(&key, &out));
	secret_clear(&out);
	ASSERT_ERR(seal_get(&key2, "sec_1", blob2, len2, &out), CL_DENIED);
	ASSERT_ERR(seal_get_key(&key2, "sec_2", blob2, len2, &out),
	    CL_DENIED);
	ASSERT_ERR(seal_get_key(&key, "sec_1", blob, len, &out), CL_FORMAT);
	free(blob);
	free(blob2);
	ASSERT_ERR(seal_put_key(&key2, "sec_1", &plain, &blob, &len),
	    CL_FORMAT);
	secret_clear(&key);
	secret_clear(&key2);
	secret_clear(&plain);
}

static void
test_kek(void)
{
	const char *dir = tmp_new();
	struct secret kek = SECRET_INIT;
	uint8_t raw[KEYFILE_RAW_LEN] = { 1 };
	char path[512], text[KEYFILE_RAW_MAX], err[512];

	TEST_START("the key-encryption key comes from kek.key, and only it");
	ASSERT_ERR(seal_load_kek(dir, &kek, err, sizeof(err)), CL_NOTFOUND);
	ASSERT_TRUE(strstr(err, "kek.key") != NULL);
	snprintf(path, sizeof(path), "%s/kek.key", dir);
	ASSERT_ERR(keyfile_save_new(path, 0600, text,
	    keyfile_format_raw("mac", raw, text), err, sizeof(err)), CL_OK);
	ASSERT_ERR(seal_load_kek(dir, &kek, err, sizeof(err)), CL_FORMAT);
	ASSERT_INT_EQ(unlink(path), 0);
	ASSERT_ERR(keyfile_save_new(path, 0600, text,
	    keyfile_format_raw("kek", raw, text), err, sizeof(err)), CL_OK);
	ASSERT_ERR(seal_load_kek(dir, &kek, err, sizeof(err)), CL_OK);
	ASSERT_BYTES_EQ(kek.data, kek.len, raw, sizeof(raw));
	secret_clear(&kek);
}

UNIT_MAIN(test_seal, test_bound, test_kek)
