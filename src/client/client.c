/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/client.h"

#include "base/clock.h"
#include "proto/compose.h"
#include "proto/reply.h"
#include "tls/tls.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 * 1024,
    SEAL_BYTES = 64 * 1024,
    KEEP_BYTES = 1024 * 1024,
    TRIMMED_BYTES = 512 * 1024, /* more than a read */
    REPLY_SLACK = 64 * 1024,    /* bytes of a reply beside its value */
    LINE_MAX_BYTES = 64 * 1024,
    WAIT_MS = 60000
};

#define MS_NS UINT64_C(1000000)

void
client_init(struct client *client, size_t reply_max)
{
    *client = (struct client){ .fd = -1,
                               .wake_fd = -1,
                               .line_max = LINE_MAX_BYTES,
                               .value_max = SIZE_MAX };
    client->in.limit = reply_max + REPLY_SLACK + READ_BYTES + SEAL_BYTES;
}

void
client_close(struct client *client)
{
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    client->fd = -1;
    buf_free(&client->in);
    buf_wipe(&client->out);
    buf_free(&client->sealed);
    buf_free(&client->records);
    tls_free(client->tls);
    client->tls = NULL;
}

bool
client_fail(struct client *client, enum client_fault fault, int code)
{
    if (client->fault == CLIENT_FINE) {
        client->fault = fault;
        client->code = code;
    }
    return false;
}

/* ---- bytes --------------------------------------------------------------- */

struct slice
client_bytes(const struct client *client)
{
    return (struct slice){ client->in.data + client->in_at,
                           client->in.len - client->in_at };
}

void
client_consume(struct client *client, size_t len)
{
    client->in_at += len;
    if (client->in_at == client->in.len) {
        buf_reset(&client->in, KEEP_BYTES);
        client->in_at = 0;
    }
}

void
client_trim(struct client *client)
{
    if (client->in_at == client->in.len) {
        buf_reset(&client->in, TRIMMED_BYTES);
        client->in_at = 0;
    }
}

/* Writes what the socket takes. Empties the buffer when all is written. */
static void
write_buffer(struct client *client, struct buf *from, size_t *at)
{
    while (client->fault == CLIENT_FINE && *at < from->len) {
        ssize_t wrote =
            send(client->fd, from->data + *at, from->len - *at, MSG_NOSIGNAL);

        if (wrote < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (wrote < 0 && errno != EPIPE && errno != ECONNRESET) {
            (void)client_fail(client, CLIENT_WRITE, errno);
            return;
        }
        if (wrote < 0) {
            break; /* the last bytes of the server must still be read */
        }
        *at += (size_t)wrote;
    }
    buf_reset(from, KEEP_BYTES);
    *at = 0;
}

/* Writes records, and seals more while the socket takes them. */
static void
write_sealed(struct client *client)
{
    size_t at = 0;

    write_buffer(client, &client->sealed, &at);
    buf_consume(&client->sealed, at);
    while (client->fault == CLIENT_FINE && client->sealed.len == 0 &&
           client->out.len > 0 && tls_is_established(client->tls)) {
        if (!tls_seal_piece(client->tls, &client->out, &client->out_at,
                            SEAL_BYTES, &client->sealed)) {
            (void)client_fail(client, CLIENT_TLS_SEAL, 0);
            return;
        }
        at = 0;
        write_buffer(client, &client->sealed, &at);
        buf_consume(&client->sealed, at);
    }
}

/* Returns whether anything waits for the socket. */
static bool
has_unwritten(const struct client *client)
{
    return client->sealed.len > 0 ||
           (client->out_at < client->out.len &&
            (client->tls == NULL || tls_is_established(client->tls)));
}

void
client_open_records(struct client *client, struct slice records)
{
    switch (tls_open(client->tls, records, &client->in, &client->sealed)) {
    case TLS_MORE:
        break;
    case TLS_ENDED:
        client->ended = true;
        break;
    case TLS_FAILED:
        (void)client_fail(client, CLIENT_TLS, 0);
        break;
    }
}

/* Receives once; with TLS by way of `records`. */
static ssize_t
receive(struct client *client)
{
    char *to = client->in.data + client->in.len;
    ssize_t got;

    if (client->tls == NULL) {
        got = recv(client->fd, to, client->in.capacity - client->in.len, 0);
        client->in.len += got > 0 ? (size_t)got : 0;
        return got;
    }
    to = buf_reserve(&client->records, READ_BYTES);
    if (to == NULL) {
        (void)client_fail(client, CLIENT_NO_MEMORY, 0);
        errno = EAGAIN;
        return -1;
    }
    got = recv(client->fd, to, READ_BYTES, 0);
    if (got > 0) {
        client_open_records(client, (struct slice){ to, (size_t)got });
    }
    return got;
}

/* Reads once. Returns whether anything came, the end included. */
static bool
read_some(struct client *client)
{
    ssize_t got;

    if (client->in_at > 0 &&
        client->in.capacity - client->in.len < READ_BYTES) {
        buf_consume(&client->in, client->in_at);
        client->in_at = 0;
    }
    if (buf_reserve(&client->in, READ_BYTES + SEAL_BYTES) == NULL) {
        return client_fail(
            client, client->in.over ? CLIENT_TOO_LONG : CLIENT_NO_MEMORY, 0);
    }
    got = receive(client);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got < 0 && errno != ECONNRESET) {
        return client_fail(client, CLIENT_READ, errno);
    }
    client->heard_ns = clock_mono_ns();
    client->ended = client->ended || got <= 0;
    return true;
}

