/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash table alone, with entries that have no filter.
 */
#include "support.h"

enum { POOL = 3000 };

struct pool {
    struct table table;
    struct entry *entries[POOL];
    bool in[POOL];
};

static uint64_t
hash_of(unsigned number)
{
    struct test_key key;

    return test_key_set(&key, 0, number)->hash;
}

static void
pool_init(struct pool *pool)
{
    struct test_key key;

    memset(pool, 0, sizeof(*pool));
    for (unsigned i = 0; i < POOL; i++) {
        struct entry *entry = mem_zalloc(sizeof(*entry) + NAME_MAX_BYTES);

        (void)test_key_set(&key, 0, i);
        entry->name_len = (uint32_t)key.key.name.len;
        memcpy(entry->name, key.name, key.key.name.len);
        pool->entries[i] = entry;
    }
}

static void
pool_fini(struct pool *pool)
{
    table_fini(&pool->table);
    for (unsigned i = 0; i < POOL; i++) {
        mem_free(pool->entries[i]);
    }
}

static void
pool_put(struct pool *pool, unsigned i)
{
    if (!pool->in[i]) {
        assert_true(table_insert(&pool->table, hash_of(i), pool->entries[i]));
        pool->in[i] = true;
    }
}

static void
pool_drop(struct pool *pool, unsigned i)
{
    if (pool->in[i]) {
        table_remove(&pool->table,
                     table_link(&pool->table, hash_of(i), pool->entries[i]));
        table_fit(&pool->table);
        pool->in[i] = false;
    }
}

static void
pool_check(const struct pool *pool)
{
    struct test_key key;
    unsigned count = 0;

    for (unsigned i = 0; i < POOL; i++) {
        const struct key *k = test_key_set(&key, 0, i);

        assert_ptr_equal(table_find(&pool->table, k->hash, k->name, 0),
                         pool->in[i] ? pool->entries[i] : NULL);
        assert_null(table_find(&pool->table, k->hash, k->name, 1));
        count += pool->in[i];
    }
    assert_int_equal(pool->table.count, count);
}

TEST(an_empty_table_takes_no_memory_and_finds_nothing)
{
    struct table table = { NULL, 0, 0 };

    assert_null(table_find(&table, 7, slice_lit("x"), 0));
    table_fit(&table);
    assert_null(table.buckets);
    table_fini(&table);
}

TEST(table_agrees_with_a_list_under_random_changes)
{
    struct sequence random = sequence_of(1);
    struct pool pool;

    pool_init(&pool);
    for (unsigned round = 0; round < 40 * test_rounds(); round++) {
        unsigned target = (unsigned)sequence_below(&random, POOL);

        for (unsigned i = 0; i < 2000; i++) {
            unsigned n = (unsigned)sequence_below(&random, POOL);

            if (n < target) {
                pool_put(&pool, n);
            } else {
                pool_drop(&pool, n);
            }
        }
        pool_check(&pool);
    }
    pool_fini(&pool);
}

TEST(table_doubles_at_one_entry_a_bucket_and_shrinks_when_mostly_empty)
{
    struct pool pool;

    pool_init(&pool);
    for (unsigned i = 0; i < POOL; i++) {
        pool_put(&pool, i);
        assert_true(pool.table.count <= (uint64_t)pool.table.mask + 1);
        assert_true(pool.table.mask < 4 ||
                    pool.table.count * 2 > pool.table.mask);
    }
    for (unsigned i = 0; i < POOL; i++) {
        pool_drop(&pool, i);
        assert_true(pool.table.mask < 4 ||
                    pool.table.count * 8 >= pool.table.mask);
    }
    assert_int_equal(pool.table.mask, 3);
    pool_fini(&pool);
}

TEST(table_works_on_when_it_cannot_grow_or_shrink)
{
    struct pool pool;

    pool_init(&pool);
    mem_fail_at(1);
    assert_false(table_insert(&pool.table, hash_of(0), pool.entries[0]));
    assert_true(mem_fail_clear());
    assert_null(pool.table.buckets);
    assert_int_equal(pool.table.count, 0);
    for (unsigned i = 0; i < POOL; i++) {
        if (i > 0) {
            mem_fail_at(1);
        }
        pool_put(&pool, i);
        (void)mem_fail_clear();
    }
    assert_int_equal(pool.table.mask, 3);
    pool_check(&pool);
    pool_drop(&pool, 0); /* grow at the next insert, then refuse to shrink */
    pool_put(&pool, 0);
    assert_int_equal(pool.table.mask, 7);
    for (unsigned i = 0; i < POOL; i++) {
        mem_fail_at(1);
        pool_drop(&pool, i);
        (void)mem_fail_clear();
    }
    assert_int_equal(pool.table.mask, 7);
    pool_check(&pool);
    pool_fini(&pool);
}

/* What was there all the time is met at least once, whatever the table does
 * between the steps. */
static void
walk_once(struct pool *pool, struct sequence *random)
{
    static bool stays[POOL];
    static bool met[POOL];
    unsigned phase = (unsigned)sequence_below(random, 200);
    uint64_t cursor = 0;
    unsigned steps = 0;

    memcpy(stays, pool->in, sizeof(stays));
    memset(met, 0, sizeof(met));
    do {
        unsigned target = (steps + phase) / 100 % 2 * POOL; /* fill, empty */

        for (const struct entry *e = *table_bucket(&pool->table, cursor);
             e != NULL; e = e->next) {
            met[number_of(e)] = true;
        }
        cursor = table_next(&pool->table, cursor);
        for (unsigned i = 0; i < 60; i++) {
            unsigned n = (unsigned)sequence_below(random, POOL);

            /* Some names always stay, so that something is proved. */
            if (n % 64 == 0) {
                continue;
            }
            if (n < target) {
                pool_put(pool, n);
            } else {
                pool_drop(pool, n);
                stays[n] = false;
            }
        }
        assert_true(++steps < 1000000);
    } while (cursor != 0);
    for (unsigned i = 0; i < POOL; i++) {
        assert_true(!stays[i] || met[i]);
    }
}

TEST(table_walk_meets_everything_that_stays_while_the_table_resizes)
{
    struct sequence random = sequence_of(2);
    struct pool pool;

    pool_init(&pool);
    for (unsigned i = 0; i < POOL; i += 64) {
        pool_put(&pool, i);
    }
    for (unsigned round = 0; round < 50 * test_rounds(); round++) {
        walk_once(&pool, &random);
    }
    pool_fini(&pool);
}

TEST(table_walk_at_rest_meets_every_bucket_once)
{
    struct table table = { NULL, 1023, 0 };
    static unsigned char met[1024];
    uint64_t cursor = 0;

    do {
        met[cursor & table.mask]++;
        cursor = table_next(&table, cursor);
        assert_true(cursor <= table.mask);
    } while (cursor != 0);
    for (unsigned i = 0; i < 1024; i++) {
        assert_int_equal(met[i], 1);
    }
}
