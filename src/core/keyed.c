/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The constants of stretch() are those of MurmurHash3's finalizer, which lets
 * each bit of its argument change each bit of its result (Appleby, public
 * domain).
 */
#include "core/keyed.h"

#include <string.h>

static struct {
    struct siphash_key key;
    uint64_t fingerprint;
    bool is_set;
    bool accepts_all;
} own;

void
bloom_use_secret(const uint8_t secret[BLOOM_SECRET_BYTES])
{
    static const char text[] = "Bloomery: the fingerprint of a hash secret";

    own.is_set = secret != NULL;
    if (!own.is_set) {
        own.key = (struct siphash_key){ 0, 0 };
        own.fingerprint = 0;
        return;
    }
    own.key = (struct siphash_key){ get_u64(secret), get_u64(secret + 8) };
    own.fingerprint = siphash_of(own.key, text, sizeof(text) - 1);
}

bool
keyed_accept_all(bool accept)
{
    bool before = own.accepts_all;

    own.accepts_all = accept;
    return before;
}

bool
keyed_is_known(uint64_t fingerprint)
{
    return own.accepts_all || (own.is_set && own.fingerprint == fingerprint);
}

bool
keyed_fingerprint(uint64_t *ret_fingerprint)
{
    *ret_fingerprint = own.fingerprint;
    return own.is_set;
}

struct siphash_key
keyed_derive(const uint8_t seed[BLOOM_SEED_BYTES])
{
    uint8_t text[BLOOM_SEED_BYTES + 1];
    struct siphash_key key;

    memcpy(text, seed, BLOOM_SEED_BYTES);
    text[BLOOM_SEED_BYTES] = 1;
    key.k0 = siphash_of(own.key, text, sizeof(text));
    text[BLOOM_SEED_BYTES] = 2;
    key.k1 = siphash_of(own.key, text, sizeof(text));
    return key;
}

static uint64_t
stretch(uint64_t hash)
{
    hash ^= hash >> 33;
    hash *= 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 33;
    hash *= 0xC4CEB9FE1A85EC53U;
    return hash ^ hash >> 33;
}

struct bloom_hash
keyed_hash(struct siphash_key key, const void *item, size_t len)
{
    uint64_t hash = siphash_of(key, item, len);

    return (struct bloom_hash){ .high = hash, .low = stretch(hash) };
}
