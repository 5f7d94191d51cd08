/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_url.h"

#include "base/hex.h"
#include "base/host_port.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_PORT "7379"

enum { DATABASE_MAX = INT32_MAX };

/* Decodes %XX. False: it is too long, or not one text. */
static bool
decode(struct slice from, char *to, size_t room)
{
    size_t len = 0;

    for (size_t i = 0; i < from.len; i++, len++) {
        char c = from.data[i];

        if (c == '%') {
            int byte = i + 2 < from.len ? hex_escaped_byte(from.data[i + 1],
                                                           from.data[i + 2])
                                        : -1;

            if (byte < 0) {
                return false;
            }
            c = (char)byte;
            i += 2;
        }
        if (c == '\0' || len + 1 >= room) {
            return false;
        }
        to[len] = c;
    }
    to[len] = '\0';
    return true;
}

/* Cuts off what stands before the last of a character. */
static bool
take_before(struct slice *text, char c, struct slice *ret_front)
{
    const char *at = text->len > 0 ? memrchr(text->data, c, text->len) : NULL;

    if (at == NULL) {
        return false;
    }
    *ret_front = (struct slice){ text->data, (size_t)(at - text->data) };
    text->data = at + 1;
    text->len -= ret_front->len + 1;
    return true;
}

/* Reads [[user]:password@] at the front. */
static const char *
read_user(struct slice *text, struct local_url *url)
{
    struct slice login, user;
    const char *colon;

    if (!take_before(text, '@', &login)) {
        return NULL;
    }
    colon = login.len > 0 ? memchr(login.data, ':', login.len) : NULL;
    if (colon == NULL) {
        return "the URL has a user without a password";
    }
    user = (struct slice){ login.data, (size_t)(colon - login.data) };
    url->has_password = true;
    if (!decode(user, url->user, sizeof(url->user)) ||
        !decode((struct slice){ colon + 1, login.len - user.len - 1 },
                url->password, sizeof(url->password))) {
        return "the user or the password in the URL cannot be read";
    }
    return NULL;
}

static const char *
read_database(struct slice text, struct local_url *url)
{
    uint64_t number = 0;

    if (text.len > 0 &&
        (!slice_to_u64(text, &number) || number > DATABASE_MAX)) {
        return "the database in the URL is not a number";
    }
    url->database = (unsigned)number;
    return NULL;
}

/* Reads host[:port][/database]. */
static const char *
read_host(struct slice text, struct local_url *url)
{
    const char *slash = text.len > 0 ? memchr(text.data, '/', text.len) : NULL;
    struct slice host = text;
    struct host_port parts;
    const char *reason = NULL;
    bool bracketed = false;
    unsigned port;

    if (slash != NULL) {
        host.len = (size_t)(slash - text.data);
        reason = read_database(
            (struct slice){ slash + 1, text.len - host.len - 1 }, url);
    }
    if (reason != NULL) {
        return reason;
    }
    (void)snprintf(url->port, sizeof(url->port), "%s", DEFAULT_PORT);
    if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
        host.data++;
        host.len -= 2;
        bracketed = true;
    } else if (host_port_split(host, &parts)) {
        if (!host_port_number(&parts, &port)) {
            return "the port in the URL is not a number from 1 to 65535";
        }
        (void)snprintf(url->port, sizeof(url->port), "%u", port);
        host = parts.host;
        bracketed = parts.bracketed;
    }
    /* A colon is left of a port without a host, or of an address without
     * brackets. */
    if (host.len == 0 || !decode(host, url->host, sizeof(url->host)) ||
        url->host[0] == '/' ||
        (!bracketed && memchr(host.data, ':', host.len) != NULL)) {
        return "the host in the URL cannot be read";
    }
    return NULL;
}

/* Reads /path[?db=database]. */
static const char *
read_path(struct slice text, struct local_url *url)
{
    static const char query[] = "?db=";
    const char *mark = text.len > 0 ? memchr(text.data, '?', text.len) : NULL;
    struct slice rest;

    if (mark != NULL) {
        rest = (struct slice){ mark, (size_t)(text.data + text.len - mark) };
        text.len -= rest.len;
        if (!slice_take(&rest, query)) {
            return "the URL has an unknown option";
        }
        if (read_database(rest, url) != NULL) {
            return "the database in the URL is not a number";
        }
    }
    return text.len > 1 && text.data[0] == '/' &&
                   decode(text, url->host, sizeof(url->host))
               ? NULL
               : "the path in the URL cannot be read";
}

bool
local_url_parse(const char *text, struct local_url *ret_url,
                const char **ret_reason)
{
    struct local_url url = { .tls = false };
    struct slice rest = slice_of(text);
    bool path = false;
    const char *reason = NULL;

    if (slice_take(&rest, "rediss://")) {
        url.tls = true;
    } else if (slice_take(&rest, "unix://")) {
        path = true;
    } else if (!slice_take(&rest, "redis://")) {
        *ret_reason = "the URL does not begin with redis://, rediss:// or "
                      "unix://";
        return false;
    }
    reason = read_user(&rest, &url);
    if (reason == NULL) {
        reason = path ? read_path(rest, &url) : read_host(rest, &url);
    }
    if (reason != NULL) {
        *ret_reason = reason;
        return false;
    }
    *ret_url = url;
    return true;
}

bool
local_url_equal(const struct local_url *a, const struct local_url *b)
{
    return a->tls == b->tls && a->database == b->database &&
           a->has_password == b->has_password &&
           strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0 &&
           strcmp(a->user, b->user) == 0 &&
           strcmp(a->password, b->password) == 0;
}
