/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.WHICH, which looks up one item in many filters. Native filters of equal
 * seed hash the item alike, so that it is hashed once for each run of them.
 */
#include "access/handlers.h"
#include "bloom/bloom_make.h"
#include "engine/keys.h"

enum { ITEM_AT = 1, FIRST_KEY = 2 };

struct which {
    const struct bloom *hasher; /* filter that made the hash; NULL: none */
    struct bloom_hash hash;
    enum err err; /* the first one */
};

static bool
has_item(struct request *req, struct which *which, const struct bloom *bloom)
{
    struct slice item = req->argv[ITEM_AT];

    if (which->hasher == NULL || bloom_kind(bloom) != BLOOM_NATIVE ||
        !bloom_hashes_alike(which->hasher, bloom)) {
        which->hash = bloom_hash(bloom, item.data, item.len);
        which->hasher = bloom;
    }
    return bloom_make_has(req, bloom, which->hash);
}

static void
look_into(struct request *req, const struct key *key, void *ctx)
{
    struct which *which = ctx;
    struct entry *entry;
    const struct bloom *bloom;

    if (which->err != OK) {
        return;
    }
    entry = keys_find(req, key);
    bloom = entry != NULL ? &entry->bloom : NULL;
    which->err = bloom_make_check_found(req, bloom);
    if (which->err == OK) {
        bool found = bloom != NULL && has_item(req, which, bloom);

        bloom_make_count(1, found);
        bloom_make_reply(req, found);
    }
}

enum err
cmd_bf_which(struct request *req)
{
    struct which which = { .err = OK };
    size_t keys = req->argc - FIRST_KEY;

    if (keys > (size_t)req->service->conf->bf_max_which) {
        return ERR_BF_WHICH_KEYS;
    }
    reply_array(req->reply, keys);
    keys_each(req, FIRST_KEY, look_into, &which);
    return which.err;
}
