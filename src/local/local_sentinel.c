/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_sentinel.h"

#include "client/client_dial.h"
#include "local/local_fault.h"
#include "proto/compose.h"
#include "proto/resp.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    REPLY_MAX_BYTES = 64 * 1024,
    ASK_MS = 1000,
    ANSWER_MS = 1000,
    PAUSE_MS = 100 /* before the next Sentinel */
};

void
local_sentinel_init(struct local_sentinel *sentinel,
                    const struct local_url *url, struct tls_contexts *tls)
{
    *sentinel = (struct local_sentinel){ .url = url, .tls = tls };
    client_init(&sentinel->client, REPLY_MAX_BYTES);
}

void
local_sentinel_close(struct local_sentinel *sentinel)
{
    client_close(&sentinel->client);
    sentinel->asked = false;
}

void
local_sentinel_doubt(struct local_sentinel *sentinel)
{
    sentinel->doubted = sentinel->named > 0;
}

/* ---- one after the other ------------------------------------------------- */

static unsigned
count_sentinels(const struct local_url *url)
{
    unsigned count = 1;

    for (const char *at = url->sentinels; (at = strchr(at, ',')) != NULL;
         at++) {
        count++;
    }
    return count;
}

/* Gives up this Sentinel; the next one follows after a pause. */
static void
give_up(struct local_sentinel *sentinel, uint64_t now_ms, const char *why)
{
    sentinel->failures++;
    if (sentinel->failures >= count_sentinels(sentinel->url)) {
        (void)snprintf(sentinel->error, sizeof(sentinel->error), "%s", why);
    }
    local_sentinel_close(sentinel);
    sentinel->tries++;
    sentinel->due_ms = now_ms + PAUSE_MS;
}

/* Gives up this Sentinel because of the client's fault. */
static void
fail(struct local_sentinel *sentinel, uint64_t now_ms)
{
    char why[LOCAL_SENTINEL_ERROR];

    (void)local_fault_text(&sentinel->client, why, sizeof(why));
    give_up(sentinel, now_ms, why);
}

static void
ask(struct local_sentinel *sentinel, uint64_t now_ms)
{
    const struct slice words[] = { slice_lit("SENTINEL"),
                                   slice_lit("GET-MASTER-ADDR-BY-NAME"),
                                   slice_of(sentinel->url->host) };

    client_send(&sentinel->client, words, 3);
    sentinel->asked = true;
    sentinel->due_ms = now_ms + ANSWER_MS;
}

/* Dials the next Sentinel. Each round tries another address of each name. */
static void
dial(struct local_sentinel *sentinel, uint64_t now_ms)
{
    unsigned count = count_sentinels(sentinel->url);
    struct local_host host;

    client_init(&sentinel->client, REPLY_MAX_BYTES);
    sentinel->admitted = false;
    if (!local_url_sentinel(sentinel->url->sentinels, sentinel->tries % count,
                            &host)) {
        give_up(sentinel, now_ms, "the URL cannot be read");
    } else if (!client_dial_begin(&sentinel->client, host.name, host.port,
                                  sentinel->tls, sentinel->tries / count)) {
        fail(sentinel, now_ms);
    } else {
        ask(sentinel, now_ms);
    }
}

uint64_t
local_sentinel_prepare(struct local_sentinel *sentinel, uint64_t now_ms,
                       struct pollfd *ret_poll)
{
    *ret_poll = (struct pollfd){ .fd = -1 };
    if (sentinel->doubted && !sentinel->asked && sentinel->client.fd >= 0) {
        local_sentinel_close(sentinel);
        sentinel->tries++;
        sentinel->due_ms = now_ms;
    }
    if (now_ms >= sentinel->due_ms) {
        if (sentinel->client.fd < 0) {
            dial(sentinel, now_ms);
        } else if (!sentinel->asked) {
            ask(sentinel, now_ms);
        } else {
            (void)client_fail(&sentinel->client, CLIENT_LATE, 0);
            fail(sentinel, now_ms);
        }
        sentinel->doubted = false;
    }
    if (sentinel->client.fd >= 0) {
        client_prepare(&sentinel->client, ret_poll);
        if (ret_poll->fd < 0) {
            return 0; /* local_sentinel_react() handles a fault or the end */
        }
    }
    return sentinel->due_ms;
}

