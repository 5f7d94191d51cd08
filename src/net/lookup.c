/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names wait in one queue for at most four threads, which end when it is empty.
 * The newest name goes first, and one that nobody waits for any more leaves the
 * queue. A resolver that is busy cannot be stopped: its thread looks up the
 * next name when it comes back, and who asks for the same name meanwhile gets
 * what it finds.
 *
 * The mutex is held while `done` is called, so that lookup_free can promise
 * that it is over.
 */
#include "net/lookup.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS_MAX = 4 };

enum state { QUEUED, RUNS, DONE };

struct lookup {
    struct lookup *next; /* in the list of its state */
    char *host;
    char port[16];
    struct addrinfo *found;
    int error;
    void (*done)(void *ctx);
    void *ctx;
    enum state state;
    bool abandoned; /* while it runs: its thread frees it */
};

static struct {
    pthread_mutex_t mutex; /* guards what follows, and lookups but for what one
                              that runs or is done has found */
    struct lookup *queue, *running;
    unsigned threads;
} pool = { .mutex = PTHREAD_MUTEX_INITIALIZER };

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
    mem_free(lookup->host);
    mem_free(lookup);
}

static void
put(struct lookup **list, struct lookup *lookup, enum state state)
{
    lookup->state = state;
    lookup->next = *list;
    *list = lookup;
}

static void
take(struct lookup **list, struct lookup *lookup)
{
    while (*list != lookup) {
        list = &(*list)->next;
    }
    *list = lookup->next;
}

/* ---- threads ------------------------------------------------------------- */

/* The newest one. Under the mutex, which is open meanwhile. */
static void
run_one(void)
{
    struct lookup *lookup = pool.queue;

    take(&pool.queue, lookup);
    put(&pool.running, lookup, RUNS);
    pthread_mutex_unlock(&pool.mutex);
    resolve(lookup, 0);
    pthread_mutex_lock(&pool.mutex);
    take(&pool.running, lookup);
    lookup->state = DONE;
    if (lookup->abandoned) {
        destroy(lookup);
    } else {
        lookup->done(lookup->ctx);
    }
}

/* Nobody joins it. */
static void *
run(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&pool.mutex);
    while (pool.queue != NULL) {
        run_one();
    }
    pool.threads--;
    pthread_mutex_unlock(&pool.mutex);
    metric_thread_exit();
    return NULL;
}

static bool
start_thread(void)
{
    pthread_t thread;
    bool started = thread_start(&thread, "lookup", run, NULL, THREAD_PASSES);

    if (started) {
        CHECK(pthread_detach(thread) == 0);
        pool.threads++;
    }
    return started;
}

/* ---- who asks ------------------------------------------------------------ */

static struct lookup *
make(const char *host, const char *port)
{
    size_t size = strlen(host) + 1;
    struct lookup *lookup = mem_try_zalloc(sizeof(*lookup));

    if (lookup == NULL) {
        return NULL;
    }
    lookup->state = DONE;
    lookup->host = mem_try_alloc(size);
    if (lookup->host == NULL) {
        mem_free(lookup);
        return NULL;
    }
    memcpy(lookup->host, host, size);
    memcpy(lookup->port, port, sizeof(lookup->port));
    return lookup;
}

/* One of this name that runs, and that nobody waits for any more. */
static struct lookup *
find_abandoned(const char *host, const char *port)
{
    struct lookup *lookup = pool.running;

    while (lookup != NULL &&
           (!lookup->abandoned || strcmp(lookup->host, host) != 0 ||
            strcmp(lookup->port, port) != 0)) {
        lookup = lookup->next;
    }
    return lookup;
}

/* False: there is no thread for it. */
static bool
start(struct lookup *lookup)
{
    put(&pool.queue, lookup, QUEUED);
    if (pool.threads == THREADS_MAX || start_thread()) {
        return true;
    }
    take(&pool.queue, lookup);
    return false;
}

struct lookup *
lookup_new(const char *host, unsigned port, void (*done)(void *ctx), void *ctx)
{
    struct lookup *fresh;
    struct lookup *lookup;
    char port_text[16];

    (void)snprintf(port_text, sizeof(port_text), "%u", port);
    fresh = lookup = make(host, port_text);
    if (lookup == NULL) {
        return NULL;
    }
    resolve(lookup, AI_NUMERICHOST);
    if (lookup->error == 0) {
        return lookup;
    }
    pthread_mutex_lock(&pool.mutex);
    lookup = find_abandoned(host, port_text);
    if (lookup == NULL && start(fresh)) {
        lookup = fresh;
    }
    if (lookup != NULL) {
        lookup->done = done;
        lookup->ctx = ctx;
        lookup->abandoned = false;
    }
    pthread_mutex_unlock(&pool.mutex);
    if (lookup != fresh) {
        destroy(fresh);
    }
    return lookup;
}

void
lookup_free(struct lookup *lookup)
{
    if (lookup == NULL) {
        return;
    }
    pthread_mutex_lock(&pool.mutex);
    if (lookup->state == QUEUED) {
        take(&pool.queue, lookup);
    }
    lookup->abandoned = lookup->state == RUNS;
    if (!lookup->abandoned) {
        destroy(lookup);
    }
    pthread_mutex_unlock(&pool.mutex);
}

bool
lookup_is_done(struct lookup *lookup)
{
    bool is_done;

    pthread_mutex_lock(&pool.mutex);
    is_done = lookup->state == DONE;
    pthread_mutex_unlock(&pool.mutex);
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
