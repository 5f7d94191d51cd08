/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash table alone, with entries that have no filter.
 */
#include "support.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { POOL = 3000 };

struct pool {
    struct table table;
    struct entry *entries[POOL];
    bool in[POOL];
};

static uint64_t
place_of(unsigned number)
{
    struct test_key key;

    return table_place(test_key_set(&key, 0, number)->hash, 0);
}

static struct entry *
new_entry(unsigned number)
{
    struct test_key key;
    struct entry *entry = mem_zalloc(sizeof(*entry) + NAME_MAX_BYTES);

    (void)test_key_set(&key, 0, number);
    entry_set_name(entry, key.key.name);
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
        assert_true(table_insert(&pool->table, place_of(i), pool->entries[i]));
        pool->in[i] = true;
    }
}

static void
pool_drop(struct pool *pool, unsigned i)
{
    if (pool->in[i]) {
        table_remove(&pool->table, place_of(i), pool->entries[i]);
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
        assert_ptr_equal(table_get(&pool->table, place_of(i), pool->entries[i]),
                         pool->in[i] ? pool->entries[i] : NULL);
        assert_null(table_find(&pool->table, k->hash, k->name, 1));
        count += pool->in[i];
    }
    assert_int_equal(pool->table.count, count);
}

static unsigned
taken_in(const uint64_t *slots)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < TABLE_SLOTS; i++) {
        taken += table_entry(slots[i]) != NULL;
    }
    return taken;
}

/* The entry in this line is where a lookup finds it: the lines that it passed
 * are full and marked. */
static void
assert_reachable(uint64_t bucket, unsigned line, uint64_t place)
{
    for (unsigned at = table_home(bucket, place); at != line;
         at = (at + 1) % table_line_count(bucket)) {
        const uint64_t *slots = table_slots(bucket, at);

        assert_int_equal(taken_in(slots), TABLE_SLOTS);
        assert_true((slots[table_passed(place)] & TABLE_PASSED) != 0);
    }
}

static uint64_t
assert_sound_bucket(const struct table *table, uint32_t number)
{
    uint64_t bucket = table->buckets[number];
    uint64_t taken = 0;

    for (unsigned line = 0; line < table_line_count(bucket); line++) {
        const uint64_t *slots = table_slots(bucket, line);

        taken += taken_in(slots);
        for (unsigned i = 0; i < TABLE_SLOTS; i++) {
            uint64_t place = slots[i] & TABLE_PLACE;

            assert_true((slots[i] & TABLE_PASSED) == 0 ||
                        taken_in(slots) == TABLE_SLOTS);
            if (table_entry(slots[i]) != NULL) {
                assert_int_equal(linear_bucket(table->used, place), number);
                assert_reachable(bucket, line, place);
            }
        }
    }
    assert_int_equal(bucket >> 48, taken);
    return taken;
}

static void
assert_sound(const struct table *table)
{
    uint64_t taken = 0;

    for (uint32_t b = 0; b < table->used; b++) {
        taken += assert_sound_bucket(table, b);
    }
    assert_int_equal(taken, table->count);
}

TEST(an_empty_table_takes_no_memory_and_finds_nothing)
{
    struct table table = { .count = 0 };

    assert_null(table_find(&table, 7, slice_lit("x"), 0));
    assert_null(table_get(&table, 7, NULL));
    table_prefetch_line(&table, 7);
    table_prefetch_entry(&table, 7);
    assert_null(table.buckets);
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
        assert_sound(&pool.table);
    }
    pool_fini(&pool);
}

/* Names come and go while their number stays: nothing grows, and marks do not
 * gather. */
TEST(a_table_stays_fast_while_names_come_and_go)
{
    uint64_t random = random_of(5);
    struct pool pool;
    unsigned marks = 0;
    unsigned lines = 0;

    pool_init(&pool);
    for (unsigned i = 0; i < POOL / 2; i++) {
        pool_put(&pool, i);
    }
    for (unsigned i = 0; i < 100 * POOL; i++) {
        unsigned n = (unsigned)test_random_below(&random, POOL / 2);

        pool_drop(&pool, pool.in[n] ? n : n + POOL / 2);
        pool_put(&pool, pool.in[n + POOL / 2] ? n : n + POOL / 2);
    }
    assert_sound(&pool.table);
    for (uint32_t b = 0; b < pool.table.used; b++) {
        uint64_t bucket = pool.table.buckets[b];

        lines += table_line_count(bucket);
        for (unsigned i = 0; i < table_line_count(bucket) * TABLE_SLOTS; i++) {
            marks += (table_slots(bucket, 0)[i] & TABLE_PASSED) != 0;
        }
    }
    assert_true(marks < lines * TABLE_SLOTS * 3 / 8);
    pool_fini(&pool);
}

