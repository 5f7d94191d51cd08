/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_link.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/host_port.h"
#include "client/client_dial.h"
#include "proto/compose.h"
#include "tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>

enum { TEXT_MAX = 512, WORDS_MAX = 16, LINKS_MAX = 256, HOST_MAX = 256 };

#define SECOND_NS UINT64_C(1000000000)

void
load_link_fail(struct load_link *link, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    if (link->failed) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    tool_complain(&link->load->tool, LOAD_UNREADABLE, "%s: %s", link->address,
                  text);
    link->failed = true;
}

/* Prints why the client gave up, once. */
static void
note_fault(struct load_link *link)
{
    const struct client *client = &link->client;

    switch (client->fault) {
    case CLIENT_FINE:
        break;
    case CLIENT_NO_NAME:
        load_link_fail(link, "%s", gai_strerror(client->code));
        break;
    case CLIENT_NO_SERVER:
        load_link_fail(link, "cannot connect: %s", strerror(client->code));
        break;
    case CLIENT_LATE:
        load_link_fail(link, "cannot connect: %s", strerror(ETIMEDOUT));
        break;
    case CLIENT_NO_MEMORY:
        load_link_fail(link, client->out.failed ? "no memory for a command"
                                                : "no memory for its replies");
        break;
    case CLIENT_TOO_LONG:
        load_link_fail(link, "a reply is longer than --max-value");
        break;
    case CLIENT_READ:
        load_link_fail(link, "cannot be read from: %s", strerror(client->code));
        break;
    case CLIENT_WRITE:
        load_link_fail(link, "cannot be written to: %s",
                       strerror(client->code));
        break;
    case CLIENT_TLS:
        load_link_fail(link, "TLS: %s", tls_reason(client->tls));
        break;
    case CLIENT_TLS_SEAL:
        load_link_fail(link, "TLS failed");
        break;
    case CLIENT_CLOSED:
        load_link_fail(link, "closed the connection");
        break;
    case CLIENT_FOREIGN:
        load_link_fail(link, "does not speak the protocol of Redis");
        break;
    }
}

/* ---- bytes --------------------------------------------------------------- */

struct slice
load_link_bytes(const struct load_link *link)
{
    return client_bytes(&link->client);
}

void
load_link_consume(struct load_link *link, size_t len)
{
    client_consume(&link->client, len);
}

bool
load_link_wait(struct load_link *const *links, size_t count, int timeout_ms)
{
    struct pollfd polls[LINKS_MAX];
    bool ok = true;

    CHECK(count <= LINKS_MAX);
    for (size_t i = 0; i < count; i++) {
        client_prepare(&links[i]->client, &polls[i]);
        note_fault(links[i]);
        polls[i].fd = links[i]->failed ? -1 : polls[i].fd;
    }
    if (poll(polls, count, timeout_ms) < 0 && errno != EINTR) {
        load_link_fail(links[0], "poll: %s", strerror(errno));
    }
    for (size_t i = 0; i < count; i++) {
        struct load_link *link = links[i];

        if (!client_receive(&link->client, &polls[i]) && link->awaited > 0 &&
            clock_mono_ns() - link->client.heard_ns >
                link->load->timeout_s * SECOND_NS) {
            load_link_fail(link, "no reply for %llu s (--timeout)",
                           (unsigned long long)link->load->timeout_s);
        }
        note_fault(link);
        ok = ok && !link->failed;
    }
    return ok;
}

/* ---- commands and replies ------------------------------------------------ */

/* Adds to the number of awaited replies. If none were awaited, the time-out
 * begins now. */
static void
await(struct load_link *link, uint64_t count)
{
    if (link->awaited == 0) {
        link->client.heard_ns = clock_mono_ns();
    }
    link->awaited += count;
    note_fault(link);
}

void
load_link_send(struct load_link *link, const struct slice *words, size_t count)
{
    client_send(&link->client, words, count);
    await(link, 1);
}

static void
say_words(struct load_link *link, va_list args)
{
    struct slice words[WORDS_MAX];
    const char *word;
    size_t count = 0;

    while ((word = va_arg(args, const char *)) != NULL) {
        CHECK(count < WORDS_MAX);
        words[count++] = slice_of(word);
    }
    load_link_send(link, words, count);
}

void
load_link_say(struct load_link *link, ...)
{
    va_list args;

    va_start(args, link);
    say_words(link, args);
    va_end(args);
}

void
load_link_send_raw(struct load_link *link, struct slice commands,
                   uint64_t count)
{
    client_send_raw(&link->client, commands);
    await(link, count);
}

bool
load_link_next(struct load_link *link, struct slice *ret_reply)
{
    if (link->failed || link->awaited == 0) {
        return false;
    }
    if (!client_next(&link->client, ret_reply)) {
        note_fault(link);
        return false;
    }
    link->awaited--;
    return true;
}

bool
load_link_reply(struct load_link *link, struct slice *ret_reply)
{
    while (!load_link_next(link, ret_reply)) {
        if (link->client.ended) {
            load_link_fail(link, "closed the connection");
        }
        if (link->failed || !load_link_wait(&link, 1, 1000)) {
            return false;
        }
    }
    return true;
}

