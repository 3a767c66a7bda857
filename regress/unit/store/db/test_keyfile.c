/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Key files: form, modes, never over an old one; signify's form.
 */
#include "common/base/signify.h"
#include "store/db/keyfile.h"
#include "store_tmp.h"

static void
test_raw(void)
{
	uint8_t key[KEYFILE_RAW_LEN], again[KEYFILE_RAW_LEN];
	char text[KEYFILE_RAW_MAX], bad[KEYFILE_RAW_MAX + 8];
	size_t i, len;

	TEST_START("a symmetric key has one text form");
	for (i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7);
	len = keyfile_format_raw("mac", key, text);
	ASSERT_STRING_EQ(text, "untrusted comment: cloop mac key\n"
	    "AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tk=\n");
	ASSERT_ERR(keyfile_parse_raw("mac", text, len, again), CL_OK);
	ASSERT_MEM_EQ(key, again, sizeof(key));

	TEST_START("another purpose is another key");
	ASSERT_ERR(keyfile_parse_raw("kek", text, len, again), CL_FORMAT);

	TEST_START("cut, longer or changed text is refused");
	for (i = 0; i < len; i++)
		ASSERT_ERR(keyfile_parse_raw("mac", text, i, again),
		    CL_FORMAT);
	snprintf(bad, sizeof(bad), "%s\n", text);
	ASSERT_ERR(keyfile_parse_raw("mac", bad, len + 1, again), CL_FORMAT);
	for (i = 0; i < 33; i++) {
		snprintf(bad, sizeof(bad), "%s", text);
		bad[i] ^= 1;
		ASSERT_ERR(keyfile_parse_raw("mac", bad, len, again),
		    CL_FORMAT);
	}

	TEST_START("stray bits in the last character are refused");
	snprintf(bad, sizeof(bad), "%s", text);
	bad[len - 3]++;
	ASSERT_ERR(keyfile_parse_raw("mac", bad, len, again), CL_FORMAT);

	TEST_START("names give purposes");
	ASSERT_STRING_EQ(keyfile_find_purpose("mac.key"), "mac");
	ASSERT_STRING_EQ(keyfile_find_purpose("kek.key"), "kek");
	ASSERT_TRUE(keyfile_find_purpose("tls.key") == NULL);
}

static void
test_files(void)
{
	const char *dir = tmp_new();
	struct secret s = SECRET_INIT;
	char path[512], other[512], err[512];
	struct stat sb;

	TEST_START("a new file has its mode and content");
	snprintf(path, sizeof(path), "%s/mac.key", dir);
	umask(0);
	ASSERT_ERR(keyfile_save_new(path, 0600, "one", 3, err, sizeof(err)),
	    CL_OK);
	ASSERT_INT_EQ(stat(path, &sb), 0);
	ASSERT_INT_EQ(sb.st_mode & 07777, 0600);
	ASSERT_INT_EQ(sb.st_nlink, 1);
	ASSERT_ERR(keyfile_load(dir, "mac.key", &s, err, sizeof(err)), CL_OK);
	ASSERT_BYTES_EQ(s.data, s.len, "one", (size_t)3);
	secret_clear(&s);

	TEST_START("an old file is never replaced, a link neither");
	ASSERT_ERR(keyfile_save_new(path, 0600, "two", 3, err, sizeof(err)),
	    CL_EXISTS);
	ASSERT_TRUE(strstr(err, "already exists") != NULL);
	snprintf(other, sizeof(other), "%s/kek.key", dir);
	ASSERT_INT_EQ(symlink("nowhere", other), 0);
	ASSERT_ERR(keyfile_save_new(other, 0600, "two", 3, err, sizeof(err)),
	    CL_EXISTS);
	ASSERT_ERR(keyfile_load(NULL, path, &s, err, sizeof(err)), CL_OK);
	ASSERT_BYTES_EQ(s.data, s.len, "one", (size_t)3);
	secret_clear(&s);

	TEST_START("a key behind a link, or readable by others, is refused");
	ASSERT_INT_EQ(unlink(other), 0);
	ASSERT_INT_EQ(symlink(path, other), 0);
	ASSERT_TRUE(keyfile_load(NULL, other, &s, err, sizeof(err)) != CL_OK);
	ASSERT_INT_EQ(chmod(path, 0640), 0);
	ASSERT_ERR(keyfile_load(NULL, path, &s, err, sizeof(err)), CL_DENIED);
	ASSERT_TRUE(strstr(err, path) != NULL);

	TEST_START("a public file may be read by others, not written");
	ASSERT_INT_EQ(chmod(path, 0644), 0);
	ASSERT_ERR(keyfile_load_public(NULL, path, &s, err, sizeof(err)),
	    CL_OK);
	secret_clear(&s);
	ASSERT_INT_EQ(chmod(path, 0664), 0);
	ASSERT_ERR(keyfile_load_public(NULL, path, &s, err, sizeof(err)),
	    CL_DENIED);

	TEST_START("a missing file, a directory, a wrong content");
	ASSERT_ERR(keyfile_load(dir, "no.key", &s, err, sizeof(err)),
	    CL_NOTFOUND);
	ASSERT_TRUE(keyfile_load(NULL, dir, &s, err, sizeof(err)) != CL_OK);
	ASSERT_INT_EQ(chmod(path, 0600), 0);
	ASSERT_ERR(keyfile_load_raw(dir, "mac.key", &s, err, sizeof(err)),
	    CL_FORMAT);
	ASSERT_TRUE(strstr(err, "mac.key") != NULL);

	TEST_START("a failed save leaves nothing behind");
	snprintf(path, sizeof(path), "%s/no/such/dir.key", dir);
	ASSERT_ERR(keyfile_save_new(path, 0600, "x", 1, err, sizeof(err)),
	    CL_SYSTEM);
	ASSERT_TRUE(strstr(err, path) != NULL);
}

