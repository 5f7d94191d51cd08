/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the server's tables to stdout. Main thread, before the server starts.
 */
#pragma once

#include <stdbool.h>

struct conf;

/* Prints commands, options, metrics, errors, man, commands-man or words. False:
 * `what` is none of them. */
bool print_reference(const char *what);

/* Executes BF.PLAN with the words behind argv[0], and prints its reply, a line
 * for each value. False: it failed, and the error is on stderr. */
bool print_plan(struct conf *conf, int argc, char **argv);
