/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stores a hash secret of another server. A thread writes its file
 * (snapshot/keyring.h); filters may use the secret only after that. One secret
 * at a time. Loop 0.
 */
#pragma once

#include <bloomery/bloom.h>

struct persist;

enum learn { LEARN_DONE, LEARN_RUNS, LEARN_FAILED };

/* Begins to store a secret, or returns how far that is. Call it again until it
 * is done or has failed, which the log explains. It also returns LEARN_RUNS
 * while another secret is being stored. */
enum learn learn_secret(struct persist *persist,
                        const uint8_t secret[BLOOM_SECRET_BYTES]);

/* Waits for the thread. */
void learn_end(struct persist *persist);