/* ---- how much one call does ---------------------------------------------- */

enum { SPAN = 20000, BUCKETS_MIN = 2 };

TEST(an_insert_or_a_removal_changes_one_bucket_or_two)
{
    static struct entry *entries[SPAN];
    struct table table = { .count = 0 };
    uint64_t rest = mem_used();

    for (unsigned i = 0; i < SPAN; i++) {
        uint32_t used = table.used > 0 ? table.used : BUCKETS_MIN;

        entries[i] = new_entry(i);
        assert_true(table_insert(&table, place_of(i), entries[i]));
        assert_true(table.used - used <= 1);
        assert_true(table.used == BUCKETS_MIN ||
                    i / TABLE_TARGET + 1 >= table.used);
        if (i % 512 == 0) {
            assert_sound(&table);
        }
        for (uint32_t b = 0; b < table.used; b++) {
            assert_true(table_line_count(table.buckets[b]) < TABLE_LINES_MAX);
        }
    }
    for (unsigned i = 0; i < SPAN; i++) {
        uint32_t used = table.used;

        table_remove(&table, place_of(i), entries[i]);
        assert_true(used - table.used <= 2);
        assert_true(table.used <= 2 * (table.count / TABLE_TARGET + 1) ||
                    table.used == BUCKETS_MIN);
        if (i % 512 == 0) {
            assert_sound(&table);
        }
        mem_free(entries[i]);
    }
    assert_int_equal(table.used, BUCKETS_MIN);
    assert_true(mem_used() - rest <= 128);
    table_fini(&table);
    assert_int_equal(mem_used(), rest);
}

/* Entries that nobody may read or write. */
TEST(growth_touches_no_entry)
{
    enum { STEP = 128 };
    uint64_t random = random_of(7);
    struct table table = { .count = 0 };
    char *hidden = mmap(NULL, (size_t)SPAN * STEP, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static uint64_t places[SPAN];

    assert_true(hidden != MAP_FAILED);
    for (size_t i = 0; i < SPAN; i++) {
        places[i] = test_random_below(&random, TABLE_PLACE);
        assert_true(table_insert(&table, places[i],
                                 (struct entry *)(void *)(hidden + i * STEP)));
    }
    assert_sound(&table);
    for (size_t i = 0; i < SPAN; i++) {
        table_remove(&table, places[i],
                     (struct entry *)(void *)(hidden + i * STEP));
    }
    assert_int_equal(table.count, 0);
    table_fini(&table);
    assert_int_equal(munmap(hidden, (size_t)SPAN * STEP), 0);
}

/* A table that was told how many entries come has no more buckets at the end,
 * and takes not much more memory than one that grew; failing allocations cost
 * only that. */
TEST(an_expected_table_is_as_good_as_one_that_grew)
{
    static const uint32_t counts[] = { 1, 200, 400, 5000, SPAN };
    static struct entry *entries[SPAN];
    uint64_t rest;

    for (unsigned i = 0; i < SPAN; i++) {
        entries[i] = new_entry(i);
    }
    rest = mem_used();
    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (unsigned failing = 0; failing < 4; failing++) {
            struct table table = { .count = 0 };
            uint32_t used;

            mem_fail_at(failing);
            table_expect(&table, counts[i]);
            (void)mem_fail_clear();
            used = table.used;
            for (unsigned e = 0; e < counts[i]; e++) {
                assert_true(table_insert(&table, place_of(e), entries[e]));
            }
            assert_sound(&table);
            assert_int_equal(table.count, counts[i]);
            assert_true(used == 0 || table.used == used);
            assert_true(mem_used() - rest <= (uint64_t)counts[i] * 15 + 512);
            for (unsigned e = 0; e < counts[i]; e++) {
                assert_ptr_equal(table_get(&table, place_of(e), entries[e]),
                                 entries[e]);
                table_remove(&table, place_of(e), entries[e]);
            }
            table_fini(&table);
            assert_int_equal(mem_used(), rest);
        }
    }
    for (unsigned i = 0; i < SPAN; i++) {
        mem_free(entries[i]);
    }
}

static uint32_t
reversed(uint64_t place)
{
    uint32_t out = 0;

    for (unsigned bit = 0; bit < TABLE_PLACE_BITS; bit++) {
        out = out << 1 | (uint32_t)(place >> bit & 1);
    }
    return out;
}

static int
in_walk_order(const void *a, const void *b)
{
    uint32_t left =
        reversed(table_place(table_hash(*(struct entry *const *)a), 0));
    uint32_t right =
        reversed(table_place(table_hash(*(struct entry *const *)b), 0));

    return left < right ? -1 : left > right;
}

