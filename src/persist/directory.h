/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data directory: its lock, its names, and what a crash may have left in
 * it. Loop 0, or a task.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DIRECTORY_LOCK "lock"

struct conf;
struct persist;

/* Returns whether two names that must differ, in one directory, are equal.
 * Pure. */
bool directory_names_clash(const struct conf *conf, char *ret_reason,
                           size_t reason_size);

/* Opens the directory and locks it. False: the reason was logged. */
bool directory_open(struct persist *persist);

/* Locks a directory. Returns 0 or an errno value: EWOULDBLOCK if another server
 * uses it (logged). Blocks. */
int directory_lock(struct persist *persist, int dir_fd, int *ret_fd);

/* Returns false only if there is certainly no such file. */
bool directory_has(int dir_fd, const char *name);
