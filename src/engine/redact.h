/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is shown of a command to others than its sender: everything but its
 * passwords. For the slow log and MONITOR. Pure.
 */
#pragma once

#include "engine/table.h"

/* Whether a command may carry a password at all. */
bool redact_wants(const struct command *command);

/* Word `index` of a request of that command, or "(redacted)". */
struct slice redact_word(const struct command *command,
                         const struct slice *argv, size_t argc, size_t index);
