/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The null server: the cost of BF.* over RESP if the filter is free. It is the
 * practical ceiling with which bench/compare.py compares the real server. It
 * has one thread with one libuv loop. It parses completely (framing, CRLFs,
 * lengths, names, argument counts, split commands). But every key is the same
 * 128 KB bit array with one bit per item, and the hash takes one multiplication
 * per word. Arguments point into the read buffer and are valid until the read
 * callback returns. Any input except canonical RESP arrays of bulk strings is a
 * protocol error and closes the connection.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "null_filter.h"
#include "null_scan.h"

enum {
    READ_BYTES = 256 * 1024,
    /* A split command up to this size is copied in front of the next read, so
     * that the bytes after it need not be copied. */
    FRONT_BYTES = 64 * 1024,
    LISTEN_QUEUE = 511,
    DIGITS_LIMIT = 20,
    HEAD_BYTES = DIGITS_LIMIT + 3, /* of an array */
    ELEMENT_BYTES = 4,
};

struct reply {
    char *data;
    size_t len;
    size_t capacity;
};

struct conn {
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } handle;
    uv_write_t write; /* in use while unsent is set */
    char *unsent;
    char *tail; /* the start of a command whose rest has not arrived */
    size_t tail_len;
    size_t tail_capacity;
    struct conn *prev;
    struct conn *next;
};

/* One loop, one thread: plain globals. */
static uv_loop_t loop;
static uv_tcp_t tcp_listener;
static uv_pipe_t unix_listener;
static uv_signal_t on_term;
static uv_signal_t on_int;
static struct conn *conns;
static struct reply reply;
static struct scan_args scanned;
static bool stopping;
static struct null_filter filter;
static char read_buffer[FRONT_BYTES + READ_BYTES];

static void
die(const char *what, int code)
{
    fprintf(stderr, "null: %s: %s\n", what, uv_strerror(code));
    exit(1);
}

static void *
grow(void *block, size_t bytes)
{
    void *grown = realloc(block, bytes);

    if (grown == NULL) {
        die("realloc", UV_ENOMEM);
    }
    return grown;
}

/* ---- replies ------------------------------------------------------------- */

static void
reply_reserve(size_t bytes)
{
    if (reply.capacity - reply.len < bytes) {
        reply.capacity = (reply.len + bytes) * 2;
        reply.data = grow(reply.data, reply.capacity);
    }
}

static void
reply_text(const char *text)
{
    size_t len = strlen(text);

    reply_reserve(len);
    memcpy(reply.data + reply.len, text, len);
    reply.len += len;
}

/* Writes one element and returns its end; the caller has reserved the room. */
static inline char *
put_bit(char *at, uint64_t bit)
{
    static const char elements[2][ELEMENT_BYTES] = {
        { ':', '0', '\r', '\n' },
        { ':', '1', '\r', '\n' },
    };

    memcpy(at, elements[bit], ELEMENT_BYTES);
    return at + ELEMENT_BYTES;
}

static void
reply_bit(uint64_t bit)
{
    reply_reserve(ELEMENT_BYTES);
    put_bit(reply.data + reply.len, bit);
    reply.len += ELEMENT_BYTES;
}

