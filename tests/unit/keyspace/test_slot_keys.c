/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of slots, in a keyspace whose hashes have slots.
 */
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "keyspace/slot_keys.h"
#include "support.h"

enum { KEYS = 12000, TAGS = 3 };

static const char *const tags[TAGS] = { "foo", "bar", "{bar" };

/* The names of a tag have one slot: tags[2] is no tag, so its names have
 * many. */
static struct key
key_of(char *text, unsigned tag, unsigned number, uint32_t db)
{
    int len = snprintf(text, NAME_MAX_BYTES, tag < 2 ? "{%s}%u" : "%s%u",
                       tags[tag], number);

    return key_named((struct slice){ text, (size_t)len }, db);
}

static struct keyspace *
filled(void)
{
    struct keyspace *ks;
    char text[NAME_MAX_BYTES];

    key_hash_by_slot(true);
    ks = test_keyspace(1);
    for (unsigned i = 0; i < KEYS; i++) {
        struct key key = key_of(text, i % TAGS, i, i / TAGS % 2);
        struct entry *entry = test_put(ks, &key);

        if (i % 10 == 0) {
            assert_int_equal(keyspace_set_expiry(ks, &key, entry, 100), OK);
        }
    }
    return ks;
}

static void
done(struct keyspace *ks)
{
    keyspace_free(ks);
    key_hash_by_slot(false);
}

static uint64_t
count(struct keyspace *ks, uint32_t db, uint32_t slot, uint64_t now_ms)
{
    const struct slot_keys which = { slot, db, now_ms };
    uint64_t cursor = 0;
    uint64_t keys = 0;
    unsigned slices = 0;

    do {
        cursor = slot_keys_count(ks, 0, &which, cursor, &keys);
        slices++;
    } while (cursor != 0);
    assert_true(keys < 1000 || slices > 3);
    return keys;
}

TEST(keys_of_a_slot_are_counted_by_database_without_expired_ones)
{
    struct keyspace *ks = filled();
    uint32_t foo = hash_slot_of(slice_lit("foo"));
    uint64_t expired = 0;

    for (uint32_t db = 0; db < 2; db++) {
        assert_int_equal(KEYS / TAGS / 2, count(ks, db, foo, 99));
        expired += KEYS / TAGS / 2 - count(ks, db, foo, 100);
    }
    assert_int_equal(KEYS / TAGS / 10, expired);
    assert_int_equal(0, count(ks, 2, foo, 0));
    assert_int_equal(0, count(ks, 0, foo ^ 1, 0));
    done(ks);
}

TEST(keys_of_a_flushed_database_are_gone)
{
    struct keyspace *ks = filled();
    uint32_t bar = hash_slot_of(slice_lit("bar"));

    gate_raise(ks->gate, 0);
    keyspace_flush_db(ks, 0);
    gate_lower(ks->gate, 0);
    assert_int_equal(0, count(ks, 0, bar, 0));
    assert_int_equal(KEYS / TAGS / 2, count(ks, 1, bar, 0));
    done(ks);
}

TEST(names_are_listed_up_to_a_number)
{
    struct keyspace *ks = filled();
    uint32_t bar = hash_slot_of(slice_lit("bar"));

    for (size_t most = 0; most < 4000; most = most * 3 + 1) {
        const struct slot_keys which = { bar, 1, 0 };
        struct slot_names names = { .most = most };
        uint64_t cursor = 0;
        size_t at = 0;
        size_t listed = 0;
        struct slice name;

        do {
            cursor = slot_keys_names(ks, 0, &which, cursor, &names);
        } while (cursor != 0);
        while (buf_next_item(&names.list, &at, &name)) {
            assert_int_equal(bar, hash_slot_of(name));
            listed++;
        }
        assert_int_equal(names.count, listed);
        assert_int_equal(most < KEYS / TAGS / 2 ? most : KEYS / TAGS / 2,
                         listed);
        buf_free(&names.list);
    }
    done(ks);
}

struct tally {
    const struct slot_set *set;
    size_t keys;
};

static void
tally(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    struct tally *tally = ctx;

    (void)expires_at_ms;
    assert_true(slot_set_has(tally->set, hash_slot_of(key->name)));
    assert_true(key->hash == key_hash(key->name));
    assert_true(key->db < 2);
    tally->keys++;
}

static size_t
scan(struct keyspace *ks, const struct slot_set *set)
{
    struct tally seen = { .set = set };
    uint64_t cursor = 0;

    do {
        cursor = slot_keys_scan(ks, 0, set, cursor, tally, &seen);
        assert_true(cursor < (uint64_t)1 << 53);
    } while (cursor != 0);
    return seen.keys;
}

TEST(a_scan_of_slots_meets_their_keys_in_all_databases_once)
{
    struct keyspace *ks = filled();
    struct slot_set set = { { 0 } };
    size_t expected = 0;
    size_t total;

    assert_int_equal(0, scan(ks, &set));
    slot_set_add_range(&set, 0, CLUSTER_SLOTS - 1);
    assert_int_equal(KEYS, scan(ks, &set));
    for (unsigned half = 0; half < 2; half++) {
        set = (struct slot_set){ { 0 } };
        for (unsigned slot = half; slot < CLUSTER_SLOTS; slot += 2) {
            slot_set_add(&set, slot);
        }
        total = scan(ks, &set);
        assert_in_range(total, 1, KEYS - 1);
        expected += total;
    }
    assert_int_equal(KEYS, expected);
    assert_int_equal(0, slot_keys_scan(ks, 0, &set, UINT64_C(1) << 53, tally,
                                       &(struct tally){ .set = &set }));
    done(ks);
}
