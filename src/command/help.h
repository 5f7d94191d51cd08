/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Help made from the command table: the syntax of a command out of its .args.
 * Pure. The handler of every "<container>|help" row is cmd_help (help.c).
 */
#pragma once

#include "base/buf.h"
#include "engine/request.h"

/* Appends "<key> <seconds> [NX|XX|GT|LT]". Nothing for a command without
 * arguments. */
void help_append_syntax(struct buf *text, const struct command_arg *args);

/* The error for a subcommand that is unknown to its handler, or has the wrong
 * number of arguments, in Redis's words. */
enum err help_wrong_subcommand(struct request *req);
