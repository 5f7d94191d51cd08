/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/client_dial.h"

#include "base/clock.h"
#include "tls/tls.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

/* Waits until connect has ended. */
static bool
await_connect(struct client *client, uint64_t deadline_ns)
{
    struct pollfd polls[2] = { { .fd = client->fd, .events = POLLOUT },
                               { .fd = client->wake_fd, .events = POLLIN } };
    int error = 0;
    socklen_t len = sizeof(error);

    while (polls[0].revents == 0) {
        uint64_t now_ns = clock_mono_ns();

        if (now_ns >= deadline_ns || polls[1].revents != 0) {
            return client_fail(client, CLIENT_LATE, 0);
        }
        if (poll(polls, 2, (int)((deadline_ns - now_ns) / MS_NS + 1)) < 0 &&
            errno != EINTR) {
            return client_fail(client, CLIENT_NO_SERVER, errno);
        }
    }
    if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    return error == 0 || client_fail(client, CLIENT_NO_SERVER, error);
}

/* Clears the fault of an earlier attempt and begins to connect. */
static bool
begin_connect(struct client *client, const struct sockaddr *to, socklen_t len,
              bool *ret_pending)
{
    int one = 1;

    client->fault = CLIENT_FINE;
    client->fd =
        socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0) {
        return client_fail(client, CLIENT_NO_SERVER, errno);
    }
    if (to->sa_family != AF_UNIX) {
        (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one,
                         sizeof(one));
    }
    *ret_pending = connect(client->fd, to, len) != 0;
    client->heard_ns = clock_mono_ns();
    return !*ret_pending || errno == EINPROGRESS ||
           client_fail(client, CLIENT_NO_SERVER, errno);
}

/* Dials one address. */
static bool
dial_address(struct client *client, const struct sockaddr *to, socklen_t len,
             uint64_t deadline_ns)
{
    bool pending = false;

    if (begin_connect(client, to, len, &pending) &&
        (!pending || await_connect(client, deadline_ns))) {
        client->heard_ns = clock_mono_ns();
        return true;
    }
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    client->fd = -1;
    return false;
}

bool
client_dial_path(struct client *client, const char *path, uint64_t deadline_ns)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(to.sun_path)) {
        return client_fail(client, CLIENT_NO_SERVER, ENAMETOOLONG);
    }
    memcpy(to.sun_path, path, strlen(path) + 1);
    return dial_address(client, (const struct sockaddr *)&to, sizeof(to),
                        deadline_ns);
}

bool
client_dial_host(struct client *client, const char *host, const char *port,
                 uint64_t deadline_ns)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    unsigned left = 0;
    int error = getaddrinfo(host, port, &hints, &list);

    if (error != 0) {
        return client_fail(client, CLIENT_NO_NAME, error);
    }
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        left++;
    }
    for (const struct addrinfo *at = list; at != NULL && client->fd < 0;
         at = at->ai_next, left--) {
        uint64_t now_ns = clock_mono_ns();
        uint64_t until_ns = deadline_ns > now_ns
                                ? now_ns + (deadline_ns - now_ns) / left
                                : deadline_ns;

        (void)dial_address(client, at->ai_addr, at->ai_addrlen, until_ns);
    }
    freeaddrinfo(list);
    return client->fd >= 0;
}

/* Begins the handshake, unless memory is missing. */
static void
begin_tls(struct client *client, struct tls_contexts *contexts,
          const char *host)
{
    client->tls = tls_new_dial(contexts, host);
    if (client->tls == NULL) {
        (void)client_fail(client, CLIENT_NO_MEMORY, 0);
        return;
    }
    client_open_records(client, slice_lit(""));
}

bool
client_dial_begin(struct client *client, const char *host, const char *port,
                  struct tls_contexts *contexts, unsigned which)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL, *at;
    int error = getaddrinfo(host, port, &hints, &list);
    bool pending = false;

    if (error != 0) {
        return client_fail(client, CLIENT_NO_NAME, error);
    }
    at = list;
    while (which > 0) {
        at = at->ai_next != NULL ? at->ai_next : list;
        which--;
    }
    if (begin_connect(client, at->ai_addr, at->ai_addrlen, &pending) &&
        contexts != NULL) {
        begin_tls(client, contexts, host);
    }
    freeaddrinfo(list);
    return client->fault == CLIENT_FINE;
}

bool
client_dial_tls(struct client *client, struct tls_contexts *contexts,
                const char *host, uint64_t deadline_ns)
{
    begin_tls(client, contexts, host);
    while (client->fault == CLIENT_FINE && !tls_is_established(client->tls)) {
        if (client->ended) {
            return client_fail(client, CLIENT_CLOSED, 0);
        }
        if (!client_wait(client, deadline_ns) &&
            clock_mono_ns() >= deadline_ns) {
            return client_fail(client, CLIENT_LATE, 0);
        }
    }
    return client->fault == CLIENT_FINE;
}
