/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a loader executes the effects of a full state. The functions come from
 * replay/complete.h, a higher room.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keyspace;
struct snapshot_effects;
struct walk_part; /* keyspace/walk_part.h */

struct completion {
    /* Begins; NULL without memory. part: the state has only these keys, and
     * effects on other keys are skipped; NULL: it has all keys. `part` must
     * stay valid until close. */
    void *(*open)(const struct walk_part *part);
    /* Executes a group on the copies in the keyspace, which the caller owns
     * alone. False: the bytes are no group of a log, and ret_reason says why,
     * as part of a sentence. */
    bool (*group)(void *state, struct keyspace *ks,
                  const struct snapshot_effects *effects, char *ret_reason,
                  size_t reason_size);
    /* Returns how many deletions of items were not executed, since effects
     * before them are lost. */
    uint64_t (*left_out)(const void *state);
    void (*close)(void *state);
};
