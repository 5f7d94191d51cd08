/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pairs are written to memory of their own, since the worker's arena has
 * the effect. Without memory, only the fact of a change is told.
 */
#include "bloom/pairs.h"

#include "base/little.h"
#include "core/filter.h"

enum { PAIR_BYTES = 16, HALF_BYTES = 8 };

void
pairs_tell_slow(struct request *req, const struct pairs *pairs)
{
    struct feed_change change = { .kind = FEED_ADD, .number = pairs->at_ms };
    struct buf bytes = { 0 };

    for (size_t i = 0; i < pairs->count; i++) {
        uint8_t pair[PAIR_BYTES];

        if (pairs->changed[i]) {
            put_u64(pair, pairs->hashes[i].high);
            put_u64(pair + HALF_BYTES, pairs->hashes[i].low);
            buf_append(&bytes, pair, sizeof(pair));
        }
    }
    change.pairs = buf_slice(&bytes);
    if (bytes.failed || (bytes.len > 0 && bloom_is_keyed(pairs->bloom))) {
        change = (struct feed_change){ .kind = FEED_CHANGED };
    } else if (bytes.len == 0) {
        change.kind = FEED_NOTHING;
    }
    observe_feed(req, &req->key, &change);
    buf_free(&bytes);
}
