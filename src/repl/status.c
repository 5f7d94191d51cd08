/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutex guards copies of the figures and of the list of replicas. The times
 * of the online replicas' last acknowledgements are atomics, sorted from the
 * newest to the oldest. While loop 0 replaces these times, a reader may see old
 * ones beside new ones.
 */
#include "repl/status.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

enum { ONLINE_MAX = 1024 }; /* above the maximum of max-replicas */

struct status {
    pthread_mutex_t mutex; /* guards the fields up to notes */
    struct status_figures figures;
    struct status_replica *replicas;
    size_t count, capacity;
    struct status_note notes[STATUS_TROUBLES];

    _Atomic size_t replicas_now;
    _Atomic size_t online;
    _Atomic uint64_t acked_mono_ms[ONLINE_MAX];
};

struct status *
status_new(void)
{
    struct status *status = mem_zalloc(sizeof(*status));

    CHECK(pthread_mutex_init(&status->mutex, NULL) == 0);
    return status;
}

void
status_free(struct status *status)
{
    if (status != NULL) {
        (void)pthread_mutex_destroy(&status->mutex);
        mem_free(status->replicas);
        mem_free(status);
    }
}

/* ---- loop 0 -------------------------------------------------------------- */

/* Sorts the times by insertion: there are few, and mostly they are in order
 * already. */
static void
publish_times(struct status *status, const struct status_replica *replicas,
              size_t count)
{
    uint64_t times[ONLINE_MAX];
    size_t online = 0;

    for (size_t i = 0; i < count && online < ONLINE_MAX; i++) {
        uint64_t acked = replicas[i].acked_mono_ms;
        size_t at = online;

        if (replicas[i].state != STATUS_ONLINE) {
            continue;
        }
        for (; at > 0 && times[at - 1] < acked; at--) {
            times[at] = times[at - 1];
        }
        times[at] = acked;
        online++;
    }
    for (size_t i = 0; i < online; i++) {
        atomic_store_explicit(&status->acked_mono_ms[i], times[i],
                              memory_order_relaxed);
    }
    atomic_store_explicit(&status->online, online, memory_order_release);
}

/* Copies as many replicas as there is memory for. */
static void
copy_replicas(struct status *status, const struct status_replica *replicas,
              size_t count)
{
    if (count > status->capacity) {
        struct status_replica *more =
            mem_try_realloc(status->replicas, count * sizeof(*more));

        if (more != NULL) {
            status->replicas = more;
            status->capacity = count;
        }
    }
    status->count = count < status->capacity ? count : status->capacity;
    if (status->count > 0) {
        memcpy(status->replicas, replicas, status->count * sizeof(*replicas));
    }
}

void
status_publish(struct status *status, const struct status_figures *figures,
               const struct status_replica *replicas, size_t count)
{
    CHECK(count == 0 || replicas != NULL);
    pthread_mutex_lock(&status->mutex);
    status->figures = *figures;
    copy_replicas(status, replicas, count);
    publish_times(status, replicas, count);
    atomic_store(&status->replicas_now, count);
    pthread_mutex_unlock(&status->mutex);
}

/* ---- any thread ---------------------------------------------------------- */

size_t
status_get(struct status *status, struct status_figures *ret_figures,
           struct status_replica *ret_replicas, size_t max)
{
    size_t count;

    pthread_mutex_lock(&status->mutex);
    count = status->count;
    *ret_figures = status->figures;
    if (max > 0 && count > 0) {
        memcpy(ret_replicas, status->replicas,
               (count < max ? count : max) * sizeof(*ret_replicas));
    }
    pthread_mutex_unlock(&status->mutex);
    return count;
}

static size_t
count_at(struct status *status, uint64_t position, bool synced)
{
    size_t count = 0;

    pthread_mutex_lock(&status->mutex);
    for (size_t i = 0; i < status->count; i++) {
        const struct status_replica *replica = &status->replicas[i];

        if (replica->state == STATUS_ONLINE &&
            (synced ? replica->synced : replica->acked) >= position) {
            count++;
        }
    }
    pthread_mutex_unlock(&status->mutex);
    return count;
}

size_t
status_count_acked(struct status *status, uint64_t position)
{
    return count_at(status, position, false);
}

size_t
status_count_synced(struct status *status, uint64_t position)
{
    return count_at(status, position, true);
}

size_t
status_count(const struct status *status)
{
    return atomic_load_explicit(&status->replicas_now, memory_order_acquire);
}

size_t
status_count_good(const struct status *status, uint64_t now_mono_ms,
                  uint64_t max_lag_s)
{
    size_t online = atomic_load_explicit(&status->online, memory_order_acquire);
    size_t good = 0;

    while (good < online && max_lag_s > 0) {
        uint64_t acked = atomic_load_explicit(&status->acked_mono_ms[good],
                                              memory_order_relaxed);

        /* An acknowledgement may be newer than the caller's time. */
        if (acked < now_mono_ms && (now_mono_ms - acked) / 1000 > max_lag_s) {
            break;
        }
        good++;
    }
    return max_lag_s > 0 ? good : online;
}

/* ---- troubles ------------------------------------------------------------ */

void
status_name(const struct status_replica *replica,
            char ret_name[STATUS_NAME_MAX])
{
    (void)snprintf(ret_name, STATUS_NAME_MAX, "%s:%u", replica->ip,
                   replica->port);
}

static void
set_note(struct status_note *note, const char *replica, const char *reason)
{
    (void)snprintf(note->replica, sizeof(note->replica), "%s", replica);
    (void)snprintf(note->reason, sizeof(note->reason), "%s", reason);
    note->mono_ms = clock_mono_ns() / 1000000;
}

void
status_note(struct status *status, enum status_trouble trouble,
            const char *replica, const char *reason)
{
    (void)pthread_mutex_lock(&status->mutex);
    set_note(&status->notes[trouble], replica, reason);
    (void)pthread_mutex_unlock(&status->mutex);
}

void
status_note_lost(struct status *status, uint64_t id, const char *reason)
{
    char name[STATUS_NAME_MAX];

    (void)pthread_mutex_lock(&status->mutex);
    for (size_t i = 0; i < status->count; i++) {
        const struct status_replica *replica = &status->replicas[i];

        if (replica->id == id && replica->state != STATUS_PULLS) {
            status_name(replica, name);
            set_note(&status->notes[STATUS_LOST], name, reason);
        }
    }
    (void)pthread_mutex_unlock(&status->mutex);
}

void
status_get_note(struct status *status, enum status_trouble trouble,
                struct status_note *ret_note)
{
    (void)pthread_mutex_lock(&status->mutex);
    *ret_note = status->notes[trouble];
    (void)pthread_mutex_unlock(&status->mutex);
}
