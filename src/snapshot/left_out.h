/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data with keyed filters whose secret is gone for good. Loaded as if there
 * were such a secret (keyed_accept_all), it has these filters with a wrong key,
 * which must never be asked. They are removed once all commands that concern
 * them are executed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keyspace;

/* Filters of every secret can be made from now on, until end. False: the secret
 * of this fingerprint is in the keyring, and nothing is to be left out. Before
 * and after the threads that load. */
bool left_out_begin(uint64_t fingerprint);
void left_out_end(void);

/* Removes all filters whose secret is not in the keyring. If `only` is not 0
 * they must all have this fingerprint. Returns their number in *ret_count.
 * False: *ret_other is another fingerprint, and nothing was removed; or 0,
 * without memory. Call it while nothing else uses the keyspace. */
bool left_out_remove(struct keyspace *ks, uint64_t only, uint64_t *ret_count,
                     uint64_t *ret_other);
