/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data directory: its lock, its names, and what a crash may have left in
 * it. Loop 0, or a task.
 */
#pragma once

#include <stdbool.h>

struct persist;

/* Opens the directory and locks it. False: the reason was logged. */
bool directory_open(struct persist *persist);

/* Locks a directory. Returns 0 or an errno value: EWOULDBLOCK if another server
 * uses it (logged). Blocks. */
int directory_lock(struct persist *persist, int dir_fd, int *ret_fd);

/* False only if there is certainly no such file. */
bool directory_has(int dir_fd, const char *name);
