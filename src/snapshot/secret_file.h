/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file with the secret of keyed filters (core/keyed.h): 32 hexadecimal
 * digits; a line end may follow. Nobody but its owner may have access.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>

enum secret_file {
    SECRET_FILE_READ,
    SECRET_FILE_MISSING,
    SECRET_FILE_WRONG, /* *ret_reason says why, without the file's name */
};

/* Reads a file whose name is relative to the directory. ret_secret is set if
 * the file was read, ret_reason if it was not. */
enum secret_file secret_file_read(int dir_fd, const char *name,
                                  uint8_t ret_secret[BLOOM_SECRET_BYTES],
                                  char *ret_reason, size_t reason_size);
