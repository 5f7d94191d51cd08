/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests of the data, to compare servers by: equal data has equal digests, on
 * every machine and whatever the order in which it came. Each key counts with
 * its database, its name, the time at which it ends, and its filter as DUMP
 * shows it, but for the incarnation; keys whose time is over do not count. The
 * sum of all is SHA-256, cut to 160 bits and combined by XOR.
 */
#pragma once

#include "keyspace/keyspace.h"

enum { DIGEST_BYTES = 20, DIGEST_HEX = 2 * DIGEST_BYTES + 1 };

struct digest {
    unsigned char bytes[DIGEST_BYTES];
};

/* Of everything. Under the raised gate. */
void digest_all(const struct keyspace *ks, uint64_t now_ms,
                struct digest *ret_digest);

/* Of a filter and the time at which its key ends (0: it stays), without its
 * name. Under its lock. */
void digest_value(const struct bloom *bloom, uint64_t expires_at_ms,
                  struct digest *ret_digest);

void digest_format(const struct digest *digest, char ret_hex[DIGEST_HEX]);
