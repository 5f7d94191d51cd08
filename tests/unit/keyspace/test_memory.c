/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What filters may take, and what the gauges say of it.
 */
#include "base/huge.h"
#include "base/machine.h"
#include "keyspace/databases.h"
#include "support.h"

static const struct bloom_params params = { .struct_size = sizeof(params),
                                            .capacity = 1000,
                                            .error_rate = 0.01,
                                            .tightening = 0.5,
                                            .expansion = 2 };

static void
assert_gauges(const struct bloom_info *sum, int64_t objects)
{
    assert_int_equal(metric_sum(METRIC_BF_MEMORY), sum->size_bytes);
    assert_int_equal(metric_sum(METRIC_BF_FILTERS), sum->layers);
    assert_int_equal(metric_sum(METRIC_BF_ITEMS), sum->items);
    assert_int_equal(metric_sum(METRIC_BF_CAPACITY), sum->capacity);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), objects);
}

TEST(a_filter_beyond_maxmemory_is_refused_and_nothing_leaks)
{
    uint64_t used = mem_used();
    struct keyspace_memory memory = { .maxmemory_bytes = used + 512 };
    struct bloom_env env = keyspace_env(&memory, UINT64_MAX);
    struct bloom *bloom = NULL;

    assert_int_equal(bloom_new(&params, &env, &bloom), BLOOM_NOMEM);
    assert_null(bloom);
    assert_int_equal(mem_used(), used);
    memory.maxmemory_bytes = used + 100000; /* the ctx is read each time */
    assert_int_equal(bloom_new(&params, &env, &bloom), BLOOM_OK);
    bloom_free(bloom, &env);
    assert_int_equal(mem_used(), used);
    memory.maxmemory_bytes =
        used > 1 ? used / 2 : 1; /* far below what is used */
    bloom = NULL;
    assert_int_equal(bloom_new(&params, &env, &bloom), BLOOM_NOMEM);
    assert_null(bloom);
}

/* Far from the limit, a thread looks at the sums once for 256 KiB. So it may
 * pass a limit that has come near since, but by no more. */
TEST(a_thread_that_does_not_look_passes_the_limit_by_little)
{
    enum { FAR = 200 << 20, GRANT = 256 << 10, STEP = 1000 };
    struct keyspace_memory memory = { .maxmemory_bytes = mem_used() + FAR };
    struct bloom_env env = keyspace_env(&memory, UINT64_MAX);
    void *ptr[GRANT / STEP + 1];
    unsigned count = 0;

    ptr[count++] = env.alloc(env.ctx, STEP);
    metric_add(METRIC_MEM_USED, FAR);
    while ((ptr[count] = env.alloc(env.ctx, STEP)) != NULL) {
        count++;
        assert_true(count <= GRANT / STEP);
    }
    memory.maxmemory_bytes--; /* another limit: it looks */
    assert_null(env.alloc(env.ctx, 1));
    metric_add(METRIC_MEM_USED, -FAR);
    while (count > 0) {
        env.free(env.ctx, ptr[--count], STEP);
    }
}

/* Where keys are evicted, what begins below the limit, or less than 64 KB above
 * it, may end above. */
TEST(with_eviction_an_allocation_may_cross_the_limit)
{
    struct keyspace_memory memory = { .maxmemory_bytes = mem_used() + 400000,
                                      .evicts = true };
    struct bloom_env env = keyspace_env(&memory, UINT64_MAX);
    uint64_t max = memory.maxmemory_bytes;
    void *ptr[3];

    assert_null(env.alloc(env.ctx, max + 1)); /* could never be made up for */
    for (unsigned i = 0; i < 2; i++) {
        ptr[i] = env.alloc(env.ctx, 210000);
        assert_non_null(ptr[i]);
    }
    assert_true(keyspace_is_over(max));
    ptr[2] = env.alloc(env.ctx, 210000);
    assert_non_null(ptr[2]);
    assert_null(env.alloc(env.ctx, 1));
    memory.evicts = false;
    env.free(env.ctx, ptr[2], 210000);
    assert_null(env.alloc(env.ctx, 1));
    memory.evicts = true;
    env.free(env.ctx, env.alloc(env.ctx, 1), 1);
    env.free(env.ctx, ptr[1], 210000);
    assert_false(keyspace_is_over(max));
    env.free(env.ctx, ptr[0], 210000);
}

TEST(memory_on_its_way_back_counts_as_free_where_keys_are_evicted)
{
    struct keyspace_memory memory = { .maxmemory_bytes = mem_used() + 100,
                                      .evicts = true };
    struct bloom_env env = keyspace_env(&memory, UINT64_MAX);
    void *big = mem_alloc(90000);
    void *more;

    assert_true(keyspace_is_over(memory.maxmemory_bytes));
    metric_add(METRIC_LAZYFREE_PENDING_BYTES, 100000);
    assert_false(keyspace_is_over(memory.maxmemory_bytes));
    more = env.alloc(env.ctx, 1);
    assert_non_null(more);
    env.free(env.ctx, more, 1);
    memory.evicts = false;
    assert_null(env.alloc(env.ctx, 1));
    metric_add(METRIC_LAZYFREE_PENDING_BYTES, -100000);
    mem_free(big);
}

