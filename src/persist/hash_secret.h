/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the secret of keyed filters at a start. Snapshots, journals, DUMP and
 * the stream contain only its fingerprint; the secret itself is only in its
 * file.
 */
#pragma once

#include "snapshot/keyring.h"

#include <stdbool.h>
#include <stddef.h>

struct persist;
struct recover_options;

#define HASH_SECRET_NAME KEYRING_OWN_NAME

/* Reads the secret and gives it to core. If hash-secret-file is not set, the
 * file is in the open data directory, and the first start makes it. Call this
 * before any filter is loaded. False: the server must not start, and the log
 * says why. */
bool hash_secret_open(struct persist *persist);

/* Reads the other secrets of the data directory (snapshot/keyring.h): at a
 * start, and when an operator has put one there. Returns how many are new. */
unsigned hash_secret_read_others(const struct persist *persist);

/* Writes the secrets into a new data directory. If that has the secret file of
 * another server, renames that file. Returns 0 or errno. A task calls it. */
int hash_secret_write_again(const struct persist *persist, int dir_fd);

/* Loads the data as recover_run does. With the option without-secret, it leaves
 * out the filters of that secret. Then the state belongs to no history, and is
 * saved again if the server saves at all. */
bool hash_secret_load(struct persist *persist,
                      const struct recover_options *options, char *ret_reason,
                      size_t reason_size);
