/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which secrets a group of a log needs, and what is taken for one.
 */
#include "dial/secrets.h"

#include "../engine/group_help.h"
#include "../test.h"
#include "base/buf.h"
#include "base/hex.h"
#include "command/rows.h"
#include "core/bloom.h"
#include "core/keyed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REASON_MAX = 256 };

static bool
is_missing(const char *text, char *ret_reason)
{
    struct buf commands = { 0 };
    bool missing;

    command_table_init(command_rows);
    encode(&commands, text);
    missing = secrets_are_missing(buf_slice(&commands), ret_reason, REASON_MAX);
    buf_free(&commands);
    return missing;
}

TEST(groups_without_keyed_filters_need_no_secret)
{
    char reason[REASON_MAX] = "";

    assert_false(is_missing("SELECT 0;" MAKE("k", "1") "; BF.ADD k a", reason));
    /* Only words look like it: an item, a name. */
    assert_false(is_missing(MAKE("FINGERPRINT", "1") " ITEMS FINGERPRINT "
                                                     "00000000000000ff",
                            reason));
    assert_false(is_missing("RENAME RESTORE BF.LOADCHUNK", reason));
    assert_string_equal("", reason);
}

TEST(a_filter_of_an_unknown_secret_names_its_fingerprint)
{
    char reason[REASON_MAX] = "";

    assert_true(secrets_wants(0xff));
    assert_true(is_missing("SELECT 0;" MAKE("a", "1") ";" MAKE(
                               "k", "2") " FINGERPRINT 00000000000000ff",
                           reason));
    assert_non_null(strstr(reason, "00000000000000ff"));
    assert_non_null(strstr(reason, "hash-secret-file"));
}

TEST(a_secret_that_is_here_is_not_missing)
{
    uint8_t secret[BLOOM_SECRET_BYTES] = "held from here";
    uint64_t fingerprint = keyed_fingerprint_of(secret);
    char reason[REASON_MAX] = "";
    char text[512];

    (void)snprintf(text, sizeof(text),
                   MAKE("k", "2") " FINGERPRINT %016" PRIx64, fingerprint);
    assert_true(is_missing(text, reason));
    assert_int_equal(BLOOM_OK, bloom_add_secret(secret));
    assert_false(secrets_wants(fingerprint));
    assert_false(is_missing(text, reason));
    /* The first one that is missing counts, behind those that are here. */
    (void)snprintf(text, sizeof(text),
                   MAKE("k", "2") " FINGERPRINT %016" PRIx64 ";" MAKE(
                       "l", "3") " FINGERPRINT 00000000000000fe",
                   fingerprint);
    assert_true(is_missing(text, reason));
    assert_non_null(strstr(reason, "00000000000000fe"));
}

/* Nothing of it reaches the disk: there is none here. */
TEST(a_secret_of_another_fingerprint_is_refused)
{
    uint8_t secret[BLOOM_SECRET_BYTES] = "never learnt";
    char digits[2 * BLOOM_SECRET_BYTES + 1];

    hex_put_bytes(digits, secret, sizeof(secret));
    assert_int_equal(
        REPLICA_NOT_LEARNED,
        secrets_learn(NULL, keyed_fingerprint_of(secret) + 1, digits));
    digits[0] = 'g';
    assert_int_equal(REPLICA_NOT_LEARNED,
                     secrets_learn(NULL, keyed_fingerprint_of(secret), digits));
    assert_true(secrets_wants(keyed_fingerprint_of(secret)));
}
