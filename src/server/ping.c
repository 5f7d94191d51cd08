/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One deadline holds for all of it: connecting, the TLS handshake, and all
 * replies. The requests are sent at once.
 */
#include "server/ping.h"

#include "base/clock.h"
#include "base/mem.h"
#include "conf/conf_file.h"
#include "conf/conf_load.h"
#include "server/exit_status.h"
#include "server/own_tls.h"
#include "server/readiness.h"
#include "tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    SECONDS = 5,
    SECONDS_MAX = 3600,
    REPLY_MAX = 1024, /* bytes; longer ones are not replies to PING */
    INFO_MAX = 1 << 20
};

struct ping {
    const struct conf *conf;
    bool alive;    /* any reply is good */
    bool ready;    /* INFO must say that it serves data, too */
    bool complete; /* and that nothing is missing at it */
    const char *user;
    struct buf password;
    uint64_t deadline_ns;
    int fd;
    struct tls *tls; /* NULL: plain */
    struct tls_contexts contexts;
    struct buf in, sealed;
    char where[160]; /* for messages */
    char reason[TLS_REASON_MAX];
};

__attribute__((format(printf, 2, 3))) static bool
fail(struct ping *ping, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(ping->reason, sizeof(ping->reason), format, args);
    va_end(args);
    return false;
}

/* A server that closes at once may cause either error. */
static bool
fail_errno(struct ping *ping)
{
    bool closed = errno == ECONNRESET || errno == EPIPE;

    return fail(ping, "%s",
                closed ? "the server has closed the connection"
                       : strerror(errno));
}

/* ---- the words ----------------------------------------------------------- */

static const char *
value_of(const char *word, const char *name)
{
    size_t len = strlen(name);

    return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1
                                                             : NULL;
}

/* Reads a password file as requirepass-file is read: without its last line end.
 */
static bool
read_password(struct ping *ping, const char *path)
{
    int error = conf_file_read(path, &ping->password);

    if (error != 0) {
        return fail(ping, "--ping-password-file: %s: %s", path,
                    strerror(error));
    }
    if (ping->password.len > 0 &&
        ping->password.data[ping->password.len - 1] == '\n') {
        ping->password.len--;
    }
    return true;
}

static bool
read_word(struct ping *ping, const char *word, uint64_t *ret_seconds)
{
    const char *user = value_of(word, "--ping-user");
    const char *file = value_of(word, "--ping-password-file");
    const char *timeout = value_of(word, "--ping-timeout");

    if (user != NULL) {
        ping->user = user;
        return true;
    }
    if (file != NULL) {
        return read_password(ping, file);
    }
    if (timeout == NULL) {
        return fail(ping,
                    "%.64s: is not --ping-user=NAME, --ping-password-file=FILE "
                    "or --ping-timeout=SECONDS",
                    word);
    }
    return (slice_to_u64(slice_of(timeout), ret_seconds) && *ret_seconds > 0 &&
            *ret_seconds <= SECONDS_MAX) ||
           fail(ping, "--ping-timeout: %.64s: is not a number from 1 to %d",
                timeout, SECONDS_MAX);
}

/* Without a user and a password of its own, it logs in with requirepass. */
static bool
read_words(struct ping *ping, const struct conf_args *args, char *const *words)
{
    const char *password = getenv("BLOOMERY_PASSWORD");
    uint64_t seconds = SECONDS;

    ping->user = getenv("BLOOMERY_USER");
    ping->alive = strcmp(args->ping, "alive") == 0;
    ping->complete = strcmp(args->ping, "complete") == 0;
    ping->ready = ping->complete || strcmp(args->ping, "ready") == 0;
    if (!ping->alive && !ping->ready && args->ping[0] != '\0') {
        return fail(ping, "--ping is alone, or --ping=ready, --ping=complete "
                          "or --ping=alive");
    }
    for (int i = 0; i < args->ping_words; i++) {
        if (!read_word(ping, words[i], &seconds)) {
            return false;
        }
    }
    if (ping->password.len == 0 && password == NULL && ping->user == NULL) {
        password = ping->conf->requirepass;
    }
    if (ping->password.len == 0 && password != NULL) {
        buf_append_slice(&ping->password, slice_of(password));
    }
    ping->deadline_ns = clock_mono_ns() + seconds * UINT64_C(1000000000);
    return true;
}

