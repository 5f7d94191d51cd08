/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as a header of BF.LOADCHUNK and the chunks behind it: two bytes
 * length of the header, the header, and then for each chunk two bytes place,
 * two bytes length, and its data. What loads is dumped in chunks, and comes
 * back; what is refused leaves nothing behind.
 */
#include "base/err.h"
#include "base/mem.h"
#include "core/codec.h"
#include "core/parts.h"
#include "core/payload.h"
#include "core/stream.h"
#include "foreign.h"

#include <string.h>

static uint16_t
take_u16(const uint8_t **at, size_t *left)
{
    uint16_t value = 0;

    if (*left >= 2) {
        value = (uint16_t)((*at)[0] | (*at)[1] << 8);
        *at += 2;
        *left -= 2;
    } else {
        *left = 0;
    }
    return value;
}

/* Sends what a filter has to another one of the same header. */
static void
check_round_trip(const struct bloom *bloom, const struct bloom_env *env)
{
    uint8_t *header = mem_alloc(payload_header_bytes(bloom));
    size_t len = payload_put_header(bloom, header);
    struct bloom *again = NULL;
    bool changed;

    CHECK(len <= payload_header_bytes(bloom));
    CHECK(payload_read_header(header, len, env, &again) == BLOOM_OK);
    for (uint64_t at = 0, left; (left = stream_left(bloom, at)) > 0;
         at += left) {
        uint8_t *data = mem_alloc((size_t)left);

        stream_read(bloom, at, (size_t)left, data);
        CHECK(stream_write(again, env,
                           &(struct stream_chunk){ at, data, (size_t)left },
                           false, &changed) == STREAM_OK);
        mem_free(data);
    }
    CHECK(!bloom_is_incomplete(again));
    CHECK(bloom_items(again) == bloom_items(bloom));
    bloom_free(again, env);
    mem_free(header);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct foreign_heap heap = { 0 };
    struct bloom_env env = foreign_env(&heap);
    size_t left = size;
    size_t len = take_u16(&data, &left);
    struct bloom *bloom = NULL;
    bool changed;

    len = len < left ? len : left;
    if (payload_read_header(data, len, &env, &bloom) != BLOOM_OK) {
        CHECK(heap.out == 0 && bloom == NULL);
        return 0;
    }
    data += len;
    left -= len;
    while (left > 0) {
        uint64_t at = take_u16(&data, &left);
        uint64_t missing = stream_missing(bloom);

        len = take_u16(&data, &left);
        len = len < left ? len : left;
        if (stream_write(bloom, &env, &(struct stream_chunk){ at, data, len },
                         at % 2 != 0, &changed) == STREAM_OK) {
            CHECK(changed == (stream_missing(bloom) < missing));
        } else {
            CHECK(!changed && stream_missing(bloom) == missing);
        }
        CHECK(heap.out == bloom_size(bloom));
        data += len;
        left -= len;
    }
    if (!bloom_is_incomplete(bloom)) {
        foreign_use(bloom, &env);
        check_round_trip(bloom, &env);
    }
    bloom_free(bloom, &env);
    CHECK(heap.out == 0);
    return 0;
}

/* ---- inputs for replay.c: a filter in chunks, with some bytes damaged -------
 */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    struct foreign_heap heap = { 0 };
    struct bloom_env env = foreign_env(&heap);
    struct bloom *bloom =
        foreign_random(&random, &env, (enum bloom_kind)(seed % BLOOM_KINDS));
    size_t size = 0;
    size_t len;

    if (bloom == NULL || payload_header_bytes(bloom) + stream_bytes(bloom) +
                                 4 * (size_t)bloom->count + 2 >
                             max) {
        bloom_free(bloom, &env);
        return 0;
    }
    len = payload_put_header(bloom, to + 2);
    to[0] = (uint8_t)len;
    to[1] = (uint8_t)(len >> 8);
    size = 2 + len;
    for (uint64_t at = 0, left; (left = stream_left(bloom, at)) > 0;
         at += left) {
        to[size] = (uint8_t)at;
        to[size + 1] = (uint8_t)(at >> 8);
        to[size + 2] = (uint8_t)left;
        to[size + 3] = (uint8_t)(left >> 8);
        stream_read(bloom, at, (size_t)left, to + size + 4);
        size += 4 + (size_t)left;
    }
    bloom_free(bloom, &env);
    foreign_damage(&random, to, size);
    return size;
}
