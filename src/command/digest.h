/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests of the data, for comparing servers: equal data has equal digests on
 * every machine, in whatever order it was stored. The digest of a key covers
 * its database, name, expiry and its filter as in DUMP. The incarnation, a
 * random number that each creation of a key draws (bloom/bloom_make.h), is not
 * covered. Expired keys do not count. The digest of everything is the XOR of
 * SHA-256 sums cut to 160 bits.
 */
#pragma once

#include "keyspace/keyspace.h"

enum { DIGEST_BYTES = 20, DIGEST_HEX = 2 * DIGEST_BYTES + 1 };

struct digest {
    unsigned char bytes[DIGEST_BYTES];
};

/* Computes the digest of everything. Call it while the gate is raised
 * (keyspace/gate.h). */
void digest_all(const struct keyspace *ks, uint64_t now_ms,
                struct digest *ret_digest);

/* Computes the digest of a filter and the expiry of its key (0: none), without
 * its name. Call it under the key's lock. */
void digest_value(const struct bloom *bloom, uint64_t expires_at_ms,
                  struct digest *ret_digest);

void digest_format(const struct digest *digest, char ret_hex[DIGEST_HEX]);
