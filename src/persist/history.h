/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose log the positions belong to. A history has a random id; a new one
 * begins at each start of a primary and at each promotion, and goes on from a
 * place of the one before. So (id, position) names a state, and two servers
 * that agree about it have equal data. The id stands in snapshots, and a change
 * of it in the log itself (REPLCONF HISTORY <id>, the first effect of the new
 * one), so that files and replicas know at each position what it is.
 *
 * Changes under the raised gate; pure data.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_ID_CHARS = 40, HISTORY_PAST_MAX = 8 };

struct history {
    char id[HISTORY_ID_CHARS + 1];
    /* What came before it, newest first: that history's positions up to
     * `until` are this one's, too. An empty id ends the list. */
    struct history_past {
        char id[HISTORY_ID_CHARS + 1];
        uint64_t until;
    } past[HISTORY_PAST_MAX];
};

/* Forgets everything and begins with this id (NULL: a random one). */
void history_begin(struct history *history, const char *id);

/* A new history goes on from `position` of the present one. Does nothing if id
 * is the present one's. */
void history_go_on(struct history *history, const char *id, uint64_t position);

/* Whether somebody who is at this position of history `id` has what this one
 * has there. */
bool history_covers(const struct history *history, struct slice id,
                    uint64_t position);

/* 40 hex digits of lower case. */
bool history_is_id(struct slice text);
