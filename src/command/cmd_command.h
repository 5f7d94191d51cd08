/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What COMMAND INFO and COMMAND DOCS share: finding rows by the names that
 * clients use, and the subcommands behind a container. Any thread.
 */
#pragma once

#include "engine/request.h"

/* Names that one request may ask for: a reply says several hundred bytes of
 * each. */
enum { CMD_COMMAND_NAMES_MAX = 2 * CMD_ID_COUNT };

bool cmd_command_is_sub(const struct command *command);

/* Its subcommands are the rows command + 1 .. command + count. */
unsigned cmd_command_count_subs(const struct command *command);

/* Rows that are no subcommands. */
unsigned cmd_command_count_top(void);

/* The names of the ACL categories by their bits; NULL behind the last one. */
const char *cmd_command_category(unsigned bit);

/* "get" or "client|id", any case; NULL if there is none. */
const struct command *cmd_command_find(struct slice name);
