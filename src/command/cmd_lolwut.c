/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LOLWUT draws a small filter after some adds. Each item sets one bit in each
 * of the eight columns of one line, as in a real filter.
 */
#include "access/handlers.h"
#include "base/random.h"
#include "engine/dialect.h"
#include "engine/request.h"
#include "info/info.h"

#include <bloomery_version.h>

enum { LINES = 12, BLOCKS = 8, BITS = 8, ITEMS_MIN = 4, ITEMS_RANGE = 40 };

/* Returns the next number of a pseudo-random sequence. */
static uint64_t
next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static void
draw(uint64_t seed, struct buf *text)
{
    unsigned char line[LINES][BLOCKS] = { { 0 } };
    unsigned items = ITEMS_MIN + (unsigned)(next(&seed) % ITEMS_RANGE);

    for (unsigned i = 0; i < items; i++) {
        unsigned char *to = line[next(&seed) % LINES];
        uint64_t bits = next(&seed);

        for (unsigned b = 0; b < BLOCKS; b++) {
            to[b] = (unsigned char)(to[b] | 1U << (bits >> 8 * b) % BITS);
        }
    }
    for (unsigned y = 0; y < LINES; y++) {
        for (unsigned x = 0; x < BLOCKS * BITS; x++) {
            bool is_set = (line[y][x / BITS] & 1U << x % BITS) != 0;

            buf_append_slice(text, slice_of(x > 0 && x % BITS == 0 ? " " : ""));
            buf_append_slice(text, slice_of(is_set ? "o" : "."));
        }
        buf_append_slice(text, slice_lit("\n"));
    }
    buf_printf(text, "\n%u items in a filter of %d bits. ", items,
               LINES * BLOCKS * BITS);
}

/* VERSION n always draws the same filter. Other arguments, which belong to the
 * drawings of Redis versions, are ignored. */
enum err
cmd_lolwut(struct request *req)
{
    uint64_t seed = random_below(UINT64_MAX);
    struct buf text = { 0 };

    if (args_left(&req->args) > 1 && args_word(&req->args, "VERSION")) {
        seed = (uint64_t)args_i64(&req->args);
        if (req->args.err != OK) {
            return req->args.err;
        }
    }
    draw(seed, &text);
    buf_printf(&text, "Bloomery ver. %s, as %s\n", BLOOMERY_VERSION,
               dialect_is_redis(req->service)
                   ? "Redis ver. " INFO_REDIS_VERSION
                   : "Valkey ver. " INFO_VALKEY_VERSION);
    reply_text(req->reply, &text);
    return OK;
}
