/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyed filters: native, ageing or deletable ones whose items are hashed with a
 * secret of the process (BLOOM_KEYED, bloom_use_secret()). Without the secret
 * nobody can compute which items share lines and bits, and choose them.
 *
 * - The secret is the key of SipHash-1-3 (core/siphash.h). The key of a filter
 *   is two hashes of its seed: of the seed and a byte 1, and of the seed and a
 *   byte 2. No key says anything about the secret or about another key.
 * - The fingerprint is the hash of a fixed text. Stored filters carry it, so
 *   that no other secret is used on them. It says nothing about the secret.
 * - An item is hashed to 64 bits, which are stretched to 128 by a fixed
 *   function. An absent item has the hash of one of a million million items
 *   with probability 5e-8; that adds nothing to an error rate.
 *
 * The process has a keyring: an own secret, for new filters, which is set
 * before threads start, and others, for filters that were made elsewhere. A
 * secret that was added is never changed or removed, so finding one takes no
 * lock. A filter is hashed with the secret of its fingerprint. Pure functions
 * otherwise.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/siphash.h"

enum {
    KEYED_OTHERS_MAX = 64, /* besides the process's own one */
    KEYED_MAX = KEYED_OTHERS_MAX + 1
};

/* Sets whether filters of every secret can be made. Such a filter has a wrong
 * key: this is for tools that only read filters, and for a load that removes
 * these filters at its end. Returns what was set before. */
bool keyed_accept_all(bool accept);

/* Returns whether filters of this fingerprint can be made here. */
bool keyed_is_known(uint64_t fingerprint);

/* Returns whether the secret of this fingerprint is in the keyring. */
bool keyed_is_held(uint64_t fingerprint);

/* Returns the fingerprint of the process's own secret; false if it has none. */
bool keyed_fingerprint(uint64_t *ret_fingerprint);

/* Returns the fingerprint that a secret has. */
uint64_t keyed_fingerprint_of(const uint8_t secret[BLOOM_SECRET_BYTES]);

/* Lists the fingerprints of all secrets in the keyring. Returns their number.
 */
size_t keyed_list(uint64_t ret_fingerprints[KEYED_MAX]);

/* Copies a secret of the keyring; the caller wipes it. False: the keyring does
 * not have it. */
bool keyed_reveal(uint64_t fingerprint, uint8_t ret_secret[BLOOM_SECRET_BYTES]);

/* Returns the key of filters with this secret and this seed. */
struct siphash_key keyed_derive(uint64_t fingerprint,
                                const uint8_t seed[BLOOM_SEED_BYTES]);

/* Hashes one item. */
struct bloom_hash keyed_hash(struct siphash_key key, const void *item,
                             size_t len);