/* ---- the socket ---------------------------------------------------------- */

/* Waits until the socket can be read from or written to. */
static bool
wait_for(struct ping *ping, short events)
{
    struct pollfd poll_fd = { .fd = ping->fd, .events = events };
    uint64_t now_ns;
    int got;

    do {
        now_ns = clock_mono_ns();
        if (now_ns >= ping->deadline_ns) {
            return fail(ping, "no answer in time");
        }
        got = poll(&poll_fd, 1,
                   (int)((ping->deadline_ns - now_ns) / 1000000 + 1));
    } while (got == 0 || (got < 0 && errno == EINTR));
    return got > 0 || fail(ping, "%s", strerror(errno));
}

static bool
dial(struct ping *ping, const struct sockaddr *address, socklen_t len)
{
    int error = 0;
    socklen_t error_len = sizeof(error);

    ping->fd = socket(address->sa_family,
                      SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (ping->fd < 0) {
        return fail(ping, "%s", strerror(errno));
    }
    if (connect(ping->fd, address, len) == 0) {
        return true;
    }
    if (errno == EINPROGRESS) {
        if (!wait_for(ping, POLLOUT)) {
            return false;
        }
        (void)getsockopt(ping->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
    } else {
        error = errno == EAGAIN ? ECONNREFUSED : errno; /* a full backlog */
    }
    return error == 0 || fail(ping, "%s", strerror(error));
}

static bool
dial_path(struct ping *ping)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   ping->conf->unixsocket);
    (void)snprintf(ping->where, sizeof(ping->where), "%s", address.sun_path);
    return dial(ping, (const struct sockaddr *)&address, sizeof(address));
}

/* Dials one word of bind: the loopback address, if that means all of them. */
static bool
dial_word(struct ping *ping, struct slice word, unsigned port)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICSERV,
                              .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char host[128];
    char port_text[16];
    bool done;
    int rc;

    if (word.len > 0 && word.data[0] == '-') {
        word = (struct slice){ word.data + 1, word.len - 1 };
    }
    (void)snprintf(host, sizeof(host), "%.*s", (int)word.len, word.data);
    if (strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0) {
        (void)snprintf(host, sizeof(host), "127.0.0.1");
    } else if (strcmp(host, "::*") == 0 || strcmp(host, "::") == 0) {
        (void)snprintf(host, sizeof(host), "::1");
    }
    (void)snprintf(port_text, sizeof(port_text), "%u", port);
    (void)snprintf(ping->where, sizeof(ping->where), "%s port %u", host, port);
    rc = getaddrinfo(host, port_text, &hints, &found);
    if (rc != 0) {
        return fail(ping, "%s", gai_strerror(rc));
    }
    done = dial(ping, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return done;
}

/* Dials the addresses one after the other, until one answers. If none does, the
 * reason is that of the first. */
static bool
dial_addresses(struct ping *ping, const char *addresses, unsigned port)
{
    struct slice rest = slice_of(addresses), word;
    char where[sizeof(ping->where)];
    char reason[sizeof(ping->reason)];
    bool first = true;

    while (slice_next_word(&rest, &word)) {
        if (dial_word(ping, word, port)) {
            return true;
        }
        if (ping->fd >= 0) {
            (void)close(ping->fd);
            ping->fd = -1;
        }
        if (first) {
            memcpy(where, ping->where, sizeof(where));
            memcpy(reason, ping->reason, sizeof(reason));
            first = false;
        }
    }
    if (first) {
        return fail(ping, "the configuration names no address");
    }
    memcpy(ping->where, where, sizeof(where));
    memcpy(ping->reason, reason, sizeof(reason));
    return false;
}

/* The operator's ways in come first: they are open when clients are too many.
 */
static bool
dial_server(struct ping *ping)
{
    const struct conf *conf = ping->conf;

    if (conf->admin_port > 0) {
        return dial_addresses(ping, conf->admin_bind,
                              (unsigned)conf->admin_port);
    }
    if (conf->unixsocket[0] != '\0') {
        return dial_path(ping);
    }
    return dial_addresses(
        ping, conf->bind,
        (unsigned)(conf->port > 0 ? conf->port : conf->tls_port));
}

