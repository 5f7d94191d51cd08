/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The latency monitor: for each kind of event, the latest times when it took
 * too long, and the longest. The caller decides what is too long. All threads
 * share it, under a leaf lock.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sorted by name, as LATENCY LATEST shows them. */
enum latency_event {
    LATENCY_AOF_FSYNC,    /* a sync of the journal, on its own thread */
    LATENCY_COMMAND,      /* a command that is not in @fast */
    LATENCY_EXPIRE_CYCLE, /* one slice of removing expired keys */
    LATENCY_FAST_COMMAND, /* a command of the category @fast */
    LATENCY_EVENTS
};

/* How many samples an event keeps. Of all samples of one second, only the
 * longest is kept. */
enum { LATENCY_SAMPLES_MAX = 160 };

struct latency_sample {
    uint64_t time_s; /* wall clock */
    uint64_t took_ms;
};

struct latency;

struct latency *latency_new(void);
void latency_free(struct latency *latency);

const char *latency_event_name(enum latency_event event);
bool latency_event_find(struct slice name, enum latency_event *ret_event);

void latency_add(struct latency *latency, enum latency_event event,
                 uint64_t time_s, uint64_t took_ms);

struct latency_series {
    size_t count; /* number of samples; the oldest is first */
    uint64_t worst_ms;
    struct latency_sample sample[LATENCY_SAMPLES_MAX];
};
/* Copies the samples of an event. */
void latency_read(struct latency *latency, enum latency_event event,
                  struct latency_series *ret_series);

/* Removes the samples of an event. Returns whether there were any. */
bool latency_reset(struct latency *latency, enum latency_event event);
