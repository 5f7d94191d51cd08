/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A turn lasts from crew_begin to crew_end. Each thread works once in a turn.
 */
#include "snapshot/crew.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

enum { THREADS_MAX = 64 };

struct member {
    struct crew *crew;
    unsigned number;
    pthread_t thread;
};

struct crew {
    pthread_mutex_t mutex; /* guards the fields below */
    pthread_cond_t begin, done;
    uint64_t turn;
    unsigned working;
    bool stop;
    void (*work)(void *ctx, unsigned number);
    void *ctx;
    unsigned size;
    struct member members[THREADS_MAX]; /* 0 is the owner: not used */
};

static void *
serve(void *arg)
{
    const struct member *member = arg;
    struct crew *crew = member->crew;
    uint64_t turn = 0;

    pthread_mutex_lock(&crew->mutex);
    for (;;) {
        while (crew->turn == turn && !crew->stop) {
            pthread_cond_wait(&crew->begin, &crew->mutex);
        }
        if (crew->stop) {
            break;
        }
        turn = crew->turn;
        pthread_mutex_unlock(&crew->mutex);
        crew->work(crew->ctx, member->number);
        pthread_mutex_lock(&crew->mutex);
        if (--crew->working == 0) {
            pthread_cond_signal(&crew->done);
        }
    }
    pthread_mutex_unlock(&crew->mutex);
    metric_thread_exit();
    return NULL;
}

struct crew *
crew_new(unsigned threads)
{
    struct crew *crew = threads > 1 ? mem_try_zalloc(sizeof(*crew)) : NULL;

    if (crew == NULL) {
        return NULL;
    }
    CHECK(pthread_mutex_init(&crew->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&crew->begin, NULL) == 0);
    CHECK(pthread_cond_init(&crew->done, NULL) == 0);
    crew->size = 1;
    for (unsigned i = 1; i < threads && i < THREADS_MAX; i++) {
        crew->members[i] = (struct member){ .crew = crew, .number = i };
        if (!thread_start(&crew->members[i].thread, "loader", serve,
                          &crew->members[i], THREAD_LASTS)) {
            break;
        }
        crew->size++;
    }
    if (crew->size == 1) {
        crew_free(crew);
        return NULL;
    }
    return crew;
}

void
crew_free(struct crew *crew)
{
    if (crew == NULL) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    crew->stop = true;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->mutex);
    for (unsigned i = 1; i < crew->size; i++) {
        CHECK(pthread_join(crew->members[i].thread, NULL) == 0);
    }
    pthread_cond_destroy(&crew->begin);
    pthread_cond_destroy(&crew->done);
    pthread_mutex_destroy(&crew->mutex);
    mem_free(crew);
}

unsigned
crew_size(const struct crew *crew)
{
    return crew != NULL ? crew->size : 1;
}

void
crew_begin(struct crew *crew, void (*work)(void *ctx, unsigned number),
           void *ctx)
{
    if (crew == NULL) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    crew->work = work;
    crew->ctx = ctx;
    crew->working = crew->size - 1;
    crew->turn++;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->mutex);
}

void
crew_end(struct crew *crew, void (*work)(void *ctx, unsigned number), void *ctx)
{
    work(ctx, 0);
    if (crew == NULL) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    while (crew->working > 0) {
        pthread_cond_wait(&crew->done, &crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
}
