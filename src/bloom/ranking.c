/* SPDX-License-Identifier: BSD-3-Clause */
#include "bloom/ranking.h"

#include "base/clock.h"
#include "base/glob.h"
#include "base/mem.h"
#include "core/ageing.h"
#include "core/measure.h"
#include "keyspace/scan.h"

enum {
    KEYS_AT_ONCE = 64, /* keys between two looks at the clock */
    LEAST_LINES = 16   /* a smaller share of a layer has no rate */
};

static const double NO_RATE = -1;

/* ---- one filter ---------------------------------------------------------- */

/* Returns the rate over all live layers. */
static double
measure_rate(const struct bloom *bloom, uint64_t now_ms)
{
    uint64_t share = measure_share(bloom, RANKING_LINES);
    uint32_t live = ageing_layers(bloom, now_ms);
    struct measured measured;
    double clean = 1;

    if (share < LEAST_LINES) {
        return NO_RATE;
    }
    for (uint32_t i = bloom->count - live;
         measure_layer(bloom, i, share, &measured); i++) {
        clean *= 1 - measured.rate;
    }
    return 1 - clean;
}

/* Sets the figures that are read without the lines. */
static void
set_figures(struct ranking_filter *filter, const struct bloom *bloom,
            uint64_t now_ms)
{
    filter->kind = bloom_kind(bloom);
    filter->layers = ageing_layers(bloom, now_ms);
    filter->items = ageing_items(bloom, now_ms);
    filter->capacity = bloom_capacity(bloom);
    filter->bytes = bloom_size(bloom);
    filter->asked_rate = bloom->error_rate;
    filter->scaling = bloom->expansion > 0;
}

/* ---- boards -------------------------------------------------------------- */

/* Returns whether a comes before b. */
typedef bool (*before_fn)(const struct ranking_filter *a,
                          const struct ranking_filter *b);

static bool
is_bigger(const struct ranking_filter *a, const struct ranking_filter *b)
{
    return a->bytes > b->bytes;
}

static double
fill_of(const struct ranking_filter *filter)
{
    return filter->capacity > 0
               ? (double)filter->items / (double)filter->capacity
               : 0;
}

static bool
is_fuller(const struct ranking_filter *a, const struct ranking_filter *b)
{
    double x = fill_of(a);
    double y = fill_of(b);

    return x > y || (x >= y && a->items > b->items);
}

static const struct ranking_filter *
find(const struct ranking_board *board, uint32_t db, struct slice name)
{
    for (unsigned i = 0; i < board->count; i++) {
        const struct ranking_filter *filter = &board->filter[i];

        if (filter->db == db && slice_equal(ranking_name(filter), name)) {
            return filter;
        }
    }
    return NULL;
}

/* Moves the filter at this place up to where it belongs. */
static void
rise(struct ranking_board *board, unsigned at, before_fn before)
{
    for (; at > 0 && before(&board->filter[at], &board->filter[at - 1]); at--) {
        struct ranking_filter other = board->filter[at];

        board->filter[at] = board->filter[at - 1];
        board->filter[at - 1] = other;
    }
}

/* Puts a filter on the board, unless it is there already or belongs below the
 * last one. It keeps the number that it may have on the other board. */
static void
offer(struct ranking *ranking, struct ranking_board *board, before_fn before,
      const struct ranking_filter *filter, struct slice name)
{
    const struct ranking_board *other =
        board == &ranking->biggest ? &ranking->fullest : &ranking->biggest;
    unsigned at = board->count < RANKING_TOP ? board->count : RANKING_TOP - 1;
    const struct ranking_filter *known;

    if ((board->count == RANKING_TOP && !before(filter, &board->filter[at])) ||
        find(board, filter->db, name) != NULL) {
        return;
    }
    known = find(other, filter->db, name);
    board->filter[at] = *filter;
    board->filter[at].number =
        known != NULL ? known->number : ++ranking->numbered;
    board->filter[at].name_len = name.len;
    memcpy(board->filter[at].name, name.data, name.len);
    board->count = at + 1;
    rise(board, at, before);
}

/* Looks at a filter again. False: it has gone. */
static bool
look_again(struct ranking_filter *filter, struct keyspace *ks, unsigned thread,
           uint64_t now_ms)
{
    struct key key = key_named(ranking_name(filter), filter->db);
    unsigned stripe = keyspace_stripe_of(key.hash);
    const struct entry *entry;
    bool found;
    struct longest_span locked = scan_lock(ks, thread, stripe, false);

    entry = keyspace_find(ks, &key, now_ms);
    found = entry != NULL && !bloom_is_incomplete(&entry->bloom);
    if (found) {
        set_figures(filter, &entry->bloom, now_ms);
        filter->rate = measure_rate(&entry->bloom, now_ms);
    }
    scan_unlock(ks, thread, stripe, &locked);
    return found;
}

static void
refresh(struct ranking_board *board, before_fn before, struct keyspace *ks,
        unsigned thread, uint64_t now_ms)
{
    unsigned count = board->count;

    board->count = 0;
    for (unsigned i = 0; i < count; i++) {
        struct ranking_filter filter = board->filter[i];

        if (look_again(&filter, ks, thread, now_ms)) {
            board->filter[board->count] = filter;
            rise(board, board->count++, before);
        }
    }
}

/* ---- chosen filters ------------------------------------------------------ */