/* A snapshot comes in the order of a walk. If keys were added while it was
 * written, there are more than it announced, and they fill a few buckets
 * first. */
TEST(a_table_takes_the_order_of_a_walk_however_few_it_expected)
{
    static const uint32_t expected[] = { 0, 1, 700, SPAN / 16, SPAN };
    static struct entry *entries[SPAN];

    for (unsigned i = 0; i < SPAN; i++) {
        entries[i] = new_entry(i);
    }
    qsort(entries, SPAN, sizeof(struct entry *), in_walk_order);
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct table table = { .count = 0 };

        table_expect(&table, expected[i]);
        for (unsigned e = 0; e < SPAN; e++) {
            assert_true(table_insert(
                &table, table_place(table_hash(entries[e]), 0), entries[e]));
        }
        assert_sound(&table);
        assert_int_equal(table.count, SPAN);
        assert_in_range(table.used, SPAN / TABLE_TARGET,
                        2 * SPAN / TABLE_TARGET);
        table_fini(&table);
    }
    for (unsigned i = 0; i < SPAN; i++) {
        mem_free(entries[i]);
    }
}

/* Bytes beside the entries, with what the allocator adds to each block. */
TEST(a_table_takes_about_ten_bytes_an_entry)
{
    struct pool pool;
    uint64_t rest;
    uint64_t sum = 0;

    pool_init(&pool);
    rest = mem_used();
    for (unsigned i = 0; i < POOL; i++) {
        uint64_t bytes;

        pool_put(&pool, i);
        bytes = mem_used() - rest;
        assert_true(bytes <= (uint64_t)(i + 1) * 15 + 512);
        sum += i >= 500 ? bytes * 1000 / (i + 1) : 0;
    }
    assert_in_range(sum / (POOL - 500), 8500, 11500);
    pool_fini(&pool);
}

/* One name in many databases has one hash, but many places. */
TEST(a_name_in_many_databases_is_spread_over_the_table)
{
    enum { GENERATIONS = 20000 };
    static struct entry *entries[GENERATIONS];
    struct table table = { .count = 0 };
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);

    for (uint32_t i = 0; i < GENERATIONS; i++) {
        entries[i] = new_entry(1);
        entries[i]->db_id = i << DB_SLOT_BITS | 3;
        assert_true(table_insert(
            &table, table_place(k->hash, entries[i]->db_id), entries[i]));
    }
    assert_sound(&table);
    for (uint32_t b = 0; b < table.used; b++) {
        assert_true(table_line_count(table.buckets[b]) < TABLE_LINES_MAX);
    }
    for (uint32_t i = 0; i < GENERATIONS; i++) {
        assert_ptr_equal(
            table_find(&table, k->hash, k->name, entries[i]->db_id),
            entries[i]);
    }
    table_fini(&table);
    for (uint32_t i = 0; i < GENERATIONS; i++) {
        mem_free(entries[i]);
    }
}

/* As if the hash were broken: a full bucket of the largest size refuses more,
 * and loses none. */
TEST(a_bucket_that_cannot_grow_further_refuses_an_entry)
{
    enum { FULL = TABLE_LINES_MAX * TABLE_SLOTS };
    struct entry *entries[FULL + 1];
    struct table table = { .count = 0 };

    for (unsigned i = 0; i <= FULL; i++) {
        entries[i] = new_entry(i);
        assert_int_equal(table_insert(&table, 77, entries[i]), i < FULL);
    }
    assert_sound(&table);
    assert_int_equal(table.count, FULL);
    for (unsigned i = 0; i <= FULL; i++) {
        assert_ptr_equal(table_get(&table, 77, entries[i]),
                         i < FULL ? entries[i] : NULL);
    }
    for (unsigned i = 0; i <= FULL; i++) {
        if (i < FULL) {
            table_remove(&table, 77, entries[i]);
        }
        mem_free(entries[i]);
    }
    assert_sound(&table);
    table_fini(&table);
}

/* ---- memory that is refused ---------------------------------------------- */

