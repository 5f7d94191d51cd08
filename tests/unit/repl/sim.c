/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include "sim_net.h"

void
sim_trace(const struct sim *sim, const char *format, ...)
{
    va_list ap;

    if (!sim->trace) {
        return;
    }
    (void)printf("%8" PRIu64 "  ", sim->now_ms);
    va_start(ap, format);
    (void)vprintf(format, ap);
    va_end(ap);
    (void)printf("\n");
}

void
sim_fail(const struct sim *sim, const char *format, ...)
{
    va_list ap;

    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "BLOOMERY_SIM=%#" PRIx64 " at %" PRIu64 " ms: ", sim->seed,
                  sim->now_ms);
    va_start(ap, format);
    (void)vfprintf(stderr, format, ap);
    va_end(ap);
    (void)fprintf(stderr, "\n");
    abort();
}

/* ---- chance -------------------------------------------------------------- */

uint64_t
sim_mix(uint64_t x)
{
    return test_random(&x);
}

uint64_t
sim_random(struct sim *sim)
{
    return test_random(&sim->random);
}

uint64_t
sim_below(struct sim *sim, uint64_t bound)
{
    return sim_random(sim) % bound;
}

bool
sim_chance(struct sim *sim, unsigned permille)
{
    return permille > 0 && sim_below(sim, 1000) < permille;
}

void
sim_id(struct sim *sim, char *ret_id)
{
    for (int i = 0; i < HISTORY_ID_CHARS; i++) {
        ret_id[i] = "0123456789abcdef"[sim_random(sim) & 15];
    }
    ret_id[HISTORY_ID_CHARS] = '\0';
}

/* ---- events -------------------------------------------------------------- */

static bool
event_before(const struct event *x, const struct event *y)
{
    return x->at_ms < y->at_ms || (x->at_ms == y->at_ms && x->order < y->order);
}

void
sim_at(struct sim *sim, uint64_t delay_ms, event_fn run, uint64_t a, uint64_t b)
{
    struct event event = { sim->now_ms + delay_ms, sim->order++, run, a, b };
    size_t at = sim->heap_count++;

    if (at == sim->heap_room) {
        sim->heap_room = at == 0 ? 1 << 14 : 2 * at;
        sim->heap =
            mem_try_realloc(sim->heap, sim->heap_room * sizeof(*sim->heap));
        SIM_CHECK(sim, sim->heap != NULL, "no memory for events");
    }
    while (at > 0 && event_before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

static struct event
sim_next(struct sim *sim)
{
    struct event first = sim->heap[0];
    struct event last = sim->heap[--sim->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= sim->heap_count) {
            break;
        }
        if (child + 1 < sim->heap_count &&
            event_before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!event_before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}

bool
sim_stands_still(struct sim *sim, uint64_t node, event_fn run, uint64_t a,
                 uint64_t b)
{
    uint64_t until_ms = sim->stopped_until_ms[node];

    if (until_ms <= sim->now_ms) {
        return false;
    }
    sim_at(sim, until_ms - sim->now_ms, run, a, b);
    return true;
}

void
sim_may_fail(struct sim *sim)
{
    if (sim_chance(sim, sim->memory_permille)) {
        mem_fail_at(1 + (unsigned)sim_below(sim, 3));
    }
}

bool
sim_failed(struct sim *sim)
{
    bool fired = sim->memory_permille > 0 && mem_fail_clear();

    sim->counts.out_of_memory += fired;
    return fired;
}

bool
sim_run(struct sim *sim, uint64_t until_ms, bool (*done)(struct sim *sim))
{
    while (sim->heap_count > 0 && sim->heap[0].at_ms <= until_ms) {
        struct event event = sim_next(sim);

        sim->now_ms = event.at_ms;
        sim->counts.events++;
        event.run(sim, event.a, event.b);
        if (done != NULL && sim->counts.events % 16 == 0 && done(sim)) {
            return true;
        }
    }
    sim->now_ms = until_ms;
    return false;
}

/* ---- oracle -------------------------------------------------------------- */

static uint64_t
truth_key(const char *id, uint64_t position)
{
    return (sim_mix(slice_load64(id) ^ sim_mix(slice_load64(id + 8))) ^
            sim_mix(position)) |
           1;
}

/* Returns the slot of this position, or a free one. */
static struct truth *
truth_slot(struct sim *sim, const char *id, uint64_t position)
{
    uint64_t key = truth_key(id, position);

    for (uint64_t at = sim_mix(key);; at++) {
        struct truth *truth = &sim->truths[at % ORACLE_SLOTS];

        if (truth->key == 0 ||
            (truth->key == key && truth->position == position)) {
            return truth;
        }
    }
}

void
truth_meets(struct sim *sim, const char *id, uint64_t position, uint64_t digest,
            bool may_say)
{
    struct truth *truth = truth_slot(sim, id, position);

    if (truth->key == 0) {
        SIM_CHECK(sim, may_say, "nobody was ever at %.8s:%" PRIu64, id,
                  position);
        SIM_CHECK(sim, ++sim->truth_count < ORACLE_SLOTS / 4 * 3,
                  "raise ORACLE_SLOTS");
        truth->key = truth_key(id, position);
        truth->position = position;
        truth->digest = digest;
        return;
    }
    SIM_CHECK(sim, truth->digest == digest, "other data at %.8s:%" PRIu64, id,
              position);
}

bool
truth_find(struct sim *sim, const char *id, uint64_t position,
           uint64_t *ret_digest)
{
    struct truth *truth = truth_slot(sim, id, position);

    *ret_digest = truth->digest;
    return truth->key != 0;
}

/* ---- life ---------------------------------------------------------------- */

struct sim *
sim_new(uint64_t seed)
{
    static struct truth *truths; /* large: one for all worlds */
    struct sim *sim = mem_zalloc(sizeof(*sim));

    if (truths == NULL) {
        truths = mem_zalloc(ORACLE_SLOTS * sizeof(*truths));
    }
    sim->seed = seed;
    sim->random = sim_mix(seed);
    sim->truths = truths;
    sim->now_ms = 1000;
    sim->latency_max_ms = 5;
    return sim;
}

void
sim_free(struct sim *sim)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (sim->conns[i].used) {
            conn_free(&sim->conns[i]);
        }
    }
    memset(sim->truths, 0, ORACLE_SLOTS * sizeof(*sim->truths));
    mem_free(sim->heap);
    mem_free(sim);
}
