/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread takes the whole queue at once, frees it without the mutex, and
 * then counts it in `freed`. So a thread that waits compares two counters.
 * A filter's lines go back in pieces (mem_free_lines).
 */
#include "keyspace/reaper.h"

#include "base/allocator.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "keyspace/memory.h"

#include <pthread.h>

enum { AHEAD = 8 }; /* slots whose entries are prefetched */

struct reaper {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the fields below */
    pthread_cond_t work, done;
    struct entry *entries;
    struct reaper_set *sets;
    struct reaper_set *spare;
    uint64_t given, freed; /* entries and sets */
    bool stop;
};

static void
free_entry(struct entry *entry, int64_t *ret_bytes)
{
    *ret_bytes += keyspace_free_pending(entry);
    metric_add(METRIC_LAZYFREED, 1);
    metric_add(METRIC_LAZYFREE_PENDING, -1);
}

static uint64_t
free_queue(struct entry *entry, int64_t *ret_bytes)
{
    uint64_t count = 0;

    while (entry != NULL) {
        struct entry *next = entry->next_reaped;

        free_entry(entry, ret_bytes);
        entry = next;
        count++;
    }
    return count;
}

static int64_t
count_bytes(const struct reaper_set *set)
{
    int64_t bytes = 0;

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        const struct table *table = &set->tables[i];

        for (uint32_t b = 0; b < table->used; b++) {
            struct table_range range = table_whole_bucket(table, b);
            const struct entry *entry;

            while ((entry = table_range_next(&range)) != NULL) {
                table_range_prefetch(&range, AHEAD);
                bytes += (int64_t)bloom_size(&entry->bloom);
            }
        }
    }
    return bytes;
}

static void
free_contents(struct reaper_set *set)
{
    int64_t bytes = 0;

    if (set->bytes == REAPER_COUNTS) {
        set->bytes = count_bytes(set);
        metric_add(METRIC_LAZYFREE_PENDING_BYTES, set->bytes);
    }
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        struct table *table = &set->tables[i];

        for (uint32_t b = 0; b < table->used; b++) {
            struct table_range range = table_whole_bucket(table, b);
            struct entry *entry;

            while ((entry = table_range_next(&range)) != NULL) {
                table_range_prefetch(&range, AHEAD);
                free_entry(entry, &bytes);
            }
        }
        table_fini(table);
        expire_fini(&set->expires[i]);
    }
    metric_add(METRIC_LAZYFREE_PENDING_BYTES, bytes - set->bytes);
}

static uint64_t
free_sets(struct reaper *reaper, struct reaper_set *set)
{
    uint64_t count = 0;

    while (set != NULL) {
        struct reaper_set *next = set->next;

        free_contents(set);
        pthread_mutex_lock(&reaper->mutex);
        if (reaper->spare == NULL) {
            reaper->spare = set;
            set = NULL;
        }
        pthread_mutex_unlock(&reaper->mutex);
        mem_free(set);
        set = next;
        count++;
    }
    return count;
}

static void *
reap(void *arg)
{
    struct reaper *reaper = arg;

    pthread_mutex_lock(&reaper->mutex);
    for (;;) {
        struct entry *entries = reaper->entries;
        struct reaper_set *sets = reaper->sets;
        int64_t bytes = 0;
        uint64_t count;

        if (entries == NULL && sets == NULL) {
            if (reaper->stop) {
                break;
            }
            pthread_cond_wait(&reaper->work, &reaper->mutex);
            continue;
        }
        reaper->entries = NULL;
        reaper->sets = NULL;
        pthread_mutex_unlock(&reaper->mutex);
        count = free_queue(entries, &bytes);
        count += free_sets(reaper, sets);
        allocator_empty_cache();
        pthread_mutex_lock(&reaper->mutex);
        reaper->freed += count;
        pthread_cond_broadcast(&reaper->done);
    }
    pthread_mutex_unlock(&reaper->mutex);
    metric_thread_exit();
    return NULL;
}

static void
destroy(struct reaper *reaper)
{
    pthread_cond_destroy(&reaper->work);
    pthread_cond_destroy(&reaper->done);
    pthread_mutex_destroy(&reaper->mutex);
    mem_free(reaper->spare);
    mem_free(reaper);
}

struct reaper *
reaper_try_new(enum thread_life life)
{
    struct reaper *reaper = mem_try_zalloc(sizeof(*reaper));

    if (reaper == NULL) {
        return NULL;
    }
    CHECK(pthread_mutex_init(&reaper->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&reaper->work, NULL) == 0);
    CHECK(pthread_cond_init(&reaper->done, NULL) == 0);
    reaper->spare = mem_try_alloc(sizeof(*reaper->spare));
    if (reaper->spare == NULL ||
        !thread_start(&reaper->thread, "reaper", reap, reaper, life)) {
        destroy(reaper);
        return NULL;
    }
    return reaper;
}

void
reaper_free(struct reaper *reaper)
{
    if (reaper == NULL) {
        return;
    }
    pthread_mutex_lock(&reaper->mutex);
    reaper->stop = true;
    pthread_cond_signal(&reaper->work);
    pthread_mutex_unlock(&reaper->mutex);
    CHECK(pthread_join(reaper->thread, NULL) == 0);
    destroy(reaper);
}

void
reaper_give_entry(struct reaper *reaper, struct entry *entry)
{
    metric_add(METRIC_LAZYFREE_PENDING, 1);
    metric_add(METRIC_LAZYFREE_PENDING_BYTES,
               (int64_t)bloom_size(&entry->bloom));
    pthread_mutex_lock(&reaper->mutex);
    entry->next_reaped = reaper->entries;
    reaper->entries = entry;
    reaper->given++;
    pthread_cond_signal(&reaper->work);
    pthread_mutex_unlock(&reaper->mutex);
}

struct reaper_set *
reaper_take_set(struct reaper *reaper)
{
    struct reaper_set *set = NULL;

    while (set == NULL) {
        pthread_mutex_lock(&reaper->mutex);
        set = reaper->spare;
        reaper->spare = NULL;
        pthread_mutex_unlock(&reaper->mutex);
        if (set == NULL) {
            set = mem_try_alloc(sizeof(*set));
        }
        if (set == NULL) {
            reaper_wait(reaper);
        }
    }
    return set;
}

void
reaper_give_set(struct reaper *reaper, struct reaper_set *set)
{
    metric_add(METRIC_LAZYFREE_PENDING, (int64_t)set->entries);
    if (set->bytes != REAPER_COUNTS) {
        metric_add(METRIC_LAZYFREE_PENDING_BYTES, set->bytes);
    }
    pthread_mutex_lock(&reaper->mutex);
    set->next = reaper->sets;
    reaper->sets = set;
    reaper->given++;
    pthread_cond_signal(&reaper->work);
    pthread_mutex_unlock(&reaper->mutex);
}

void
reaper_wait(struct reaper *reaper)
{
    uint64_t target;

    pthread_mutex_lock(&reaper->mutex);
    target = reaper->given;
    while (reaper->freed < target) {
        pthread_cond_wait(&reaper->done, &reaper->mutex);
    }
    pthread_mutex_unlock(&reaper->mutex);
}
