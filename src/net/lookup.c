/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names wait in one queue for at most four threads, which end when it is empty.
 * The newest name is looked up first, and an abandoned one leaves the queue. A
 * look-up that a thread has begun cannot be stopped: the thread finishes it,
 * and a new look-up of the same name takes over its result.
 *
 * `done` is called under the mutex, so that lookup_free can guarantee that it
 * is not called afterwards.
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

/* QUEUED -> RESOLVING -> DONE; an address in digits begins as DONE. */
enum state { QUEUED, RESOLVING, DONE };

struct lookup {
    struct lookup *next; /* in the list of its state */
    char *host;
    char port[16];
    struct addrinfo *found;
    int error;
    void (*done)(void *ctx);
    void *ctx;
    enum state state;
    bool abandoned; /* while RESOLVING: its thread frees it */
};

static struct {
    pthread_mutex_t mutex; /* guards the fields below, and all look-ups but for
                              the results of those being resolved or done */
    struct lookup *queue, *resolving;
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
add_lookup(struct lookup **list, struct lookup *lookup, enum state state)
{
    lookup->state = state;
    lookup->next = *list;
    *list = lookup;
}

static void
remove_from(struct lookup **list, struct lookup *lookup)
{
    while (*list != lookup) {
        list = &(*list)->next;
    }
    *list = lookup->next;
}

/* ---- threads ------------------------------------------------------------- */

/* Resolves the newest name. Called under the mutex, which it releases
 * meanwhile.
 */
static void
resolve_one(void)
{
    struct lookup *lookup = pool.queue;

    remove_from(&pool.queue, lookup);
    add_lookup(&pool.resolving, lookup, RESOLVING);
    pthread_mutex_unlock(&pool.mutex);
    resolve(lookup, 0);
    pthread_mutex_lock(&pool.mutex);
    remove_from(&pool.resolving, lookup);
    lookup->state = DONE;
    if (lookup->abandoned) {
        destroy(lookup);
    } else {
        lookup->done(lookup->ctx);
    }
}

/* Runs in a detached thread. */
static void *
resolve_all(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&pool.mutex);
    while (pool.queue != NULL) {
        resolve_one();
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
    bool started =
        thread_start(&thread, "lookup", resolve_all, NULL, THREAD_PASSES);

    if (started) {
        CHECK(pthread_detach(thread) == 0);
        pool.threads++;
    }
    return started;
}

/* ---- the callers --------------------------------------------------------- */

static struct lookup *
make_lookup(const char *host, const char *port)
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

/* Returns an abandoned look-up of this name that is being resolved. */
static struct lookup *
find_abandoned(const char *host, const char *port)
{
    struct lookup *lookup = pool.resolving;

    while (lookup != NULL &&
           (!lookup->abandoned || strcmp(lookup->host, host) != 0 ||
            strcmp(lookup->port, port) != 0)) {
        lookup = lookup->next;
    }
    return lookup;
}

/* Queues a look-up; false if there is no thread for it. */
static bool
start(struct lookup *lookup)
{
    add_lookup(&pool.queue, lookup, QUEUED);
    if (pool.threads == THREADS_MAX || start_thread()) {
        return true;
    }
    remove_from(&pool.queue, lookup);
    return false;
}

struct lookup *
lookup_new(const char *host, unsigned port, void (*done)(void *ctx), void *ctx)
{
    struct lookup *fresh;
    struct lookup *lookup;
    char port_text[16];

    (void)snprintf(port_text, sizeof(port_text), "%u", port);
    fresh = lookup = make_lookup(host, port_text);
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
        remove_from(&pool.queue, lookup);
    }
    lookup->abandoned = lookup->state == RESOLVING;
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