TEST(changes_that_wait_for_disk_or_replicas_do_not_count_against_maxmemory)
{
    struct keyspace_memory memory = { .maxmemory_bytes = mem_used() + 100 };
    struct bloom_env env = keyspace_env(&memory, UINT64_MAX);
    void *queue = mem_alloc(90000);
    void *more;

    assert_true(keyspace_is_over(memory.maxmemory_bytes));
    assert_null(env.alloc(env.ctx, 1));
    metric_add(METRIC_JOURNAL_QUEUED, 50000); /* neither alone is enough */
    assert_true(keyspace_is_over(memory.maxmemory_bytes));
    metric_add(METRIC_REPL_BACKLOG, 50000);
    for (int i = 0; i < 2; i++) {
        memory.evicts = i > 0;
        assert_false(keyspace_is_over(memory.maxmemory_bytes));
        more = env.alloc(env.ctx, 1);
        assert_non_null(more);
        env.free(env.ctx, more, 1);
    }
    metric_add(METRIC_JOURNAL_QUEUED, -50000);
    metric_add(METRIC_REPL_BACKLOG, -50000);
    assert_true(keyspace_is_over(memory.maxmemory_bytes));
    mem_free(queue);
}

TEST(a_filter_beyond_the_machine_is_refused_without_maxmemory)
{
    static const struct keyspace_memory unlimited;
    struct bloom_env env = keyspace_env(&unlimited, UINT64_MAX);
    struct bloom_params huge = params;
    struct bloom *bloom = NULL;

    huge.capacity =
        machine_memory_bytes(); /* about 10 bits an item: too much */
    assert_int_equal(bloom_new(&huge, &env, &bloom), BLOOM_NOMEM);
    assert_null(bloom);
    assert_null(env.alloc_lines(env.ctx, SIZE_MAX / 2));
    assert_null(env.alloc(env.ctx, SIZE_MAX / 2));
}

/* A mapping costs nothing before it is touched, so any test can have one of
 * nine tenths of the machine. */
TEST(mapped_memory_counts_against_the_machine_before_it_is_touched)
{
    struct keyspace_memory memory = { .shares = true };
    struct bloom_env env = keyspace_env(&memory, UINT64_MAX);
    size_t most = (size_t)(machine_share_bytes(machine_memory_bytes()) -
                           mem_used() - 2 * HUGE_PAGE_BYTES);
    size_t more = 4 * (size_t)HUGE_PAGE_BYTES;
    void *promised = env.alloc_lines(env.ctx, most);
    void *other;

    assert_non_null(promised);
    assert_null(env.alloc_lines(env.ctx, more));
    memory.maxmemory_bytes = machine_memory_bytes(); /* he who sets it knows */
    other = env.alloc_lines(env.ctx, more);
    assert_non_null(other);
    env.free_lines(env.ctx, other, more);
    memory.maxmemory_bytes = 0;
    memory.shares = false; /* as where a log is obeyed */
    other = env.alloc_lines(env.ctx, more);
    assert_non_null(other);
    env.free_lines(env.ctx, other, more);
    memory.shares = true;
    env.free_lines(env.ctx, promised, most);
    other = env.alloc_lines(env.ctx, more);
    assert_non_null(other);
    env.free_lines(env.ctx, other, more);
}

TEST(the_object_limit_is_the_filters_own)
{
    static const struct keyspace_memory unlimited;
    struct bloom_env env = keyspace_env(&unlimited, 300);
    struct bloom *bloom = NULL;

    assert_int_equal(env.size_limit_bytes, 300);
    assert_int_equal(bloom_new(&params, &env, &bloom), BLOOM_LIMIT);
}

TEST(gauges_follow_a_filter_from_insert_to_removal)
{
    const struct bloom_info nothing = { .items = 0 };
    struct keyspace *ks = test_keyspace(1);
    const struct bloom_env env = test_env();
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);

    bloom_get_info(&entry->bloom, &before);
    assert_gauges(&before, 1);
    for (unsigned i = 0; i < 500; i++) {
        bool added;

        assert_int_equal(bloom_add(&entry->bloom, &env,
                                   bloom_hash(&entry->bloom, &i, sizeof(i)),
                                   &added),
                         BLOOM_OK);
    }
    bloom_get_info(&entry->bloom, &after);
    assert_true(after.layers > 1 && after.items > 400);
    keyspace_account(&before, &after);
    assert_gauges(&after, 1);
    assert_true(keyspace_delete(ks, k, 0));
    assert_gauges(&nothing, 0);
    (void)test_put(ks, k);
    keyspace_flush_all(ks);
    keyspace_wait_freed(ks);
    assert_gauges(&nothing, 0);
    (void)test_put(ks, k);
    keyspace_free(ks);
    assert_gauges(&nothing, 0);
}

TEST(an_entry_costs_its_struct_its_name_and_its_place)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);
    size_t bytes = keyspace_entry_bytes(entry);

    /* Incarnation and version, three numbers of 32 bits; then the name and its
     * length, and the slot in the table. */
    assert_int_equal(bytes, 2 * 8 + 3 * 4 + 1 + k->name.len + 8);
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 5), OK);
    assert_int_equal(keyspace_entry_bytes(entry), bytes + 16);
    keyspace_free(ks);
}
