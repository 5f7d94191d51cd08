/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The biggest and the fullest filters, found little by little. Each step does a
 * bounded piece of work, whatever the number of filters:
 *
 * - It looks again at the filters on both boards: at most RANKING_TOP each, and
 *   about RANKING_LINES lines of each, under the lock of its stripe.
 * - It goes on with a round through all keys: at most RANKING_KEYS of them, or
 *   what RANKING_US microseconds are enough for. Like SCAN it locks one stripe
 *   at a time. A filter that is bigger or fuller than one on a board takes its
 *   place.
 * - A filter whose name matches a pattern is chosen. The round counts all of
 *   them and keeps RANKING_CHOSEN. Each step looks at some of these again, in
 *   turn, for RANKING_US microseconds.
 *
 * So once a round is complete, a board is right about all filters; a filter
 * that has grown since is noticed in the next round. Incomplete filters, and
 * those whose names are longer than RANKING_NAME_MAX, are left out.
 *
 * One thread; a step runs inside a section of the gate.
 */
#pragma once

#include "core/bloom.h"
#include "keyspace/keyspace.h"

enum {
    RANKING_TOP = 8,
    RANKING_LINES = 2048, /* of 64 bytes */
    RANKING_KEYS = 1000,
    RANKING_US = 1000,
    RANKING_NAME_MAX = 256,
    RANKING_PATTERN_MAX = 128,
    RANKING_CHOSEN = 1000
};

struct ranking_filter {
    uint64_t number; /* the same on both boards, as long as the filter is on
                        one of them */
    uint32_t db, layers;
    enum bloom_kind kind;
    bool scaling;
    uint64_t items, capacity, bytes;
    double asked_rate;
    double rate; /* present rate of false positives; below 0: the filter has too
                    many layers to look at each */
    size_t name_len;
    char name[RANKING_NAME_MAX];
};

struct ranking_board {
    unsigned count;
    struct ranking_filter filter[RANKING_TOP]; /* the first is the top */
};

struct ranking_chosen {
    char pattern[RANKING_PATTERN_MAX + 1]; /* "": none is chosen */
    struct ranking_filter *filter;         /* NULL: there is none */
    unsigned count, next;   /* next: the next one to look at again */
    uint64_t met, matching; /* filters that match: in the present round so far,
                               and in the last complete one */
};

struct ranking {
    struct ranking_board biggest, fullest;
    struct ranking_chosen chosen;
    uint64_t numbered; /* the last number */
    uint64_t rounds;   /* complete rounds */
    uint64_t seen;     /* keys in the present round */
    uint32_t db;       /* where the round continues */
    uint64_t cursor;
};

/* Chooses the filters whose names match a pattern, of at most
 * RANKING_PATTERN_MAX bytes; "" for none. If the pattern has changed, forgets
 * the chosen filters and begins a new round. */
void ranking_choose(struct ranking *ranking, const char *pattern);
void ranking_fini(struct ranking *ranking);

void ranking_step(struct ranking *ranking, struct keyspace *ks, unsigned thread,
                  uint64_t now_ms);

static inline struct slice
ranking_name(const struct ranking_filter *filter)
{
    return (struct slice){ filter->name, filter->name_len };
}