TEST(a_table_that_finds_no_memory_works_on_and_catches_up_later)
{
    struct pool pool;
    unsigned put = 0;
    bool done = false;

    pool_init(&pool);
    for (unsigned nth = 1; nth <= 2; nth++) {
        mem_fail_at(nth);
        assert_false(table_insert(&pool.table, place_of(0), pool.entries[0]));
        assert_true(mem_fail_clear());
        assert_int_equal(pool.table.count, 0);
    }
    for (unsigned i = 0; i < POOL / 2; i++) {
        pool_put(&pool, i);
    }
    while (!done) { /* until a bucket is full to the last slot */
        unsigned i = POOL / 2 + put;

        mem_fail_from(1);
        done = !table_insert(&pool.table, place_of(i), pool.entries[i]);
        (void)mem_fail_clear();
        pool.in[i] = !done;
        put++;
    }
    assert_true(put > 8);
    pool_check(&pool);
    assert_sound(&pool.table);
    for (unsigned i = 0; i < POOL; i++) {
        pool_put(&pool, i);
    }
    assert_int_equal(pool.table.used, (POOL - 1) / TABLE_TARGET + 1);
    pool_check(&pool);
    assert_sound(&pool.table);
    for (unsigned i = 0; i < POOL; i++) { /* blocks that stay too large */
        mem_fail_from(1);
        pool_drop(&pool, i);
        (void)mem_fail_clear();
    }
    assert_int_equal(pool.table.count, 0);
    for (unsigned i = 0; i < POOL; i++) {
        pool_put(&pool, i);
    }
    pool_check(&pool);
    assert_sound(&pool.table);
    for (unsigned i = 0; i < POOL; i++) {
        pool_drop(&pool, i);
    }
    assert_int_equal(pool.table.used, BUCKETS_MIN);
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
            if (n >= target) {
                pool_drop(&pool, n);
            } else if (!pool.in[n]) {
                pool.in[n] =
                    table_insert(&pool.table, place_of(n), pool.entries[n]);
            }
            (void)mem_fail_clear();
        }
        pool_check(&pool);
        assert_sound(&pool.table);
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

        struct table_range range = table_step(&pool->table, cursor, &cursor);
        const struct entry *entry;

        while ((entry = table_range_next(&range)) != NULL) {
            met[number_of(entry)] = true;
        }
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

TEST(table_walk_at_rest_meets_every_entry_once_in_small_steps)
{
    struct pool pool;

    pool_init(&pool);
    for (unsigned i = 0; i < POOL; i++) {
        static unsigned char met[POOL];
        uint64_t cursor = 0;
        unsigned steps = 0;

        pool_put(&pool, i);
        if (i > 20 && i % 50 != 0) {
            continue;
        }
        memset(met, 0, sizeof(met));
        do {
            struct table_range range = table_step(&pool.table, cursor, &cursor);
            const struct entry *entry;
            unsigned count = 0;

            while ((entry = table_range_next(&range)) != NULL) {
                met[number_of(entry)]++;
                count++;
            }
            assert_true(count < 40);
            assert_true(cursor <= TABLE_PLACE);
            steps++;
        } while (cursor != 0);
        assert_true(steps <= i / 3 + BUCKETS_MIN);
        for (unsigned n = 0; n <= i; n++) {
            assert_int_equal(met[n], 1);
        }
    }
    pool_fini(&pool);
}

TEST(whole_buckets_have_every_entry_once)
{
    static unsigned char met[POOL];
    struct pool pool;

    pool_init(&pool);
    for (unsigned i = 0; i < POOL; i++) {
        pool_put(&pool, i);
    }
    memset(met, 0, sizeof(met));
    for (uint32_t b = 0; b < pool.table.used; b++) {
        struct table_range range = table_whole_bucket(&pool.table, b);
        const struct entry *entry;

        while ((entry = table_range_next(&range)) != NULL) {
            table_range_prefetch(&range, 16);
            met[number_of(entry)]++;
        }
    }
    for (unsigned i = 0; i < POOL; i++) {
        assert_int_equal(met[i], 1);
    }
    pool_fini(&pool);
}

/* One place's point in the order: a cursor that is not behind it never gets
 * there without its entries, whatever size the table and its buckets have at
 * each step. */
TEST(table_walk_over_tables_of_any_size_passes_no_place)
{
    enum { MOST = 600 };
    static const unsigned sizes[] = { 0, 1, 2, 3, 7, 12, 20, 56 };
    uint64_t random = random_of(4);

    for (unsigned i = 0; i < 2000 * test_rounds(); i++) {
        uint64_t place = test_random_below(&random, TABLE_PLACE);
        uint64_t cursor = 0;
        bool met = false;

        do {
            uint64_t buckets[MOST + 3];
            struct table table = { .buckets = buckets };
            struct table_range range;

            table.used = 2 + (uint32_t)test_random_below(
                                 &random, 1 + test_random_below(&random, MOST));
            for (uint32_t b = 0; b < table.used; b++) {
                buckets[b] = sizes[test_random_below(&random, 8)];
            }
            range = table_step(&table, cursor, &cursor);
            met = met || ((place ^ range.place) & range.mask) == 0;
            assert_true(cursor <= TABLE_PLACE);
        } while (cursor != 0);
        assert_true(met);
    }
}