bool
load_link_ask(struct load_link *link, struct slice *ret_reply, ...)
{
    va_list args;

    CHECK(link->awaited == 0);
    va_start(args, ret_reply);
    say_words(link, args);
    va_end(args);
    return load_link_reply(link, ret_reply);
}

/* ---- connecting ---------------------------------------------------------- */

/* Copies a part of the address as text. False: it is too long. */
static bool
copy_part(struct slice part, char ret_text[HOST_MAX])
{
    if (part.len >= HOST_MAX) {
        return false;
    }
    memcpy(ret_text, part.data, part.len);
    ret_text[part.len] = '\0';
    return true;
}

/* Splits HOST:PORT or [HOST]:PORT. */
static bool
split(const char *address, char ret_host[HOST_MAX], char ret_port[HOST_MAX])
{
    struct host_port parts;

    return host_port_split(slice_of(address), &parts) &&
           copy_part(parts.host, ret_host) && copy_part(parts.port, ret_port);
}

/* Does the TLS handshake. */
static bool
shake_hands(struct load_link *link, const char *host)
{
    struct client *client = &link->client;

    if (client_dial_tls(client, &link->load->tls, host,
                        clock_mono_ns() + link->load->timeout_s * SECOND_NS)) {
        return true;
    }
    if (client->fault == CLIENT_NO_MEMORY) {
        load_link_fail(link, "no memory for TLS");
    } else if (client->fault == CLIENT_CLOSED) {
        load_link_fail(link, "closed the connection in the TLS handshake");
    } else if (client->fault == CLIENT_LATE) {
        load_link_fail(link, "no reply for %llu s (--timeout)",
                       (unsigned long long)link->load->timeout_s);
    }
    note_fault(link);
    return false;
}

/* Connects, with TLS if the peer wants it. */
static bool
dial_peer(struct load_link *link, const struct load_peer *peer)
{
    uint64_t deadline_ns = clock_mono_ns() + link->load->timeout_s * SECOND_NS;
    char host[HOST_MAX] = "localhost", port[HOST_MAX];
    bool is_path = link->address[0] == '/';

    if (!is_path && !split(link->address, host, port)) {
        tool_complain(&link->load->tool, LOAD_USAGE,
                      "%s: is neither HOST:PORT nor the path of a socket",
                      link->address);
        link->failed = true;
        return false;
    }
    if (is_path) {
        (void)client_dial_path(&link->client, link->address, deadline_ns);
    } else {
        (void)client_dial_host(&link->client, host, port, deadline_ns);
    }
    if (link->client.fd < 0) {
        note_fault(link);
        return false;
    }
    return !peer->uses_tls || shake_hands(link, host);
}

enum { PASSWORD_MAX = 4096 };

/* Reads the password file of a peer. Without such a file the password is empty.
 * False: the reason was printed. */
static bool
read_password(struct load *load, const struct load_peer *peer,
              char password[PASSWORD_MAX + 1], struct slice *ret_password)
{
    size_t len = 0;
    int error = 0;

    if (peer->password_file != NULL) {
        error = file_read_name(AT_FDCWD, peer->password_file, password,
                               PASSWORD_MAX, &len);
    }
    if (error != 0 || len > PASSWORD_MAX) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s: %s",
                      peer->password_file,
                      error != 0 ? strerror(error) : "too long a password");
        return false;
    }
    while (len > 0 &&
           (password[len - 1] == '\n' || password[len - 1] == '\r')) {
        len--;
    }
    *ret_password = (struct slice){ password, len };
    return true;
}

static bool
log_in(struct load_link *link, const struct load_peer *peer)
{
    char password[PASSWORD_MAX + 1];
    struct slice secret;
    struct slice reply;

    if (!read_password(link->load, peer, password, &secret)) {
        link->failed = true;
        return false;
    }
    client_send_login(&link->client, LOGIN_ANY_PROTOCOL,
                      slice_of(peer->user != NULL ? peer->user : ""), secret);
    await(link, 1);
    explicit_bzero(password, sizeof(password));
    if (!load_link_reply(link, &reply)) {
        return false;
    }
    if (resp_is_error(reply)) {
        struct slice text = resp_text(reply);

        load_link_fail(link, "refuses the password: %.*s", resp_shown(text),
                       text.data);
        return false;
    }
    return true;
}

bool
load_link_open(struct load *load, const struct load_peer *peer,
               struct load_link *ret_link)
{
    struct load_link *link = ret_link;
    struct slice reply;

    *link = (struct load_link){ .load = load, .address = peer->address };
    client_init(&link->client, (size_t)load->value_bytes);
    if (!dial_peer(link, peer)) {
        load_link_close(link);
        return false;
    }
    if (peer->password_file != NULL && !log_in(link, peer)) {
        load_link_close(link);
        return false;
    }
    if (!load_link_ask(link, &reply, "PING", NULL)) {
        load_link_close(link);
        return false;
    }
    if (resp_is_error(reply)) {
        struct slice text = resp_text(reply);

        load_link_fail(link, "%.*s", resp_shown(text), text.data);
        load_link_close(link);
        return false;
    }
    return true;
}

void
load_link_close(struct load_link *link)
{
    client_close(&link->client);
}
