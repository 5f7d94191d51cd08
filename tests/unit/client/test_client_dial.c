/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections to listeners of the test; with TLS, a thread is the server.
 */
#include "client/client_dial.h"

#include "../test.h"
#include "../tls/certs.h"
#include "base/clock.h"
#include "tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static uint64_t
soon(void)
{
    return clock_mono_ns() + UINT64_C(60000000000);
}

/* Listens on the loopback address and writes the port. */
static int
listen_somewhere(char ret_port[16])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(ret_port, 16, "%u", ntohs(at.sin_port));
    return fd;
}

TEST(a_host_answers_on_one_of_its_addresses)
{
    struct client client;
    char port[16];
    int listener = listen_somewhere(port);

    client_init(&client, 100);
    assert_true(client_dial_host(&client, "localhost", port, soon()));
    assert_int_equal(client.fault, CLIENT_FINE);
    client_close(&client);
    (void)close(listener);
    client_init(&client, 100);
    assert_false(client_dial_host(&client, "127.0.0.1", port, soon()));
    assert_int_equal(client.fault, CLIENT_NO_SERVER);
    assert_int_equal(client.code, ECONNREFUSED);
    client_close(&client);
}

TEST(a_dial_that_waits_for_nothing_takes_one_address_after_the_other)
{
    struct client client;
    char port[16];
    int listener = listen_somewhere(port);
    unsigned found = 0;

    for (unsigned which = 0; which < 4; which++) {
        client_init(&client, 100);
        assert_true(client_dial_begin(&client, "localhost", port, NULL, which));
        client_send_raw(&client, slice_lit("x"));
        while (client.fault == CLIENT_FINE && client.out.len > 0) {
            struct pollfd own;

            client_prepare(&client, &own);
            (void)poll(&own, 1, own.fd >= 0 && client.out.len > 0 ? 60000 : 0);
        }
        found += client.fault == CLIENT_FINE;
        client_close(&client);
    }
    assert_true(found > 0); /* it has 127.0.0.1 */
    client_init(&client, 100);
    assert_false(client_dial_begin(&client, "no such host", port, NULL, 0));
    assert_int_equal(client.fault, CLIENT_NO_NAME);
    client_close(&client);
    (void)close(listener);
    client_init(&client, 100);
    assert_true(client_dial_begin(&client, "127.0.0.1", port, NULL, 0));
    while (client.fault == CLIENT_FINE) {
        (void)client_wait(&client, soon());
    }
    assert_int_equal(client.fault, CLIENT_READ);
    assert_int_equal(client.code, ECONNREFUSED);
    client_close(&client);
}

TEST(a_name_that_is_none_is_told_as_such)
{
    struct client client;

    client_init(&client, 100);
    assert_false(client_dial_host(&client, "no such host", "1", soon()));
    assert_int_equal(client.fault, CLIENT_NO_NAME);
    assert_int_not_equal(client.code, 0);
    client_close(&client);
}

/* The backlog is full, so connect does not end. */
TEST(the_deadline_holds_while_it_connects)
{
    struct client full[64], late;
    char port[16];
    int listener = listen_somewhere(port);
    size_t count = 0;

    assert_int_equal(listen(listener, 0), 0);
    do {
        assert_true(count < 64);
        client_init(&full[count], 100);
    } while (client_dial_host(&full[count++], "127.0.0.1", port,
                              clock_mono_ns() + 200000000));
    late = full[count - 1];
    assert_int_equal(late.fault, CLIENT_LATE);
    assert_int_equal(late.fd, -1);
    while (count > 0) {
        client_close(&full[--count]);
    }
    (void)close(listener);
}

TEST(a_path_is_dialled)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct client client;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/client-%d.sock",
                   (int)getpid());
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1), 0);
    client_init(&client, 100);
    assert_true(client_dial_path(&client, at.sun_path, soon()));
    client_close(&client);
    (void)close(fd);
    (void)unlink(at.sun_path);
    client_init(&client, 100);
    assert_false(client_dial_path(&client, at.sun_path, soon()));
    assert_int_equal(client.code, ENOENT);
    client_close(&client);
}

TEST(a_path_longer_than_an_address_is_refused)
{
    struct client client;
    char path[200];

    memset(path, '/', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    client_init(&client, 100);
    assert_false(client_dial_path(&client, path, soon()));
    assert_int_equal(client.code, ENAMETOOLONG);
    client_close(&client);
}

/* ---- TLS ----------------------------------------------------------------- */

struct host {
    int listener;
    struct tls_contexts contexts;
};

/* Accepts one connection, and answers what comes with +OK. */
static void *
serve_tls(void *arg)
{
    struct host *host = arg;
    struct tls *tls = tls_new_server(&host->contexts);
    int fd = accept(host->listener, NULL, NULL);
    struct buf plain = { 0 }, sealed = { 0 };
    char bytes[16384];
    ssize_t got;

    while ((got = read(fd, bytes, sizeof(bytes))) > 0 &&
           tls_open(tls, (struct slice){ bytes, (size_t)got }, &plain,
                    &sealed) == TLS_MORE) {
        if (plain.len > 0) {
            (void)tls_seal(tls, slice_lit("+OK\r\n"), &sealed);
            plain.len = 0;
        }
        (void)!write(fd, sealed.data, sealed.len);
        sealed.len = 0;
    }
    (void)close(fd);
    tls_free(tls);
    buf_free(&plain);
    buf_free(&sealed);
    return NULL;
}

/* Dials a server with the certificate for localhost by another name. */
static bool
dial_tls(struct client *client, const char *name)
{
    const struct slice words[] = { slice_lit("PING") };
    struct tls_contexts contexts;
    struct tls_settings settings = certs_settings();
    struct host host = { .listener = -1 };
    char port[16], reason[TLS_REASON_MAX];
    struct slice reply;
    pthread_t thread;
    bool good;

    settings.serves = true;
    settings.dials = true;
    settings.check_names = true;
    settings.auth_clients = TLS_AUTH_NO;
    tls_contexts_init(&contexts);
    tls_contexts_init(&host.contexts);
    assert_true(tls_contexts_load(&contexts, &settings, reason));
    assert_true(tls_contexts_load(&host.contexts, &settings, reason));
    host.listener = listen_somewhere(port);
    assert_int_equal(pthread_create(&thread, NULL, serve_tls, &host), 0);
    client_init(client, 100);
    assert_true(client_dial_host(client, "127.0.0.1", port, soon()));
    good = client_dial_tls(client, &contexts, name, soon());
    if (good) {
        client_send(client, words, 1);
        assert_true(client_reply(client, soon(), &reply));
        assert_true(slice_equal(reply, slice_lit("+OK\r\n")));
    }
    (void)shutdown(client->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(host.listener);
    tls_contexts_fini(&contexts);
    tls_contexts_fini(&host.contexts);
    return good;
}

TEST(tls_checks_the_name_of_the_server)
{
    struct client client;

    assert_true(dial_tls(&client, "localhost"));
    client_close(&client);
    assert_false(dial_tls(&client, "elsewhere"));
    assert_int_equal(client.fault, CLIENT_TLS);
    client_close(&client);
}