static char *
put_number(char *at, size_t number)
{
    char digits[DIGITS_LIMIT];
    size_t len = 0;

    do {
        digits[len++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (len > 0) {
        *at++ = digits[--len];
    }
    return at;
}

/* Writes an array's head, reserves its COUNT elements and counts them as
 * written. Returns where they go. */
static char *
reply_array(size_t count)
{
    char *at;

    reply_reserve(HEAD_BYTES + count * ELEMENT_BYTES);
    at = reply.data + reply.len;
    *at++ = '*';
    at = put_number(at, count);
    *at++ = '\r';
    *at++ = '\n';
    reply.len = (size_t)(at - reply.data) + count * ELEMENT_BYTES;
    return at;
}

/* ---- commands ------------------------------------------------------------ */

static void
cmd_add(void)
{
    reply_bit(filter_add(&filter, &scanned.items[2]));
}

static void
cmd_exists(void)
{
    reply_bit(filter_contains(&filter, &scanned.items[2]));
}

static void
cmd_madd(void)
{
    size_t count = scanned.count - 2;
    const struct arg *items = scanned.items + 2;
    char *at = reply_array(count);

    for (size_t i = 0; i < count; i++) {
        at = put_bit(at, filter_add(&filter, &items[i]));
    }
}

static void
cmd_mexists(void)
{
    size_t count = scanned.count - 2;
    const struct arg *items = scanned.items + 2;
    char *at = reply_array(count);

    for (size_t i = 0; i < count; i++) {
        at = put_bit(at, filter_contains(&filter, &items[i]));
    }
}

static void
cmd_reserve(void)
{
    memset(&filter, 0, sizeof(filter));
    reply_text("+OK\r\n");
}

static void
cmd_ping(void)
{
    reply_text("+PONG\r\n");
}

static void
cmd_config(void)
{
    if (scanned.items[1].len == 3 &&
        strncasecmp(scanned.items[1].data, "GET", 3) == 0) {
        reply_text("*0\r\n");
    } else {
        reply_text("-ERR unknown subcommand\r\n");
    }
}

static void
cmd_info(void)
{
    reply_text("$0\r\n\r\n");
}

static void
cmd_shutdown(void)
{
    stopping = true;
}

static const struct command {
    const char *name;
    size_t name_len;
    size_t argc_min;
    size_t argc_max;
    void (*run)(void);
} commands[] = {
#define CMD(name, min, max, run)                                               \
    {                                                                          \
        name, sizeof(name) - 1, min, max, run                                  \
    }
    CMD("BF.ADD", 3, 3, cmd_add),
    CMD("BF.EXISTS", 3, 3, cmd_exists),
    CMD("BF.MADD", 3, SCAN_ARGS_LIMIT, cmd_madd),
    CMD("BF.MEXISTS", 3, SCAN_ARGS_LIMIT, cmd_mexists),
    CMD("BF.RESERVE", 4, 6, cmd_reserve),
    CMD("PING", 1, 1, cmd_ping),
    CMD("CONFIG", 3, SCAN_ARGS_LIMIT, cmd_config),
    CMD("INFO", 1, SCAN_ARGS_LIMIT, cmd_info),
    CMD("SHUTDOWN", 1, 2, cmd_shutdown),
#undef CMD
};

static const struct command *
find_command(const struct arg *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *command = &commands[i];

        /* Clients nearly always send upper case, so try that first. */
        if (name->len == command->name_len &&
            (memcmp(name->data, command->name, name->len) == 0 ||
             strncasecmp(name->data, command->name, name->len) == 0)) {
            return command;
        }
    }
    return NULL;
}

static void
run_command(void)
{
    const struct command *command = find_command(&scanned.items[0]);

    if (command == NULL) {
        reply_text("-ERR unknown command\r\n");
    } else if (scanned.count < command->argc_min ||
               scanned.count > command->argc_max) {
        reply_text("-ERR wrong number of arguments\r\n");
    } else {
        command->run();
    }
}

/* ---- connections --------------------------------------------------------- */

/* Runs all whole commands between *at and END; the replies are in reply. */
static enum scan
run_commands(const char **at, const char *end)
{
    enum scan scan = SCAN_OK;

    while (*at < end && !stopping) {
        scan = scan_command(at, end, &scanned);
        if (scan != SCAN_OK) {
            break;
        }
        if (scanned.count > 0) { /* an empty array is skipped, as Redis does */
            run_command();
        }
    }
    return scan;
}

static void
on_conn_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;

    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }
    free(conn->tail);
    free(conn->unsent);
    free(conn);
}

