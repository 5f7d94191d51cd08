/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The constants of stretch() are those of MurmurHash3's finalizer, which lets
 * each bit of its argument change each bit of its result (Appleby, public
 * domain).
 */
#include "core/keyed.h"

#include <stdatomic.h>
#include <string.h>

struct secret {
    struct siphash_key key;
    uint64_t fingerprint;
};

static struct {
    struct secret own;
    bool is_set; /* there is an own secret */
    bool accepts_all;
    atomic_flag adding;
    _Atomic size_t count; /* number of secrets in others; these never change */
    struct secret others[KEYED_OTHERS_MAX];
} ring = { .adding = ATOMIC_FLAG_INIT };

static struct secret
make_secret(const uint8_t bytes[BLOOM_SECRET_BYTES])
{
    static const char text[] = "Bloomery: the fingerprint of a hash secret";
    struct secret secret = { .key = { get_u64(bytes), get_u64(bytes + 8) } };

    secret.fingerprint = siphash_of(secret.key, text, sizeof(text) - 1);
    return secret;
}

uint64_t
keyed_fingerprint_of(const uint8_t secret[BLOOM_SECRET_BYTES])
{
    return make_secret(secret).fingerprint;
}

void
bloom_use_secret(const uint8_t secret[BLOOM_SECRET_BYTES])
{
    ring.is_set = secret != NULL;
    ring.own = (struct secret){ .fingerprint = 0 };
    if (ring.is_set) {
        ring.own = make_secret(secret);
    }
}

/* Returns NULL for a secret that is not known. */
static const struct secret *
find_secret(uint64_t fingerprint)
{
    size_t count = atomic_load_explicit(&ring.count, memory_order_acquire);

    if (ring.is_set && ring.own.fingerprint == fingerprint) {
        return &ring.own;
    }
    for (size_t i = 0; i < count; i++) {
        if (ring.others[i].fingerprint == fingerprint) {
            return &ring.others[i];
        }
    }
    return NULL;
}

enum bloom_status
bloom_add_secret(const uint8_t secret[BLOOM_SECRET_BYTES])
{
    struct secret made = make_secret(secret);
    enum bloom_status status = BLOOM_OK;
    size_t count;

    while (
        atomic_flag_test_and_set_explicit(&ring.adding, memory_order_acquire)) {
    }
    count = atomic_load_explicit(&ring.count, memory_order_relaxed);
    if (find_secret(made.fingerprint) != NULL) {
        status = BLOOM_OK;
    } else if (count == KEYED_OTHERS_MAX) {
        status = BLOOM_LIMIT;
    } else {
        ring.others[count] = made;
        atomic_store_explicit(&ring.count, count + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&ring.adding, memory_order_release);
    return status;
}

bool
keyed_accept_all(bool accept)
{
    bool before = ring.accepts_all;

    ring.accepts_all = accept;
    return before;
}

bool
keyed_is_known(uint64_t fingerprint)
{
    return ring.accepts_all || find_secret(fingerprint) != NULL;
}

bool
keyed_is_held(uint64_t fingerprint)
{
    return find_secret(fingerprint) != NULL;
}

bool
keyed_fingerprint(uint64_t *ret_fingerprint)
{
    *ret_fingerprint = ring.own.fingerprint;
    return ring.is_set;
}

size_t
keyed_list(uint64_t ret_fingerprints[KEYED_MAX])
{
    size_t count = atomic_load_explicit(&ring.count, memory_order_acquire);
    size_t listed = 0;

    if (ring.is_set) {
        ret_fingerprints[listed++] = ring.own.fingerprint;
    }
    for (size_t i = 0; i < count; i++) {
        ret_fingerprints[listed++] = ring.others[i].fingerprint;
    }
    return listed;
}

bool
keyed_reveal(uint64_t fingerprint, uint8_t ret_secret[BLOOM_SECRET_BYTES])
{
    const struct secret *secret = find_secret(fingerprint);

    if (secret == NULL) {
        return false;
    }
    put_u64(ret_secret, secret->key.k0);
    put_u64(ret_secret + 8, secret->key.k1);
    return true;
}

/* An unknown secret (keyed_accept_all()) gives a wrong key. */
struct siphash_key
keyed_derive(uint64_t fingerprint, const uint8_t seed[BLOOM_SEED_BYTES])
{
    static const struct secret none;
    const struct secret *secret = find_secret(fingerprint);
    uint8_t text[BLOOM_SEED_BYTES + 1];
    struct siphash_key key;

    secret = secret != NULL ? secret : &none;
    memcpy(text, seed, BLOOM_SEED_BYTES);
    text[BLOOM_SEED_BYTES] = 1;
    key.k0 = siphash_of(secret->key, text, sizeof(text));
    text[BLOOM_SEED_BYTES] = 2;
    key.k1 = siphash_of(secret->key, text, sizeof(text));
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
