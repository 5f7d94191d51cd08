/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A view has its own array of layers, so growth, which replaces the filter's
 * chain, does not disturb readers. The lines belong to the filter: before they
 * are freed, the view is replaced, or its first live layer is set behind
 * theirs.
 */
#include "local/local_view.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/bloom.h"
#include "local/local_readers.h"

#include <string.h>

enum {
    PREFETCH_OLDER = 5,
    NEAR_BYTES = 256 * 1024,
    LATE_TICKS = 8 /* a tick may come late in a virtual machine */
};

struct local_view *
local_view_new(const struct bloom *bloom)
{
    uint32_t count = bloom != NULL ? bloom->count : 0;
    struct local_view *view =
        mem_try_zalloc(sizeof(*view) + count * sizeof(struct layer));

    if (view == NULL || bloom == NULL) {
        return view;
    }
    view->count = count;
    view->near = bloom_size(bloom) <= NEAR_BYTES;
    memcpy(view->layers, bloom_layers_const(bloom),
           count * sizeof(struct layer));
    view->hasher = *bloom;
    view->hasher.first = view->layers[0];
    view->hasher.count = 1;
    view->hasher.odd = bloom_odd_of(bloom);
    return view;
}

bool
local_view_fits(const struct local_view *view, const struct bloom *bloom)
{
    uint32_t count = bloom != NULL ? bloom->count : 0;
    const struct layer *layers;

    if (view->forgotten || view->count != count ||
        (count > 0 && view->hasher.seed64 != bloom->seed64)) {
        return false;
    }
    layers = count > 0 ? bloom_layers_const(bloom) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (view->layers[i].lines != layers[i].lines) {
            return false;
        }
    }
    return true;
}

/* ---- deadlines ----------------------------------------------------------- */

void
local_view_prove(struct local_view *view, struct local_proof until)
{
    atomic_store_explicit(&view->mono_ns, until.mono_ns, memory_order_release);
    atomic_store_explicit(&view->wall_ns, until.wall_ns, memory_order_release);
}

uint64_t
local_view_slack_ns(void)
{
    return clock_tick_ns() * LATE_TICKS;
}

/* Reads the deadlines. Call it before bits are read. */
static inline struct local_proof
read_proof(const struct local_view *view)
{
    return (struct local_proof){
        atomic_load_explicit(&view->mono_ns, memory_order_acquire),
        atomic_load_explicit(&view->wall_ns, memory_order_acquire)
    };
}

/* Returns whether no deadline has passed. Call it after bits were read. */
static inline bool
holds(struct local_proof until)
{
    atomic_signal_fence(memory_order_seq_cst);
    return clock_mono_tick_ns() <= until.mono_ns &&
           clock_wall_tick_ns() <= until.wall_ns;
}

bool
local_view_is_fresh(const struct local_view *view)
{
    return holds(read_proof(view));
}

void
local_view_raise(struct local_view *view, uint32_t first)
{
    atomic_store_explicit(&view->first, first, memory_order_release);
}

/* ---- the place ----------------------------------------------------------- */

/* Views without layers and without a proof: they answer "unknown". */
static struct local_view none, closed;

void
local_place_init(struct local_place *place)
{
    atomic_init(&place->view, &none);
    place->own = NULL;
}

void
local_place_give(struct local_place *place, struct local_view *view)
{
    struct local_view *before = place->own;
    struct local_view *expected = before != NULL ? before : &none;

    if (!atomic_compare_exchange_strong(&place->view, &expected,
                                        view != NULL ? view : &none)) {
        mem_free(view); /* the place is closed */
        view = NULL;
    }
    place->own = view;
    if (before != NULL) {
        local_readers_wait();
        mem_free(before);
    }
}

void
local_place_close(struct local_place *place)
{
    (void)atomic_exchange(&place->view, &closed);
}

void
local_place_forget(struct local_place *place, const void *lines)
{
    struct local_view *view = place->own;

    for (uint32_t i = 0; view != NULL && i < view->count; i++) {
        if (view->layers[i].lines == lines) {
            view->forgotten = true;
            if (atomic_load(&view->first) <= i) {
                local_view_raise(view, i + 1);
            }
            local_readers_wait();
            return;
        }
    }
}

