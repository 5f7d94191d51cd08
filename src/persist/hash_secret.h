/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The secret of keyed filters at a start. Snapshots, journals, DUMP and the
 * stream carry its fingerprint; the secret is in its file only.
 */
#pragma once

#include <stdbool.h>

struct persist;

#define HASH_SECRET_NAME "hash-secret"

/* Uses the secret of the open data directory, which is made at the first start,
 * or that of hash-secret-file. Called before any filter is loaded. False: the
 * log says why the server must not start. */
bool hash_secret_open(const struct persist *persist);
