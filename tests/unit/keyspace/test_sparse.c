/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mappings with few and with many pages in use. Whether huge pages come is the
 * kernel's matter; when they are asked for is ours.
 */
#include "keyspace/sparse.h"

#include "../test.h"
#include "base/huge.h"
#include "base/mem.h"

#include <time.h>

enum { PAGE = 4096, BYTES = 8 * HUGE_PAGE_BYTES };

static void
sleep_ms(unsigned ms)
{
    const struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };

    (void)nanosleep(&time, NULL);
}

static void
give_back(void *map, size_t bytes)
{
    sparse_forget(map);
    mem_free_lines(map, bytes);
}

static void
touch(char *map, size_t pages, size_t step)
{
    for (size_t i = 0; i < pages; i += step) {
        map[i * PAGE] = 1;
    }
}

static void
read_all(const char *map, size_t bytes)
{
    volatile char sum = 0;

    for (size_t i = 0; i < bytes; i += PAGE) {
        sum = (char)(sum + map[i]);
    }
}

/* Waits until so few are watched. */
static void
expect_count(size_t count)
{
    for (unsigned ms = 0; sparse_count() != count; ms += 10) {
        assert_true(ms < 60000);
        sleep_ms(10);
    }
}

static bool
runs(void)
{
    char *map = mem_try_lines(HUGE_PAGE_BYTES);
    bool watched;

    assert_non_null(map);
    sparse_watch(map, HUGE_PAGE_BYTES);
    watched = sparse_count() == 1;
    give_back(map, HUGE_PAGE_BYTES);
    assert_int_equal(0, sparse_count());
    return watched;
}

TEST(without_the_thread_nothing_is_watched)
{
    char *map = mem_try_lines(BYTES);

    sparse_watch(map, BYTES);
    assert_int_equal(0, sparse_count());
    give_back(map, BYTES);
    sparse_stop();
}

/* What is read stays a page of zeros, and does not count. */
TEST(a_mapping_becomes_dense_by_its_written_pages_only)
{
    char *few = mem_try_lines(BYTES), *many = mem_try_lines(BYTES);

    sparse_start();
    if (runs()) {
        sparse_watch(few, BYTES);
        sparse_watch(many, BYTES);
        touch(few, BYTES / PAGE, 5);
        read_all(few, BYTES);
        touch(many, BYTES / PAGE, 3);
        expect_count(1);
        sleep_ms(300);
        assert_int_equal(1, sparse_count());
        touch(few, BYTES / PAGE, 1);
        expect_count(0);
        for (size_t i = 0; i < BYTES; i += PAGE) {
            assert_int_equal(1, few[i]);
            assert_int_equal(i / PAGE % 3 == 0, many[i]);
        }
    }
    give_back(few, BYTES);
    give_back(many, BYTES);
    sparse_stop();
}

TEST(mappings_may_go_at_any_moment)
{
    enum { MAPS = 200, SMALL = 2 * HUGE_PAGE_BYTES };
    uint64_t rng = test_seed();
    char *map[MAPS] = { NULL };

    sparse_start();
    for (unsigned i = 0; i < 2000; i++) {
        size_t at = (size_t)test_random_below(&rng, MAPS);

        if (map[at] != NULL) {
            give_back(map[at], SMALL);
            map[at] = NULL;
            continue;
        }
        map[at] = mem_try_lines(SMALL);
        assert_non_null(map[at]);
        sparse_watch(map[at], SMALL);
        touch(map[at], SMALL / PAGE, 1 + (size_t)test_random_below(&rng, 8));
    }
    for (size_t at = 0; at < MAPS; at++) {
        if (map[at] != NULL) {
            assert_int_equal(1, map[at][0]);
            give_back(map[at], SMALL);
        }
    }
    assert_int_equal(0, sparse_count());
    sparse_stop();
}