static void
close_handle(uv_handle_t *handle, uv_close_cb closed)
{
    if (uv_handle_get_type(handle) != UV_UNKNOWN_HANDLE &&
        !uv_is_closing(handle)) {
        uv_close(handle, closed);
    }
}

static void
conn_close(struct conn *conn)
{
    close_handle((uv_handle_t *)&conn->handle, on_conn_closed);
}

/* Closes every handle; the loop then runs out of work and uv_run returns. */
static void
stop(void)
{
    close_handle((uv_handle_t *)&tcp_listener, NULL);
    close_handle((uv_handle_t *)&unix_listener, NULL);
    close_handle((uv_handle_t *)&on_term, NULL);
    close_handle((uv_handle_t *)&on_int, NULL);
    for (struct conn *conn = conns; conn != NULL; conn = conn->next) {
        conn_close(conn);
    }
}

static void
on_signal(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    stop();
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf);

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(read_buffer + FRONT_BYTES, READ_BYTES);
}

static void
on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;

    free(conn->unsent);
    conn->unsent = NULL;
    if (status < 0 || uv_is_closing((uv_handle_t *)&conn->handle)) {
        conn_close(conn);
    } else {
        uv_read_start(&conn->handle.stream, on_alloc, on_read);
    }
}

/* Sends the replies of this read. It copies bytes that the socket does not
 * accept and sends them later; until then it reads no more from the connection.
 */
static void
conn_send(struct conn *conn)
{
    uv_buf_t buf = uv_buf_init(reply.data, (unsigned)reply.len);
    int sent = uv_try_write(&conn->handle.stream, &buf, 1);
    size_t left;

    if (sent == UV_EAGAIN) {
        sent = 0;
    }
    if (sent < 0) {
        conn_close(conn);
        return;
    }
    left = reply.len - (size_t)sent;
    if (left == 0) {
        return;
    }
    uv_read_stop(&conn->handle.stream);
    conn->unsent = grow(NULL, left);
    memcpy(conn->unsent, reply.data + sent, left);
    buf = uv_buf_init(conn->unsent, (unsigned)left);
    conn->write.data = conn;
    if (uv_write(&conn->write, &conn->handle.stream, &buf, 1, on_written) < 0) {
        conn_close(conn);
    }
}

/* Appends LEN bytes to the connection's split command. */
static void
tail_append(struct conn *conn, const char *data, size_t len)
{
    if (conn->tail_capacity - conn->tail_len < len) {
        conn->tail_capacity = (conn->tail_len + len) * 2;
        conn->tail = grow(conn->tail, conn->tail_capacity);
    }
    memcpy(conn->tail + conn->tail_len, data, len);
    conn->tail_len += len;
}

/* Keeps the bytes between AT and END, which may be inside the tail itself. */
static void
tail_keep(struct conn *conn, const char *at, const char *end)
{
    size_t len = (size_t)(end - at);

    if (len == 0) {
        free(conn->tail);
        conn->tail = NULL;
        conn->tail_capacity = 0;
        conn->tail_len = 0;
    } else if (conn->tail_len > FRONT_BYTES) {
        memmove(conn->tail, at, len);
        conn->tail_len = len;
    } else {
        conn->tail_len = 0;
        tail_append(conn, at, len);
    }
}

static void
on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct conn *conn = stream->data;
    const char *at = buf->base;
    const char *end;
    enum scan scan;

    if (len < 0) {
        conn_close(conn);
        return;
    }
    end = at + len;
    if (conn->tail_len > FRONT_BYTES) {
        tail_append(conn, at, (size_t)len);
        at = conn->tail;
        end = at + conn->tail_len;
    } else if (conn->tail_len > 0) {
        at -= conn->tail_len;
        memcpy(read_buffer + FRONT_BYTES - conn->tail_len, conn->tail,
               conn->tail_len);
    }
    reply.len = 0;
    scan = run_commands(&at, end);
    if (scan == SCAN_BAD) {
        reply_text("-ERR Protocol error\r\n");
    }
    if (reply.len > 0) {
        conn_send(conn);
    }
    if (stopping) {
        stop();
    } else if (scan == SCAN_BAD) {
        conn_close(conn);
    } else if (at != end || conn->tail_len > 0) {
        tail_keep(conn, at, end);
    }
}

