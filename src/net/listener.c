/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When descriptors run out, a reserved one is closed to accept and refuse the
 * waiting client: otherwise the loop would spin on a socket that stays
 * readable.
 */
#include "net/listener.h"

#include "base/log.h"
#include "base/metrics.h"
#include "net/http.h"
#include "net/registry.h"
#include "net/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ACCEPTS_A_CALL = 64 };

static bool
fail_address(char *ret_reason, const char *what, const char *where)
{
    (void)snprintf(ret_reason, LISTENER_REASON_MAX, "cannot %s %s: %s", what,
                   where, strerror(errno));
    return false;
}

static void
keep_listener(struct listeners *all, int fd, enum listener_kind kind)
{
    struct listener *listener = &all->listener[all->count++];

    listener->fd = fd;
    listener->is_unix = kind == LISTENER_UNIX;
    listener->is_tls = kind == LISTENER_TLS;
    listener->is_admin = kind == LISTENER_ADMIN;
    listener->is_metrics = kind == LISTENER_METRICS;
    all->has_admin = all->has_admin || listener->is_admin;
    all->has_metrics = all->has_metrics || listener->is_metrics;
    listener->all = all;
}

static int
open_tcp(const struct addrinfo *info, int backlog)
{
    int one = 1;
    int saved;
    int fd =
        socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (info->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    }
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
        listen(fd, backlog) == 0) {
        return fd;
    }
    saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

static bool
listen_on_address(struct listeners *all, const char *address,
                  enum listener_kind kind, unsigned port_number, int backlog,
                  char *ret_reason)
{
    bool optional = address[0] == '-';
    const char *host = address + (optional ? 1 : 0);
    struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                              .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char port[16];
    char where[64];
    int rc;
    int fd;

    if (strcmp(host, "*") == 0) {
        host = "0.0.0.0";
    } else if (strcmp(host, "::*") == 0) {
        host = "::";
    }
    (void)snprintf(port, sizeof(port), "%u", port_number);
    (void)snprintf(where, sizeof(where), "%.40s port %s", host, port);
    rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0) {
        (void)snprintf(ret_reason, LISTENER_REASON_MAX,
                       "cannot listen on %s: %s", where, gai_strerror(rc));
        return optional;
    }
    fd = open_tcp(found, backlog);
    freeaddrinfo(found);
    if (fd < 0) {
        bool absent = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;

        return (optional && absent) ||
               fail_address(ret_reason, "listen on", where);
    }
    keep_listener(all, fd, kind);
    return true;
}

/* Removes a socket file on which no process listens. Does not block if the
 * listening process does not accept. */
static bool
remove_stale(const struct sockaddr_un *address)
{
    struct stat info;
    int fd;
    bool alive;

    if (lstat(address->sun_path, &info) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISSOCK(info.st_mode)) {
        errno = EEXIST;
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    alive =
        connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
        errno != ECONNREFUSED;
    (void)close(fd);
    if (alive) {
        errno = EADDRINUSE;
        return false;
    }
    return unlink(address->sun_path) == 0;
}

/* Gives the socket file to the group of this name; "": changes nothing. */
static bool
set_group(const char *path, const char *name)
{
    struct group entry, *found = NULL;
    char text[4096];

    if (name == NULL || name[0] == '\0') {
        return true;
    }
    if (getgrnam_r(name, &entry, text, sizeof(text), &found) != 0 ||
        found == NULL) {
        errno = EINVAL;
        return false;
    }
    return chown(path, (uid_t)-1, found->gr_gid) == 0;
}

/* The mode is never wider than asked: bind obeys the umask, and no client can
 * connect before listen, which comes after chmod. */
static bool
listen_on_path(struct listeners *all, const struct listen_options *options,
               char *ret_reason)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    mode_t mask;
    bool bound;
    int fd;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   options->unix_path);
    if (!remove_stale(&address)) {
        return fail_address(ret_reason, "use the unix socket",
                            options->unix_path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fail_address(ret_reason, "make the unix socket",
                            options->unix_path);
    }
    mask = umask(0177);
    bound = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    (void)umask(mask);
    if (!bound || !set_group(address.sun_path, options->unix_group) ||
        chmod(address.sun_path, (mode_t)options->unix_mode) != 0 ||
        listen(fd, options->backlog) != 0) {
        (void)fail_address(ret_reason, "listen on", options->unix_path);
        if (bound) {
            (void)unlink(address.sun_path);
        }
        (void)close(fd);
        return false;
    }
    memcpy(all->unix_path, address.sun_path, sizeof(all->unix_path));
    keep_listener(all, fd, LISTENER_UNIX);
    return true;
}

/* Listens on all addresses of one list, unless sockets of this kind are given.
 */
