/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides whether a selector permits a command: the command itself, its keys
 * (by the positions and uses in its row), its channels, and its databases. A
 * check of many names, or of patterns that take much work, can stop and
 * continue later. Pure.
 */
#pragma once

#include "access/selector.h"

/* A command whose arity fits. */
struct permission_query {
    const struct command *command;
    const struct slice *argv;
    size_t argc;
    uint32_t db; /* the session's database */
};

/* In rising order: if several selectors deny a command, the highest denial is
 * reported. */
enum denial {
    DENIED_NOTHING,
    DENIED_COMMAND,
    DENIED_KEY,
    DENIED_CHANNEL,
    DENIED_DB,
    UNDECIDED /* not reported: the work was used up */
};

/* A unit of work is one pattern, or one unit of base/glob.h. */
#define PERMISSION_ANY_WORK INT64_MAX

/* Returns what the selector denies, if anything, and the argv position of the
 * denied word. Subtracts the work done from *work. If that is not enough,
 * returns UNDECIDED; the next call goes on at *next (0 at first). */
enum denial permission_check(const struct selector *selector,
                             const struct permission_query *query, size_t *next,
                             int64_t *work, size_t *ret_at);

/* Returns whether a subscription to this channel, or to this pattern of
 * channels, is permitted. */
bool permission_has_channel(const struct selector *selector,
                            struct slice channel, bool is_pattern);