void
ranking_choose(struct ranking *ranking, const char *pattern)
{
    struct ranking_chosen *chosen = &ranking->chosen;

    CHECK(strlen(pattern) <= RANKING_PATTERN_MAX);
    if (strcmp(pattern, chosen->pattern) != 0) {
        mem_free(chosen->filter);
        *chosen = (struct ranking_chosen){ 0 };
        memcpy(chosen->pattern, pattern, strlen(pattern) + 1);
        ranking->db = 0; /* the next round counts all of them */
        ranking->cursor = 0;
        ranking->seen = 0;
    }
    if (pattern[0] != '\0' && chosen->filter == NULL) { /* again after ENOMEM */
        chosen->filter =
            mem_try_alloc(RANKING_CHOSEN * sizeof(chosen->filter[0]));
    }
}

void
ranking_fini(struct ranking *ranking)
{
    ranking_choose(ranking, "");
}

static bool
is_chosen(const struct ranking_chosen *chosen, struct slice name)
{
    size_t work = GLOB_WORK;

    return chosen->filter != NULL && glob_match(slice_of(chosen->pattern), name,
                                                false, &work) == GLOB_YES;
}

/* Counts a matching filter, and stores it, if it is not stored yet and there is
 * a place. */
static void
choose(struct ranking_chosen *chosen, const struct ranking_filter *filter,
       struct slice name)
{
    struct ranking_filter *place;

    if (!is_chosen(chosen, name)) {
        return;
    }
    chosen->met++;
    if (chosen->count == RANKING_CHOSEN) {
        return;
    }
    for (unsigned i = 0; i < chosen->count; i++) {
        if (chosen->filter[i].db == filter->db &&
            slice_equal(ranking_name(&chosen->filter[i]), name)) {
            return;
        }
    }
    place = &chosen->filter[chosen->count++];
    *place = *filter;
    place->name_len = name.len;
    memcpy(place->name, name.data, name.len);
}

static void
refresh_chosen(struct ranking_chosen *chosen, struct keyspace *ks,
               unsigned thread, uint64_t now_ms)
{
    uint64_t until_ns = clock_mono_ns() + RANKING_US * (uint64_t)1000;

    for (unsigned left = chosen->count; left > 0; left--) {
        unsigned at = chosen->next < chosen->count ? chosen->next : 0;

        if (look_again(&chosen->filter[at], ks, thread, now_ms)) {
            chosen->next = at + 1;
        } else {
            chosen->filter[at] = chosen->filter[--chosen->count];
            chosen->next = at;
        }
        if (clock_mono_ns() >= until_ns) {
            break;
        }
    }
}

/* ---- the round ----------------------------------------------------------- */

struct visit {
    struct ranking *ranking;
    uint64_t now_ms;
};

static bool
visit(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    struct visit *at = ctx;
    struct ranking_filter filter;
    struct slice name = entry_name(entry);

    (void)expires_at_ms;
    at->ranking->seen++;
    if (name.len > RANKING_NAME_MAX || bloom_is_incomplete(&entry->bloom)) {
        return true;
    }
    set_figures(&filter, &entry->bloom, at->now_ms);
    filter.db = at->ranking->db;
    filter.rate = NO_RATE; /* refresh() measures it */
    filter.name_len = 0;
    choose(&at->ranking->chosen, &filter, name);
    offer(at->ranking, &at->ranking->biggest, is_bigger, &filter, name);
    offer(at->ranking, &at->ranking->fullest, is_fuller, &filter, name);
    return true;
}

/* Continues the round. Returns false at its end. */
static bool
go_on(struct ranking *ranking, struct keyspace *ks, unsigned thread,
      uint64_t now_ms)
{
    struct visit at = { ranking, now_ms };

    ranking->cursor =
        keyspace_scan(ks, thread, ranking->db, ranking->cursor, KEYS_AT_ONCE,
                      KEYS_AT_ONCE, now_ms, visit, &at);
    if (ranking->cursor == 0) {
        ranking->db++;
    }
    return ranking->db < keyspace_databases(ks);
}

static void
continue_round(struct ranking *ranking, struct keyspace *ks, unsigned thread,
               uint64_t now_ms)
{
    uint64_t until_ns = clock_mono_ns() + RANKING_US * (uint64_t)1000;
    uint64_t until_seen;

    if (ranking->db >= keyspace_databases(ks)) { /* the last step ended it */
        ranking->db = 0;
        ranking->seen = 0;
        ranking->chosen.met = 0;
    }
    until_seen = ranking->seen + RANKING_KEYS;
    while (go_on(ranking, ks, thread, now_ms)) {
        if (ranking->seen >= until_seen || clock_mono_ns() >= until_ns) {
            return;
        }
    }
    ranking->rounds++;
    ranking->chosen.matching = ranking->chosen.met;
}

/* Filters that are new on the boards are looked at in the same step, to get
 * their rates. */
void
ranking_step(struct ranking *ranking, struct keyspace *ks, unsigned thread,
             uint64_t now_ms)
{
    continue_round(ranking, ks, thread, now_ms);
    refresh(&ranking->biggest, is_bigger, ks, thread, now_ms);
    refresh(&ranking->fullest, is_fuller, ks, thread, now_ms);
    refresh_chosen(&ranking->chosen, ks, thread, now_ms);
}
