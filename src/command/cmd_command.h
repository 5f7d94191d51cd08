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

/* Returns whether lists show the row, as no subcommand. */
bool cmd_command_is_top(const struct command *command);

/* Returns the count of its subcommands: the rows command + 1 .. command +
 * count. */
unsigned cmd_command_count_subs(const struct command *command);

/* Returns the count of such rows. */
unsigned cmd_command_count_top(void);

/* Finds "get" or "client|id" in any case; NULL if there is none. */
const struct command *cmd_command_find(struct slice name);
