/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The URL of a server, as <bloomery/local.h> describes it. Pure functions.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

enum { LOCAL_URL_BYTES = 512 };

/* The parts, decoded. */
struct local_url {
    bool tls;
    char host[LOCAL_URL_BYTES]; /* or the path of a socket, which begins with /
                                 */
    char port[16];
    char user[LOCAL_URL_BYTES], password[LOCAL_URL_BYTES];
    bool has_password;
    unsigned database;
    /* The Sentinels, as host[:port][,host[:port]...]; `host` is then the name
     * of the primary that they watch. Empty: there are no Sentinels. */
    char sentinels[LOCAL_URL_BYTES];
};

struct local_host {
    char name[LOCAL_URL_BYTES], port[16];
};

/* Parses a URL. False: the text is no such URL; *ret_reason says why, without
 * quoting the text. */
bool local_url_parse(const char *text, struct local_url *ret_url,
                     const char **ret_reason);

/* Reads one of the Sentinels; `which` counts from 0. False: there are not so
 * many. */
bool local_url_sentinel(const char *sentinels, unsigned which,
                        struct local_host *ret_host);

/* Returns whether both name the same server and the same user. */
bool local_url_equal(const struct local_url *a, const struct local_url *b);
