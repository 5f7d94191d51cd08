/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What filters of each kind have beside their lines, and how it grows, shrinks
 * and fails.
 */
#include "core/parts.h"

#include "../test.h"
#include "help.h"

static struct bloom_params
params_of_kind(enum bloom_kind kind)
{
    struct bloom_params params = params_of(10, 0.01, 2);

    set_kind(&params, kind);
    return params;
}

TEST(each_kind_has_its_parts)
{
    static const unsigned parts[BLOOM_KINDS] = {
        [BLOOM_NATIVE] = 0,
        [BLOOM_REDISBLOOM] = PLAN_EXTRA | PLAN_LAYERS,
        [BLOOM_VALKEYBLOOM] = PLAN_EXTRA,
        [BLOOM_DELETABLE] = PLAN_EXTRA,
        [BLOOM_AGEING] = PLAN_EXTRA,
    };

    for (unsigned kind = 0; kind < BLOOM_KINDS; kind++) {
        struct bloom_params params = params_of_kind((enum bloom_kind)kind);
        struct bloom *bloom;

        bloom_seed(1, params.seed);
        bloom = make(&params, NULL);
        assert_int_equal(parts[kind], bloom_parts(bloom));
        assert_int_equal(kind, bloom_kind(bloom));
        assert_true(bloom_size(bloom) == plan_struct_bytes(parts[kind], 1) +
                                             layer_bytes(bloom_newest(bloom)));
        bloom_free(bloom, NULL);
    }
}

/* RedisBloom's next layer has half of the rate that the last one has stored. */
TEST(layers_of_redisbloom_keep_their_rates)
{
    struct bloom_params params = params_of_kind(BLOOM_REDISBLOOM);
    struct bloom *bloom = make(&params, NULL);

    (void)fill(bloom, NULL, 1, 300);
    assert_true(bloom->count > 4);
    for (uint32_t i = 0; i < bloom->count; i++) {
        assert_true(bloom_extra_layers(bloom)[i].rate ==
                    0.01 / (double)(1U << i));
    }
    bloom_check(bloom);
    bloom_reset(bloom, NULL);
    assert_int_equal(1, bloom->count);
    assert_true(bloom_extra_layers(bloom)[0].rate == 0.01);
    assert_int_equal(0, bloom_items(bloom));
    bloom_free(bloom, NULL);
}

TEST(growth_survives_every_allocation_failure_in_each_kind)
{
    for (unsigned kind = 0; kind < BLOOM_KINDS; kind++) {
        struct bloom_params params = params_of_kind((enum bloom_kind)kind);
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom *bloom = make(&params, &env);
        uint64_t items = 0;

        for (uint64_t id = 0; items < 400; id++) {
            enum bloom_status status;
            bool added = false;

            heap.fail_at = heap.calls + 1 + id % 2;
            status = bloom_add(bloom, &env, hash_id(bloom, id / 2), &added);
            assert_true(status == BLOOM_OK || status == BLOOM_NOMEM);
            assert_true(heap.out == bloom_size(bloom));
            if (status == BLOOM_NOMEM) {
                heap.fail_at = 0;
                assert_int_equal(
                    BLOOM_OK,
                    bloom_add(bloom, &env, hash_id(bloom, id / 2), &added));
            }
            items += added;
            assert_true(bloom_items(bloom) == items);
        }
        bloom_free(bloom, &env);
        assert_true(heap.out == 0);
    }
}
