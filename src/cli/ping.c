/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One deadline applies to everything: connecting, the TLS handshake, and all
 * replies. The requests are sent at once.
 */
#include "cli/ping.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/program_option.h"
#include "cli/exit_status.h"
#include "client/client_dial.h"
#include "conf/conf_args.h"
#include "conf/conf_file.h"
#include "conf/conf_tls.h"
#include "info/readiness.h"
#include "proto/compose.h"
#include "proto/resp.h"
#include "tls/tls.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SECONDS = 5,
    SECONDS_MAX = 3600,
    REPLY_MAX = 1024, /* bytes; no reply to PING is longer */
    INFO_MAX = 1 << 20
};

struct ping {
    const struct conf *conf;
    bool alive;    /* any reply is good */
    bool ready;    /* INFO must say that the server serves data */
    bool complete; /* INFO must also say that no data is missing */
    const char *user;
    struct buf password;
    uint64_t deadline_ns;
    struct client client;
    struct tls_contexts contexts;
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

/* ---- the words ----------------------------------------------------------- */

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
    const char *file = NULL;
    const char *value;
    const struct program_option options[] = {
        { "--ping-user", PROGRAM_OPTION_TEXT, 0, &ping->user, 0, 0 },
        { "--ping-password-file", PROGRAM_OPTION_TEXT, 0, &file, 0, 0 },
        { "--ping-timeout", PROGRAM_OPTION_NUMBER, 0, ret_seconds, 1,
          SECONDS_MAX },
        { NULL, PROGRAM_OPTION_ON, 0, NULL, 0, 0 },
    };
    const struct program_option *option =
        program_option_find(options, word, &value);

    if (value == NULL) {
        return fail(ping,
                    "%.64s: is not --ping-user=NAME, --ping-password-file=FILE "
                    "or --ping-timeout=SECONDS",
                    word);
    }
    if (!program_option_set(option, value)) {
        return fail(ping, "--ping-timeout: %.64s: is not a number from 1 to %d",
                    value, SECONDS_MAX);
    }
    return file == NULL || read_password(ping, file);
}

/* Reads the words and the environment. If neither has a user or a password, the
 * login uses requirepass. */
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

/* ---- the connection ------------------------------------------------------ */

/* Says why the client gave up. */
static bool
fail_client(struct ping *ping)
{
    const struct client *client = &ping->client;

    switch (client->fault) {
    case CLIENT_FINE:
    case CLIENT_LATE:
        return fail(ping, "no answer in time");
    case CLIENT_NO_NAME:
        return fail(ping, "%s", gai_strerror(client->code));
    case CLIENT_NO_SERVER: /* EAGAIN: a full backlog */
        return fail(
            ping, "%s",
            strerror(client->code == EAGAIN ? ECONNREFUSED : client->code));
    case CLIENT_READ:
    case CLIENT_WRITE:
        return fail(ping, "%s", strerror(client->code));
    case CLIENT_NO_MEMORY:
        return fail(ping, "not enough memory");
    case CLIENT_TLS:
    case CLIENT_TLS_SEAL:
        return fail(ping, "TLS: %s", tls_reason(client->tls));
    case CLIENT_CLOSED:
        return fail(ping, "the server has closed the connection");
    case CLIENT_TOO_LONG:
    case CLIENT_FOREIGN:
        break;
    }
    return fail(ping, "it answers something else than RESP");
}

static bool
dial_path(struct ping *ping)
{
    const char *path = ping->conf->unixsocket;

    (void)snprintf(ping->where, sizeof(ping->where), "%s", path);
    return client_dial_path(&ping->client, path, ping->deadline_ns) ||
           fail_client(ping);
}

/* Dials one word of bind; the loopback address if the word means all addresses.
 */
static bool
dial_word(struct ping *ping, struct slice word, unsigned port)
{
    char host[128];
    char port_text[16];

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
    return client_dial_host(&ping->client, host, port_text,
                            ping->deadline_ns) ||
           fail_client(ping);
}

/* Dials the addresses one after the other, until one answers. If none does,
 * gives the reason why the first one failed. */
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
        ping->client.fault = CLIENT_FINE;
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

/* Dials the server. The operator's sockets come first, since they accept
 * connections when there are too many clients. */
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

/* Begins TLS. Without authorities in the configuration, the server's own
 * certificate is expected. The names in it are not checked: they may be names
 * of the host, while --ping dials an address. */
