/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the secrets of keyed filters that lie beside the files on a command
 * line. Without its secret a filter can be read, but its items cannot be
 * looked up.
 */
#pragma once

/* Adds the secrets of a data directory. The path names the directory, a file or
 * folder in it, or a file of its journal. A secret that cannot be read, or is
 * wrong, counts as missing. */
void secrets_find(const char *path);

/* Allows filters to be read whose secret is missing. */
void secrets_accept_all(void);
