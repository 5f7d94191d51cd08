/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arguments survive the arena's moves, and failed growth.
 */
#include "../test.h"

#include "base/mem.h"
#include "proto/arena.h"

TEST(slices_are_right_after_the_bytes_have_moved)
{
    enum { COUNT = 1000 };
    static struct slice argv[COUNT];
    char text[COUNT];
    struct arena arena = { { 0 }, NULL, 0, 0 };

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < COUNT; i++) {
        text[0] = (char)('a' + i % 26);
        assert_true(arena_add(&arena, (struct slice){ text, i }));
    }
    assert_int_equal(COUNT, arena.count);
    arena_slices(&arena, argv);
    for (size_t i = 0; i < COUNT; i++) {
        text[0] = (char)('a' + i % 26);
        assert_true(slice_equal(argv[i], (struct slice){ text, i }));
    }
    assert_true(arena_kept_bytes(&arena) >= COUNT * (COUNT - 1) / 2);
    arena_fini(&arena);
}

TEST(empty_arguments_have_an_address)
{
    struct arena arena = { { 0 }, NULL, 0, 0 };
    struct slice argv[2] = { { NULL, 1 }, { NULL, 1 } };

    assert_true(arena_add(&arena, (struct slice){ NULL, 0 }));
    assert_true(arena_add(&arena, slice_lit("")));
    arena_slices(&arena, argv);
    assert_non_null(argv[0].data);
    assert_int_equal(0, argv[0].len);
    assert_int_equal(0, argv[1].len);
    arena_fini(&arena);
}

TEST(a_reset_keeps_small_memory_and_frees_large)
{
    uint64_t before = mem_used();
    struct arena arena = { { 0 }, NULL, 0, 0 };
    static char large[100000];

    assert_true(arena_add(&arena, slice_lit("small")));
    arena_reset(&arena, 1024);
    assert_int_equal(0, arena.count);
    assert_int_equal(0, arena_kept_bytes(&arena));
    assert_true(mem_used() > before);
    assert_true(arena_add(&arena, (struct slice){ large, sizeof(large) }));
    for (int i = 0; i < 1000; i++) {
        assert_true(arena_add(&arena, slice_lit("")));
    }
    arena_reset(&arena, 1024);
    assert_int_equal(before, mem_used());
    arena_fini(&arena);
}

TEST(adding_survives_every_allocation_failure)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct arena arena = { { 0 }, NULL, 0, 0 };
        bool added = true;

        mem_fail_at(nth);
        for (int i = 0; i < 100 && added; i++) {
            added = arena_add(&arena, slice_lit("0123456789"));
        }
        fired = mem_fail_clear();
        assert_int_equal(fired, !added);
        arena_fini(&arena);
        assert_true(nth > 2 || fired);
    }
}