/* ---- bytes --------------------------------------------------------------- */

static bool
write_all(struct ping *ping, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t sent;

        if (!wait_for(ping, POLLOUT)) {
            return false;
        }
        sent = send(ping->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return fail_errno(ping);
        }
        if (sent > 0) {
            bytes.data += sent;
            bytes.len -= (size_t)sent;
        }
    }
    return true;
}

/* Gives TLS what has arrived, and sends what it says. */
static bool
open_records(struct ping *ping, struct slice received)
{
    enum tls_result result =
        tls_open(ping->tls, received, &ping->in, &ping->sealed);
    bool sent = write_all(ping, buf_slice(&ping->sealed));

    ping->sealed.len = 0;
    if (result == TLS_FAILED) {
        return fail(ping, "TLS: %s", tls_reason(ping->tls));
    }
    return sent && (result == TLS_MORE ||
                    fail(ping, "the server has closed the connection"));
}

/* Receives what there is, at least one byte. */
static bool
receive(struct ping *ping)
{
    char bytes[4096];
    ssize_t got = -1;

    while (got < 0) {
        if (!wait_for(ping, POLLIN)) {
            return false;
        }
        got = recv(ping->fd, bytes, sizeof(bytes), 0);
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return fail_errno(ping);
        }
    }
    if (got == 0) {
        return fail(ping, "the server has closed the connection");
    }
    if (ping->tls != NULL) {
        return open_records(ping, (struct slice){ bytes, (size_t)got });
    }
    buf_append(&ping->in, bytes, (size_t)got);
    return !ping->in.failed || fail(ping, "not enough memory");
}

/* Without authorities in the configuration, the server's own certificate is the
 * one to expect. Its names are not checked: it may be for the host's name,
 * while this dials an address of the machine. */
static bool
begin_tls(struct ping *ping)
{
    const struct conf *conf = ping->conf;
    struct tls_settings settings = own_tls_settings(conf, false);

    settings.dials = true;
    settings.check_names = false;
    if (conf->tls_ca_cert_file[0] == '\0' && conf->tls_ca_cert_dir[0] == '\0') {
        settings.ca_cert_file = conf->tls_cert_file;
        settings.partial_chains = true;
    }
    if (!tls_contexts_load(&ping->contexts, &settings, ping->reason)) {
        return false;
    }
    ping->tls = tls_new_dial(&ping->contexts, "localhost");
    if (ping->tls == NULL) {
        return fail(ping, "not enough memory");
    }
    if (!open_records(ping, slice_lit(""))) {
        return false;
    }
    while (!tls_is_established(ping->tls)) {
        if (!receive(ping)) {
            return false;
        }
    }
    return true;
}

/* ---- the conversation ---------------------------------------------------- */

static void
append_word(struct buf *to, struct slice word)
{
    buf_printf(to, "$%zu\r\n", word.len);
    buf_append_slice(to, word);
    buf_append_slice(to, slice_lit("\r\n"));
}

static void
append_info(struct buf *to)
{
    static const char *const words[] = { "INFO", READINESS_SECTIONS };
    size_t count = sizeof(words) / sizeof(words[0]);

    buf_printf(to, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        append_word(to, slice_of(words[i]));
    }
}

static bool
send_requests(struct ping *ping)
{
    struct buf text = { 0 };
    bool sent;

    if (ping->password.len > 0) {
        buf_printf(&text, "*%d\r\n", ping->user != NULL ? 3 : 2);
        append_word(&text, slice_lit("AUTH"));
        if (ping->user != NULL) {
            append_word(&text, slice_of(ping->user));
        }
        append_word(&text, buf_slice(&ping->password));
    }
    buf_append_slice(&text, slice_lit("*1\r\n$4\r\nPING\r\n"));
    if (ping->ready) {
        append_info(&text);
    }
    if (text.failed) {
        sent = fail(ping, "not enough memory");
    } else if (ping->tls == NULL) {
        sent = write_all(ping, buf_slice(&text));
    } else {
        sent = tls_seal(ping->tls, buf_slice(&text), &ping->sealed)
                   ? write_all(ping, buf_slice(&ping->sealed))
                   : fail(ping, "TLS: %s", tls_reason(ping->tls));
        ping->sealed.len = 0;
    }
    buf_wipe(&text);
    return sent;
}