static bool
listen_on_addresses(struct listeners *all, enum listener_kind kind,
                    const char *at, unsigned port, int backlog,
                    char *ret_reason)
{
    while (port > 0 && *at != '\0' && !all->given[kind]) {
        char word[128];
        size_t len = strcspn(at, " ");

        if (len > 0 && len < sizeof(word) && all->count < LISTENERS_MAX - 1) {
            memcpy(word, at, len);
            word[len] = '\0';
            if (!listen_on_address(all, word, kind, port, backlog,
                                   ret_reason)) {
                return false;
            }
        }
        at += len;
        at += strspn(at, " ");
    }
    return true;
}

/* ---- sockets of the service manager -------------------------------------- */

static bool
refuse_given(char *ret_reason, int fd, const char *why)
{
    (void)snprintf(ret_reason, LISTENER_REASON_MAX,
                   "cannot use descriptor %d, which the service manager has "
                   "opened: %s",
                   fd, why);
    return false;
}

/* Finds out what a TCP socket is for, by its port. */
static bool
find_kind(const struct sockaddr_storage *own,
          const struct listen_options *options, enum listener_kind *ret_kind)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)own;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)own;
    unsigned port =
        ntohs(own->ss_family == AF_INET ? in->sin_port : in6->sin6_port);

    if (port == options->port) {
        *ret_kind = LISTENER_PLAIN;
    } else if (port == options->tls_port) {
        *ret_kind = LISTENER_TLS;
    } else if (port == options->admin_port) {
        *ret_kind = LISTENER_ADMIN;
    } else {
        *ret_kind = LISTENER_METRICS;
    }
    return port == options->port || port == options->tls_port ||
           port == options->admin_port || port == options->metrics_port;
}

static bool
take_given(struct listeners *all, int fd, const struct listen_options *options,
           char *ret_reason)
{
    struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
    const struct sockaddr_un *un = (const struct sockaddr_un *)&own;
    enum listener_kind kind = LISTENER_UNIX;
    socklen_t len = sizeof(own);
    socklen_t int_len = sizeof(int);
    int listens = 0;
    int type = 0;

    if (getsockname(fd, (struct sockaddr *)&own, &len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_len) != 0 ||
        listens == 0 || type != SOCK_STREAM) {
        return refuse_given(ret_reason, fd, "it is no stream that listens");
    }
    if (own.ss_family == AF_UNIX) {
        if (strncmp(un->sun_path, options->unix_path, sizeof(un->sun_path)) !=
            0) {
            return refuse_given(ret_reason, fd,
                                "its path is not that of unixsocket");
        }
    } else if (own.ss_family != AF_INET && own.ss_family != AF_INET6) {
        return refuse_given(ret_reason, fd, "it is not TCP and not unix");
    } else if (!find_kind(&own, options, &kind)) {
        return refuse_given(ret_reason, fd,
                            "its port is not port, tls-port, admin-port or "
                            "metrics-port");
    }
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
        return refuse_given(ret_reason, fd, strerror(errno));
    }
    keep_listener(all, fd, kind);
    all->given[kind] = true;
    return true;
}

static bool
take_all_given(struct listeners *all, const struct listen_options *options,
               char *ret_reason)
{
    if (options->given_count >= LISTENERS_MAX) {
        return refuse_given(ret_reason,
                            options->given_first + LISTENERS_MAX - 1,
                            "there are too many");
    }
    for (unsigned i = 0; i < options->given_count; i++) {
        if (!take_given(all, options->given_first + (int)i, options,
                        ret_reason)) {
            return false;
        }
    }
    return true;
}

/* ---- opening ------------------------------------------------------------- */

static bool
open_all(struct listeners *all, const struct listen_options *options,
         char *ret_reason)
{
    int backlog = options->backlog;

    if (!take_all_given(all, options, ret_reason) ||
        !listen_on_addresses(all, LISTENER_PLAIN, options->bind, options->port,
                             backlog, ret_reason) ||
        !listen_on_addresses(all, LISTENER_TLS, options->bind,
                             options->tls_port, backlog, ret_reason) ||
        !listen_on_addresses(all, LISTENER_ADMIN, options->admin_bind,
                             options->admin_port, backlog, ret_reason)) {
        return false;
    }
    if (options->unix_path[0] != '\0' && !all->given[LISTENER_UNIX] &&
        !listen_on_path(all, options, ret_reason)) {
        return false;
    }
    if (all->count == 0) {
        (void)snprintf(ret_reason, LISTENER_REASON_MAX,
                       "nothing to listen on: no usable address or path");
        return false;
    }
    return listen_on_addresses(all, LISTENER_METRICS, options->metrics_bind,
                               options->metrics_port, backlog, ret_reason);
}

bool
listeners_open(struct listeners *all, const struct listen_options *options,
               char ret_reason[LISTENER_REASON_MAX])
{
    *all = (struct listeners){ .reserve_fd = -1 };
    if (open_all(all, options, ret_reason)) {
        all->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return true;
    }
    for (unsigned i = 0; i < all->count; i++) {
        (void)close(all->listener[i].fd);
    }
    return false;
}

/* Refuses a client, with the reason. A TLS client is not told the reason, which
 * would need a handshake first, nor is a client of metrics-port. */
