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
#include "core/payload.h"
#include "proto/compose.h"

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

/* The head of a filter whose secret is not here any more. */
static struct slice
strange_head(uint8_t *to)
{
    uint8_t secret[BLOOM_SECRET_BYTES] = "gone from here";
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 10,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .flags = BLOOM_KEYED };
    struct bloom *bloom = NULL;
    size_t len;

    bloom_use_secret(secret);
    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    assert_true(payload_header_bytes(bloom) <= REASON_MAX);
    len = payload_put_header(bloom, to);
    bloom_free(bloom, NULL);
    bloom_use_secret(NULL);
    return (struct slice){ (const char *)to, len };
}

TEST(a_whole_filter_needs_its_secret_whatever_case_its_command_has)
{
    static const char *const names[] = { "BF.LOADCHUNK", "bf.loadchunk",
                                         "Bf.LoadChunk" };
    uint8_t head[REASON_MAX];
    struct slice payload = strange_head(head);

    command_table_init(command_rows);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct slice argv[] = {
            slice_of(names[i]),       slice_lit("k"), slice_lit("1"), payload,
            slice_lit("INCARNATION"), slice_lit("7")
        };
        char reason[REASON_MAX] = "";
        struct buf commands = { 0 };

        compose_command(&commands, argv, 6);
        assert_true(
            secrets_are_missing(buf_slice(&commands), reason, sizeof(reason)));
        assert_non_null(strstr(reason, "hash-secret-file"));
        buf_free(&commands);
    }
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
