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
    /* host[:port][,host[:port]...], and then host is the name of what they
     * watch; empty: there are none. */
    char sentinels[LOCAL_URL_BYTES];
};

struct local_host {
    char name[LOCAL_URL_BYTES], port[16];
};

/* False: the text is none; *ret_reason says why, without the text. */
bool local_url_parse(const char *text, struct local_url *ret_url,
                     const char **ret_reason);

/* Reads one of the Sentinels, from 0 on. False: there are not so many. */
bool local_url_sentinel(const char *sentinels, unsigned which,
                        struct local_host *ret_host);

/* Whether both are one server, asked by one user. */
bool local_url_equal(const struct local_url *a, const struct local_url *b);
