/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The latency monitor: for each kind of event the last moments at which it
 * took too long, and its worst. Shared by all threads; a lock of its own, a
 * leaf. What is too long is the caller's to know.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of their names, which is that of LATENCY LATEST. */
enum latency_event {
    LATENCY_AOF_FSYNC,    /* of the journal, on a thread of its own */
    LATENCY_COMMAND,      /* any command but the fast ones */
    LATENCY_EXPIRE_CYCLE, /* one slice of removing what is over */
    LATENCY_FAST_COMMAND, /* one of the category @fast */
    LATENCY_FORK,         /* the pause of all clients while a save begins */
    LATENCY_EVENTS
};

/* One sample a second is kept, its worst, and so many of them. */
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
    size_t count; /* of samples, the oldest first */
    uint64_t worst_ms;
    struct latency_sample sample[LATENCY_SAMPLES_MAX];
};
/* A copy of what there is of an event; count 0: nothing. */
void latency_read(struct latency *latency, enum latency_event event,
                  struct latency_series *ret_series);

/* Forgets an event; false if there was nothing. */
bool latency_reset(struct latency *latency, enum latency_event event);
