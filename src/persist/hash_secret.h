/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The secret of keyed filters at a start. Snapshots, journals, DUMP and the
 * stream carry its fingerprint; the secret is in its file only.
 */
#pragma once

#include <stdbool.h>

struct persist;

#define HASH_SECRET_NAME "hash-secret"

/* Reads the secret and gives it to core. If hash-secret-file is not set, the
 * file is in the open data directory, and the first start makes it. Call this
 * before any filter is loaded. False: the server must not start, and the log
 * says why. */
bool hash_secret_open(struct persist *persist);
