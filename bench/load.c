/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A RESP load generator that uses less CPU time than the servers it measures.
 * Requests are prebuilt. For more distinct items than the prebuilt buffers
 * contain, it overwrites eight digits of each item before each send. It has one
 * thread and uses epoll; `depth` batches of `pipeline` commands are in flight
 * on each connection. It counts replies and checks their kind and the shape of
 * arrays. Every run ends: by count, by time, or when the server is silent. It
 * prints one logfmt line on stdout, and exits with 1 if any reply was an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "digits.h"
#include "load_options.h"
#include "load_replies.h"
#include "load_requests.h"
#include "load_stats.h"

enum {
    READ_BYTES = 256 * 1024,
    BATCH_LIMIT = 64 * 1024 * 1024, /* bytes of one batch */
    MEMORY_LIMIT = 1024 * 1024 * 1024,
};

struct conn {
    int fd;
    bool waits_for_room;
    char **buffers;
    size_t next_buffer;
    const char *out; /* the unsent part of the current batch */
    size_t out_len;
    uint64_t owed;        /* batches to start */
    uint64_t in_flight;   /* batches started and not answered */
    uint64_t unanswered;  /* replies missing of the oldest batch */
    uint64_t *started_ns; /* ring of `depth`, oldest at first_started */
    size_t first_started;
    struct replies replies;
};

/* One thread: plain globals. */
static struct conn *conns;
static struct reply_totals totals;
static bool rewrites; /* digits are overwritten before every send */
static uint64_t random_state;
static uint64_t next_item;
static uint64_t next_key;
static int poll_fd;

/* The state of one window, warm-up or measured. */
static struct {
    uint64_t batches_left; /* not yet started */
    uint64_t batches_open; /* started, not answered */
    uint64_t due_ns;       /* with --rate: when the next batch is due */
    uint64_t turn;         /* with --rate: the connection whose turn it is */
    uint64_t end_ns;
    uint64_t commands;
    struct histogram latency;
} window;

/* ---- requests ------------------------------------------------------------ */

static inline uint64_t
random_below(uint64_t range)
{
    return random_number(&random_state, range);
}

/* Returns a number below RANGE: at random, or the one after the last one, which
 * NEXT remembers. */
static inline uint32_t
pick(uint64_t *next, uint64_t range)
{
    uint64_t number;

    if (!opt.sequential) {
        return (uint32_t)random_below(range);
    }
    number = *next;
    *next = number + 1 < range ? number + 1 : 0;
    return (uint32_t)number;
}

static inline uint32_t
pick_item(void)
{
    return (uint32_t)opt.first + pick(&next_item, opt.range);
}

/* Fills in keys and items. By hand, all items of a batch go to the same key. */
static void
fill_batch(char *at)
{
    uint32_t key = 0;

    for (uint64_t i = 0; i < opt.pipeline; i++) {
        char *item = at + command.item_digits;

        if (command.names > 0 && (i == 0 || !command.by_hand)) {
            key = pick(&next_key, opt.keys);
        }
        for (size_t k = 0; k < command.names; k++) {
            put_digits(at + command.key_digits + k * command.item_stride, key);
        }
        if (command.by_hand) {
            put_offsets(item, pick_item());
        }
        for (size_t k = 0; !command.by_hand && k < command.items; k++) {
            put_digits(item, pick_item());
            item += command.item_stride;
        }
        at += command.len;
    }
}

static void
build_batches(void)
{
    size_t batch = command.len * opt.pipeline;
    uint64_t held = opt.connections * opt.buffers * opt.pipeline *
                    (command.by_hand ? 1 : command.items);

    rewrites = command.items > 0 &&
               (opt.sequential || opt.range > held || opt.keys > 1);
    if (rewrites || command.items == 0) {
        opt.buffers = 1;
    }
    if (batch > BATCH_LIMIT ||
        batch * opt.buffers > MEMORY_LIMIT / opt.connections) {
        die("the requests would take too much memory");
    }
    for (uint64_t c = 0; c < opt.connections; c++) {
        conns[c].buffers = alloc(opt.buffers, sizeof(char *));
        for (uint64_t b = 0; b < opt.buffers; b++) {
            char *buffer = alloc(1, batch);

            for (uint64_t i = 0; i < opt.pipeline; i++) {
                memcpy(buffer + i * command.len, command.bytes, command.len);
            }
            if (!rewrites) {
                fill_batch(buffer);
            }
            conns[c].buffers[b] = buffer;
        }
    }
}

