/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server's own reference: its tables as text on stdout. Main thread,
 * before anything runs.
 */
#pragma once

#include <stdbool.h>

/* what: commands, options, metrics, errors or man. False if none of
 * them. */
bool print_reference(const char *what);
