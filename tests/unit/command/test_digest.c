/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests: equal data has equal ones, and whatever differs shows.
 */
#include "command/digest.h"

#include "../engine/rig.h"
#include "base/hash.h"

static struct digest
digest_of(struct rig *rig, uint64_t now_ms)
{
    struct digest digest;

    digest_all(rig->service.keyspace, now_ms, &digest);
    return digest;
}

static bool
same(struct digest a, struct digest b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

TEST(nothing_has_a_digest_of_zeros)
{
    struct rig *rig = rig_new();
    struct digest digest = digest_of(rig, 0);
    char hex[DIGEST_HEX];

    digest_format(&digest, hex);
    assert_string_equal("0000000000000000000000000000000000000000", hex);
    rig_free(rig);
}

TEST(the_order_in_which_data_came_does_not_show)
{
    struct rig *a = rig_new();
    struct rig *b = rig_new();

    a->conf.bf_use_random_seed = b->conf.bf_use_random_seed = false;
    run_text(a,
             "BF.ADD x 1; BF.ADD y 2; "
             "PEXPIREAT y 32503680000000; SELECT 3; BF.MADD x 1 2 3",
             false);
    run_text(b,
             "SELECT 3; "
             "BF.MADD x 1 2 3; SELECT 0; BF.ADD y 2; BF.ADD gone 1; DEL gone; "
             "PEXPIREAT y 32503680000000; BF.ADD x 1",
             false);
    assert_true(same(digest_of(a, 1), digest_of(b, 1)));
    run_text(b, "BF.ADD x 2", false);
    assert_false(same(digest_of(a, 1), digest_of(b, 1)));
    run_text(a, "SELECT 0; BF.ADD x 2", false);
    assert_true(same(digest_of(a, 1), digest_of(b, 1)));
    rig_free(a);
    rig_free(b);
}

TEST(every_difference_shows_and_what_is_over_does_not)
{
    static const char *const changes[] = {
        "BF.ADD k b",
        "PEXPIREAT k 32503680000000",
        "PEXPIREAT k 32503680000001",
        "COPY k k2",
        "COPY k k2 DB 1",
    };
    struct rig *rig = rig_new();
    struct digest seen[6];

    run_text(rig, "BF.ADD k a", false);
    seen[0] = digest_of(rig, 1);
    for (size_t i = 0; i < 5; i++) {
        run_text(rig, changes[i], false);
        seen[i + 1] = digest_of(rig, 1);
        for (size_t k = 0; k <= i; k++) {
            assert_false(same(seen[k], seen[i + 1]));
        }
    }
    /* All three have the same time to live. */
    assert_true(same(digest_of(rig, UINT64_MAX), (struct digest){ { 0 } }));
    rig_free(rig);
}

TEST(a_value_has_the_same_digest_under_every_name)
{
    struct rig *rig = rig_new();
    struct key keys[2] = { { .name = slice_lit("k") },
                           { .name = slice_lit("k2"), .db = 1 } };
    struct digest digest[3];

    run_text(rig, "BF.ADD k a; COPY k k2 DB 1", false);
    for (size_t i = 0; i < 2; i++) {
        const struct entry *entry;

        keys[i].hash = hash_name(keys[i].name);
        entry = keyspace_find(rig->service.keyspace, &keys[i], 1);
        assert_non_null(entry);
        digest_value(&entry->bloom, 0, &digest[i]);
        digest_value(&entry->bloom, 5, &digest[2]);
    }
    assert_true(same(digest[0], digest[1]));
    assert_false(same(digest[0], digest[2]));
    rig_free(rig);
}