/* ---- connections --------------------------------------------------------- */

static int
connect_unix(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(opt.unix_path) >= sizeof(address.sun_path)) {
        die("--unix: too long");
    }
    memcpy(address.sun_path, opt.unix_path, strlen(opt.unix_path));
    if (fd < 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        die("connect %s: %s", opt.unix_path, strerror(errno));
    }
    return fd;
}

static int
connect_tcp(void)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    int one = 1;
    int fd;
    int rc = getaddrinfo(opt.host, opt.port, &hints, &found);

    if (rc != 0) {
        die("%s: %s", opt.host, gai_strerror(rc));
    }
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
        die("connect %s:%s: %s", opt.host, opt.port, strerror(errno));
    }
    freeaddrinfo(found);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* Sends HELLO and --before if requested, and PING, and waits for the replies.
 * So the server has accepted all connections before the first window begins. */
static void
greet(int fd)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    static const char pong[] = "+PONG\r\n";
    const size_t pong_len = sizeof(pong) - 1;
    struct timeval limit = { .tv_sec = (time_t)opt.timeout + 1 };
    char answer[8192];
    size_t len = 0;
    ssize_t got;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if ((opt.resp3 && send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL) < 0) ||
        (opt.before != NULL && dprintf(fd, "%s\r\n", opt.before) < 0) ||
        send(fd, ping, sizeof(ping) - 1, MSG_NOSIGNAL) < 0) {
        die("greeting: %s", strerror(errno));
    }
    while (len < pong_len ||
           memcmp(answer + len - pong_len, pong, pong_len) != 0) {
        got = recv(fd, answer + len, sizeof(answer) - len, 0);
        if (got <= 0) {
            die("greeting: %s", got < 0 ? strerror(errno) : "no answer");
        }
        len += (size_t)got;
        if (answer[0] == '-' || len == sizeof(answer)) {
            die("greeting: %.*s", (int)strcspn(answer, "\r"), answer);
        }
    }
}

static void
open_connections(void)
{
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (uint64_t i = 0; i < opt.connections; i++) {
        struct conn *conn = &conns[i];
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

        conn->fd = opt.unix_path != NULL ? connect_unix() : connect_tcp();
        greet(conn->fd);
        conn->started_ns = alloc(opt.depth, sizeof(uint64_t));
        replies_init(&conn->replies);
        if (fcntl(conn->fd, F_SETFL, O_NONBLOCK) < 0 ||
            epoll_ctl(poll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0) {
            die("epoll: %s", strerror(errno));
        }
    }
}

/* ---- the run ------------------------------------------------------------- */

static void
wait_for_room(struct conn *conn, bool waits)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

    if (conn->waits_for_room != waits) {
        conn->waits_for_room = waits;
        event.events |= waits ? EPOLLOUT : 0U;
        epoll_ctl(poll_fd, EPOLL_CTL_MOD, conn->fd, &event);
    }
}

static void
start_batch(struct conn *conn)
{
    size_t newest = (conn->first_started + conn->in_flight) % opt.depth;
    char *buffer = conn->buffers[conn->next_buffer];

    if (++conn->next_buffer == opt.buffers) {
        conn->next_buffer = 0;
    }
    if (rewrites) {
        fill_batch(buffer);
    }
    conn->out = buffer;
    conn->out_len = command.len * opt.pipeline;
    /* With --rate the latency includes the time for which a batch was late. */
    conn->started_ns[newest] =
        opt.rate > 0 ? window.due_ns : clock_ns(CLOCK_MONOTONIC);
    if (conn->in_flight++ == 0) {
        conn->unanswered = opt.pipeline * command.replies;
    }
    conn->owed--;
}

