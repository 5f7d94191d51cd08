/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The secret of keyed filters at a start. Snapshots, journals, DUMP and the
 * stream carry its fingerprint; the secret is in its file only.
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

/* Writes the secrets of the data directory into another one, which takes its
 * place. Another server's secret there gets another name. Returns 0 or errno.
 * A task. */
int hash_secret_write_again(const struct persist *persist, int dir_fd);

/* Loads the data, as recover_run; without the filters of without-secret. Then
 * the state is of no history, and is saved again, if it is saved at all. */
bool hash_secret_load(struct persist *persist,
                      const struct recover_options *options, char *ret_reason,
                      size_t reason_size);
