/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Takes a hash secret of another server: a thread writes its file
 * (snapshot/keyring.h), and only then may a filter need it. One at a time. Loop
 * 0.
 */
#pragma once

#include <bloomery/bloom.h>

struct persist;

enum learn { LEARN_DONE, LEARN_RUNS, LEARN_FAILED };

/* Begins to take a secret, or says how far that is: call it again until it is
 * done or has failed, which the log explains. While another one is taken, it
 * runs. */
enum learn learn_secret(struct persist *persist,
                        const uint8_t secret[BLOOM_SECRET_BYTES]);

/* Waits for the thread. */
void learn_end(struct persist *persist);
