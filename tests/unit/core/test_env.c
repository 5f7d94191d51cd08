/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The default allocator: aligned, zeroed, mapped in whole huge pages when
 * large, refusing what cannot be.
 */
#include "core/env.h"

#include "../test.h"
#include "help.h"

TEST(an_env_of_ones_own_is_used_as_it_is)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);

    assert_ptr_equal(&env, env_or_default(&env));
    assert_non_null(env_or_default(NULL));
}

TEST(default_lines_are_aligned_and_zero)
{
    const struct bloom_env *env = env_or_default(NULL);
    static const size_t sizes[] = { 64, 128, 4096, 2097088, 2097152, 9999936 };

    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            size_t bytes = sizes[i];
            size_t align = bytes >= 2097152 ? 2097152 : 64;
            unsigned char *lines = env->alloc_lines(env->ctx, bytes);

            assert_non_null(lines);
            assert_int_equal(0, (uintptr_t)lines % align);
            for (size_t at = 0; at < bytes; at++) {
                assert_int_equal(0, lines[at]);
            }
            memset(lines, 0xff, bytes); /* what is freed comes back dirty */
            env->free_lines(env->ctx, lines, bytes);
        }
    }
}

TEST(more_memory_than_any_machine_has_is_refused)
{
    const struct bloom_env *env = env_or_default(NULL);

    assert_null(env->alloc_lines(env->ctx, SIZE_MAX - 63));
    assert_null(env->alloc_lines(env->ctx, (size_t)1 << 60));
}

TEST(default_structs_come_and_go)
{
    const struct bloom_env *env = env_or_default(NULL);
    void *ptr = env->alloc(env->ctx, 100);

    assert_non_null(ptr);
    env->free(env->ctx, ptr, 100);
}