/* ---- readers ------------------------------------------------------------- */

/* Returns whether a layer from FIRST on has an item. Begins with the newest,
 * which has about half of all items. */
static bool
has(const struct local_view *view, uint32_t first, struct bloom_hash hash)
{
    for (uint32_t i = view->count; i-- > first;) {
        if (layer_contains(&view->layers[i], hash)) {
            return true;
        }
    }
    return false;
}

enum bloomery_local_answer
local_place_contains(struct local_place *place, const void *item, size_t bytes)
{
    enum bloomery_local_answer answer = BLOOMERY_LOCAL_UNKNOWN;
    struct local_reader *own = local_readers_begin();
    const struct local_view *view;
    struct local_proof until;
    uint32_t first;

    if (own == NULL) {
        return answer;
    }
    view = atomic_load(&place->view);
    until = read_proof(view);
    first = atomic_load_explicit(&view->first, memory_order_relaxed);
    if (first < view->count &&
        has(view, first, bloom_hash(&view->hasher, item, bytes))) {
        answer = BLOOMERY_LOCAL_PRESENT;
    } else if (holds(until)) {
        answer = BLOOMERY_LOCAL_ABSENT;
    }
    local_readers_end(own);
    return answer;
}

static void
prefetch(const struct local_view *view, uint32_t first,
         const struct bloom_hash *hashes, size_t count)
{
    const struct layer *newest = &view->layers[view->count - 1];
    uint32_t older = view->count - first - 1;

    layer_ops_of(newest)->prefetch_many(newest, hashes, count, newest->stripes);
    for (uint32_t i = 1; i <= older && i <= PREFETCH_OLDER; i++) {
        layer_ops_of(newest - i)->prefetch_many(newest - i, hashes, count, 1);
    }
}

static void
look_at(const struct local_view *view, const struct bloomery_local_item *items,
        size_t count, bool *ret_found)
{
    uint32_t first = atomic_load_explicit(&view->first, memory_order_relaxed);
    struct bloom_hash hashes[BLOOM_BATCH_MAX];

    if (first >= view->count) {
        memset(ret_found, false, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        hashes[i] = bloom_hash(&view->hasher, items[i].data, items[i].bytes);
    }
    if (!view->near) {
        prefetch(view, first, hashes, count);
    }
    if (view->count - first == 1) {
        const struct layer *only = &view->layers[first];

        layer_ops_of(only)->contains_many(only, hashes, count, ret_found);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ret_found[i] = has(view, first, hashes[i]);
    }
}

/* Answers at most BLOOM_BATCH_MAX items, so that a writer does not wait for
 * long. Returns how many are unknown. */
static size_t
answer_some(struct local_place *place, const struct bloomery_local_item *items,
            size_t count, int8_t *ret_answers)
{
    struct local_reader *own = local_readers_begin();
    bool found[BLOOM_BATCH_MAX] = { false };
    int8_t absent = BLOOMERY_LOCAL_UNKNOWN;
    size_t unknown = 0;

    if (own != NULL) {
        const struct local_view *view = atomic_load(&place->view);
        struct local_proof until = read_proof(view);

        look_at(view, items, count, found);
        if (holds(until)) {
            absent = BLOOMERY_LOCAL_ABSENT;
        }
        local_readers_end(own);
    }
    for (size_t i = 0; i < count; i++) {
        ret_answers[i] = absent;
        if (found[i]) {
            ret_answers[i] = BLOOMERY_LOCAL_PRESENT;
        }
        unknown += ret_answers[i] == BLOOMERY_LOCAL_UNKNOWN;
    }
    return unknown;
}

size_t
local_place_contains_many(struct local_place *place,
                          const struct bloomery_local_item *items, size_t count,
                          int8_t *ret_answers)
{
    size_t unknown = 0;

    for (size_t done = 0; done < count;) {
        size_t some =
            count - done < BLOOM_BATCH_MAX ? count - done : BLOOM_BATCH_MAX;

        unknown += answer_some(place, &items[done], some, &ret_answers[done]);
        done += some;
    }
    return unknown;
}
