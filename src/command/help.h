/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes help from the command table: the syntax of a command from its .args.
 * Pure. cmd_help (help.c) is the handler of every "<container>|help" row.
 */
#pragma once

#include "base/buf.h"
#include "engine/request.h"

/* Appends "<key> <seconds> [NX|XX|GT|LT]". Appends nothing for a command
 * without arguments. */
void help_append_syntax(struct buf *text, const struct command_arg *args);

/* Returns the error for an unknown subcommand or a wrong number of arguments,
 * in Redis's words. */
enum err help_wrong_subcommand(struct request *req);
