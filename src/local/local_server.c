/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_server.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/layer.h"
#include "local/local_readers.h"
#include "tls/tls_context.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_MAX_MS = 60000,
    EXIT_MS = 1000 /* for the threads to end */
};

struct local_server {
    struct local_url url;
    struct local_address address;
    char ca[LOCAL_FILE_BYTES], cert[LOCAL_FILE_BYTES], key[LOCAL_FILE_BYTES];
    struct tls_contexts tls;
    struct local_sentinel sentinel; /* used by the thread, if there are
                                       Sentinels */
    int wake_fd;
    struct local_server *next; /* in the registry */
    /* Guarded by the registry's mutex: the threads that open copies add
     * members, and the server's thread removes them. */
    unsigned count;
    struct bloomery_local *members[LOCAL_SERVER_COPIES];
    unsigned begun; /* used by the thread: how many members it has begun */
};

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct local_server *servers;
/* Threads that may use OpenSSL. Guarded by the registry's mutex. */
static unsigned threads;

/* ---- once ---------------------------------------------------------------- */

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&registry);
}

static void
after_fork(void)
{
    (void)pthread_mutex_unlock(&registry);
}

/* Handles a fork, in the child. The memory of the threads stays allocated. */
static void
in_child(void)
{
    for (struct local_server *server = servers; server != NULL;
         server = server->next) {
        for (unsigned i = 0; i < server->count; i++) {
            local_member_forked(server->members[i]);
        }
    }
    servers = NULL;
    threads = 0;
    local_readers_forked();
    (void)pthread_mutex_unlock(&registry);
}

static void
wake(const struct local_server *server)
{
    (void)eventfd_write(server->wake_fd, 1);
}

/* Stops the threads, and waits until they have freed what OpenSSL keeps for
 * them. A thread that looks up a name may go on. */
static void
at_exit(void)
{
    const struct timespec pause = { 0, 1000000 };
    uint64_t end_ms = clock_mono_ms() + EXIT_MS;
    bool done = false;

    while (!done && clock_mono_ms() < end_ms) {
        (void)pthread_mutex_lock(&registry);
        for (struct local_server *server = servers; server != NULL;
             server = server->next) {
            for (unsigned i = 0; i < server->count; i++) {
                atomic_store(&server->members[i]->closed, true);
                local_place_close(&server->members[i]->place);
            }
            wake(server);
        }
        done = threads == 0;
        (void)pthread_mutex_unlock(&registry);
        if (!done) {
            (void)nanosleep(&pause, NULL);
        }
    }
}

static bool ready;

static void
begin(void)
{
    (void)layer_select_shared();
    ready = local_readers_init(false) &&
            pthread_atfork(before_fork, after_fork, in_child) == 0;
}

/* ---- the thread ---------------------------------------------------------- */

/* Begins copies that have joined, and ends copies that are closed. False: no
 * copy is left, and the server is out of the registry. */
