/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether a selector permits a command: the command itself, its keys by the
 * positions and uses in its row, its channels, and its databases. Pure.
 */
#pragma once

#include "access/selector.h"

/* A command whose arity fits. */
struct permission_query {
    const struct command *command;
    const struct slice *argv;
    size_t argc;
    uint32_t db; /* of the session */
};

/* In rising order: of several selectors the highest denial is reported. */
enum denial {
    DENIED_NOTHING,
    DENIED_COMMAND,
    DENIED_KEY,
    DENIED_CHANNEL,
    DENIED_DB
};

/* Returns what the selector denies, if anything, and the argv position of the
 * denied word. */
enum denial permission_check(const struct selector *selector,
                             const struct permission_query *query,
                             size_t *ret_at);

/* Returns whether a subscription to this channel, or to this pattern of
 * channels, is permitted. */
bool permission_has_channel(const struct selector *selector,
                            struct slice channel, bool is_pattern);
