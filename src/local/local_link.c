/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_link.h"

#include "base/clock.h"
#include "base/host_port.h"
#include "client/client_dial.h"
#include "local/local_fault.h"
#include "proto/resp.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    VALUE_MAX_BYTES = 64 * 1024 * 1024, /* of a push; a piece has 256 KiB */
    DIAL_MS = 2500,
    SILENT_MS = 10000,
    LEAST_PAUSE_MS = 50,
    MOST_PAUSE_MS = 1000,
    MOVES_MAX = 5,
    ROLE_MS = 1000
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
    /* A forked child may have the socket, too. */
    if (link->client.fd >= 0) {
        (void)shutdown(link->client.fd, SHUT_RDWR);
    }
    client_close(&link->client);
}

/* ---- faults -------------------------------------------------------------- */

static void
note_error(struct local_link *link, enum bloomery_local_code fault,
           const char *what, const char *why)
{
    link->fault = fault;
    (void)snprintf(link->error, sizeof(link->error), "%s%s%s", what,
                   why[0] != '\0' ? ": " : "", why);
}

static void
note_fault(struct local_link *link)
{
    enum bloomery_local_code code =
        local_fault_text(&link->client, link->error, sizeof(link->error));

    if (code != BLOOMERY_LOCAL_OK) {
        link->fault = code;
    }
}

/* Ends the connection; another one follows at this time. */
static void
end_link(struct local_link *link, uint64_t again_ms)
{
    local_link_close(link);
    link->dial_at_ms = again_ms;
}

/* Ends the connection because of a fault. */
static void
cut_link(struct local_link *link)
{
    /* The pauses differ, so that the copies of one server do not all come back
     * at the same moment. */
    uint64_t pause_ms =
        link->pause_ms / 2 + clock_mono_ns() / 1000 % (link->pause_ms / 2 + 1);

    note_fault(link);
    end_link(link, local_link_now_ms() + pause_ms);
    link->moved_host[0] = '\0';
    link->moves = 0;
    link->cuts++;
    link->pause_ms =
        link->pause_ms < MOST_PAUSE_MS / 2 ? link->pause_ms * 2 : MOST_PAUSE_MS;
}

/* Follows a MOVED to the server that it names. False: the error is no MOVED, or
 * there were too many. */
static bool
follow_move(struct local_link *link, const char *error)
{
    struct slice text = slice_of(error), word;
    struct host_port parts;
    unsigned port;

    if (!slice_take(&text, "MOVED ") || !slice_next_word(&text, &word) ||
        !slice_next_word(&text, &word) || link->moves >= MOVES_MAX ||
        link->address->host[0] == '/') {
        return false;
    }
    if (word.len > 0 && word.data[0] == ':') { /* the same host */
        parts.host = slice_of(link->address->host);
        parts.port = (struct slice){ word.data + 1, word.len - 1 };
    } else if (!host_port_split(word, &parts)) {
        return false;
    }
    if (!host_port_number(&parts, &port) ||
        parts.host.data[0] == '/' || /* a socket of this machine */
        parts.host.len >= sizeof(link->moved_host)) {
        return false;
    }
    memmove(link->moved_host, parts.host.data, parts.host.len);
    link->moved_host[parts.host.len] = '\0';
    (void)snprintf(link->moved_port, sizeof(link->moved_port), "%u", port);
    link->moves++;
    link->fault = BLOOMERY_LOCAL_OK; /* so that a later fault is reported */
    link->error[0] = '\0';
    end_link(link, local_link_now_ms());
    return true;
}

/* ---- connecting ---------------------------------------------------------- */

/* Returns whether the reply to the command `to` is no error. */
static bool
accepts(struct local_link *link, const char *to, struct slice reply)
{
    struct slice text;

    if (!resp_is_error(reply)) {
        return true;
    }
    text = resp_text(reply);
    /* Some servers repeat the words of a command that they do not know, and
     * HELLO has the password. */
    if (slice_take(&text, "ERR unknown command")) {
        note_error(link, BLOOMERY_LOCAL_FOREIGN, "the server has no command",
                   to);
        return false;
    }
    link->fault = BLOOMERY_LOCAL_REFUSED;
    (void)snprintf(link->error, sizeof(link->error),
                   "the server refuses %s: %.*s", to, resp_shown(text),
                   text.data);
    return false;
}

