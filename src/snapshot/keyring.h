/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the keyring (core/keyed.h): in a data directory the folder
 * hash-secrets has the secrets of filters that were made elsewhere, each in a
 * file like hash-secret, named by its fingerprint. A secret that comes from
 * another server is written before a filter needs it, and is never removed.
 */
#pragma once

#include "snapshot/secret_file.h"

#include <stdint.h>

#define KEYRING_NAME     "hash-secrets"
#define KEYRING_OWN_NAME "hash-secret"
#define KEYRING_FULL     "at most 64 secrets of other servers are kept"
enum { KEYRING_DIGITS = 16 /* digits of a fingerprint */ };

/* Adds the secrets of a data directory to the process's keyring: hash-secret,
 * and those of the folder. Calls wrong, with the name in the directory, for
 * each file whose secret cannot be used. Returns how many secrets were new. */
typedef void keyring_wrong_fn(void *ctx, const char *file, const char *reason);
unsigned keyring_read(int dir_fd, keyring_wrong_fn *wrong, void *ctx);

/* Makes hash-secret of a data directory the process's own secret, unless the
 * process has one. Tools call this before keyring_read, which would count
 * hash-secret among the at most 64 secrets of other servers. */
void keyring_read_own(int dir_fd);

/* The functions of core/keyed.h, for rooms that may not include core. */
uint64_t keyring_fingerprint(const uint8_t secret[BLOOM_SECRET_BYTES]);
bool keyring_has(uint64_t fingerprint);
bool keyring_is_full(void);

/* Writes a secret, as file_replace does. Returns 0 or errno. */
int keyring_write(int dir_fd, const uint8_t secret[BLOOM_SECRET_BYTES]);

/* Writes all secrets but the process's own one. */
int keyring_write_all(int dir_fd);
