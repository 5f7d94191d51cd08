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

static struct entry *
new_entry(unsigned number)
{
    struct test_key key;
    struct entry *entry = mem_zalloc(sizeof(*entry) + NAME_MAX_BYTES);

    (void)test_key_set(&key, 0, number);
    entry->name_len = (uint32_t)key.key.name.len;
    memcpy(entry->name, key.name, key.key.name.len);
    return entry;
}

static void
pool_init(struct pool *pool)
{
    memset(pool, 0, sizeof(*pool));
    for (unsigned i = 0; i < POOL; i++) {
        pool->entries[i] = new_entry(i);
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
        (void)table_fit(&pool->table);
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

/* Every entry is in the bucket of its hash, once, and no bucket is missing. */
static void
assert_links(const struct table *table)
{
    uint64_t met = 0;

    for (uint32_t b = 0; b < table->used; b++) {
        for (const struct entry *e = *table_chain(table, b); e != NULL;
             e = e->next) {
            assert_ptr_equal(table_bucket(table, table_hash(e)),
                             table_chain(table, b));
            met++;
        }
    }
    assert_int_equal(met, table->count);
}

TEST(an_empty_table_takes_no_memory_and_finds_nothing)
{
    struct table table = { NULL, 0, 0 };

    assert_null(table_find(&table, 7, slice_lit("x"), 0));
    assert_false(table_fit(&table));
    assert_null(table.segments);
    table_fini(&table);
}

TEST(table_agrees_with_a_list_under_random_changes)
{
    uint64_t random = random_of(1);
    struct pool pool;

    pool_init(&pool);
    for (unsigned round = 0; round < 40 * test_rounds(); round++) {
        unsigned target = (unsigned)test_random_below(&random, POOL);

        for (unsigned i = 0; i < 2000; i++) {
            unsigned n = (unsigned)test_random_below(&random, POOL);

            if (n < target) {
                pool_put(&pool, n);
            } else {
                pool_drop(&pool, n);
            }
        }
        pool_check(&pool);
        assert_links(&pool.table);
    }
    pool_fini(&pool);
}

/* ---- how much one call does ---------------------------------------------- */

enum { SPAN = 20000, BUCKETS_MIN = 4, HANDFUL = 20 };

/* Entries whose bucket may have another number now: those of the chains that
 * were split, or of the last ones that were joined to others. */
static uint64_t
entries_in(const struct table *table, uint32_t from, uint32_t to)
{
    uint64_t count = 0;

    for (uint32_t b = from; b < to; b++) {
        for (const struct entry *e = *table_chain(table, b); e != NULL;
             e = e->next) {
            count++;
        }
    }
    return count;
}

TEST(an_insert_or_a_removal_moves_a_handful_of_entries)
{
    static struct entry *entries[SPAN];
    struct table table = { NULL, 0, 0 };
    uint64_t rest = mem_used();

    for (unsigned i = 0; i < SPAN; i++) {
        uint32_t used = table.used;
        uint64_t touched = 0;
        uint64_t before;

        entries[i] = new_entry(i);
        before = mem_used();
        if (used > 0) {
            uint32_t parent = (uint32_t)linear_parent(used);

            touched = entries_in(&table, parent, parent + 1);
        }
        assert_true(table_insert(&table, hash_of(i), entries[i]));
        assert_true(touched <= HANDFUL);
        assert_int_equal(table.used, i < BUCKETS_MIN ? BUCKETS_MIN : i + 1);
        /* A segment, and a directory that grows by half of its pointers. */
        assert_true(mem_used() - before <=
                    TABLE_SEGMENT * sizeof(struct entry *) + SPAN / 8);
    }
    assert_links(&table);
    for (unsigned i = 0; i < SPAN; i++) {
        uint32_t used = table.used;
        uint32_t last = used > 2 * BUCKETS_MIN ? used - 2 : used;

        table_remove(&table, table_link(&table, hash_of(i), entries[i]));
        assert_true(entries_in(&table, last, used) <= HANDFUL);
        assert_false(table_fit(&table));
        assert_true(used - table.used <= 2);
        assert_true(table.used <= 2 * table.count + 1 ||
                    table.used == BUCKETS_MIN);
        mem_free(entries[i]);
    }
    assert_int_equal(table.used, BUCKETS_MIN);
    assert_true(mem_used() - rest <= 128);
    table_fini(&table);
    assert_int_equal(mem_used(), rest);
}

/* A million keys in 1024 stripes are 977 in each: 8.5 bytes for one. With what
 * the C library adds to each block. */
TEST(a_table_takes_eight_bytes_an_entry_and_a_segment)
{
    struct pool pool;
    uint64_t rest;

    pool_init(&pool);
    rest = mem_used();
    for (unsigned i = 0; i < POOL; i++) {
        unsigned segments = i / TABLE_SEGMENT + 1;
        uint64_t limit = (uint64_t)segments * (TABLE_SEGMENT * 8 + 16 + 16);

        pool_put(&pool, i);
        if (i < TABLE_SEGMENT / 2) {
            limit = 16 * ((uint64_t)i + 1) + 48;
        }
        assert_true(mem_used() - rest <= limit + 32);
    }
    pool_fini(&pool);
}

TEST(many_removals_are_made_up_for_in_several_steps)
{
    struct pool pool;
    unsigned steps = 1;

    pool_init(&pool);
    for (unsigned i = 0; i < POOL; i++) {
        pool_put(&pool, i);
    }
    for (unsigned i = 10; i < POOL; i++) {
        table_remove(&pool.table,
                     table_link(&pool.table, hash_of(i), pool.entries[i]));
        pool.in[i] = false;
    }
    assert_int_equal(pool.table.used, POOL);
    while (table_fit(&pool.table)) {
        assert_int_equal(pool.table.used, POOL - steps * TABLE_FIT_MAX);
        steps++;
    }
    assert_int_equal(pool.table.used, 21);
    pool_check(&pool);
    assert_links(&pool.table);
    pool_fini(&pool);
}

TEST(a_table_that_finds_no_memory_works_on_and_catches_up_later)
{
    struct pool pool;

    pool_init(&pool);
    for (unsigned nth = 1; nth <= 2; nth++) {
        mem_fail_at(nth);
        assert_false(table_insert(&pool.table, hash_of(0), pool.entries[0]));
        assert_true(mem_fail_clear());
        assert_null(pool.table.segments);
        assert_int_equal(pool.table.count, 0);
    }
    for (unsigned i = 0; i < POOL / 2; i++) {
        if (i > 0) {
            mem_fail_at(1);
        }
        pool_put(&pool, i);
        (void)mem_fail_clear();
    }
    assert_int_equal(pool.table.used, BUCKETS_MIN);
    pool_check(&pool);
    for (unsigned i = POOL / 2; i < POOL; i++) {
        pool_put(&pool, i);
    }
    assert_int_equal(pool.table.used, POOL);
    pool_check(&pool);
    assert_links(&pool.table);
    for (unsigned i = 0; i < POOL; i++) { /* arrays that stay too large */
        mem_fail_at(1);
        pool_drop(&pool, i);
        (void)mem_fail_clear();
    }
    assert_int_equal(pool.table.used, BUCKETS_MIN);
    for (unsigned i = 0; i < POOL; i++) {
        pool_put(&pool, i);
    }
    pool_check(&pool);
    assert_links(&pool.table);
    pool_fini(&pool);
}

/* Whichever allocation fails: nothing is lost. */
TEST(a_table_survives_each_allocation_that_fails)
{
    uint64_t random = random_of(3);
    struct pool pool;

    pool_init(&pool);
    pool_put(&pool, 0);
    for (unsigned round = 0; round < 20 * test_rounds(); round++) {
        unsigned target = (unsigned)test_random_below(&random, POOL);

        for (unsigned i = 0; i < 2000; i++) {
            unsigned n = 1 + (unsigned)test_random_below(&random, POOL - 1);

            mem_fail_at(1 + (unsigned)test_random_below(&random, 3));
            if (n < target) {
                pool_put(&pool, n);
            } else {
                pool_drop(&pool, n);
            }
            (void)mem_fail_clear();
        }
        pool_check(&pool);
        assert_links(&pool.table);
    }
    pool_fini(&pool);
}

/* ---- walks --------------------------------------------------------------- */

/* What was there all the time is met at least once, whatever the table does
 * between the steps. */
static void
walk_once(struct pool *pool, uint64_t *random)
{
    static bool stays[POOL];
    static bool met[POOL];
    unsigned phase = (unsigned)test_random_below(random, 200);
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
            unsigned n = (unsigned)test_random_below(random, POOL);

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
    uint64_t random = random_of(2);
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
    struct pool pool;

    pool_init(&pool);
    for (unsigned i = 0; i < 1100; i++) {
        static unsigned char met[1100];
        uint64_t cursor = 0;

        pool_put(&pool, i);
        memset(met, 0, sizeof(met));
        do {
            met[linear_bucket(pool.table.used, cursor)]++;
            cursor = table_next(&pool.table, cursor);
            assert_true(cursor < 2 * (uint64_t)pool.table.used);
        } while (cursor != 0);
        for (uint32_t b = 0; b < pool.table.used; b++) {
            assert_int_equal(met[b], 1);
        }
    }
    pool_fini(&pool);
}

/* One name's point in the order: a cursor that is not behind it never gets
 * there without its bucket, whatever size the table has at each step. */
TEST(table_walk_over_tables_of_any_size_passes_no_hash)
{
    uint64_t random = random_of(4);

    for (unsigned i = 0; i < 2000 * test_rounds(); i++) {
        uint64_t hash = test_random_below(&random, UINT64_MAX);
        uint64_t cursor = 0;
        bool met = false;

        do {
            struct table table = { NULL, 0, 0 };

            table.used = 4 + (uint32_t)test_random_below(
                                 &random, 1 + test_random_below(&random, 600));
            met = met || linear_bucket(table.used, cursor) ==
                             linear_bucket(table.used, hash);
            cursor = table_next(&table, cursor);
            assert_true(cursor < (uint64_t)1 << 31);
        } while (cursor != 0);
        assert_true(met);
    }
}
