/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much memory all connections together make the server keep (conn.h says
 * what counts), against maxmemory-clients. One usage for all loops; its figures
 * are atomic. shed.h cuts the largest when it is too much.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct usage {
    _Atomic uint64_t limit; /* 0: none */
    _Atomic uint64_t total;
    _Atomic uint64_t condemned; /* bytes of the connections that are being
                                   cut */
    atomic_bool choosing;       /* a loop searches for the largest */
};

/* One connection's part. Its loop writes `bytes`. condemned_bytes is the value
 * of `bytes` when the connection was chosen to be cut; it is written under the
 * registry's lock. */
struct usage_share {
    _Atomic uint64_t bytes, condemned_bytes;
};

/* Returns whether the connections take too much, without those that are being
 * cut. */
bool usage_is_above(struct usage *usage);

/* Sets a connection's part. Returns true if it rose and the total is too much.
 */
bool usage_set(struct usage *usage, struct usage_share *share, uint64_t bytes);

/* Marks the connection as being cut; returns its bytes. */
uint64_t usage_condemn(struct usage *usage, struct usage_share *share);

/* Subtracts the connection's part when it closes, once no other thread can find
 * it. USAGE may be NULL. */
void usage_leave(struct usage *usage, struct usage_share *share);