static void
refuse_client(const struct listener *listener, int fd, enum err err)
{
    char line[256];
    int len = snprintf(line, sizeof(line), "-%s %s\r\n", err_prefix(err),
                       err_text(err));

    metric_add(METRIC_REJECTED_CONNECTIONS, 1);
    if (!listener->is_tls && !listener->is_metrics &&
        write(fd, line, (size_t)len) < 0) {
        errno = 0; /* the client has gone */
    }
    (void)close(fd);
}

static void
open_here(struct loop *loop, void *ptr, uint64_t fd_and_how)
{
    (void)ptr;
    serve_open(loop, (int)(fd_and_how & UINT32_MAX),
               (unsigned)(fd_and_how >> 32));
}

static void
post_to_loop(struct listener *listener, int fd, enum registry_place place)
{
    struct listeners *all = listener->all;
    struct loop *loop = &all->loops[all->next_loop];
    unsigned how = (listener->is_unix ? SERVE_UNIX : 0) |
                   (listener->is_tls ? SERVE_TLS : 0) |
                   (place == PLACE_RESERVED ? SERVE_RESERVED : 0);

    all->next_loop = (all->next_loop + 1) % all->loop_count;
    if (loop == &all->loops[0]) {
        serve_open(loop, fd, how);
        return;
    }
    if (!mailbox_post(&loop->mailbox, open_here, NULL,
                      (uint64_t)how << 32 | (uint32_t)fd)) {
        registry_release(loop->env->registry, place);
        refuse_client(listener, fd, ERR_MAXCLIENTS);
    }
}

/* Finds a place for a client. The admin port uses the reserved places first; a
 * unix socket that stands in for it uses them last, since other clients come in
 * there too. */
static bool
find_place(const struct listener *listener, enum registry_place *ret_place)
{
    const struct listeners *all = listener->all;
    const struct loop_env *env = all->loops[0].env;
    const struct net_limits *limits = env->limits;
    bool may_reserve =
        listener->is_admin || (listener->is_unix && !all->has_admin);

    for (int i = 0; i < REGISTRY_PLACES; i++) {
        bool reserved = (i == 0) == listener->is_admin;

        *ret_place = reserved ? PLACE_RESERVED : PLACE_COMMON;
        if ((!reserved || may_reserve) &&
            registry_reserve(env->registry, *ret_place,
                             reserved ? limits->reserved_clients
                                      : limits->maxclients)) {
            return true;
        }
    }
    return false;
}

static void
admit(struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    const struct loop_env *env = listener->all->loops[0].env;
    bool denied = env->limits->local_only &&
                  !address_is_local((const struct sockaddr *)peer);
    enum registry_place place;

    if (listener->is_metrics) {
        http_open(listener->all->http, fd, denied);
    } else if (denied) {
        refuse_client(listener, fd, ERR_DENIED);
    } else if (!find_place(listener, &place)) {
        refuse_client(listener, fd, ERR_MAXCLIENTS);
    } else {
        post_to_loop(listener, fd, place);
    }
}

/* Refuses a waiting client for which there is no descriptor: closes the
 * reserve, accepts and refuses the client, and opens the reserve again. */
static void
shed_one(struct listener *listener)
{
    struct listeners *all = listener->all;
    int fd;

    log_repeated(LOG_ERROR, "net.listener",
                 "refused clients, no descriptor left", "%s",
                 "raise LimitNOFILE or lower maxclients");
    if (all->reserve_fd >= 0) {
        (void)close(all->reserve_fd);
    }
    fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        refuse_client(listener, fd, ERR_MAXCLIENTS);
    }
    all->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
on_connection(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;

    (void)events;
    for (int i = 0; status == 0 && i < ACCEPTS_A_CALL; i++) {
        struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
        socklen_t len = sizeof(peer);
        int fd = accept4(listener->fd, (struct sockaddr *)&peer, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            admit(listener, fd, &peer);
        } else if (errno == EMFILE || errno == ENFILE) {
            shed_one(listener);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

void
listeners_start(struct listeners *all, struct loop *loops, unsigned loop_count)
{
    all->loops = loops;
    all->loop_count = loop_count;
    for (unsigned i = 0; i < all->count; i++) {
        struct listener *listener = &all->listener[i];

        CHECK(uv_poll_init(&loops[0].uv, &listener->poll, listener->fd) == 0);
        listener->poll.data = listener;
        CHECK(uv_poll_start(&listener->poll, UV_READABLE, on_connection) == 0);
    }
}

static void
on_poll_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;

    (void)close(listener->fd);
}

void
listeners_close(struct listeners *all)
{
    for (unsigned i = 0; i < all->count; i++) {
        uv_close((uv_handle_t *)&all->listener[i].poll, on_poll_closed);
    }
    if (all->unix_path[0] != '\0') {
        (void)unlink(all->unix_path);
    }
    if (all->reserve_fd >= 0) {
        (void)close(all->reserve_fd);
        all->reserve_fd = -1;
    }
}
