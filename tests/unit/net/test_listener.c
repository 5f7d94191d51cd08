/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listening on TCP and unix sockets, and whom the acceptor lets in: round
 * robin over loops, up to maxclients, and when no descriptor is left.
 */
#include "net/listener.h"

#include "net/http.h"

#include "rig.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

static const char too_many[] = "-ERR max number of clients reached\r\n";

/* A port that was free a moment ago. */
static unsigned
free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&address, &len));
    (void)close(fd);
    return ntohs(address.sin_port);
}

static struct listen_options
options_of(const char *addresses, unsigned port, const char *path)
{
    return (struct listen_options){ .bind = addresses,
                                    .port = port,
                                    .unix_path = path,
                                    .unix_mode = 0600,
                                    .backlog = 64 };
}

/* Opens on a free port; another process may take it in between, so tries. */
static unsigned
open_somewhere(struct listeners *all, const char *addresses, const char *path)
{
    char reason[LISTENER_REASON_MAX] = "";

    for (int attempt = 0; attempt < 20; attempt++) {
        unsigned port = free_port();
        struct listen_options options = options_of(addresses, port, path);

        if (listeners_open(all, &options, reason)) {
            return port;
        }
    }
    fail_msg("%s", reason);
    return 0;
}

/* A socket that is not connected yet: connecting needs no descriptor. */
static int
new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

static struct peer
connect_socket(int fd, unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(0,
                     connect(fd, (struct sockaddr *)&address, sizeof(address)));
    return peer_of(fd);
}

static struct peer
connect_to(unsigned port)
{
    return connect_socket(new_socket(), port);
}

static int
connect_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void
expect_served(struct rig *rig, struct peer *peer)
{
    peer_send_text(rig, peer, "A\r\n");
    peer_expect(rig, peer, "+A\r\n");
}

static void
expect_refused(struct rig *rig, struct peer *peer)
{
    rig_until(rig, peer_is_cut(peer));
    assert_true(slice_equal(slice_of(too_many), buf_slice(&peer->got)));
}

/* Closes the listeners and lets the loop see it. */
static void
close_all(struct rig *rig, struct listeners *all)
{
    listeners_close(all);
    rig_settle(rig);
}

static unsigned
open_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) != -1;
    }
    return count;
}

/* ---- opening ------------------------------------------------------------- */

TEST(tcp_clients_are_accepted)
{
    struct rig *first = rig_new(); /* libuv opens some of its own, once */
    unsigned descriptors;
    struct rig *rig;
    struct listeners all;
    unsigned port;
    struct peer a;
    struct peer b;
    char address[CONN_ADDRESS_MAX];
    char expected[CONN_ADDRESS_MAX];

    rig_free(first);
    descriptors = open_descriptors();
    rig = rig_new();
    port = open_somewhere(&all, "127.0.0.1 -::1", "");
    listeners_start(&all, &rig->loop, 1);
    a = connect_to(port);
    b = connect_to(port);
    expect_served(rig, &a);
    expect_served(rig, &b);
    conn_local_address(rig->last, address);
    (void)snprintf(expected, sizeof(expected), "127.0.0.1:%u", port);
    assert_string_equal(expected, address);
    peer_free(&a);
    peer_free(&b);
    rig_until(rig, rig->closed == 2);
    close_all(rig, &all);
    rig_free(rig);
    assert_int_equal(descriptors, open_descriptors());
}

TEST(a_port_in_use_is_a_reason_and_leaves_nothing_open)
{
    struct rig *rig = rig_new();
    struct listeners all;
    struct listeners more;
    unsigned port = open_somewhere(&all, "127.0.0.1", "");
    struct listen_options options = options_of("127.0.0.2 127.0.0.1", port, "");
    char reason[LISTENER_REASON_MAX] = "";
    char expected[LISTENER_REASON_MAX];
    unsigned descriptors = open_descriptors();

    assert_false(listeners_open(&more, &options, reason));
    (void)snprintf(expected, sizeof(expected),
                   "cannot listen on 127.0.0.1 port %u: Address already in use",
                   port);
    assert_string_equal(expected, reason);
    assert_int_equal(descriptors, open_descriptors());
    listeners_start(&all, &rig->loop, 1);
    close_all(rig, &all);
    rig_free(rig);
}

