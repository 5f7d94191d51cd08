/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the payload of DUMP of a module, of RedisBloom mostly, as they
 * are and with the checksum made right. What loads answers, grows, and comes
 * back from what DUMP would return for it.
 */
#include "base/err.h"
#include "base/little.h"
#include "base/mem.h"
#include "core/crc64.h"
#include "core/parts.h"
#include "core/payload.h"
#include "foreign.h"

#include <string.h>

enum { SUM_BYTES = 8 };

static void
check_round_trip(const struct bloom *bloom, const struct bloom_env *env)
{
    size_t len = (size_t)payload_bytes(bloom);
    uint8_t *data = mem_alloc(len);
    uint8_t *again_data = mem_alloc(len);
    struct bloom *again = NULL;

    payload_put(bloom, data);
    CHECK(payload_load(data, len, env, &again) == BLOOM_OK);
    CHECK(payload_bytes(again) == len);
    payload_put(again, again_data);
    CHECK(memcmp(data, again_data, len) == 0);
    bloom_free(again, env);
    mem_free(again_data);
    mem_free(data);
}

static void
play(const uint8_t *data, size_t size)
{
    struct foreign_heap heap = { 0 };
    struct bloom_env env = foreign_env(&heap);
    struct bloom *bloom = NULL;

    if (payload_load(data, size, &env, &bloom) == BLOOM_OK) {
        CHECK(heap.out == bloom_size(bloom));
        check_round_trip(bloom, &env);
        foreign_use(bloom, &env);
        CHECK(heap.out == bloom_size(bloom));
        bloom_free(bloom, &env);
    }
    CHECK(heap.out == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    play(data, size);
    if (size < SUM_BYTES) {
        return 0;
    }
    copy = mem_alloc(size);
    memcpy(copy, data, size);
    put_u64(copy + size - SUM_BYTES, crc64(0, copy, size - SUM_BYTES));
    play(copy, size);
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c: payloads of both kinds, most of them damaged ------
 */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    struct foreign_heap heap = { 0 };
    struct bloom_env env = foreign_env(&heap);
    struct bloom *bloom = foreign_random(
        &random, &env, seed % 4 == 0 ? BLOOM_VALKEYBLOOM : BLOOM_REDISBLOOM);
    size_t size = 0;

    if (bloom != NULL && payload_bytes(bloom) <= max) {
        size = (size_t)payload_bytes(bloom);
        payload_put(bloom, to);
        foreign_damage(&random, to, size);
    }
    bloom_free(bloom, &env);
    return size;
}