/* ---- waiting ------------------------------------------------------------- */

void
client_prepare(struct client *client, struct pollfd *ret_poll)
{
    if (client->tls != NULL) {
        write_sealed(client);
    } else {
        write_buffer(client, &client->out, &client->out_at);
    }
    *ret_poll = (struct pollfd){
        .fd = client->fault != CLIENT_FINE || client->ended ? -1 : client->fd,
        .events = (short)(POLLIN | (has_unwritten(client) ? POLLOUT : 0)),
    };
}

bool
client_receive(struct client *client, const struct pollfd *polled)
{
    return (polled->revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
           read_some(client);
}

bool
client_wait(struct client *client, uint64_t deadline_ns)
{
    struct pollfd polls[2] = { { .fd = client->wake_fd, .events = POLLIN } };
    struct pollfd *wake = &polls[0], *own = &polls[1];
    uint64_t now_ns = clock_mono_ns();
    uint64_t left_ms =
        deadline_ns > now_ns ? (deadline_ns - now_ns) / MS_NS + 1 : 0;

    client_prepare(client, own);
    if (own->fd < 0) {
        return false;
    }
    if (poll(polls, 2, left_ms < WAIT_MS ? (int)left_ms : WAIT_MS) < 0) {
        return false;
    }
    if (wake->revents != 0) {
        return client_fail(client, CLIENT_LATE, 0);
    }
    return client_receive(client, own);
}

/* ---- commands and replies ------------------------------------------------ */

static void
check_queued(struct client *client)
{
    if (client->out.failed) {
        (void)client_fail(client, CLIENT_NO_MEMORY, 0);
    }
}

void
client_send(struct client *client, const struct slice *words, size_t count)
{
    compose_command(&client->out, words, count);
    check_queued(client);
}

void
client_send_raw(struct client *client, struct slice commands)
{
    buf_append_slice(&client->out, commands);
    check_queued(client);
}

void
client_send_login(struct client *client, unsigned protocol, struct slice user,
                  struct slice password)
{
    struct slice words[LOGIN_WORDS_MAX];
    size_t count = login_words(protocol, user, password, words);

    if (count > 0) {
        client_send(client, words, count);
    }
}

/* Checks the line that begins a reply, so that the client does not wait for the
 * rest of bytes that are no reply, or are too long. */
static enum client_fault
look_at_line(const struct client *client, struct slice bytes)
{
    const char *lf = memchr(bytes.data, '\n', bytes.len);
    struct slice count = { bytes.data + 1, 0 };
    int64_t bulk;

    if (bytes.data[0] == '\0' ||
        strchr("+-:$*>%~_,#(=!|", bytes.data[0]) == NULL) {
        return CLIENT_FOREIGN;
    }
    if (lf == NULL) {
        return bytes.len < client->line_max ? CLIENT_FINE : CLIENT_FOREIGN;
    }
    count.len = (size_t)(lf - count.data);
    if (count.len == 0 || lf[-1] != '\r' || count.len > client->line_max) {
        return CLIENT_FOREIGN;
    }
    count.len--;
    if (strchr("$*>%~=!|", bytes.data[0]) == NULL) {
        return CLIENT_FINE;
    }
    if (!slice_to_i64(count, &bulk) || bulk < -1) {
        return CLIENT_FOREIGN;
    }
    return bytes.data[0] == '$' && bulk >= 0 &&
                   (uint64_t)bulk > client->value_max
               ? CLIENT_TOO_LONG
               : CLIENT_FINE;
}

bool
client_next(struct client *client, struct slice *ret_reply)
{
    struct slice bytes = client_bytes(client);
    enum client_fault fault;
    struct slice reply;

    if (client->fault != CLIENT_FINE || bytes.len == 0) {
        return false;
    }
    fault = look_at_line(client, bytes);
    if (fault != CLIENT_FINE) {
        return client_fail(client, fault, 0);
    }
    reply = reply_first(bytes);
    if (reply.len == 0) {
        return false;
    }
    /* The bytes stay in place until the next read. */
    client->in_at += reply.len;
    *ret_reply = reply;
    return true;
}

bool
client_reply(struct client *client, uint64_t deadline_ns,
             struct slice *ret_reply)
{
    while (!client_next(client, ret_reply)) {
        if (client->ended) {
            return client_fail(client, CLIENT_CLOSED, 0);
        }
        if (client->fault != CLIENT_FINE) {
            return false;
        }
        if (!client_wait(client, deadline_ns) &&
            clock_mono_ns() >= deadline_ns) {
            return client_fail(client, CLIENT_LATE, 0);
        }
    }
    return true;
}
