/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The expiry heap against an array of times.
 */
#include "support.h"

enum { POOL = 500 };

static struct entry *entries[POOL]; /* kept for the whole program */
static uint64_t times[POOL];        /* 0: not in */

static void
reset(void)
{
    memset(times, 0, sizeof(times));
    for (unsigned i = 0; i < POOL; i++) {
        if (entries[i] == NULL) {
            entries[i] = mem_zalloc(sizeof(*entries[i]));
        }
        entries[i]->heap_index = EXPIRE_NONE;
    }
}

static void
check(const struct expire *expire)
{
    uint64_t first = UINT64_MAX;
    unsigned count = 0;

    for (unsigned i = 0; i < POOL; i++) {
        if (times[i] == 0) {
            assert_int_equal(entries[i]->heap_index, EXPIRE_NONE);
            continue;
        }
        count++;
        first = times[i] < first ? times[i] : first;
        assert_true(entries[i]->heap_index < expire->count);
        assert_ptr_equal(expire->items[entries[i]->heap_index].entry,
                         entries[i]);
        assert_int_equal(expire->items[entries[i]->heap_index].at_ms, times[i]);
    }
    assert_int_equal(expire->count, count);
    assert_int_equal(expire_next(expire), first);
}

TEST(heap_agrees_with_an_array_under_random_changes)
{
    uint64_t random = random_of(3);
    struct expire expire = { NULL, 0, 0 };

    reset();
    for (unsigned i = 0; i < 5000 * test_rounds(); i++) {
        unsigned n = (unsigned)test_random_below(&random, POOL);

        if (test_random_below(&random, 3) > 0) {
            times[n] = 1 + test_random_below(&random, 1000);
            assert_true(expire_set(&expire, entries[n], times[n]));
        } else if (times[n] != 0) {
            times[n] = 0;
            expire_remove(&expire, entries[n]);
        }
        check(&expire);
    }
    expire_fini(&expire);
}

TEST(heap_gives_entries_in_the_order_of_their_times)
{
    uint64_t random = random_of(4);
    struct expire expire = { NULL, 0, 0 };
    uint64_t last = 0;

    reset();
    for (unsigned i = 0; i < POOL; i++) {
        assert_true(expire_set(&expire, entries[i],
                               1 + test_random_below(&random, 100)));
    }
    while (expire.count > 0) {
        assert_true(expire_next(&expire) >= last);
        last = expire_next(&expire);
        expire_remove(&expire, expire.items[0].entry);
    }
    assert_int_equal(expire_next(&expire), UINT64_MAX);
    assert_true(expire.capacity <= 8); /* it gave memory back */
    expire_fini(&expire);
}

TEST(heap_without_memory_stays_as_it_is)
{
    struct expire expire = { NULL, 0, 0 };

    reset();
    for (unsigned i = 0; i < POOL; i++) {
        mem_fail_at(1);
        if (!expire_set(&expire, entries[i], 7 + i)) {
            assert_true(mem_fail_clear());
            check(&expire);
            assert_true(expire_set(&expire, entries[i], 7 + i));
        }
        (void)mem_fail_clear();
        times[i] = 7 + i;
    }
    check(&expire);
    for (unsigned i = 0; i < POOL; i++) {
        mem_fail_at(1); /* moves need none, shrinking can wait */
        assert_true(expire_set(&expire, entries[i], 2000 - i));
        (void)mem_fail_clear();
        times[i] = 2000 - i;
    }
    check(&expire);
    for (unsigned i = 0; i < POOL; i++) {
        mem_fail_at(1);
        expire_remove(&expire, entries[i]);
        (void)mem_fail_clear();
        times[i] = 0;
    }
    check(&expire);
    expire_fini(&expire);
}
