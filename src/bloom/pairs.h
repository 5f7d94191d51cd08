/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tells programs that keep a copy of a filter (push/pubsub_feed.h) which items
 * were added: each one as its struct bloom_hash, 16 bytes, since every kind of
 * filter can add these (bloom_add_batch()), and a reader of a filter must not
 * learn its items. For a keyed filter, only the fact of a change is told.
 */
#pragma once

#include "engine/observe.h"

#include <bloomery/bloom.h>

/* Items that were hashed and added to the filter of the request's key. */
struct pairs {
    const struct bloom *bloom;
    const struct bloom_hash *hashes;
    const bool *changed; /* which of them changed something */
    size_t count;
    uint64_t at_ms; /* of an ageing filter: the time of the adds; else 0 */
};

void pairs_tell_slow(struct request *req, const struct pairs *pairs);
static inline void
pairs_tell(struct request *req, const struct pairs *pairs)
{
    if (observe_feeds(req, &req->key)) {
        pairs_tell_slow(req, pairs);
    }
}
