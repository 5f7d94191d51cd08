/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_link.h"

#include "base/clock.h"
#include "base/file.h"
#include "proto/reply.h"
#include "tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    TEXT_MAX = 512,
    READ_BYTES = 256 * 1024,
    SEAL_BYTES = 64 * 1024,
    KEEP_BYTES = 1024 * 1024,
    WORDS_MAX = 16,
    LINKS_MAX = 256,
    REPLY_SLACK = 64 * 1024 /* what a reply has beside the value in it */
};

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

/* ---- bytes --------------------------------------------------------------- */

struct slice
load_link_bytes(const struct load_link *link)
{
    return (struct slice){ link->in.data + link->in_at,
                           link->in.len - link->in_at };
}

void
load_link_consume(struct load_link *link, size_t len)
{
    link->in_at += len;
    if (link->in_at == link->in.len) {
        buf_reset(&link->in, KEEP_BYTES);
        link->in_at = 0;
    }
}

/* Writes from a buffer what the socket takes; empties it at its end. */
static void
write_buffer(struct load_link *link, struct buf *from, size_t *at)
{
    while (!link->failed && *at < from->len) {
        ssize_t wrote =
            send(link->fd, from->data + *at, from->len - *at, MSG_NOSIGNAL);

        if (wrote < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (wrote < 0 && errno != EPIPE && errno != ECONNRESET) {
            load_link_fail(link, "cannot be written to: %s", strerror(errno));
            return;
        }
        if (wrote < 0) {
            break; /* what the server says before it closes is to be read */
        }
        *at += (size_t)wrote;
    }
    buf_reset(from, KEEP_BYTES);
    *at = 0;
}

/* Writes records, and seals more while the socket takes them. */
static void
write_sealed(struct load_link *link)
{
    size_t at = 0;

    write_buffer(link, &link->sealed, &at);
    buf_consume(&link->sealed, at);
    while (!link->failed && link->sealed.len == 0 && link->out.len > 0 &&
           tls_is_established(link->tls)) {
        if (!tls_seal_piece(link->tls, &link->out, &link->out_at, SEAL_BYTES,
                            &link->sealed)) {
            load_link_fail(link, "TLS failed");
            return;
        }
        at = 0;
        write_buffer(link, &link->sealed, &at);
        buf_consume(&link->sealed, at);
    }
}

static void
write_some(struct load_link *link)
{
    if (link->tls != NULL) {
        write_sealed(link);
    } else {
        write_buffer(link, &link->out, &link->out_at);
    }
}

/* Whether anything waits for the socket. */
static bool
has_unwritten(const struct load_link *link)
{
    return link->sealed.len > 0 ||
           (link->out_at < link->out.len &&
            (link->tls == NULL || tls_is_established(link->tls)));
}

static void
open_records(struct load_link *link, struct slice records)
{
    switch (tls_open(link->tls, records, &link->in, &link->sealed)) {
    case TLS_MORE:
        break;
    case TLS_ENDED:
        link->ended = true;
        break;
    case TLS_FAILED:
        load_link_fail(link, "TLS: %s", tls_reason(link->tls));
        break;
    }
}

/* Receives once; with TLS by way of `records`. */
static ssize_t
receive(struct load_link *link)
{
    static char records[READ_BYTES];
    ssize_t got;

    if (link->tls == NULL) {
        got = recv(link->fd, link->in.data + link->in.len,
                   link->in.capacity - link->in.len, 0);
        link->in.len += got > 0 ? (size_t)got : 0;
        return got;
    }
    got = recv(link->fd, records, sizeof(records), 0);
    if (got > 0) {
        open_records(link, (struct slice){ records, (size_t)got });
    }
    return got;
}

/* Reads once. Returns whether anything came, the end included. */
static bool
read_some(struct load_link *link)
{
    ssize_t got;

    if (link->in_at > 0 && link->in.capacity - link->in.len < READ_BYTES) {
        buf_consume(&link->in, link->in_at);
        link->in_at = 0;
    }
    if (buf_reserve(&link->in, READ_BYTES + SEAL_BYTES) == NULL) {
        load_link_fail(link, link->in.over
                                 ? "a reply is longer than --max-value"
                                 : "no memory for its replies");
        return false;
    }
    got = receive(link);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got < 0 && errno != ECONNRESET) {
        load_link_fail(link, "cannot be read from: %s", strerror(errno));
        return false;
    }
    link->heard_ns = clock_mono_ns();
    link->ended = link->ended || got <= 0;
    return true;
}