static void
test_signify(void)
{
	/* Key number and key count up: 0..7 and 0..31. */
	static const char pub[] = "untrusted comment: t public key\n"
	    "RWQAAQIDBAUGBwABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n";
	struct signify_key k, k2;
	struct signify_sig s, s2;
	char text[SIGNIFY_TEXT_MAX], big[2000];
	size_t i, len;

	TEST_START("a public key in signify's form");
	ASSERT_ERR(signify_parse_key(pub, sizeof(pub) - 1, &k), CL_OK);
	for (i = 0; i < sizeof(k.key); i++)
		ASSERT_INT_EQ(k.key[i], i);
	len = signify_format_key(&k, "t public key", text);
	ASSERT_BYTES_EQ(text, len, pub, sizeof(pub) - 1);

	TEST_START("cut or longer, another algorithm: refused");
	for (i = 0; i < sizeof(pub) - 1; i++)
		ASSERT_ERR(signify_parse_key(pub, i, &k2), CL_FORMAT);
	ASSERT_ERR(signify_parse_key(pub, sizeof(pub), &k2), CL_FORMAT);
	snprintf(text, sizeof(text), "%s", pub);
	text[strlen("untrusted comment: t public key\n")] = 'S';
	ASSERT_ERR(signify_parse_key(text, strlen(text), &k2), CL_FORMAT);

	TEST_START("a key is no signature");
	ASSERT_ERR(signify_parse_sig(pub, sizeof(pub) - 1, &s), CL_FORMAT);

	TEST_START("a signature survives, a line end in the comment does not");
	memset(&s, 'S', sizeof(s));
	len = signify_format_sig(&s, "verify with x\nuntrusted", text);
	ASSERT_ERR(signify_parse_sig(text, len, &s2), CL_OK);
	ASSERT_MEM_EQ(&s, &s2, sizeof(s));

	TEST_START("a comment of 1024 bytes is read, 1025 are not");
	memset(big, 'c', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	len = signify_format_sig(&s, big, text);
	ASSERT_ERR(signify_parse_sig(text, len, &s2), CL_OK);
	snprintf(big, sizeof(big), "untrusted comment: c%s", text + 19);
	ASSERT_ERR(signify_parse_sig(big, len + 1, &s2), CL_FORMAT);
}

UNIT_MAIN(test_raw, test_files, test_signify)