static void
send_batches(struct conn *conn)
{
    while (conn->out_len > 0 || conn->owed > 0) {
        ssize_t sent;

        if (conn->out_len == 0) {
            start_batch(conn);
        }
        sent = send(conn->fd, conn->out, conn->out_len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            wait_for_room(conn, true);
            return;
        }
        if (sent < 0) {
            die("send: %s", strerror(errno));
        }
        conn->out += sent;
        conn->out_len -= (size_t)sent;
    }
    wait_for_room(conn, false);
}

/* Schedules one more batch for CONN if the window still needs one. */
static void
order_batch(struct conn *conn, uint64_t now)
{
    if (window.batches_left > 0 && now < window.end_ns) {
        window.batches_left--;
        window.batches_open++;
        conn->owed++;
    }
}

static void
settle(struct conn *conn, uint64_t answered, uint64_t now)
{
    window.commands += answered;
    while (answered > 0) {
        if (conn->in_flight == 0) {
            die("more replies than requests");
        }
        if (answered < conn->unanswered) {
            conn->unanswered -= answered;
            return;
        }
        answered -= conn->unanswered;
        conn->unanswered = opt.pipeline * command.replies;
        histogram_add(&window.latency,
                      now - conn->started_ns[conn->first_started]);
        conn->first_started = (conn->first_started + 1) % opt.depth;
        conn->in_flight--;
        window.batches_open--;
        if (opt.rate == 0) {
            order_batch(conn, now);
        }
    }
}

static void
receive(struct conn *conn)
{
    static char buffer[READ_BYTES];
    ssize_t got = recv(conn->fd, buffer, sizeof(buffer), 0);
    uint64_t answered;

    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0) {
        die("recv: %s (first error reply: %s)",
            got < 0 ? strerror(errno) : "closed by the server",
            totals.first_error);
    }
    answered =
        replies_scan(&conn->replies, &shape, buffer, (size_t)got, &totals);
    settle(conn, answered, clock_ns(CLOCK_MONOTONIC));
    if (conn->out_len == 0 && conn->owed > 0) {
        send_batches(conn);
    }
}

/* Starts the batches that are due, on connections that are free. What finds no
 * free connection is started later. Returns the time until the next one, or the
 * timeout if only a reply can free a connection. */
static uint64_t
start_due(void)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t busy = 0;

    while (window.due_ns <= now && now < window.end_ns &&
           window.batches_left > 0 && busy < opt.connections) {
        struct conn *conn = &conns[window.turn++ % opt.connections];

        if (conn->in_flight + conn->owed >= opt.depth || conn->out_len > 0) {
            busy++;
            continue;
        }
        busy = 0;
        order_batch(conn, now);
        send_batches(conn);
        window.due_ns += UINT64_C(1000000000) / opt.rate;
    }
    return window.due_ns > now && now < window.end_ns
               ? window.due_ns - now
               : (uint64_t)(opt.timeout * 1e9);
}

/* Starts as many batches as may be in flight; each reply then starts another.
 */
static void
start_all(void)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    for (uint64_t d = 0; d < opt.depth; d++) {
        for (uint64_t i = 0; i < opt.connections; i++) {
            order_batch(&conns[i], now);
        }
    }
    for (uint64_t i = 0; i < opt.connections; i++) {
        send_batches(&conns[i]);
    }
}

static void
handle_events(uint64_t wait_ns)
{
    struct epoll_event events[256];
    struct timespec limit = { .tv_sec = (time_t)(wait_ns / 1000000000U),
                              .tv_nsec = (long)(wait_ns % 1000000000U) };
    int count = epoll_pwait2(poll_fd, events, 256, &limit, NULL);

    if (count == 0 && wait_ns >= (uint64_t)(opt.timeout * 1e9)) {
        die("no reply for %.0f seconds", opt.timeout);
    }
    for (int i = 0; i < count; i++) {
        struct conn *conn = events[i].data.ptr;

        if (events[i].events & EPOLLOUT) {
            send_batches(conn);
        }
        if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
            receive(conn);
        }
    }
}