/* Reads a line that begins with one of the characters, without its line end. */
static bool
read_line(struct ping *ping, const char *firsts, char ret_line[REPLY_MAX])
{
    const char *end = NULL;
    size_t len;

    while (end == NULL) {
        if (ping->in.len > 0) {
            end = memchr(ping->in.data, '\n', ping->in.len);
        }
        if (end == NULL && ping->in.len >= REPLY_MAX) {
            return fail(ping, "it answers something else than RESP");
        }
        if (end == NULL && !receive(ping)) {
            return false;
        }
    }
    len = (size_t)(end - ping->in.data);
    if (len < 2 || len > REPLY_MAX || end[-1] != '\r' ||
        ping->in.data[0] == '\0' || strchr(firsts, ping->in.data[0]) == NULL) {
        return fail(ping, "it answers something else than RESP");
    }
    memcpy(ret_line, ping->in.data, len - 1);
    ret_line[len - 1] = '\0';
    buf_consume(&ping->in, len + 1);
    return true;
}

static bool
read_reply(struct ping *ping, char ret_line[REPLY_MAX])
{
    return read_line(ping, "+-", ret_line);
}

/* Reads the reply to INFO. False: it is an error, or says that the server is
 * not ready. */
static bool
read_info(struct ping *ping)
{
    char line[REPLY_MAX] = "";
    struct slice info;
    uint64_t len;
    const char *why;

    if (!read_line(ping, "$-", line)) {
        return false;
    }
    if (line[0] == '-') {
        return fail(ping, "it answers INFO with: %s", line + 1);
    }
    if (!slice_to_u64(slice_of(line + 1), &len) || len > INFO_MAX) {
        return fail(ping, "it answers something else than RESP");
    }
    while (ping->in.len < len) {
        if (!receive(ping)) {
            return false;
        }
    }
    info = (struct slice){ ping->in.data, (size_t)len };
    why = ping->complete ? readiness_incomplete(info) : readiness_refusal(info);
    return why == NULL || fail(ping, "it is not %s: %s",
                               ping->complete ? "complete" : "ready", why);
}

/* *ret_line gets the reply that counts: the first error, or the last one. */
static bool
converse(struct ping *ping, char ret_line[REPLY_MAX])
{
    const struct conf *conf = ping->conf;
    bool secure =
        conf->admin_port == 0 && conf->unixsocket[0] == '\0' && conf->port == 0;

    ret_line[0] = '\0';
    if (!dial_server(ping) || (secure && !begin_tls(ping)) ||
        !send_requests(ping) || !read_reply(ping, ret_line)) {
        return false;
    }
    if (ping->password.len > 0 && ret_line[0] != '-' &&
        !read_reply(ping, ret_line)) {
        return false;
    }
    return !ping->ready || strcmp(ret_line, "+PONG") != 0 || read_info(ping);
}

static int
report(struct ping *ping)
{
    char line[REPLY_MAX];

    if (!converse(ping, line)) {
        (void)fprintf(stderr, "bloomery-server: --ping: %s: %s\n", ping->where,
                      ping->reason);
        return SERVER_EXIT_FAILED;
    }
    if (strcmp(line, "+PONG") == 0 || ping->alive) {
        (void)printf("%s\n", line + 1);
        return SERVER_EXIT_STOPPED;
    }
    (void)fprintf(stderr, "bloomery-server: --ping: %s: it answers: %s\n",
                  ping->where, line + 1);
    return SERVER_EXIT_FAILED;
}

int
ping(const struct conf *conf, const struct conf_args *args, char *const *words)
{
    struct ping ping = { .conf = conf, .fd = -1 };
    int status = SERVER_EXIT_MISTAKE;

    tls_contexts_init(&ping.contexts);
    if (read_words(&ping, args, words)) {
        status = report(&ping);
    } else {
        (void)fprintf(stderr, "bloomery-server: %s\n", ping.reason);
    }
    if (ping.fd >= 0) {
        (void)close(ping.fd);
    }
    tls_free(ping.tls);
    tls_contexts_fini(&ping.contexts);
    buf_wipe(&ping.password);
    buf_free(&ping.in);
    buf_free(&ping.sealed);
    return status;
}