TEST(an_address_of_another_machine_is_passed_over_only_if_optional)
{
    struct rig *rig = rig_new();
    struct listeners all;
    struct listen_options options = options_of("192.0.2.1", free_port(), "");
    char reason[LISTENER_REASON_MAX] = "";
    unsigned descriptors = open_descriptors();

    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "192.0.2.1"));
    options.bind = "-192.0.2.1";
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "nothing to listen on"));
    options.bind = "not.an.address.invalid";
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "not.an.address.invalid"));
    options.port = 0;
    options.bind = "127.0.0.1";
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "nothing to listen on"));
    assert_int_equal(descriptors, open_descriptors());
    (void)open_somewhere(&all, "-192.0.2.1 127.0.0.1", "");
    assert_int_equal(1, all.count);
    listeners_start(&all, &rig->loop, 1);
    close_all(rig, &all);
    rig_free(rig);
}

/* ---- sockets of the service manager -------------------------------------- */

/* A socket as the service manager makes it: it may block. */
static int
given_socket(unsigned *ret_port, bool listens)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);
    int fd = new_socket();

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&address, &len));
    assert_true(!listens || listen(fd, 8) == 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

TEST(a_given_socket_takes_the_place_of_those_with_its_port)
{
    struct rig *rig = rig_new();
    unsigned port;
    int fd = given_socket(&port, true);
    /* This address would be refused, but the port is the given socket's. */
    struct listen_options options = options_of("192.0.2.1", port, "");
    char reason[LISTENER_REASON_MAX] = "";
    struct listeners all;
    struct peer peer = connect_to(port); /* before the server has started */

    options.given_first = fd;
    options.given_count = 1;
    assert_true(listeners_open(&all, &options, reason));
    assert_int_equal(1, all.count);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    listeners_start(&all, &rig->loop, 1);
    expect_served(rig, &peer);
    peer_free(&peer);
    rig_until(rig, rig->closed == 1);
    close_all(rig, &all);
    rig_free(rig);
}

TEST(the_port_of_a_given_socket_tells_what_it_is_for)
{
    static const struct {
        unsigned plain, tls, admin;
    } uses[] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };

    for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
        struct rig *rig = rig_new();
        unsigned port;
        int fd = given_socket(&port, true);
        struct listen_options options =
            options_of("127.0.0.1", uses[i].plain * port, "");
        char reason[LISTENER_REASON_MAX] = "";
        struct listeners all;

        options.tls_port = uses[i].tls * port;
        options.admin_port = uses[i].admin * port;
        options.admin_bind = "127.0.0.1";
        options.given_first = fd;
        options.given_count = 1;
        assert_true(listeners_open(&all, &options, reason));
        assert_int_equal(1, all.count);
        assert_int_equal(uses[i].tls, all.listener[0].is_tls);
        assert_int_equal(uses[i].admin, all.listener[0].is_admin);
        assert_int_equal(uses[i].admin, all.has_admin);
        listeners_start(&all, &rig->loop, 1);
        close_all(rig, &all);
        rig_free(rig);
    }
}

static void
expect_not_given(int fd, struct listen_options options, const char *why)
{
    char reason[LISTENER_REASON_MAX] = "";
    struct listeners all;

    options.given_first = fd;
    options.given_count = 1;
    assert_false(listeners_open(&all, &options, reason));
    if (strstr(reason, "the service manager has opened") == NULL ||
        strstr(reason, why) == NULL) {
        fail_msg("no %s in: %s", why, reason);
    }
}

