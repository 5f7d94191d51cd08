/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data with keyed filters whose secret is gone for good. The data is loaded as
 * if the secret were there (keyed_accept_all): these filters get a wrong key,
 * so nobody may look up items in them. They are removed once all commands about
 * them are executed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keyspace;

/* Allow filters without their secret, from left_out_begin() to left_out_end().
 * False: the secret of this fingerprint is in the keyring, so there is nothing
 * to leave out. Call them before the threads that load start, and after they
 * have ended. */
bool left_out_begin(uint64_t fingerprint);
void left_out_end(void);

/* Removes all filters whose secret is not in the keyring. If `only` is not 0
 * they must all have this fingerprint. *ret_count is the number of removed
 * filters. Returns false, with nothing removed, if a filter has another
 * fingerprint (in *ret_other), or if there is no memory (*ret_other is 0). Call
 * it while nothing else uses the keyspace. */
bool left_out_remove(struct keyspace *ks, uint64_t only, uint64_t *ret_count,
                     uint64_t *ret_other);
