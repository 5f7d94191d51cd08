/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keyspace fetches entries; handlers know which lines of a filter a command
 * reads.
 */
#include "engine/ahead.h"

void
ahead_fetch(struct ahead *ahead, const struct keyspace *ks)
{
    if (ahead->count < AHEAD_FROM) {
        return;
    }
    keyspace_look_ahead(ks, ahead->key, ahead->count);
    for (uint32_t i = 0; i < ahead->count; i++) {
        const struct run *run = ahead->run[i];
        const struct entry *entry = ahead->key[i].entry;
        command_ahead_fn fetch = run->command->ahead;

        for (uint32_t c = 0; entry != NULL && fetch != NULL && c < run->count;
             c++) {
            fetch(entry, run_words(run, c), run->argc);
        }
    }
}
