/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A history says to which log positions belong. It has a random id. A new one
 * begins at each start of a primary and at each promotion, and continues the
 * one before it from some position. So (id, position) names a state: two
 * servers with the same pair have equal data. Snapshots contain the id, and the
 * log contains each change of it (REPLCONF HISTORY <id>, the first effect of
 * the new history). So files and replicas know to which history a position
 * belongs.
 *
 * It changes under the raised gate; the functions are pure.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_ID_CHARS = 40, HISTORY_PAST_MAX = 8 };

struct history {
    char id[HISTORY_ID_CHARS + 1];
    /* Earlier histories, newest first: their positions up to `until` belong to
     * this one, too. An empty id ends the list. */
    struct history_past {
        char id[HISTORY_ID_CHARS + 1];
        uint64_t until;
    } past[HISTORY_PAST_MAX];
};

/* Forgets everything and begins with this id (NULL: a random one). */
void history_begin(struct history *history, const char *id);

/* Continues from `position` under a new id. Does nothing if id is the present
 * one. */
void history_go_on(struct history *history, const char *id, uint64_t position);

/* Adds the past of `older`, which is an earlier record of this history, or of a
 * history in its past. A base needs that, since it does not say which histories
 * came before its own. */
void history_extend(struct history *history, const struct history *older);

/* Returns whether both have the same id and the same past. */
bool history_equals(const struct history *history, const struct history *other);

/* Returns whether a server at this position of history `id` has the data that
 * this history has there. */
bool history_covers(const struct history *history, struct slice id,
                    uint64_t position);

/* Finds the last position up to which two logs are the same: ours, which ends
 * at our_end, and the other server's, which ends at their_end. The position may
 * be our_end itself. False: they have no history in common. */
bool history_common(const struct history *ours, uint64_t our_end,
                    const struct history *theirs, uint64_t their_end,
                    uint64_t *ret_position);

/* Returns whether the text is an id: 40 lower-case hex digits. */
bool history_is_id(struct slice text);