/* ---- answers ------------------------------------------------------------- */

/* Returns whether a text can be dialled as a host or a port. A path cannot: it
 * would lead to a unix socket. */
static bool
is_dialable(struct slice text, size_t room)
{
    return text.len > 0 && text.len < room && text.data[0] != '/' &&
           memchr(text.data, '\0', text.len) == NULL;
}

/* Takes the address of the primary. False: the reply has none. */
static bool
take_address(struct local_sentinel *sentinel, struct slice reply)
{
    struct slice rest, host, port;

    if (!resp_array(reply, &rest) || !resp_element(&rest, &host) ||
        !resp_element(&rest, &port)) {
        return false;
    }
    host = resp_text(host);
    port = resp_text(port);
    if (!is_dialable(host, sizeof(sentinel->host)) ||
        !is_dialable(port, sizeof(sentinel->port))) {
        return false;
    }
    if (!slice_equal(host, slice_of(sentinel->host)) ||
        !slice_equal(port, slice_of(sentinel->port))) {
        (void)snprintf(sentinel->host, sizeof(sentinel->host), "%.*s",
                       (int)host.len, host.data);
        (void)snprintf(sentinel->port, sizeof(sentinel->port), "%.*s",
                       (int)port.len, port.data);
        sentinel->named++;
    }
    return true;
}

/* Logs in with the user and the password of the server, and asks again. */
static void
log_in(struct local_sentinel *sentinel, uint64_t now_ms)
{
    sentinel->admitted = true;
    client_send_login(&sentinel->client, LOGIN_ANY_PROTOCOL,
                      slice_of(sentinel->url->user),
                      slice_of(sentinel->url->password));
    ask(sentinel, now_ms);
}

static void
hear(struct local_sentinel *sentinel, uint64_t now_ms, struct slice reply)
{
    struct slice text = resp_text(reply);
    char why[LOCAL_SENTINEL_ERROR];

    if (resp_is_error(reply)) {
        if (slice_take(&text, "NOAUTH") && !sentinel->admitted &&
            sentinel->url->has_password) {
            log_in(sentinel, now_ms);
            return;
        }
        text = resp_text(reply);
        (void)snprintf(why, sizeof(why), "a Sentinel refuses: %.*s",
                       resp_shown(text), text.data);
        give_up(sentinel, now_ms, why);
    } else if (slice_equal(text, slice_lit("OK"))) {
        sentinel->asked = true; /* the login is done; the answer to the question
                                   follows */
    } else if (take_address(sentinel, reply)) {
        sentinel->asked = false;
        sentinel->failures = 0;
        sentinel->error[0] = '\0';
        sentinel->due_ms = now_ms + ASK_MS;
    } else {
        give_up(sentinel, now_ms, "a Sentinel watches nothing of this name");
    }
}

void
local_sentinel_react(struct local_sentinel *sentinel, uint64_t now_ms,
                     const struct pollfd *polled)
{
    struct slice reply;

    if (sentinel->client.fd < 0) {
        return;
    }
    (void)client_receive(&sentinel->client, polled);
    while (sentinel->client.fd >= 0 && client_next(&sentinel->client, &reply)) {
        hear(sentinel, now_ms, reply);
    }
    if (sentinel->client.fd >= 0 && sentinel->client.ended) {
        (void)client_fail(&sentinel->client, CLIENT_CLOSED, 0);
    }
    if (sentinel->client.fd >= 0 && sentinel->client.fault != CLIENT_FINE) {
        fail(sentinel, now_ms);
    }
}
