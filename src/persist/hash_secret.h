/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file with the secret of keyed filters (core/keyed.h): 32 hexadecimal
 * digits and a line end, which only its owner may read. Snapshots, journals,
 * DUMP and the stream carry its fingerprint; it is nowhere else.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>

struct persist;

#define HASH_SECRET_NAME "hash-secret"

enum hash_secret {
    HASH_SECRET_READ,
    HASH_SECRET_MISSING,
    HASH_SECRET_WRONG, /* *ret_reason says why, without the file's name */
};

/* Reads a file whose name is relative to the directory. The bytes are set if it
 * was read, and the reason if it was not. */
enum hash_secret hash_secret_read(int dir_fd, const char *name,
                                  uint8_t ret_secret[BLOOM_SECRET_BYTES],
                                  char *ret_reason, size_t reason_size);

/* Uses the secret of the open data directory, which is made at the first start,
 * or that of hash-secret-file. Called before any filter is loaded. False: the
 * log says why the server must not start. */
bool hash_secret_open(const struct persist *persist);
