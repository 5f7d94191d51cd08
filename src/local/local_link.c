/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_link.h"

#include "base/clock.h"
#include "client/client_dial.h"
#include "proto/resp.h"
#include "tls/tls.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    VALUE_MAX_BYTES = 64 * 1024 * 1024, /* of a push; a piece has 256 KiB */
    DIAL_MS = 5000,
    SILENT_MS = 10000,
    LEAST_PAUSE_MS = 50,
    MOST_PAUSE_MS = 5000
};

#define MS_NS UINT64_C(1000000)

uint64_t
local_link_now_ms(void)
{
    return clock_boot_ns() / MS_NS;
}

void
local_link_init(struct local_link *link, const struct local_address *address,
                struct local_copy *copy, int wake_fd)
{
    *link = (struct local_link){ .address = address,
                                 .copy = copy,
                                 .wake_fd = wake_fd,
                                 .dial_at_ms = 1,
                                 .pause_ms = LEAST_PAUSE_MS };
    client_init(&link->client, VALUE_MAX_BYTES);
}

void
local_link_close(struct local_link *link)
{
    local_copy_cut(link->copy);
    client_close(&link->client);
}

/* ---- faults -------------------------------------------------------------- */

static void
note_error(struct local_link *link, const char *what, const char *why)
{
    (void)snprintf(link->error, sizeof(link->error), "%s%s%s", what,
                   why[0] != '\0' ? ": " : "", why);
}

static void
note_fault(struct local_link *link)
{
    const struct client *client = &link->client;

    switch (client->fault) {
    case CLIENT_FINE:
        break;
    case CLIENT_NO_NAME:
        note_error(link, "cannot connect", gai_strerror(client->code));
        break;
    case CLIENT_NO_SERVER:
        note_error(link, "cannot connect", strerror(client->code));
        break;
    case CLIENT_LATE:
        note_error(link, "the server does not answer in time", "");
        break;
    case CLIENT_NO_MEMORY:
        note_error(link, "not enough memory", "");
        break;
    case CLIENT_READ:
    case CLIENT_WRITE:
        note_error(link, "the connection failed", strerror(client->code));
        break;
    case CLIENT_TLS:
    case CLIENT_TLS_SEAL:
        note_error(link, "TLS failed", tls_reason(client->tls));
        break;
    case CLIENT_CLOSED:
        note_error(link, "the server closed the connection", "");
        break;
    case CLIENT_TOO_LONG:
    case CLIENT_FOREIGN:
        note_error(link, "the server does not speak RESP", "");
        break;
    }
}

/* Ends the connection; another one follows after a pause. */
static void
cut_link(struct local_link *link)
{
    uint64_t now_ms = local_link_now_ms();

    note_fault(link);
    local_copy_cut(link->copy);
    client_close(&link->client);
    /* Copies of one server do not all come back at the same moment. */
    link->dial_at_ms = now_ms + link->pause_ms / 2 +
                       clock_mono_ns() / 1000 % (link->pause_ms / 2 + 1);
    link->pause_ms =
        link->pause_ms < MOST_PAUSE_MS / 2 ? link->pause_ms * 2 : MOST_PAUSE_MS;
}

/* ---- connecting ---------------------------------------------------------- */

/* Waits for a reply that must be no error. */
static bool
expect(struct local_link *link, const char *to, uint64_t deadline_ns)
{
    struct slice reply, text;

    if (!client_reply(&link->client, deadline_ns, &reply)) {
        return false;
    }
    if (resp_is_error(reply)) {
        text = resp_text(reply);
        (void)snprintf(link->error, sizeof(link->error),
                       "the server refuses %s: %.*s", to, resp_shown(text),
                       text.data);
        return false;
    }
    return true;
}

static bool
log_in(struct local_link *link, uint64_t deadline_ns)
{
    const struct local_address *address = link->address;
    char number[16];
    struct slice words[] = { slice_lit("SELECT"), { number, 0 } };

    client_send_login(&link->client, 3, address->user, address->password);
    if (!expect(link, "HELLO 3", deadline_ns)) {
        return false;
    }
    if (address->database == 0) {
        return true;
    }
    words[1].len =
        (size_t)snprintf(number, sizeof(number), "%u", address->database);
    client_send(&link->client, words, 2);
    return expect(link, "SELECT", deadline_ns);
}

static bool
dial_server(struct local_link *link)
{
    const struct local_address *address = link->address;
    struct client *client = &link->client;
    uint64_t deadline_ns = clock_mono_ns() + DIAL_MS * MS_NS;

    client_init(client, VALUE_MAX_BYTES);
    client->value_max = VALUE_MAX_BYTES;
    client->wake_fd = link->wake_fd;
    return (address->host[0] == '/'
                ? client_dial_path(client, address->host, deadline_ns)
                : client_dial_host(client, address->host, address->port,
                                   deadline_ns)) &&
           (address->tls == NULL ||
            client_dial_tls(client, address->tls, address->host,
                            deadline_ns)) &&
           log_in(link, deadline_ns);
}

static void
connect_again(struct local_link *link)
{
    if (!dial_server(link)) {
        cut_link(link);
        return;
    }
    link->dial_at_ms = 0;
    link->connections++;
    local_copy_link(link->copy, local_link_now_ms());
}

/* ---- the conversation ---------------------------------------------------- */

/* Hears what has come. False: the connection is of no use any more. */
static bool
hear(struct local_link *link)
{
    struct slice value;

    while (client_next(&link->client, &value)) {
        if (!local_copy_take(link->copy, value, local_link_now_ms())) {
            note_error(link, local_copy_error(link->copy), "");
            return false;
        }
    }
    if (local_copy_stage(link->copy) == LOCAL_LOADED) {
        link->pause_ms = LEAST_PAUSE_MS;
    }
    if (link->client.ended) {
        return client_fail(&link->client, CLIENT_CLOSED, 0);
    }
    if (clock_mono_ns() - link->client.heard_ns > SILENT_MS * MS_NS) {
        return client_fail(&link->client, CLIENT_LATE, 0);
    }
    return link->client.fault == CLIENT_FINE;
}

static void
converse(struct local_link *link, uint64_t until_ms)
{
    uint64_t now_ms = local_link_now_ms();
    uint64_t next_ms = local_copy_say(link->copy, now_ms, &link->client.out);
    uint64_t end_ms = next_ms < until_ms ? next_ms : until_ms;
    uint64_t wait_ms = end_ms > now_ms ? end_ms - now_ms : 0;

    (void)client_wait(&link->client, clock_mono_ns() + wait_ms * MS_NS);
    if (link->client.out.failed) {
        (void)client_fail(&link->client, CLIENT_NO_MEMORY, 0);
    }
    if (!hear(link)) {
        cut_link(link);
    }
}

void
local_link_step(struct local_link *link, uint64_t until_ms)
{
    uint64_t now_ms = local_link_now_ms();
    struct pollfd wake = { .fd = link->wake_fd, .events = POLLIN };
    uint64_t end_ms = link->dial_at_ms < until_ms ? link->dial_at_ms : until_ms;

    if (link->dial_at_ms == 0) {
        converse(link, until_ms);
    } else if (now_ms >= link->dial_at_ms) {
        connect_again(link);
    } else if (end_ms > now_ms) {
        (void)poll(&wake, 1, (int)(end_ms - now_ms));
    }
}