TEST(a_given_socket_that_the_options_do_not_name_is_refused)
{
    char path[64];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct listen_options crowd = options_of("127.0.0.1", 1, "");
    struct listeners all;
    char reason[LISTENER_REASON_MAX] = "";
    unsigned port;
    int fd = given_socket(&port, true);

    expect_not_given(fd, options_of("127.0.0.1", port + 1, ""),
                     "its port is not port, tls-port, admin-port or "
                     "metrics-port");
    (void)close(fd);
    fd = given_socket(&port, false);
    expect_not_given(fd, options_of("127.0.0.1", port, ""),
                     "it is no stream that listens");
    (void)close(fd);
    expect_not_given(250, options_of("127.0.0.1", port, ""),
                     "it is no stream that listens");
    (void)snprintf(path, sizeof(path), "/tmp/test_listener.%d", (int)getpid());
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
    assert_int_equal(0, listen(fd, 8));
    expect_not_given(fd, options_of("", 0, "/elsewhere"),
                     "its path is not that of unixsocket");
    (void)close(fd);
    assert_int_equal(0, unlink(path));
    crowd.given_first = 3;
    crowd.given_count = LISTENERS_MAX;
    assert_false(listeners_open(&all, &crowd, reason));
    assert_non_null(strstr(reason, "there are too many"));
}

static void
answer_ok(void *ctx, const struct http_head *head, struct http_reply *reply)
{
    (void)ctx;
    (void)head;
    buf_append_slice(&reply->body, slice_lit("fine"));
    reply->type = "text/plain";
}

TEST(metrics_port_is_served_apart_and_is_not_enough_to_listen_on)
{
    struct rig *rig = rig_new();
    struct http http;
    struct listeners all;
    unsigned port = free_port();
    struct listen_options options = options_of("127.0.0.1", 0, "");
    char reason[LISTENER_REASON_MAX] = "";
    struct peer peer;

    rig->limits.metrics_seconds = 10;
    rig->limits.metrics_clients = 1;
    rig->limits.maxclients = 0;
    options.metrics_bind = "127.0.0.1";
    options.metrics_port = port;
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "nothing to listen on"));
    options.port = free_port();
    assert_true(listeners_open(&all, &options, reason));
    assert_int_equal(2, all.count);
    assert_true(all.has_metrics);
    http_start(&http, &rig->loop, answer_ok, NULL);
    all.http = &http;
    listeners_start(&all, &rig->loop, 1);
    peer = connect_to(port);
    peer_send_text(rig, &peer, "GET / HTTP/1.0\r\n\r\n");
    rig_until(rig, peer_is_cut(&peer));
    assert_memory_equal("fine", peer.got.data + peer.got.len - 4, 4);
    assert_int_equal(0, rig->accepted);
    peer_free(&peer);
    listeners_close(&all);
    http_stop(&http);
    rig_settle(rig);
    rig_free(rig);
}

/* ---- unix sockets -------------------------------------------------------- */

struct folder {
    char path[64], socket[80];
};

static struct folder
folder_new(void)
{
    struct folder folder = { .path = "/tmp/test_listener.XXXXXX" };

    assert_non_null(mkdtemp(folder.path));
    (void)snprintf(folder.socket, sizeof(folder.socket), "%s/s", folder.path);
    return folder;
}

static void
folder_free(struct folder *folder)
{
    assert_int_equal(0, rmdir(folder->path)); /* the socket is gone */
}

TEST(unix_clients_are_accepted_and_the_path_goes_with_the_server)
{
    struct rig *rig = rig_new();
    struct folder folder = folder_new();
    struct listen_options options = options_of("", 0, folder.socket);
    struct listeners all;
    char reason[LISTENER_REASON_MAX];
    char address[CONN_ADDRESS_MAX];
    char expected[CONN_ADDRESS_MAX];
    struct stat info;
    struct peer peer;
    mode_t mask = umask(0);

    assert_true(listeners_open(&all, &options, reason));
    assert_int_equal(0, umask(mask)); /* as it was */
    assert_int_equal(0, lstat(folder.socket, &info));
    assert_int_equal(0600, info.st_mode & 07777);
    listeners_start(&all, &rig->loop, 1);
    peer = peer_of(connect_path(folder.socket));
    expect_served(rig, &peer);
    conn_peer_address(rig->last, address);
    (void)snprintf(expected, sizeof(expected), "%s:0", folder.socket);
    assert_string_equal(expected, address);
    peer_free(&peer);
    close_all(rig, &all);
    folder_free(&folder);
    rig_free(rig);
}

