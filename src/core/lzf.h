/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unpacks LZF, the compression of strings in RDB files and DUMP payloads:
 *
 *   0..31 n         n + 1 bytes follow as they are
 *   32..255 n [m] d copies (n >> 5) + 2 bytes, m more if n >> 5 is 7, from
 *                   ((n & 31) << 8 | d) + 1 bytes before
 *
 * Pure; the packed bytes may be any.
 */
#pragma once

#include "base/slice.h"

/* A string that is unpacked in pieces. All zero at first, but for `zeroed`. */
struct lzf {
    size_t at;    /* packed bytes that are done */
    size_t done;  /* bytes that are unpacked */
    size_t zeros; /* how many of the last ones are known to be 0 */
    bool zeroed;  /* the bytes at `to` are 0 at first; bytes that stay 0 are
                     neither read nor written */
};

/* Unpacks into `len` bytes at `to`, until at least `until` of them are there or
 * the packed bytes end. Every call gets the same packed bytes and `to`. False
 * if the packed bytes are damaged, or unpack to more. */
bool lzf_unpack_piece(struct lzf *lzf, struct slice packed, void *to,
                      size_t len, size_t until);

/* Unpacks into exactly len bytes at `to`. False if the packed bytes are damaged
 * or unpack to another length; `to` then holds anything. */
bool lzf_unpack(struct slice packed, void *to, size_t len);

/* Unpacks the first len bytes and leaves the rest. */
bool lzf_unpack_start(struct slice packed, void *to, size_t len);
