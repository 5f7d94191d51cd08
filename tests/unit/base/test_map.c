/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map against an array of flags, while it grows and shrinks.
 */
#include "base/map.h"

#include "../test.h"
#include "base/mem.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 2000 };

static int values[NAMES];

/* Names of many lengths, the empty one among them. */
static struct slice
name_of(unsigned i, char text[64])
{
    int len = i == 0 ? 0 : snprintf(text, 64, "%*u", (int)(i % 40), i);

    return (struct slice){ text, (size_t)len };
}

static void
check_all(const struct map *map, const bool *there)
{
    size_t count = 0;

    for (unsigned i = 0; i < NAMES; i++) {
        char text[64];
        void *found = map_find(map, name_of(i, text));

        assert_ptr_equal(there[i] ? &values[i] : NULL, found);
        count += there[i];
    }
    assert_int_equal(count, map->count);
}

TEST(a_map_has_what_was_put_and_not_removed)
{
    uint64_t used = mem_used();
    bool there[NAMES] = { false };
    struct map map = { 0 };
    char text[64];

    srand((unsigned)test_seed());
    for (unsigned round = 0; round < 30 * test_rounds(); round++) {
        bool grows = rand() % 2 == 0;

        for (unsigned step = 0; step < 1000; step++) {
            unsigned i = (unsigned)rand() % NAMES;
            struct slice name = name_of(i, text);

            if (grows || rand() % 8 == 0) {
                assert_true(map_put(&map, name, &values[i]));
                there[i] = true;
            } else {
                assert_ptr_equal(there[i] ? &values[i] : NULL,
                                 map_remove(&map, name));
                there[i] = false;
            }
        }
        check_all(&map, there);
    }
    map_free(&map);
    assert_int_equal(used, mem_used());
}

TEST(an_empty_map_holds_no_memory)
{
    uint64_t used = mem_used();
    struct map map = { 0 };
    char text[64];

    assert_null(map_find(&map, slice_lit("x")));
    assert_null(map_remove(&map, slice_lit("x")));
    for (unsigned i = 0; i < NAMES; i++) {
        assert_true(map_put(&map, name_of(i, text), &values[i]));
    }
    for (unsigned i = 0; i < NAMES; i++) {
        assert_ptr_equal(&values[i], map_remove(&map, name_of(i, text)));
    }
    assert_int_equal(0, map.count);
    assert_int_equal(used, mem_used());
}

TEST(to_put_again_replaces)
{
    struct map map = { 0 };

    assert_true(map_put(&map, slice_lit("x"), &values[0]));
    assert_true(map_put(&map, slice_lit("x"), &values[1]));
    assert_int_equal(1, map.count);
    assert_ptr_equal(&values[1], map_find(&map, slice_lit("x")));
    map_free(&map);
}

static bool
mark(void *ctx, struct slice name, void *value)
{
    unsigned *left = ctx;
    unsigned i = (unsigned)((int *)value - values);
    char text[64];

    assert_true(slice_equal(name, name_of(i, text)));
    values[i]++;
    (*left)--;
    return *left > 0;
}

TEST(each_visits_all_once_or_until_it_is_stopped)
{
    struct map map = { 0 };
    unsigned left = NAMES + 1;
    char text[64];

    memset(values, 0, sizeof(values));
    assert_true(map_each(&map, mark, &left));
    for (unsigned i = 0; i < NAMES; i++) {
        assert_true(map_put(&map, name_of(i, text), &values[i]));
    }
    assert_true(map_each(&map, mark, &left));
    for (unsigned i = 0; i < NAMES; i++) {
        assert_int_equal(1, values[i]);
    }
    left = 10;
    assert_false(map_each(&map, mark, &left));
    map_free(&map);
}

TEST(a_random_one_may_be_any_and_is_there)
{
    bool seen[50] = { false };
    struct map map = { 0 };
    struct slice name;
    unsigned found = 0;
    char text[64];

    assert_null(map_random(&map, 0, &name));
    for (unsigned i = 0; i < 50; i++) {
        assert_true(map_put(&map, name_of(i, text), &values[i]));
    }
    for (unsigned i = 0; i < 20000; i++) {
        int *value = map_random(&map, random_below(UINT64_MAX), &name);
        unsigned at = (unsigned)(value - values);

        assert_true(slice_equal(name, name_of(at, text)));
        found += !seen[at];
        seen[at] = true;
    }
    assert_int_equal(50, found);
    map_free(&map);
}

/* The nth allocation fails, for all n: an entry is there or is not, and what
 * was there stays. */
TEST(without_memory_nothing_is_lost)
{
    uint64_t used = mem_used();
    char text[64];

    for (unsigned nth = 1; nth < 60; nth++) {
        struct map map = { 0 };
        bool there[NAMES] = { false };

        mem_fail_at(nth);
        for (unsigned i = 0; i < 40; i++) {
            there[i] = map_put(&map, name_of(i, text), &values[i]);
        }
        assert_true(mem_fail_clear() || nth > 40);
        check_all(&map, there);
        map_free(&map);
        assert_int_equal(used, mem_used());
    }
}

TEST(a_node_costs_its_name_and_a_little)
{
    size_t empty = map_node_bytes((struct slice){ NULL, 0 });

    assert_in_range(empty, 16, 64);
    assert_int_equal(empty + 3, map_node_bytes(slice_lit("abc")));
}

/* ---- scanning ------------------------------------------------------------ */

struct scanned {
    unsigned times[NAMES];
};

static bool
scan_one(void *ctx, struct slice name, void *value)
{
    struct scanned *scanned = ctx;

    (void)name;
    scanned->times[(int *)value - values]++;
    return true;
}

/* While others come and go between the calls: who stays is met once, and nobody
 * twice. */
TEST(a_scan_meets_each_name_that_stays_once)
{
    srand((unsigned)test_seed());
    for (unsigned round = 0; round < 20; round++) {
        struct scanned scanned = { { 0 } };
        bool grows = round % 2 == 0;
        struct map map = { 0 };
        uint64_t cursor = 0;
        unsigned next = NAMES / 10;
        char text[64];

        for (unsigned i = 0; i < (grows ? NAMES / 10 : NAMES); i++) {
            assert_true(map_put(&map, name_of(i, text), &values[i]));
        }
        do {
            cursor = map_scan(&map, cursor, scan_one, &scanned);
            for (int i = rand() % 40; i > 0 && next < NAMES; i--) {
                if (grows) {
                    assert_true(
                        map_put(&map, name_of(next, text), &values[next]));
                } else {
                    assert_non_null(map_remove(&map, name_of(next, text)));
                }
                next++;
            }
        } while (cursor != 0);
        for (unsigned i = 0; i < NAMES; i++) {
            assert_in_range(scanned.times[i], i < NAMES / 10, 1);
        }
        map_free(&map);
    }
}

TEST(a_scan_of_an_empty_map_ends_at_once)
{
    struct scanned scanned = { { 0 } };
    struct map map = { 0 };

    assert_int_equal(0, map_scan(&map, 0, scan_one, &scanned));
    assert_int_equal(0, map_scan(&map, 12345, scan_one, &scanned));
}