TEST(a_path_in_use_is_refused_and_a_stale_one_replaced)
{
    struct rig *rig = rig_new();
    struct folder folder = folder_new();
    struct listen_options options = options_of("", 0, folder.socket);
    struct listeners all;
    struct listeners more;
    char reason[LISTENER_REASON_MAX];

    assert_true(listeners_open(&all, &options, reason));
    assert_false(listeners_open(&more, &options, reason));
    assert_non_null(strstr(reason, "Address already in use"));
    /* As after a crash: the file stays, and nobody listens. */
    (void)close(all.listener[0].fd);
    (void)close(all.reserve_fd);
    assert_int_equal(-1, connect_path(folder.socket));
    assert_true(listeners_open(&all, &options, reason));
    listeners_start(&all, &rig->loop, 1);
    close_all(rig, &all);
    folder_free(&folder);
    rig_free(rig);
}

/* A server that does not accept, its queue full: connecting would block. */
TEST(a_path_whose_server_hangs_is_in_use)
{
    struct folder folder = folder_new();
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct listen_options options = options_of("", 0, folder.socket);
    struct listeners all;
    char reason[LISTENER_REASON_MAX];
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   folder.socket);
    assert_int_equal(
        0, bind(server, (struct sockaddr *)&address, sizeof(address)));
    assert_int_equal(0, listen(server, 0));
    client = connect_path(folder.socket);
    assert_true(client >= 0);
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "Address already in use"));
    (void)close(client);
    (void)close(server);
    assert_int_equal(0, unlink(folder.socket));
    folder_free(&folder);
}

TEST(a_path_that_is_no_socket_is_left_alone)
{
    struct folder folder = folder_new();
    struct listen_options options = options_of("", 0, folder.socket);
    struct listeners all;
    char reason[LISTENER_REASON_MAX];
    int fd = open(folder.socket, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    (void)close(fd);
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "File exists"));
    assert_int_equal(0, unlink(folder.socket)); /* still there */
    options.unix_path = "/nowhere/at/all";
    assert_false(listeners_open(&all, &options, reason));
    assert_non_null(strstr(reason, "/nowhere/at/all"));
    folder_free(&folder);
}

/* ---- whom it lets in ----------------------------------------------------- */

TEST(clients_beyond_maxclients_are_told_and_sent_away)
{
    struct rig *rig = rig_new();
    struct listeners all;
    unsigned port = open_somewhere(&all, "127.0.0.1", "");
    int64_t rejected = metric_sum(METRIC_REJECTED_CONNECTIONS);
    struct peer in[2];
    struct peer out;

    listeners_start(&all, &rig->loop, 1);
    rig->limits.maxclients = 2;
    in[0] = connect_to(port);
    in[1] = connect_to(port);
    expect_served(rig, &in[0]);
    expect_served(rig, &in[1]);
    out = connect_to(port);
    expect_refused(rig, &out);
    assert_int_equal(rejected + 1, metric_sum(METRIC_REJECTED_CONNECTIONS));
    peer_free(&out);
    expect_served(rig, &in[0]);
    peer_free(&in[0]);
    rig_until(rig, rig->closed == 1);
    in[0] = connect_to(port);
    expect_served(rig, &in[0]);
    peer_free(&in[0]);
    peer_free(&in[1]);
    close_all(rig, &all);
    rig_free(rig);
}

