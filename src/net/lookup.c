/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two owners, who asked and the thread; the last one frees. The mutex is held
 * while `done` is called, so that lookup_free can promise that it is over.
 */
#include "net/lookup.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct lookup {
    char *host;
    char port[16];
    struct addrinfo *found;
    int error;
    pthread_mutex_t mutex; /* guards what follows, and found until is_done */
    void (*done)(void *ctx);
    void *ctx;
    bool is_done, abandoned;
};

static void
resolve(struct lookup *lookup, int flags)
{
    struct addrinfo hints = { .ai_flags = flags | AI_NUMERICSERV,
                              .ai_socktype = SOCK_STREAM };

    lookup->error =
        getaddrinfo(lookup->host, lookup->port, &hints, &lookup->found);
    if (lookup->error != 0) {
        lookup->found = NULL;
    }
}

static void
destroy(struct lookup *lookup)
{
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    pthread_mutex_destroy(&lookup->mutex);
    mem_free(lookup->host);
    mem_free(lookup);
}

/* Nobody joins it. */
static void *
run(void *arg)
{
    struct lookup *lookup = arg;
    bool abandoned;

    resolve(lookup, 0);
    pthread_mutex_lock(&lookup->mutex);
    abandoned = lookup->abandoned;
    lookup->is_done = true;
    if (!abandoned) {
        lookup->done(lookup->ctx);
    }
    pthread_mutex_unlock(&lookup->mutex);
    if (abandoned) {
        destroy(lookup);
    }
    metric_thread_exit();
    return NULL;
}

static bool
start_thread(struct lookup *lookup)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    bool started;

    (void)sigfillset(&all); /* signals are for the loops */
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    started = pthread_create(&thread, NULL, run, lookup) == 0;
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (started) {
        CHECK(pthread_detach(thread) == 0);
    }
    return started;
}

struct lookup *
lookup_new(const char *host, unsigned port, void (*done)(void *ctx), void *ctx)
{
    size_t size = strlen(host) + 1;
    struct lookup *lookup = mem_try_zalloc(sizeof(*lookup));

    if (lookup == NULL) {
        return NULL;
    }
    CHECK(pthread_mutex_init(&lookup->mutex, NULL) == 0);
    lookup->done = done;
    lookup->ctx = ctx;
    (void)snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    lookup->host = mem_try_alloc(size);
    if (lookup->host == NULL) {
        destroy(lookup);
        return NULL;
    }
    memcpy(lookup->host, host, size);
    resolve(lookup, AI_NUMERICHOST);
    if (lookup->error == 0) {
        lookup->is_done = true;
    } else if (!start_thread(lookup)) {
        destroy(lookup);
        return NULL;
    }
    return lookup;
}

void
lookup_free(struct lookup *lookup)
{
    bool is_done;

    if (lookup == NULL) {
        return;
    }
    pthread_mutex_lock(&lookup->mutex);
    is_done = lookup->is_done;
    lookup->abandoned = true;
    pthread_mutex_unlock(&lookup->mutex);
    if (is_done) {
        destroy(lookup);
    }
}

bool
lookup_is_done(struct lookup *lookup)
{
    bool is_done;

    pthread_mutex_lock(&lookup->mutex);
    is_done = lookup->is_done;
    pthread_mutex_unlock(&lookup->mutex);
    return is_done;
}

int
lookup_error(const struct lookup *lookup)
{
    return lookup->error;
}

const struct addrinfo *
lookup_found(const struct lookup *lookup)
{
    return lookup->found;
}
