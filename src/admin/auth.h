/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passwords as SHA-256 digests, which are compared in constant time, so that
 * the time of an attempt does not show how much of the password was right.
 * Any thread.
 */
#pragma once

#include "base/slice.h"

/* Closes a connection after this many wrong passwords in a row. */
enum { AUTH_ATTEMPTS_MAX = 5 };

enum { AUTH_DIGEST = 32 /* bytes */ };

/* Computes the digest of a password. The caller cleanses it if it is not to be
 * kept. */
void auth_hash(struct slice password, unsigned char ret_digest[AUTH_DIGEST]);

bool auth_same(const unsigned char a[AUTH_DIGEST],
               const unsigned char b[AUTH_DIGEST]);