/* Waits for a reply that must be no error. */
static bool
expect(struct local_link *link, const char *to, uint64_t deadline_ns,
       struct slice *ret_reply)
{
    return client_reply(&link->client, deadline_ns, ret_reply) &&
           accepts(link, to, *ret_reply);
}

/* Returns whether the reply to HELLO names the role of a replica. */
static bool
names_replica(struct slice reply)
{
    const char *lf = memchr(reply.data, '\n', reply.len);
    struct slice rest = { lf + 1, reply.len - (size_t)(lf + 1 - reply.data) };
    struct slice name, value;

    while (resp_element(&rest, &name) && resp_element(&rest, &value)) {
        if (slice_equal(resp_text(name), slice_lit("role"))) {
            return !slice_equal(resp_text(value), slice_lit("master"));
        }
    }
    return false;
}

static bool
log_in(struct local_link *link, uint64_t deadline_ns)
{
    const struct local_address *address = link->address;
    char number[16];
    struct slice words[] = { slice_lit("SELECT"), { number, 0 } };
    struct slice reply;

    client_send_login(&link->client, 3, address->user, address->password);
    if (!expect(link, "HELLO 3", deadline_ns, &reply)) {
        return false;
    }
    if (!link->replica && names_replica(reply)) {
        note_error(link, BLOOMERY_LOCAL_REPLICA, "the server is a replica", "");
        return false;
    }
    if (address->database == 0) {
        return true;
    }
    words[1].len =
        (size_t)snprintf(number, sizeof(number), "%u", address->database);
    client_send(&link->client, words, 2);
    return expect(link, "SELECT", deadline_ns, &reply);
}

/* Finds the server, which a MOVED, a Sentinel or the program has named. False:
 * no Sentinel has named one yet. */
static bool
find_server(struct local_link *link, const char **ret_host,
            const char **ret_port)
{
    const struct local_sentinel *sentinel = link->address->sentinel;

    *ret_host = link->address->host;
    *ret_port = link->address->port;
    if (link->moved_host[0] != '\0') {
        *ret_host = link->moved_host;
        *ret_port = link->moved_port;
    } else if (sentinel != NULL) {
        *ret_host = sentinel->host;
        *ret_port = sentinel->port;
        if (sentinel->named == 0) {
            note_error(link, BLOOMERY_LOCAL_CONNECT,
                       "no Sentinel names the server", sentinel->error);
            return false;
        }
    }
    return true;
}

static bool
dial_server(struct local_link *link)
{
    const struct local_address *address = link->address;
    const char *host, *port;
    struct client *client = &link->client;
    uint64_t deadline_ns = clock_mono_ns() + DIAL_MS * MS_NS;

    client_init(client, VALUE_MAX_BYTES);
    client->value_max = VALUE_MAX_BYTES;
    client->wake_fd = link->wake_fd;
    if (!find_server(link, &host, &port)) {
        return false;
    }
    (void)snprintf(link->server, sizeof(link->server),
                   host[0] == '/' ? "%s" : "%s:%s", host, port);
    return (host[0] == '/'
                ? client_dial_path(client, host, deadline_ns)
                : client_dial_host(client, host, port, deadline_ns)) &&
           (address->tls == NULL ||
            client_dial_tls(client, address->tls, host, deadline_ns)) &&
           log_in(link, deadline_ns);
}

static bool
is_woken(const struct local_link *link)
{
    struct pollfd wake = { .fd = link->wake_fd, .events = POLLIN };

    return poll(&wake, 1, 0) > 0;
}

static void
connect_again(struct local_link *link)
{
    if (!dial_server(link)) {
        if (link->address->sentinel != NULL) {
            local_sentinel_doubt(link->address->sentinel);
        }
        if (is_woken(link)) { /* the thread has to look at something else */
            end_link(link, local_link_now_ms());
        } else {
            cut_link(link);
        }
        return;
    }
    link->dial_at_ms = 0;
    link->role_asked = false;
    link->role_at_ms = local_link_now_ms() + ROLE_MS;
    link->connections++;
    local_copy_link(link->copy, local_link_now_ms());
}

/* ---- the conversation ---------------------------------------------------- */

/* Asks for the server's role now and then, when nothing else is on its way: it
 * may have become a replica. Returns whether an answer is awaited. */
static bool
ask_role(struct local_link *link)
{
    if (!link->replica && !link->role_asked &&
        local_link_now_ms() >= link->role_at_ms &&
        local_copy_is_quiet(link->copy)) {
        client_send_login(&link->client, 3, slice_lit(""),
                          (struct slice){ NULL, 0 });
        link->role_asked = true;
    }
    return link->role_asked;
}

