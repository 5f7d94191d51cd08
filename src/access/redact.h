/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hides passwords in commands that the slow log and MONITOR show. Pure.
 */
#pragma once

#include "access/table.h"

/* Returns whether a command may contain a password. */
bool redact_wants(const struct command *command);

/* Returns word `index` of a request of that command, or "(redacted)". */
struct slice redact_word(const struct command *command,
                         const struct slice *argv, size_t argc, size_t index);