static void
on_connection(uv_stream_t *listener, int status)
{
    struct conn *conn;

    if (status < 0) {
        return;
    }
    conn = grow(NULL, sizeof(*conn));
    memset(conn, 0, sizeof(*conn));
    if (listener == (uv_stream_t *)&tcp_listener) {
        uv_tcp_init(&loop, &conn->handle.tcp);
    } else {
        uv_pipe_init(&loop, &conn->handle.pipe, 0);
    }
    conn->handle.stream.data = conn;
    conn->next = conns;
    if (conns != NULL) {
        conns->prev = conn;
    }
    conns = conn;
    if (uv_accept(listener, &conn->handle.stream) < 0) {
        conn_close(conn);
        return;
    }
    if (listener == (uv_stream_t *)&tcp_listener) {
        uv_tcp_nodelay(&conn->handle.tcp, 1);
    }
    uv_read_start(&conn->handle.stream, on_alloc, on_read);
}

/* ---- start --------------------------------------------------------------- */

/* Returns the port, which the kernel chose if it was asked for port 0. */
static int
listen_tcp(int port)
{
    struct sockaddr_in address;
    int size = sizeof(address);
    int rc;

    uv_ip4_addr("127.0.0.1", port, &address);
    uv_tcp_init(&loop, &tcp_listener);
    rc = uv_tcp_bind(&tcp_listener, (struct sockaddr *)&address, 0);
    if (rc == 0) {
        rc = uv_listen((uv_stream_t *)&tcp_listener, LISTEN_QUEUE,
                       on_connection);
    }
    if (rc == 0) {
        rc = uv_tcp_getsockname(&tcp_listener, (struct sockaddr *)&address,
                                &size);
    }
    if (rc < 0) {
        die("listen on tcp", rc);
    }
    return ntohs(address.sin_port);
}

static void
listen_unix(const char *path)
{
    struct stat info;
    int rc;

    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode)) {
        unlink(path); /* left over from a killed run */
    }
    uv_pipe_init(&loop, &unix_listener, 0);
    rc = uv_pipe_bind(&unix_listener, path);
    if (rc == 0) {
        rc = uv_listen((uv_stream_t *)&unix_listener, LISTEN_QUEUE,
                       on_connection);
    }
    if (rc < 0) {
        die("listen on unix socket", rc);
    }
}

static int
usage(void)
{
    fprintf(stderr, "usage: null [PORT] [--unix PATH]\n"
                    "Listens on 127.0.0.1:PORT (0: any free port, printed) "
                    "and on PATH.\n");
    return 2;
}

int
main(int argc, char **argv)
{
    const char *path = NULL;
    char *end;
    long port = -1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--unix") == 0 && i + 1 < argc) {
            path = argv[++i];
            continue;
        }
        port = strtol(argv[i], &end, 10);
        if (end == argv[i] || *end != '\0' || port < 0 || port > 65535) {
            return usage();
        }
    }
    if (port < 0 && path == NULL) {
        return usage();
    }
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    if (port >= 0) {
        port = listen_tcp((int)port);
    }
    if (path != NULL) {
        listen_unix(path);
    }
    uv_signal_init(&loop, &on_term);
    uv_signal_start(&on_term, on_signal, SIGTERM);
    uv_signal_init(&loop, &on_int);
    uv_signal_start(&on_int, on_signal, SIGINT);
    printf("ready port=%ld unix=%s\n", port, path != NULL ? path : "");
    fflush(stdout);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free(reply.data);
    free(scanned.items);
    return 0;
}
