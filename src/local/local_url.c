/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_url.h"

#include "base/hex.h"
#include "base/host_port.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_PORT = 7379, SENTINEL_PORT = 26379, DATABASE_MAX = INT32_MAX };

/* Decodes %XX. False: the text is too long, or has a bad escape or byte 0. */
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

/* Cuts off the part before a character, and the character; without one, all. */
static struct slice
cut_part(struct slice *text, char c)
{
    const char *at = text->len > 0 ? memchr(text->data, c, text->len) : NULL;
    struct slice part = *text;

    if (at == NULL) {
        text->len = 0;
        return part;
    }
    part.len = (size_t)(at - text->data);
    text->data += part.len + 1;
    text->len -= part.len + 1;
    return part;
}

/* Cuts off the text before the last occurrence of a character, and that
 * character. */
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

/* Reads host[:port]. Returns what is wrong, or NULL. */
static const char *
read_address(struct slice text, unsigned port, struct local_host *ret_host)
{
    struct slice host = text;
    struct host_port parts;
    bool bracketed = false;

    if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
        host.data++;
        host.len -= 2;
        bracketed = true;
    } else if (host_port_split(host, &parts)) {
        if (!host_port_number(&parts, &port)) {
            return "the port in the URL is not a number from 1 to 65535";
        }
        host = parts.host;
        bracketed = parts.bracketed;
    }
    /* A colon is left if a port has no host, or an IPv6 address no brackets. */
    if (host.len == 0 || !decode(host, ret_host->name, LOCAL_URL_BYTES) ||
        ret_host->name[0] == '/' ||
        (!bracketed && memchr(host.data, ':', host.len) != NULL)) {
        return "the host in the URL cannot be read";
    }
    (void)snprintf(ret_host->port, sizeof(ret_host->port), "%u", port);
    return NULL;
}

/* Reads host[:port][/database]. */
static const char *
read_host(struct slice text, struct local_url *url)
{
    struct local_host host;
    const char *reason;

    reason = read_address(cut_part(&text, '/'), DEFAULT_PORT, &host);
    if (reason == NULL) {
        reason = read_database(text, url);
    }
    if (reason == NULL) {
        memcpy(url->host, host.name, sizeof(url->host));
        memcpy(url->port, host.port, sizeof(url->port));
    }
    return reason;
}

/* Reads host[:port][,host[:port]...]/service[/database]. */
static const char *
read_sentinels(struct slice text, struct local_url *url)
{
    struct slice list = cut_part(&text, '/');
    struct local_host host;
    const char *reason;

    if (list.len >= sizeof(url->sentinels)) {
        return "the URL has too many Sentinels";
    }
    if (list.len > 0) {
        memcpy(url->sentinels, list.data, list.len);
    }
    do {
        reason = read_address(cut_part(&list, ','), SENTINEL_PORT, &host);
    } while (reason == NULL && list.len > 0);
    if (reason == NULL &&
        (!decode(cut_part(&text, '/'), url->host, sizeof(url->host)) ||
         url->host[0] == '\0' || url->host[0] == '/')) {
        reason = "the URL does not name what the Sentinels watch";
    }
    return reason != NULL ? reason : read_database(text, url);
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

/* Reads what stands behind the scheme and the login. */
typedef const char *read_fn(struct slice text, struct local_url *url);

bool
local_url_parse(const char *text, struct local_url *ret_url,
                const char **ret_reason)
{
    static const struct {
        const char *scheme;
        bool tls;
        read_fn *read;
    } kinds[] = {
        { "redis://", false, read_host },
        { "rediss://", true, read_host },
        { "unix://", false, read_path },
        { "redis+sentinel://", false, read_sentinels },
        { "rediss+sentinel://", true, read_sentinels },
    };
    struct local_url url = { .tls = false };
    struct slice rest = slice_of(text);
    const char *reason = NULL;
    const size_t count = sizeof(kinds) / sizeof(*kinds);
    size_t i = 0;

    while (i < count && !slice_take(&rest, kinds[i].scheme)) {
        i++;
    }
    if (i == count) {
        *ret_reason = "the URL does not begin with redis://, rediss://, "
                      "unix:// or redis+sentinel://";
        return false;
    }
    url.tls = kinds[i].tls;
    reason = read_user(&rest, &url);
    if (reason == NULL) {
        reason = kinds[i].read(rest, &url);
    }
    if (reason != NULL) {
        *ret_reason = reason;
        return false;
    }
    *ret_url = url;
    return true;
}

bool
local_url_sentinel(const char *sentinels, unsigned which,
                   struct local_host *ret_host)
{
    struct slice list = slice_of(sentinels), part = cut_part(&list, ',');

    while (which > 0 && list.len > 0) {
        part = cut_part(&list, ',');
        which--;
    }
    return which == 0 && read_address(part, SENTINEL_PORT, ret_host) == NULL;
}

bool
local_url_equal(const struct local_url *a, const struct local_url *b)
{
    return a->tls == b->tls && a->database == b->database &&
           a->has_password == b->has_password &&
           strcmp(a->sentinels, b->sentinels) == 0 &&
           strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0 &&
           strcmp(a->user, b->user) == 0 &&
           strcmp(a->password, b->password) == 0;
}