/* Fills the common places and the reserved ones through one door. */
static void
expect_reserved_behind(struct rig *rig, struct peer (*enter)(const void *),
                       const void *door, struct peer *common)
{
    struct peer in[2];
    struct peer out;

    for (int i = 0; i < 2; i++) {
        in[i] = enter(door);
        expect_served(rig, &in[i]);
        assert_true(rig->last->is_reserved);
    }
    out = enter(door);
    expect_refused(rig, &out);
    peer_free(&out);
    /* The common place is no door's: it goes to whoever comes. */
    peer_free(common);
    rig_until(rig, rig->closed == 1);
    out = enter(door);
    expect_served(rig, &out);
    assert_false(rig->last->is_reserved);
    peer_free(&in[0]);
    rig_until(rig, rig->closed == 2);
    in[0] = enter(door);
    expect_served(rig, &in[0]);
    assert_true(rig->last->is_reserved);
    peer_free(&in[0]);
    peer_free(&in[1]);
    peer_free(&out);
}

static struct peer
enter_by_path(const void *path)
{
    return peer_of(connect_path(path));
}

static struct peer
enter_by_port(const void *port)
{
    return connect_to(*(const unsigned *)port);
}

TEST(the_unix_socket_has_places_beyond_maxclients)
{
    struct rig *rig = rig_new();
    struct folder folder = folder_new();
    struct listeners all;
    unsigned port = open_somewhere(&all, "127.0.0.1", folder.socket);
    struct peer in;
    struct peer out;

    listeners_start(&all, &rig->loop, 1);
    rig->limits.maxclients = 1;
    rig->limits.reserved_clients = 2;
    in = connect_to(port);
    expect_served(rig, &in);
    assert_false(rig->last->is_reserved);
    out = connect_to(port);
    expect_refused(rig, &out);
    peer_free(&out);
    expect_reserved_behind(rig, enter_by_path, folder.socket, &in);
    close_all(rig, &all);
    folder_free(&folder);
    rig_free(rig);
}

static unsigned
open_with_admin(struct listeners *all, const char *path, unsigned *ret_admin)
{
    char reason[LISTENER_REASON_MAX] = "";

    for (int attempt = 0; attempt < 20; attempt++) {
        struct listen_options options =
            options_of("127.0.0.1", free_port(), path);

        options.admin_bind = "127.0.0.1";
        options.admin_port = free_port();
        if (listeners_open(all, &options, reason)) {
            *ret_admin = options.admin_port;
            return options.port;
        }
    }
    fail_msg("%s", reason);
    return 0;
}

TEST(an_admin_port_has_the_reserved_places_and_the_unix_socket_none)
{
    struct rig *rig = rig_new();
    struct folder folder = folder_new();
    struct listeners all;
    unsigned admin = 0;
    unsigned port = open_with_admin(&all, folder.socket, &admin);
    struct peer in;
    struct peer out;

    listeners_start(&all, &rig->loop, 1);
    rig->limits.maxclients = 1;
    rig->limits.reserved_clients = 2;
    in = connect_to(port);
    expect_served(rig, &in);
    out = enter_by_path(folder.socket);
    expect_refused(rig, &out);
    peer_free(&out);
    expect_reserved_behind(rig, enter_by_port, &admin, &in);
    close_all(rig, &all);
    folder_free(&folder);
    rig_free(rig);
}

TEST(local_only_lets_clients_of_this_machine_in)
{
    struct rig *rig = rig_new();
    struct folder folder = folder_new();
    struct listeners all;
    unsigned port = open_somewhere(&all, "127.0.0.1", folder.socket);
    struct peer tcp;
    struct peer path;

    rig->limits.local_only = true;
    listeners_start(&all, &rig->loop, 1);
    tcp = connect_to(port);
    expect_served(rig, &tcp);
    path = peer_of(connect_path(folder.socket));
    expect_served(rig, &path);
    peer_free(&tcp);
    peer_free(&path);
    close_all(rig, &all);
    folder_free(&folder);
    rig_free(rig);
}