bool
load_link_wait(struct load_link *const *links, size_t count, int timeout_ms)
{
    struct pollfd polls[LINKS_MAX];
    bool ok = true;

    CHECK(count <= LINKS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct load_link *link = links[i];

        write_some(link);
        polls[i].fd = link->failed || link->ended ? -1 : link->fd;
        polls[i].events = (short)(POLLIN | (has_unwritten(link) ? POLLOUT : 0));
        polls[i].revents = 0;
    }
    if (poll(polls, count, timeout_ms) < 0 && errno != EINTR) {
        load_link_fail(links[0], "poll: %s", strerror(errno));
    }
    for (size_t i = 0; i < count; i++) {
        struct load_link *link = links[i];

        if ((polls[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            (void)read_some(link);
        } else if (link->awaited > 0 && clock_mono_ns() - link->heard_ns >
                                            link->load->timeout_s * SECOND_NS) {
            load_link_fail(link, "no reply for %llu s (--timeout)",
                           (unsigned long long)link->load->timeout_s);
        }
        ok = ok && !link->failed;
    }
    return ok;
}

/* ---- commands and replies ------------------------------------------------ */

void
load_link_send(struct load_link *link, const struct slice *words, size_t count)
{
    struct reply reply = { &link->out, 2 };

    reply_array(&reply, count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk(&reply, words[i]);
    }
    if (link->out.failed) {
        load_link_fail(link, "no memory for a command");
    }
    link->heard_ns = link->awaited == 0 ? clock_mono_ns() : link->heard_ns;
    link->awaited++;
}

static void
say(struct load_link *link, va_list args)
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
    say(link, args);
    va_end(args);
}

void
load_link_send_raw(struct load_link *link, struct slice commands,
                   uint64_t count)
{
    buf_append_slice(&link->out, commands);
    if (link->out.failed) {
        load_link_fail(link, "no memory for a command");
    }
    link->heard_ns = link->awaited == 0 ? clock_mono_ns() : link->heard_ns;
    link->awaited += count;
}

bool
load_link_next(struct load_link *link, struct slice *ret_reply)
{
    struct slice bytes = load_link_bytes(link);
    struct slice reply;

    if (link->failed || link->awaited == 0 || bytes.len == 0) {
        return false;
    }
    if (strchr("+-:$*", bytes.data[0]) == NULL || bytes.data[0] == '\0') {
        load_link_fail(link, "does not speak the protocol of Redis");
        return false;
    }
    reply = reply_first(bytes);
    if (reply.len == 0) {
        return false;
    }
    link->awaited--;
    /* The bytes stay in place until the next read. */
    link->in_at += reply.len;
    *ret_reply = reply;
    return true;
}

bool
load_link_reply(struct load_link *link, struct slice *ret_reply)
{
    while (!load_link_next(link, ret_reply)) {
        if (link->ended) {
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
    say(link, args);
    va_end(args);
    return load_link_reply(link, ret_reply);
}

/* ---- replies ------------------------------------------------------------- */

int
load_reply_shown(struct slice error)
{
    const int max = 400;

    return error.len < (size_t)max ? (int)error.len : max;
}

bool
load_reply_is_error(struct slice reply)
{
    return reply.len > 0 && reply.data[0] == '-';
}

struct slice
load_reply_text(struct slice reply)
{
    const char *lf;
    size_t line;

    if (reply.len < 3 || strchr("+-$", reply.data[0]) == NULL) {
        return slice_lit("");
    }
    if (reply.data[0] != '$') {
        return (struct slice){ reply.data + 1, reply.len - 3 };
    }
    lf = memchr(reply.data, '\n', reply.len);
    line = (size_t)(lf - reply.data) + 1;
    if (reply.len < line + 2) {
        return slice_lit(""); /* null */
    }
    return (struct slice){ reply.data + line, reply.len - line - 2 };
}

bool
load_reply_field(struct slice reply, const char *name, uint64_t *ret_value)
{
    struct slice text = load_reply_text(reply), digits = { NULL, 0 };
    const char *at = memmem(text.data, text.len, name, strlen(name));

    if (at == NULL) {
        return false;
    }
    digits.data = at + strlen(name);
    while (digits.data + digits.len < text.data + text.len &&
           digits.data[digits.len] >= '0' && digits.data[digits.len] <= '9') {
        digits.len++;
    }
    return slice_to_u64(digits, ret_value);
}

bool
load_reply_integer(struct slice reply, int64_t *ret_value)
{
    return reply.len > 3 && reply.data[0] == ':' &&
           slice_to_i64((struct slice){ reply.data + 1, reply.len - 3 },
                        ret_value);
}

bool
load_reply_array(struct slice reply, struct slice *ret_rest)
{
    const char *lf;

    if (reply.len < 4 || reply.data[0] != '*') {
        return false;
    }
    lf = memchr(reply.data, '\n', reply.len);
    *ret_rest =
        (struct slice){ lf + 1, reply.len - (size_t)(lf + 1 - reply.data) };
    return true;
}

bool
load_reply_element(struct slice *rest, struct slice *ret_element)
{
    *ret_element = reply_first(*rest);
    rest->data += ret_element->len;
    rest->len -= ret_element->len;
    return ret_element->len > 0;
}

/* Goes through the lines: the elements of an array stand one after the other,
 * whatever their depth. */
struct slice
load_reply_find_error(struct slice reply)
{
    struct slice element;
    struct slice rest = reply;

    while (load_reply_element(&rest, &element)) {
        struct slice inner;

        if (load_reply_is_error(element)) {
            return load_reply_text(element);
        }
        if (load_reply_array(element, &inner)) {
            rest.len += inner.len;
            rest.data -= inner.len;
        }
    }
    return slice_lit("");
}

/* ---- connecting ---------------------------------------------------------- */

static bool
await_connect(struct load_link *link, int timeout_ms)
{
    struct pollfd waiting = { link->fd, POLLOUT, 0 };
    int error = 0;
    socklen_t len = sizeof(error);

    if (poll(&waiting, 1, timeout_ms) != 1) {
        errno = ETIMEDOUT;
        return false;
    }
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        return false;
    }
    errno = error;
    return error == 0;
}

static bool
dial(struct load_link *link, int family, const struct sockaddr *to,
     socklen_t len)
{
    int one = 1;

    link->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0) {
        return false;
    }
    if (connect(link->fd, to, len) == 0 ||
        (errno == EINPROGRESS &&
         await_connect(link, (int)(link->load->timeout_s * 1000)))) {
        (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        return true;
    }
    file_close(link->fd);
    link->fd = -1;
    return false;
}

static bool
dial_path(struct load_link *link)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    if (strlen(link->address) >= sizeof(to.sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(to.sun_path, link->address, strlen(link->address) + 1);
    return dial(link, AF_UNIX, (const struct sockaddr *)&to, sizeof(to));
}

/* Splits HOST:PORT or [HOST]:PORT. */
static bool
split(const char *address, char *ret_host, size_t host_size,
      const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon != NULL ? (size_t)(colon - address) : 0;

    if (len > 2 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    if (len == 0 || len >= host_size || colon[1] == '\0') {
        return false;
    }
    memcpy(ret_host, address, len);
    ret_host[len] = '\0';
    *ret_port = colon + 1;
    return true;
}

static bool
dial_host(struct load_link *link)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    char host[256];
    const char *port;
    int error;

    if (!split(link->address, host, sizeof(host), &port)) {
        tool_complain(&link->load->tool, LOAD_USAGE,
                      "%s: is neither HOST:PORT nor the path of a socket",
                      link->address);
        link->failed = true;
        return false;
    }
    error = getaddrinfo(host, port, &hints, &list);
    if (error != 0) {
        load_link_fail(link, "%s", gai_strerror(error));
        return false;
    }
    for (const struct addrinfo *at = list; at != NULL && link->fd < 0;
         at = at->ai_next) {
        (void)dial(link, at->ai_family, at->ai_addr, at->ai_addrlen);
    }
    error = errno;
    freeaddrinfo(list);
    errno = error;
    return link->fd >= 0;
}

bool
load_link_password(struct load *load, const struct load_peer *peer,
                   char password[LOAD_PASSWORD_MAX + 1],
                   struct slice *ret_password)
{
    size_t len = 0;
    int error = 0;

    if (peer->password_file != NULL) {
        error = file_read_name(AT_FDCWD, peer->password_file, password,
                               LOAD_PASSWORD_MAX, &len);
    }
    if (error != 0 || len > LOAD_PASSWORD_MAX) {
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
    char password[LOAD_PASSWORD_MAX + 1];
    struct slice secret;
    struct slice reply;

    if (!load_link_password(link->load, peer, password, &secret)) {
        link->failed = true;
        return false;
    }
    {
        const struct slice words[] = {
            slice_lit("AUTH"),
            slice_of(peer->user != NULL ? peer->user : ""),
            secret,
        };
        const struct slice plain[] = { words[0], words[2] };

        load_link_send(link, peer->user != NULL ? words : plain,
                       peer->user != NULL ? 3 : 2);
    }
    explicit_bzero(password, sizeof(password));
    if (!load_link_reply(link, &reply)) {
        return false;
    }
    if (load_reply_is_error(reply)) {
        struct slice text = load_reply_text(reply);

        load_link_fail(link, "refuses the password: %.*s",
                       load_reply_shown(text), text.data);
        return false;
    }
    return true;
}

/* Does the TLS handshake. */
static bool
shake_hands(struct load_link *link)
{
    char host[256] = "localhost";
    const char *port;

    (void)split(link->address, host, sizeof(host), &port);
    link->tls = tls_new_dial(&link->load->tls, host);
    if (link->tls == NULL) {
        load_link_fail(link, "no memory for TLS");
        return false;
    }
    link->heard_ns = clock_mono_ns();
    link->awaited = 1; /* for the timeout */
    open_records(link, slice_lit(""));
    while (!link->failed && !tls_is_established(link->tls)) {
        if (link->ended) {
            load_link_fail(link, "closed the connection in the TLS handshake");
        }
        (void)load_link_wait(&link, 1, 1000);
    }
    link->awaited = 0;
    return !link->failed;
}

bool
load_link_open(struct load *load, const struct load_peer *peer,
               struct load_link *ret_link)
{
    struct load_link *link = ret_link;
    struct slice reply;

    *link =
        (struct load_link){ .load = load, .address = peer->address, .fd = -1 };
    link->in.limit =
        (size_t)load->value_bytes + REPLY_SLACK + READ_BYTES + SEAL_BYTES;
    if (!(peer->address[0] == '/' ? dial_path(link) : dial_host(link))) {
        load_link_fail(link, "cannot connect: %s", strerror(errno));
        return false;
    }
    if (peer->uses_tls && !shake_hands(link)) {
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
    if (load_reply_is_error(reply)) {
        struct slice text = load_reply_text(reply);

        load_link_fail(link, "%.*s", load_reply_shown(text), text.data);
        load_link_close(link);
        return false;
    }
    return true;
}

void
load_link_close(struct load_link *link)
{
    file_close(link->fd);
    link->fd = -1;
    buf_free(&link->in);
    buf_wipe(&link->out);
    buf_free(&link->sealed);
    tls_free(link->tls);
    link->tls = NULL;
}
