/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passwords as SHA-256 digests, which are compared in constant time, so that
 * the time of an attempt does not show how much of the password was right.
 * Any thread.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

/* A connection is closed after this many wrong passwords in a row. */
enum { AUTH_ATTEMPTS_MAX = 5 };

enum { AUTH_DIGEST = 32 /* bytes */ };

/* Computes the digest of a password. The caller wipes the digest when it does
 * not need it any more. */
void auth_hash(struct slice password, unsigned char ret_digest[AUTH_DIGEST]);

/* A digest that is computed in pieces, since a password may be long. All zero:
 * at its beginning. */
struct auth_sum {
    size_t done; /* bytes of the password that are done */
    bool begun;
    uint64_t state[16]; /* OpenSSL's */
};

/* Takes at most `most` more bytes of the password. Returns true after the last
 * byte: then ret_digest has what auth_hash() gives, and the sum is empty. */
bool auth_sum_add(struct auth_sum *sum, struct slice password, size_t most,
                  unsigned char ret_digest[AUTH_DIGEST]);
void auth_sum_cleanse(struct auth_sum *sum);

bool auth_same(const unsigned char a[AUTH_DIGEST],
               const unsigned char b[AUTH_DIGEST]);
