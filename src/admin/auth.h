/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logins. There is one user, "default", whose password is the option
 * requirepass; while that is empty, no password is needed. Passwords are
 * compared as SHA-256 digests in constant time, so that the time of an attempt
 * does not show how much of the password was right. Callers are inside a
 * section of the gate, since these functions read conf.
 */
#pragma once

#include "base/slice.h"

struct conf;

/* Closes a connection after this many wrong passwords in a row. */
enum { AUTH_ATTEMPTS_MAX = 5 };

/* Returns whether a new connection must authenticate first. */
bool auth_required(const struct conf *conf);

/* Returns whether the user and the password are right. Without requirepass, any
 * password is right for "default". Counts failures in METRIC_AUTH_FAILURES. */
bool auth_check(const struct conf *conf, struct slice user,
                struct slice password);

enum { AUTH_DIGEST = 32 /* bytes */ };

/* Computes the digest of a password. The caller cleanses it if it is not to be
 * kept. */
void auth_hash(struct slice password, unsigned char ret_digest[AUTH_DIGEST]);

bool auth_same(const unsigned char a[AUTH_DIGEST],
               const unsigned char b[AUTH_DIGEST]);

/* Writes the SHA-256 of the password in hexadecimal, as ACL shows it. */
enum { AUTH_DIGEST_HEX = 65 };
void auth_digest(const struct conf *conf, char ret_hex[AUTH_DIGEST_HEX]);
