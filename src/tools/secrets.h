/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the secrets of keyed filters that lie beside the files on a command
 * line. Without its secret a filter can be read, but not hashed.
 */
#pragma once

/* Adds the secrets of the data directory that the path names or lies in; it may
 * be a file or a folder of one, or a file of its journal. A secret that cannot
 * be read, or is wrong, counts as missing. */
void secrets_find(const char *path);

/* Lets filters of every secret be read. */
void secrets_accept_all(void);