static bool
look_at_members(struct local_server *server)
{
    struct bloomery_local *ended[LOCAL_SERVER_COPIES];
    unsigned kept = 0, ends = 0;
    struct local_server **at;

    (void)pthread_mutex_lock(&registry);
    for (; server->begun < server->count; server->begun++) {
        local_member_begin(server->members[server->begun], &server->address,
                           server->wake_fd);
    }
    for (unsigned i = 0; i < server->count; i++) {
        struct bloomery_local *member = server->members[i];

        if (atomic_load(&member->closed)) {
            member->server = NULL;
            ended[ends++] = member;
        } else {
            server->members[kept++] = member;
        }
    }
    server->count = kept;
    server->begun = kept;
    for (at = &servers; kept == 0 && *at != NULL; at = &(*at)->next) {
        if (*at == server) {
            *at = server->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&registry);
    for (unsigned i = 0; i < ends; i++) {
        local_member_end(ended[i]);
    }
    return kept > 0;
}

/* Reads what a Sentinel has sent meanwhile: a dial to a server that is gone may
 * have taken long, and the next one should go to another server. */
static void
hear_sentinel(struct local_server *server)
{
    struct pollfd watch;

    (void)local_sentinel_prepare(&server->sentinel, local_link_now_ms(),
                                 &watch);
    (void)poll(&watch, 1, 0);
    local_sentinel_react(&server->sentinel, local_link_now_ms(), &watch);
}

/* Lets each copy send and receive. */
static void
step(struct local_server *server)
{
    struct pollfd polls[LOCAL_SERVER_COPIES + 2];
    struct pollfd *wakes = &polls[server->begun], *watch = wakes + 1;
    bool watches = server->address.sentinel != NULL;
    uint64_t next_ms = UINT64_MAX, now_ms, wait_ms;
    eventfd_t count;

    *wakes = (struct pollfd){ .fd = server->wake_fd, .events = POLLIN };
    *watch = (struct pollfd){ .fd = -1 };
    for (unsigned i = 0; i < server->begun; i++) {
        struct local_link *link = &server->members[i]->link;
        uint64_t then_ms;

        if (watches && link->dial_at_ms != 0) {
            hear_sentinel(server);
        }
        then_ms = local_link_prepare(link, &polls[i]);
        local_member_look(server->members[i]);
        next_ms = then_ms < next_ms ? then_ms : next_ms;
    }
    now_ms = local_link_now_ms();
    if (watches) {
        uint64_t then_ms =
            local_sentinel_prepare(&server->sentinel, now_ms, watch);

        next_ms = then_ms < next_ms ? then_ms : next_ms;
    }
    wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    (void)poll(polls, server->begun + 2,
               wait_ms < WAIT_MAX_MS ? (int)wait_ms : WAIT_MAX_MS);
    (void)eventfd_read(server->wake_fd, &count);
    if (watches) {
        local_sentinel_react(&server->sentinel, local_link_now_ms(), watch);
    }
    for (unsigned i = 0; i < server->begun; i++) {
        local_link_react(&server->members[i]->link, &polls[i]);
        local_member_look(server->members[i]);
    }
}

static void
free_server(struct local_server *server)
{
    local_sentinel_close(&server->sentinel);
    tls_contexts_fini(&server->tls);
    if (server->wake_fd >= 0) {
        (void)close(server->wake_fd);
    }
    explicit_bzero(&server->url, sizeof(server->url));
    mem_free(server);
}

static void *
run(void *arg)
{
    struct local_server *server = arg;

    while (look_at_members(server)) {
        step(server);
    }
    free_server(server);
    tls_end_thread();
    (void)pthread_mutex_lock(&registry);
    threads--;
    (void)pthread_mutex_unlock(&registry);
    return NULL;
}

/* ---- joining ------------------------------------------------------------- */

static struct local_server *
find_server(const struct local_url *url, const struct local_files *files)
{
    for (struct local_server *server = servers; server != NULL;
         server = server->next) {
        if (server->count < LOCAL_SERVER_COPIES &&
            local_url_equal(&server->url, url) &&
            strcmp(server->ca, files->ca) == 0 &&
            strcmp(server->cert, files->cert) == 0 &&
            strcmp(server->key, files->key) == 0) {
            return server;
        }
    }
    return NULL;
}

static bool
load_tls(struct local_server *server, char *ret_reason)
{
    struct tls_settings settings = tls_settings_of_client;

    settings.cert_file = server->cert;
    settings.key_file = server->key;
    settings.ca_cert_file = server->ca;
    settings.partial_chains = true;
    return tls_contexts_load(&server->tls, &settings, ret_reason);
}

/* Makes a server without a thread. */
static enum bloomery_local_code
new_server(const struct local_url *url, const struct local_files *files,
           struct local_server **ret_server, char *ret_reason)
{
    struct local_server *server = mem_try_zalloc(sizeof(*server));
    enum bloomery_local_code code = BLOOMERY_LOCAL_THREAD;

    if (server == NULL) {
        return BLOOMERY_LOCAL_NOMEM;
    }
    server->url = *url;
    (void)snprintf(server->ca, sizeof(server->ca), "%s", files->ca);
    (void)snprintf(server->cert, sizeof(server->cert), "%s", files->cert);
    (void)snprintf(server->key, sizeof(server->key), "%s", files->key);
    tls_contexts_init(&server->tls);
    local_sentinel_init(&server->sentinel, &server->url,
                        url->tls ? &server->tls : NULL);
    server->address = (struct local_address){
        .host = server->url.host,
        .port = server->url.port,
        .sentinel = url->sentinels[0] != '\0' ? &server->sentinel : NULL,
        .tls = url->tls ? &server->tls : NULL,
        .user = slice_of(server->url.user),
        .database = url->database,
    };
    if (url->has_password) {
        server->address.password = slice_of(server->url.password);
    }
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_fd < 0) {
        goto fail;
    }
    if (url->tls && !load_tls(server, ret_reason)) {
        code = BLOOMERY_LOCAL_TLS;
        goto fail;
    }
    *ret_server = server;
    return BLOOMERY_LOCAL_OK;

fail:
    free_server(server);
    return code;
}

static enum bloomery_local_code
start(struct local_server *server)
{
    static bool stops;
    pthread_t thread;

    /* Registered after OpenSSL's handler, so it runs before that one. */
    if (!stops && server->address.tls != NULL) {
        stops = atexit(at_exit) == 0;
    }
    if (!thread_start(&thread, "bloomery-local", run, server, THREAD_PASSES)) {
        free_server(server);
        return BLOOMERY_LOCAL_THREAD;
    }
    (void)pthread_detach(thread);
    threads++;
    server->next = servers;
    servers = server;
    return BLOOMERY_LOCAL_OK;
}

/* Adds a copy to its server. The caller holds the registry's mutex, for which
 * the thread of a new server waits. */
static enum bloomery_local_code
admit(const struct local_url *url, const struct local_files *files,
      struct bloomery_local *member, char *ret_reason)
{
    struct local_server *server = find_server(url, files);
    enum bloomery_local_code code = BLOOMERY_LOCAL_OK;
    bool is_new = server == NULL;

    if (is_new) {
        code = new_server(url, files, &server, ret_reason);
        if (code != BLOOMERY_LOCAL_OK) {
            return code;
        }
    }
    (void)atomic_fetch_add(&member->references, 1);
    member->server = server;
    server->members[server->count++] = member;
    if (is_new) {
        code = start(server);
    } else {
        wake(server);
    }
    if (code != BLOOMERY_LOCAL_OK) {
        member->server = NULL;
        (void)atomic_fetch_sub(&member->references, 1);
    }
    return code;
}

enum bloomery_local_code
local_server_join(const struct local_url *url, const struct local_files *files,
                  struct bloomery_local *member, char *ret_reason)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    enum bloomery_local_code code = BLOOMERY_LOCAL_THREAD;

    (void)pthread_once(&once, begin);
    if (ready) {
        (void)pthread_mutex_lock(&registry);
        code = admit(url, files, member, ret_reason);
        (void)pthread_mutex_unlock(&registry);
    }
    return code;
}

void
local_server_wake(struct bloomery_local *member)
{
    (void)pthread_mutex_lock(&registry);
    if (member->server != NULL) {
        wake(member->server);
    }
    (void)pthread_mutex_unlock(&registry);
}
