/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The URL of a server, as <bloomery/local.h> has it. Pure functions.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

enum { LOCAL_URL_BYTES = 512 };

/* The parts, decoded. */
struct local_url {
    bool tls;
    char host[LOCAL_URL_BYTES]; /* or the path of a socket: it begins with / */
    char port[16];
    char user[LOCAL_URL_BYTES], password[LOCAL_URL_BYTES];
    bool has_password;
    unsigned database;
};

/* False: the text is none; *ret_reason says why, without the text. */
bool local_url_parse(const char *text, struct local_url *ret_url,
                     const char **ret_reason);

/* Whether both are one server, asked by one user. */
bool local_url_equal(const struct local_url *a, const struct local_url *b);
