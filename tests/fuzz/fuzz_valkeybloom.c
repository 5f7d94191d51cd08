/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the payload of BF.LOAD. What loads is written as the same bytes
 * again, answers and grows; what is refused leaves nothing behind.
 */
#include "base/err.h"
#include "base/mem.h"
#include "core/parts.h"
#include "core/valkeybloom.h"
#include "foreign.h"

#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct foreign_heap heap = { 0 };
    struct bloom_env env = foreign_env(&heap);
    struct bloom *bloom = NULL;

    if (valkeybloom_load(data, size, &env, &bloom) == BLOOM_OK) {
        struct rdb_out out = { .to = mem_alloc(size) };

        CHECK(heap.out == bloom_size(bloom));
        valkeybloom_put_load(bloom, &out);
        CHECK(out.len == size && memcmp(out.to, data, size) == 0);
        mem_free(out.to);
        foreign_use(bloom, &env);
        CHECK(heap.out == bloom_size(bloom));
        bloom_free(bloom, &env);
    }
    CHECK(heap.out == 0);
    return 0;
}

/* ---- inputs for replay.c: payloads, most of them damaged --------------------
 */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    struct foreign_heap heap = { 0 };
    struct bloom_env env = foreign_env(&heap);
    struct bloom *bloom = foreign_random(&random, &env, BLOOM_VALKEYBLOOM);
    struct rdb_out out = { .to = NULL };

    if (bloom != NULL) {
        valkeybloom_put_load(bloom, &out);
    }
    if (out.len > 0 && out.len <= max) {
        out = (struct rdb_out){ .to = to };
        valkeybloom_put_load(bloom, &out);
        foreign_damage(&random, to, (size_t)out.len);
    }
    bloom_free(bloom, &env);
    return out.to != NULL ? (size_t)out.len : 0;
}
