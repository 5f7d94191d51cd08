/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-server --plan. Main thread, without a server.
 */
#pragma once

#include <stdbool.h>

struct conf;

/* Executes BF.PLAN with the words behind argv[0], and prints its reply, a line
 * for each value. False: it failed, and the error is on stderr. */
bool print_plan(struct conf *conf, int argc, char **argv);
