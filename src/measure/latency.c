/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring of samples for each event. Samples are rare, so one lock is enough.
 */
#include "measure/latency.h"

#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>

struct ring {
    struct latency_sample sample[LATENCY_SAMPLES_MAX];
    size_t next, count;
    uint64_t worst_ms;
};

struct latency {
    pthread_mutex_t mutex;
    struct ring ring[LATENCY_EVENTS];
};

static const char *const names[LATENCY_EVENTS] = {
    [LATENCY_AOF_FSYNC] = "aof-fsync",
    [LATENCY_COMMAND] = "command",
    [LATENCY_EXPIRE_CYCLE] = "expire-cycle",
    [LATENCY_FAST_COMMAND] = "fast-command",
};

struct latency *
latency_new(void)
{
    struct latency *latency = mem_zalloc(sizeof(*latency));

    CHECK(pthread_mutex_init(&latency->mutex, NULL) == 0);
    return latency;
}

void
latency_free(struct latency *latency)
{
    if (latency != NULL) {
        CHECK(pthread_mutex_destroy(&latency->mutex) == 0);
        mem_free(latency);
    }
}

const char *
latency_event_name(enum latency_event event)
{
    return names[event];
}

bool
latency_event_find(struct slice name, enum latency_event *ret_event)
{
    for (unsigned i = 0; i < LATENCY_EVENTS; i++) {
        if (slice_equal(name, slice_of(names[i]))) {
            *ret_event = (enum latency_event)i;
            return true;
        }
    }
    return false;
}

void
latency_add(struct latency *latency, enum latency_event event, uint64_t time_s,
            uint64_t took_ms)
{
    struct ring *ring = &latency->ring[event];
    struct latency_sample *last;

    CHECK(event < LATENCY_EVENTS);
    pthread_mutex_lock(&latency->mutex);
    last = &ring->sample[(ring->next + LATENCY_SAMPLES_MAX - 1) %
                         LATENCY_SAMPLES_MAX];
    if (ring->count > 0 && last->time_s == time_s) {
        if (took_ms > last->took_ms) {
            last->took_ms = took_ms;
        }
    } else {
        ring->sample[ring->next] = (struct latency_sample){ time_s, took_ms };
        ring->next = (ring->next + 1) % LATENCY_SAMPLES_MAX;
        if (ring->count < LATENCY_SAMPLES_MAX) {
            ring->count++;
        }
    }
    if (took_ms > ring->worst_ms) {
        ring->worst_ms = took_ms;
    }
    pthread_mutex_unlock(&latency->mutex);
}

void
latency_read(struct latency *latency, enum latency_event event,
             struct latency_series *ret_series)
{
    const struct ring *ring = &latency->ring[event];

    pthread_mutex_lock(&latency->mutex);
    ret_series->count = ring->count;
    ret_series->worst_ms = ring->worst_ms;
    for (size_t i = 0; i < ring->count; i++) {
        ret_series->sample[i] =
            ring->sample[(ring->next + LATENCY_SAMPLES_MAX - ring->count + i) %
                         LATENCY_SAMPLES_MAX];
    }
    pthread_mutex_unlock(&latency->mutex);
}

bool
latency_reset(struct latency *latency, enum latency_event event)
{
    struct ring *ring = &latency->ring[event];
    bool had;

    pthread_mutex_lock(&latency->mutex);
    had = ring->count > 0;
    ring->next = ring->count = 0;
    ring->worst_ms = 0;
    pthread_mutex_unlock(&latency->mutex);
    return had;
}
