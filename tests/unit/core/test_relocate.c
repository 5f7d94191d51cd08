/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A filter whose every block has moved is the same filter.
 */
#include "core/relocate.h"

#include <malloc.h>

#include "../test.h"
#include "core/bloom.h"
#include "help.h"

/* Copies to new memory, and spoils the old before it frees it. */
static void *
move_always(void *block, size_t align)
{
    size_t bytes = malloc_usable_size(block);
    void *moved = aligned_alloc(64, (bytes + 63) / 64 * 64);

    assert_non_null(moved);
    assert_int_equal((uintptr_t)block % align, 0);
    memcpy(moved, block, bytes);
    memset(block, 0xA5, bytes);
    free(block);
    return moved;
}

static void *
move_never(void *block, size_t align)
{
    (void)block;
    (void)align;
    return NULL;
}

static struct bloom *
grown(enum bloom_kind kind, uint32_t expansion)
{
    struct bloom_params params = params_of(10, 0.01, expansion);
    struct bloom *bloom;

    set_kind(&params, kind);
    params.tightening = kind == BLOOM_REDISBLOOM ? 0.5 : 0.75;
    bloom_seed(1, params.seed);
    bloom = make(&params, NULL);
    (void)fill(bloom, NULL, 1, expansion == 0 ? 9 : 500);
    return bloom;
}

/* Of one layer, or of several, of each kind, and with an unusual tightening. */
TEST(a_moved_filter_is_the_same)
{
    for (unsigned kind = 0; kind < BLOOM_KINDS; kind++) {
        for (uint32_t expansion = 0; expansion < 3; expansion++) {
            struct bloom *bloom = grown((enum bloom_kind)kind, expansion);
            struct snapshot before = snapshot_of(bloom);
            struct relocate_sums sums = { 0, 0 };

            bloom_relocate(bloom, 0, UINT32_MAX, move_never, &sums);
            assert_int_equal(sums.moved, 0);
            /* The lines, the struct beside them, and a chain. */
            assert_int_equal(sums.stayed,
                             bloom->count + 1U + (bloom->count > 1));
            bloom_relocate(bloom, 0, UINT32_MAX, move_always, &sums);
            assert_int_equal(sums.moved, sums.stayed);
            bloom_check(bloom);
            assert_same(before, snapshot_of(bloom));
            (void)fill(bloom, NULL, 100000, expansion == 0 ? 1 : 500);
            bloom_free(bloom, NULL);
        }
    }
}

TEST(a_plain_filter_has_one_block)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    struct relocate_sums sums = { 0, 0 };

    bloom_relocate(bloom, 0, 1, move_always, &sums);
    assert_int_equal(sums.moved, 1);
    assert_int_equal(sums.stayed, 0);
    bloom_free(bloom, NULL);
}

/* MOVE asks the allocator about a block, which knows nothing of a mapping. */
TEST(a_mapping_stays_and_the_blocks_beside_it_move)
{
    struct bloom_params params = params_of(1000, 0.01, 4000);
    struct bloom *bloom = make(&params, NULL);
    struct relocate_sums sums = { 0, 0 };
    const void *lines;
    size_t bytes;

    (void)fill(bloom, NULL, 1, 1001);
    assert_int_equal(bloom->count, 2);
    lines = bloom_layer_lines(bloom, 1, &bytes);
    assert_true(bytes >= HUGE_PAGE_BYTES);
    bloom_relocate(bloom, 0, UINT32_MAX, move_always, &sums);
    assert_int_equal(sums.moved, 2); /* the chain, and the first layer */
    assert_int_equal(sums.stayed, 1);
    assert_ptr_equal(lines, bloom_layer_lines(bloom, 1, &bytes));
    bloom_check(bloom);
    bloom_free(bloom, NULL);
}

/* Some layers in each turn, all of them after some turns. */
TEST(turns_reach_all_layers)
{
    struct bloom *bloom = grown(BLOOM_NATIVE, 1);
    struct relocate_sums sums = { 0, 0 };
    uint32_t layers = bloom->count;
    const void **lines = calloc(layers, sizeof(*lines));
    size_t bytes;

    assert_non_null(lines);
    assert_true(layers > 30);
    for (uint32_t i = 0; i < layers; i++) {
        lines[i] = bloom_layer_lines(bloom, i, &bytes);
    }
    for (uint32_t from = 0; from < layers + 8; from += 8) {
        uint64_t before = sums.moved;

        bloom_relocate(bloom, from, 8, move_always, &sums);
        assert_int_equal(sums.moved, before + 8 + 2);
    }
    for (uint32_t i = 0; i < layers; i++) {
        assert_ptr_not_equal(lines[i], bloom_layer_lines(bloom, i, &bytes));
    }
    bloom_check(bloom);
    free(lines);
    bloom_free(bloom, NULL);
}
