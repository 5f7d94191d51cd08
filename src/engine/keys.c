/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks up keys: counts hits, misses and uses, and reports keys that have
 * expired.
 */
#include "engine/keys.h"

#include "base/metrics.h"
#include "engine/ahead.h"
#include "engine/effect.h"
#include "engine/observe.h"
#include "keyspace/walk.h"

struct entry *
keys_open(struct request *req, const struct key *key)
{
    bool expired = false;
    struct entry *entry =
        keyspace_open(req->keyspace, key, req->now_ms, &expired);

    if (expired) {
        effect_delete(req->worker, key);
        observe_expired(req->worker, key);
    }
    if (entry != NULL) {
        keys_use(req, entry);
    }
    return entry;
}

struct entry *
keys_peek(struct request *req, const struct key *key)
{
    struct entry *entry = keyspace_find(req->keyspace, key, req->now_ms);

    if (entry != NULL) {
        metric_add(METRIC_KEYSPACE_HITS, 1);
    } else {
        metric_add(METRIC_KEYSPACE_MISSES, 1);
        observe_event(req, key, CONF_EVENT_KEY_MISS, "keymiss");
    }
    return entry;
}

struct entry *
keys_find(struct request *req, const struct key *key)
{
    struct entry *entry = keys_peek(req, key);

    if (entry != NULL) {
        keys_use(req, entry);
    }
    return entry;
}

void
keys_each(struct request *req, size_t first, keys_visit_fn visit, void *ctx)
{
    struct key keys[KEYSPACE_AHEAD_MAX];
    size_t count;

    for (size_t at = first; at < req->argc; at += count) {
        size_t left = req->argc - at;

        count = left < KEYSPACE_AHEAD_MAX ? left : KEYSPACE_AHEAD_MAX;
        for (size_t i = 0; i < count; i++) {
            keys[i] = request_key(req, at + i);
        }
        if (count >= AHEAD_FROM) {
            keyspace_look_ahead(req->keyspace, keys, count);
        }
        for (size_t i = 0; i < count; i++) {
            visit(req, &keys[i], ctx);
        }
    }
}

void
keys_walk_again(const struct request *req, const struct key *key)
{
    keyspace_walk_again(req->keyspace, key);
}

void
keys_made(struct request *req, const struct key *key)
{
    observe_feed(req, key, &(struct feed_change){ .kind = FEED_CHANGED });
    observe_event(req, key, CONF_EVENT_NEW, "new");
}