/* Takes every descriptor below the limit, so that accept finds none. */
static unsigned
use_up_descriptors(int *ret_fds, unsigned max)
{
    unsigned count = 0;

    for (; count < max; count++) {
        ret_fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (ret_fds[count] < 0) {
            assert_int_equal(EMFILE, errno);
            return count;
        }
    }
    fail_msg("more than %u descriptors", max);
    return count;
}

TEST(without_descriptors_clients_are_sent_away_and_come_back_later)
{
    enum { LIMIT = 200, WAITING = 5 };
    struct rig *rig = rig_new();
    struct listeners all;
    unsigned port = open_somewhere(&all, "127.0.0.1", "");
    int64_t rejected = metric_sum(METRIC_REJECTED_CONNECTIONS);
    struct rlimit before;
    struct rlimit low;
    struct peer inside;
    struct peer peer[WAITING];
    int sockets[WAITING];
    int filler[LIMIT];
    unsigned fillers;

    listeners_start(&all, &rig->loop, 1);
    inside = connect_to(port);
    expect_served(rig, &inside);
    for (int i = 0; i < WAITING; i++) {
        sockets[i] = new_socket();
    }
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
    low = before;
    low.rlim_cur = LIMIT;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &low));
    fillers = use_up_descriptors(filler, LIMIT);
    for (int i = 0; i < WAITING; i++) {
        peer[i] = connect_socket(sockets[i], port);
    }
    for (int i = 0; i < WAITING; i++) {
        expect_refused(rig, &peer[i]);
    }
    assert_int_equal(rejected + WAITING,
                     metric_sum(METRIC_REJECTED_CONNECTIONS));
    expect_served(rig, &inside);
    for (unsigned i = 0; i < fillers; i++) {
        (void)close(filler[i]);
    }
    for (int i = 0; i < WAITING; i++) {
        peer_free(&peer[i]);
    }
    peer[0] = connect_to(port);
    expect_served(rig, &peer[0]);
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
    peer_free(&peer[0]);
    peer_free(&inside);
    close_all(rig, &all);
    rig_free(rig);
}

/* ---- many loops ---------------------------------------------------------- */

enum { LOOPS = 3, PEERS = 9 };

TEST(clients_are_spread_evenly_over_the_loops)
{
    struct rig *rig = rig_new();
    struct loop *loops = mem_zalloc(LOOPS * sizeof(*loops));
    struct listeners all;
    unsigned port = open_somewhere(&all, "127.0.0.1", "");
    struct peer peer[PEERS];

    for (unsigned i = 0; i < LOOPS; i++) {
        loop_init(&loops[i], i, &rig->env, rig);
    }
    listeners_start(&all, loops, LOOPS);
    for (unsigned i = 1; i < LOOPS; i++) {
        loop_start(&loops[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        peer[i] = connect_to(port);
        peer_send_text(rig, &peer[i], "A\r\n");
    }
    for (int i = 0; i < PEERS; i++) { /* loop 0 is turned by hand */
        rig_until(rig, ((void)uv_run(&loops[0].uv, UV_RUN_NOWAIT),
                        peer_has(&peer[i], 4)));
    }
    listeners_close(&all);
    for (unsigned i = LOOPS; i > 0; i--) {
        loop_stop(&loops[i - 1]);
    }
    /* While a loop runs, its count is its own; its peers tell when it ended. */
    loop_run(&loops[0]);
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_join(&loops[i]);
        assert_int_equal(0, loops[i].open_conns);
    }
    for (int i = 0; i < PEERS; i++) {
        rig_until(rig, peer_is_cut(&peer[i]));
        peer_free(&peer[i]);
    }
    assert_int_equal(PEERS, rig->closed);
    for (unsigned i = 0; i < LOOPS; i++) {
        assert_int_equal(PEERS / LOOPS, rig->accepted_on[i]);
        loop_fini(&loops[i]);
    }
    mem_free(loops);
    rig_free(rig);
}
