/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What COMMAND INFO and COMMAND DOCS share: finding rows by names, and the
 * subcommands of a container. Any thread.
 */
#pragma once

#include "engine/request.h"

/* The most names in one request: the reply has several hundred bytes for each.
 */
enum { CMD_COMMAND_NAMES_MAX = 2 * CMD_ID_COUNT };

/* Returns whether lists show the row as a command of its own, not as a
 * subcommand. */
bool cmd_command_is_top(const struct command *command);

/* Returns how many subcommands the command has; they are the rows command + 1
 * to command + count. */
unsigned cmd_command_count_subs(const struct command *command);

/* Returns the number of rows for which cmd_command_is_top() is true. */
unsigned cmd_command_count_top(void);

/* Finds a row by a name such as "get" or "client|id", in any letter case; NULL
 * if there is none. */
const struct command *cmd_command_find(struct slice name);
