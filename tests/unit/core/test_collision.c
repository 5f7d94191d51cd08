/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One layer with a collision map: which bits are cleared and which stay, its
 * size, and the pieces of a scope.
 */
#include "core/collision.h"

#include "../test.h"
#include "core/env.h"
#include "core/layer.h"

static const struct collision_scope everything = { .pieces = NULL };

static struct layer
make_layer(uint64_t lines, uint32_t stripes, uint32_t log2)
{
    const struct geometry geometry = { .lines = lines,
                                       .stripes = stripes,
                                       .log2 = log2 };
    struct layer layer;

    assert_true(layer_init(&layer, BLOOM_DELETABLE, 100, geometry,
                           env_or_default(NULL)));
    return layer;
}

static struct bloom_hash
random_hash(uint64_t *rng)
{
    struct bloom_hash hash = { .high = test_random(rng) };

    hash.low = test_random(rng);
    return hash;
}

static uint64_t
count_bits(const struct layer *layer)
{
    return layer_ops_of(layer)->ones(
        layer->lines, (size_t)(layer_bytes(layer) / BLOOM_LINE_BYTES));
}

/* The map takes 1/region of the lines, in whole blocks. */
TEST(the_map_takes_its_part)
{
    static const uint64_t bytes[] = { 10 * 128, 5 * 192, 3 * 320, 2 * 576 };
    uint64_t out = 0;

    for (uint32_t log2 = 0; log2 < 4; log2++) {
        struct layer layer = make_layer(10, 3, log2);

        assert_int_equal(3 * bytes[log2], layer_bytes(&layer));
        assert_int_equal(0, collision_piece_bytes(&layer, 1000) %
                                (((1U << log2) + 1) * BLOOM_LINE_BYTES));
        layer_fini(&layer, env_or_default(NULL));
    }
    assert_false(collision_bytes((struct geometry){ 1, 1, 4 }, &out));
    assert_false(collision_bytes((struct geometry){ 0, 1, 1 }, &out));
    assert_false(collision_bytes((struct geometry){ 1, 0, 1 }, &out));
    assert_false(
        collision_bytes((struct geometry){ UINT64_MAX / 64, 1, 1 }, &out));
}

TEST(an_item_alone_goes_without_a_trace)
{
    uint64_t rng = test_seed();

    for (uint32_t i = 0; i < 200; i++) {
        struct layer layer = make_layer(1 + i % 20, 1 + i % 3, i % 4);
        struct bloom_hash hash = random_hash(&rng);

        assert_true(layer_add(&layer, hash));
        assert_int_equal(8 * layer.stripes, count_bits(&layer));
        assert_true(layer_contains(&layer, hash));
        assert_int_equal(8 * layer.stripes,
                         collision_clear(&layer, hash, &everything));
        assert_int_equal(0, count_bits(&layer));
        layer_fini(&layer, env_or_default(NULL));
    }
}

/* Bits that an add finds set stay, and so do their regions. */
TEST(what_is_collided_stays)
{
    uint64_t rng = test_seed();

    for (uint32_t i = 0; i < 200; i++) {
        struct layer layer = make_layer(1 + i % 4, 1 + i % 3, i % 4);
        struct bloom_hash hash = random_hash(&rng);
        struct bloom_hash other = random_hash(&rng);

        assert_true(layer_add(&layer, hash));
        assert_false(layer_add(&layer, hash));
        assert_int_equal(0, collision_clear(&layer, hash, &everything));
        assert_true(layer_contains(&layer, hash));
        (void)layer_add(&layer, other);
        (void)collision_clear(&layer, other, &everything);
        assert_true(layer_contains(&layer, hash));
        layer_fini(&layer, env_or_default(NULL));
    }
}

TEST(a_scope_leaves_later_pieces_alone)
{
    const uint64_t pieces[] = { 10, 20 };
    struct layer layer = make_layer(1, 2, 0); /* a block in each stripe */
    struct collision_scope scope = { .pieces = pieces,
                                     .piece_bytes = 128,
                                     .position = 15 };
    struct bloom_hash hash = { 1, 2 };

    assert_true(collision_mark(&layer, hash, &scope));
    assert_int_equal(8, count_bits(&layer));
    scope.position = 20; /* the second piece includes it */
    assert_int_equal(8, collision_clear(&layer, hash, &scope));
    assert_int_equal(0, count_bits(&layer));
    scope.position = 21;
    assert_true(collision_mark(&layer, hash, &scope));
    assert_int_equal(16, count_bits(&layer));
    layer_fini(&layer, env_or_default(NULL));
}

TEST(a_union_collides_where_both_have_a_bit)
{
    uint64_t rng = test_seed();

    for (uint32_t i = 0; i < 100; i++) {
        struct layer a = make_layer(1 + i % 9, 1 + i % 2, i % 4);
        struct layer b = make_layer(1 + i % 9, 1 + i % 2, i % 4);
        struct bloom_hash both = random_hash(&rng);
        struct bloom_hash one = random_hash(&rng);

        (void)layer_add(&a, both);
        (void)layer_add(&b, both);
        (void)layer_add(&b, one);
        collision_unite(&a, &b);
        assert_true(layer_contains(&a, both) && layer_contains(&a, one));
        (void)collision_clear(&a, one, &everything);
        assert_int_equal(0, collision_clear(&a, both, &everything));
        assert_true(layer_contains(&a, both));
        layer_fini(&a, env_or_default(NULL));
        layer_fini(&b, env_or_default(NULL));
    }
}

/* Items of one call are answered as one after the other. */
TEST(many_items_are_as_one_by_one)
{
    enum { ITEMS = 40 };
    uint64_t rng = test_seed();
    struct layer a = make_layer(2, 2, 1);
    struct layer b = make_layer(2, 2, 1);
    struct bloom_hash hashes[ITEMS];
    bool added[ITEMS], found[ITEMS];
    size_t count = 0;

    for (size_t i = 0; i < ITEMS; i++) {
        hashes[i] = i % 5 == 4 ? hashes[i - 1] : random_hash(&rng);
    }
    for (size_t i = 0; i < ITEMS / 2; i++) {
        found[i] = layer_add(&a, hashes[i]);
        count += found[i];
    }
    assert_int_equal(count,
                     layer_ops_of(&b)->add_many(&b, hashes, ITEMS / 2, added));
    assert_memory_equal(found, added, ITEMS / 2 * sizeof(bool));
    assert_true(count < ITEMS / 2);
    assert_memory_equal(a.lines, b.lines, (size_t)layer_bytes(&a));
    layer_ops_of(&b)->prefetch_many(&b, hashes, ITEMS, b.stripes);
    layer_ops_of(&b)->contains_many(&b, hashes, ITEMS, found);
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(layer_contains(&a, hashes[i]), found[i]);
        assert_true(i >= ITEMS / 2 || found[i]);
    }
    layer_fini(&a, env_or_default(NULL));
    layer_fini(&b, env_or_default(NULL));
}