/* Runs until BATCHES are answered or SECONDS have passed and all that was
 * started is answered: the server is idle again at the end. */
static void
run_window(uint64_t batches, double seconds)
{
    uint64_t wait_ns = (uint64_t)(opt.timeout * 1e9);

    memset(&window, 0, sizeof(window));
    window.batches_left = batches;
    window.due_ns = clock_ns(CLOCK_MONOTONIC);
    window.end_ns = window.due_ns + (uint64_t)(seconds * 1e9);
    if (opt.rate == 0) {
        start_all();
    } else {
        wait_ns = start_due();
    }
    while (window.batches_open > 0 ||
           (opt.rate > 0 && window.batches_left > 0 &&
            clock_ns(CLOCK_MONOTONIC) < window.end_ns)) {
        handle_events(wait_ns);
        if (opt.rate > 0) {
            wait_ns = start_due();
        }
    }
}

static void
report(double seconds, uint64_t client_ns, const struct cpu_time *server)
{
    double commands = window.commands > 0 ? (double)window.commands : 1;

    printf("command=%s connections=%ju pipeline=%ju depth=%ju seed=%ju "
           "commands=%ju seconds=%.3f rps=%.0f",
           opt.command, (uintmax_t)opt.connections, (uintmax_t)opt.pipeline,
           (uintmax_t)opt.depth, (uintmax_t)opt.seed,
           (uintmax_t)window.commands, seconds, commands / seconds);
    if (opt.pid > 0) {
        printf(" server_cpu_ns=%.1f server_cpu=%.3f server_wait=%.3f",
               (double)server->run_ns / commands,
               (double)server->run_ns / 1e9 / seconds,
               (double)server->wait_ns / 1e9 / seconds);
    }
    printf(" client_cpu_ns=%.1f p50_us=%.1f p99_us=%.1f max_us=%.1f ones=%ju "
           "errors=%ju\n",
           (double)client_ns / commands,
           (double)histogram_percentile(&window.latency, 0.50) / 1e3,
           (double)histogram_percentile(&window.latency, 0.99) / 1e3,
           (double)histogram_percentile(&window.latency, 1.0) / 1e3,
           (uintmax_t)totals.ones, (uintmax_t)totals.errors);
}

/* The measured window. The server is idle before and after it, so that the CPU
 * accounts of its threads are up to date when they are read. */
static void
measure(uint64_t batches)
{
    struct cpu_time before = { 0, 0 };
    struct cpu_time after = { 0, 0 };
    uint64_t client_ns;
    uint64_t began_ns;
    double seconds;

    if (opt.pid > 0 && !cpu_time_of(opt.pid, &before)) {
        die("--pid: no process %ju", (uintmax_t)opt.pid);
    }
    client_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    began_ns = clock_ns(CLOCK_MONOTONIC);
    run_window(batches, opt.seconds);
    seconds = (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e9;
    client_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - client_ns;
    if (opt.pid > 0 && !cpu_time_of(opt.pid, &after)) {
        die("the server is gone");
    }
    after.run_ns -= before.run_ns;
    after.wait_ns -= before.wait_ns;
    report(seconds, client_ns, &after);
}

int
main(int argc, char **argv)
{
    uint64_t batches = UINT64_MAX;

    options_parse(argc, argv);
    random_state = opt.seed;
    conns = alloc(opt.connections, sizeof(*conns));
    build_command();
    build_batches();
    open_connections();
    if (opt.requests > 0) {
        batches = (opt.requests + opt.pipeline - 1) / opt.pipeline;
    }
    if (opt.warmup > 0) {
        run_window(UINT64_MAX, opt.warmup);
        next_item = 0;
        next_key = 0;
        totals.ones = 0;
    }
    measure(batches);
    if (totals.errors > 0) {
        die("first error: %s", totals.first_error);
    }
    if (opt.requests > 0 && window.batches_left > 0) {
        die("not done after %.0f seconds", opt.seconds);
    }
    return 0;
}