/* Reads the reply to the HELLO of ask_role(). False: the server is a replica,
 * or refuses it. */
static bool
hear_role(struct local_link *link, struct slice value)
{
    link->role_asked = false;
    link->role_at_ms = local_link_now_ms() + ROLE_MS;
    if (!accepts(link, "HELLO", value)) {
        return false;
    }
    if (names_replica(value)) {
        note_error(link, BLOOMERY_LOCAL_REPLICA,
                   "the server has become a replica", "");
        return false;
    }
    return true;
}

/* Handles what has come. False: the connection is useless. */
static bool
hear(struct local_link *link)
{
    struct slice value;

    while (client_next(&link->client, &value)) {
        if (link->role_asked && value.data[0] != '>') {
            if (!hear_role(link, value)) {
                return false;
            }
            continue;
        }
        if (!local_copy_take(link->copy, value, local_link_now_ms())) {
            struct local_facts facts;

            local_copy_facts(link->copy, &facts);
            note_error(link, facts.fault, facts.error, "");
            return false;
        }
    }
    if (local_copy_stage(link->copy) == LOCAL_LOADED) {
        client_trim(&link->client);
        link->pause_ms = LEAST_PAUSE_MS;
        link->moves = 0;
    }
    if (link->client.ended) {
        return client_fail(&link->client, CLIENT_CLOSED, 0);
    }
    if (clock_mono_ns() - link->client.heard_ns > SILENT_MS * MS_NS) {
        return client_fail(&link->client, CLIENT_LATE, 0);
    }
    return link->client.fault == CLIENT_FINE;
}

static uint64_t
say(struct local_link *link, struct pollfd *ret_poll)
{
    uint64_t next_ms = ask_role(link)
                           ? UINT64_MAX
                           : local_copy_say(link->copy, local_link_now_ms(),
                                            &link->client.out);
    uint64_t silent_ms = local_link_now_ms() + SILENT_MS;

    if (link->client.out.failed) {
        (void)client_fail(&link->client, CLIENT_NO_MEMORY, 0);
    }
    client_prepare(&link->client, ret_poll);
    if (ret_poll->fd < 0) {
        return 0; /* local_link_react() handles a fault or the end */
    }
    return next_ms < silent_ms ? next_ms : silent_ms;
}

/* Leaves the server when a Sentinel names another one. Returns whether the link
 * waits for the first answer of a Sentinel. */
static bool
heed_sentinel(struct local_link *link)
{
    const struct local_sentinel *sentinel = link->address->sentinel;

    if (sentinel == NULL) {
        return false;
    }
    if (sentinel->named != link->named) {
        if (link->dial_at_ms == 0) {
            note_error(link, BLOOMERY_LOCAL_CONNECT,
                       "a Sentinel names another server", "");
            link->cuts++;
        }
        link->named = sentinel->named;
        link->pause_ms = LEAST_PAUSE_MS;
        link->moved_host[0] = '\0';
        end_link(link, local_link_now_ms());
    }
    return sentinel->named == 0 && sentinel->error[0] == '\0';
}

uint64_t
local_link_prepare(struct local_link *link, struct pollfd *ret_poll)
{
    *ret_poll = (struct pollfd){ .fd = -1 };
    if (heed_sentinel(link)) {
        return UINT64_MAX;
    }
    if (link->dial_at_ms != 0 && local_link_now_ms() >= link->dial_at_ms) {
        connect_again(link);
    }
    return link->dial_at_ms != 0 ? link->dial_at_ms : say(link, ret_poll);
}

void
local_link_react(struct local_link *link, const struct pollfd *polled)
{
    if (link->dial_at_ms != 0) {
        return;
    }
    (void)client_receive(&link->client, polled);
    if (!hear(link) && !follow_move(link, link->error)) {
        cut_link(link);
    }
}

void
local_link_step(struct local_link *link, uint64_t until_ms)
{
    struct pollfd polls[2] = { { .fd = link->wake_fd, .events = POLLIN } };
    uint64_t next_ms = local_link_prepare(link, &polls[1]);
    uint64_t end_ms = next_ms < until_ms ? next_ms : until_ms;
    uint64_t now_ms = local_link_now_ms();

    (void)poll(polls, 2, end_ms > now_ms ? (int)(end_ms - now_ms) : 0);
    local_link_react(link, &polls[1]);
}
