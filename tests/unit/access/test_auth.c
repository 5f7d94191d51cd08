/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests of passwords.
 */
#include "access/auth.h"

#include "../test.h"
#include "base/hex.h"

TEST(auth_hash_is_sha_256)
{
    unsigned char digest[AUTH_DIGEST];
    char hex[2 * AUTH_DIGEST + 1];

    auth_hash(slice_lit("foo"), digest);
    hex_put_bytes(hex, digest, sizeof(digest));
    assert_string_equal("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e"
                        "886266e7ae",
                        hex);
}

TEST(auth_hashs_are_the_same_for_equal_passwords_only)
{
    static const struct slice others[] = { { "s3cre", 5 },
                                           { "s3cret ", 7 },
                                           { "S3cret", 6 },
                                           { "", 0 },
                                           { "s3cret\0", 7 } };
    unsigned char right[AUTH_DIGEST], other[AUTH_DIGEST];

    auth_hash(slice_lit("s3cret"), right);
    auth_hash(slice_lit("s3cret"), other);
    assert_true(auth_same(right, other));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        auth_hash(others[i], other);
        assert_false(auth_same(right, other));
    }
}

TEST(a_sum_in_pieces_is_the_digest)
{
    static const struct auth_sum empty;
    const struct slice password = slice_lit("a password that is long enough");

    for (size_t most = 1; most < 40; most++) {
        unsigned char digest[AUTH_DIGEST], whole[AUTH_DIGEST];
        struct auth_sum sum = { 0 };
        size_t pieces = 1;

        auth_hash(password, whole);
        while (!auth_sum_add(&sum, password, most, digest)) {
            pieces++;
        }
        assert_int_equal((password.len + most - 1) / most, pieces);
        assert_memory_equal(whole, digest, sizeof(whole));
        assert_memory_equal(&empty, &sum, sizeof(sum));
    }
}
