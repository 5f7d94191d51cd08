/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who may: one user, "default", who needs the password of the option
 * requirepass, or none while it is empty. Passwords are compared as SHA-256
 * digests in constant time, so that neither their length nor a common
 * beginning shows in the time an attempt takes. Reads conf: inside a section
 * of the world gate.
 */
#pragma once

#include "base/slice.h"

struct conf;

/* Wrong passwords in a row after which a connection is closed. */
enum { AUTH_ATTEMPTS_MAX = 5 };

/* True if a new connection must authenticate before anything else. */
bool auth_required(const struct conf *conf);

/* True if this user may come in with this password; without a password set,
 * any will do for "default". A failure is counted in METRIC_AUTH_FAILURES. */
bool auth_check(const struct conf *conf, struct slice user,
                struct slice password);

/* The SHA-256 of the password in hexadecimal, which is how ACL shows it. */
enum { AUTH_DIGEST_HEX = 65 };
void auth_digest(const struct conf *conf, char ret_hex[AUTH_DIGEST_HEX]);