static bool
begin_tls(struct ping *ping)
{
    const struct conf *conf = ping->conf;
    struct tls_settings settings = conf_tls_settings(conf, false);

    settings.dials = true;
    settings.check_names = false;
    if (conf->tls_ca_cert_file[0] == '\0' && conf->tls_ca_cert_dir[0] == '\0') {
        settings.ca_cert_file = conf->tls_cert_file;
        settings.partial_chains = true;
    }
    if (!tls_contexts_load(&ping->contexts, &settings, ping->reason)) {
        return false;
    }
    return client_dial_tls(&ping->client, &ping->contexts, "localhost",
                           ping->deadline_ns) ||
           fail_client(ping);
}

/* ---- the conversation ---------------------------------------------------- */

static void
send_requests(struct ping *ping)
{
    static const char *const names[] = { "INFO", READINESS_SECTIONS };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    struct slice words[COUNT] = { slice_lit("PING") };

    if (ping->password.len > 0) {
        client_send_login(&ping->client, LOGIN_ANY_PROTOCOL,
                          slice_of(ping->user != NULL ? ping->user : ""),
                          buf_slice(&ping->password));
    }
    client_send(&ping->client, words, 1);
    for (size_t i = 0; i < COUNT; i++) {
        words[i] = slice_of(names[i]);
    }
    if (ping->ready) {
        client_send(&ping->client, words, COUNT);
    }
}

/* Reads a reply that begins with one of the characters. */
static bool
read_value(struct ping *ping, const char *firsts, struct slice *ret_reply)
{
    if (!client_reply(&ping->client, ping->deadline_ns, ret_reply)) {
        return fail_client(ping);
    }
    return strchr(firsts, ret_reply->data[0]) != NULL ||
           fail(ping, "it answers something else than RESP");
}

static bool
read_reply(struct ping *ping, char ret_line[REPLY_MAX])
{
    struct slice reply;

    if (!read_value(ping, "+-", &reply)) {
        return false;
    }
    (void)snprintf(ret_line, REPLY_MAX, "%.*s", (int)reply.len - 2, reply.data);
    return true;
}

/* Reads the reply to INFO. False: it is an error, or says that the server is
 * not ready. */
static bool
read_info(struct ping *ping)
{
    struct slice reply, info;
    const char *why;

    if (!read_value(ping, "$-", &reply)) {
        return false;
    }
    info = resp_text(reply);
    if (resp_is_error(reply)) {
        return fail(ping, "it answers INFO with: %.*s", (int)info.len,
                    info.data);
    }
    if (info.len == 0) {
        return fail(ping, "it answers something else than RESP");
    }
    why = ping->complete ? readiness_incomplete(info) : readiness_refusal(info);
    return why == NULL || fail(ping, "it is not %s: %s",
                               ping->complete ? "complete" : "ready", why);
}

/* Sends and receives. *ret_line becomes the reply to PING, or the error that
 * the login got. */
static bool
converse(struct ping *ping, char ret_line[REPLY_MAX])
{
    const struct conf *conf = ping->conf;
    bool secure =
        conf->admin_port == 0 && conf->unixsocket[0] == '\0' && conf->port == 0;

    ret_line[0] = '\0';
    if (!dial_server(ping) || (secure && !begin_tls(ping))) {
        return false;
    }
    send_requests(ping);
    if (!read_reply(ping, ret_line)) {
        return false;
    }
    if (ping->password.len > 0 && ret_line[0] != '-' &&
        !read_reply(ping, ret_line)) {
        return false;
    }
    return !ping->ready || strcmp(ret_line, "+PONG") != 0 || read_info(ping);
}

static int
report_ping(struct ping *ping)
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
    struct ping ping = { .conf = conf };
    int status = SERVER_EXIT_MISTAKE;

    client_init(&ping.client, INFO_MAX);
    ping.client.line_max = REPLY_MAX;
    ping.client.value_max = INFO_MAX;
    tls_contexts_init(&ping.contexts);
    if (read_words(&ping, args, words)) {
        status = report_ping(&ping);
    } else {
        (void)fprintf(stderr, "bloomery-server: %s\n", ping.reason);
    }
    client_close(&ping.client);
    tls_contexts_fini(&ping.contexts);
    buf_wipe(&ping.password);
    return status;
}
