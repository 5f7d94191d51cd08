/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lookups, and what follows from them.
 */
#include "engine/keys.h"

#include "base/metrics.h"
#include "engine/effect.h"
#include "engine/observe.h"

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
keys_made(struct request *req, const struct key *key)
{
    observe_event(req, key, CONF_EVENT_NEW, "new");
}
