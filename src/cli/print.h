/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the server's tables to stdout. Main thread, before the server starts.
 */
#pragma once

#include <stdbool.h>

/* Prints commands, options, metrics, errors, man, commands-man, commands-md,
 * files-md or words. False: `what` is none of them. */
bool print_reference(const char *what);
