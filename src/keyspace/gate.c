/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dekker's handshake: a loop stores `inside` and then loads `raised`; a raiser
 * stores `raised` and then loads every `inside`. All four accesses are
 * sequentially consistent, so at least one of the two sees the other's store.
 * The same is true on leaving, so a raiser that sleeps is always woken.
 */
#include "keyspace/gate.h"

#include "base/longest.h"
#include "base/mem.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

enum { SPINS = 2000 }; /* 10 us to 50 us: most sections are shorter */

struct gate_slot {
    _Alignas(64) atomic_bool inside;
};

struct gate {
    _Alignas(64) atomic_bool raised; /* read by all, rarely written */
    atomic_uint owner;               /* the raiser once it is alone */
    unsigned threads; /* loops; walking threads have slots behind theirs */
    bool shared;      /* several threads enter */
    size_t bytes;
    struct longest_span raised_at;        /* the owner's */
    _Alignas(64) pthread_mutex_t raisers; /* locked from raise to lower */
    pthread_mutex_t mutex;                /* for the two conditions */
    pthread_cond_t opened, left;
    struct gate_slot slots[];
};

static const unsigned NOBODY = UINT_MAX;

struct gate *
gate_try_new(unsigned threads)
{
    size_t bytes = sizeof(struct gate) +
                   (threads + GATE_WALKERS) * sizeof(struct gate_slot);
    struct gate *gate = mem_try_lines(bytes);

    CHECK(threads > 0);
    if (gate == NULL) {
        return NULL;
    }
    gate->threads = threads;
    gate->shared = threads > 1;
    gate->bytes = bytes;
    atomic_store(&gate->owner, NOBODY);
    CHECK(pthread_mutex_init(&gate->raisers, NULL) == 0);
    CHECK(pthread_mutex_init(&gate->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&gate->opened, NULL) == 0);
    CHECK(pthread_cond_init(&gate->left, NULL) == 0);
    return gate;
}

void
gate_free(struct gate *gate)
{
    if (gate == NULL) {
        return;
    }
    pthread_cond_destroy(&gate->left);
    pthread_cond_destroy(&gate->opened);
    pthread_mutex_destroy(&gate->mutex);
    pthread_mutex_destroy(&gate->raisers);
    mem_free_lines(gate, gate->bytes);
}

void
gate_share(struct gate *gate, bool on)
{
    if (gate->threads > 1) {
        return; /* and another loop may have raised it */
    }
    CHECK(atomic_load(&gate->owner) == NOBODY);
    gate->shared = on;
}

static void
wake_raiser(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    pthread_cond_signal(&gate->left);
    pthread_mutex_unlock(&gate->mutex);
}

bool
gate_try_enter(struct gate *gate, unsigned thread)
{
    atomic_bool *inside;

    if (!gate->shared) {
        return true;
    }
    CHECK(thread < gate->threads + GATE_WALKERS);
    inside = &gate->slots[thread].inside;
    atomic_store(inside, true);
    if (__builtin_expect(!atomic_load(&gate->raised), 1)) {
        return true;
    }
    atomic_store(inside, false);
    wake_raiser(gate);
    return false;
}

void
gate_enter(struct gate *gate, unsigned thread)
{
    while (!gate_try_enter(gate, thread)) {
        CHECK(!gate_is_mine(gate, thread)); /* it would wait for itself */
        pthread_mutex_lock(&gate->mutex);
        while (atomic_load(&gate->raised)) {
            pthread_cond_wait(&gate->opened, &gate->mutex);
        }
        pthread_mutex_unlock(&gate->mutex);
    }
}

void
gate_leave(struct gate *gate, unsigned thread)
{
    if (!gate->shared) {
        return;
    }
    atomic_store(&gate->slots[thread].inside, false);
    if (__builtin_expect(atomic_load(&gate->raised), 0)) {
        wake_raiser(gate);
    }
}

static bool
any_inside(const struct gate *gate)
{
    for (unsigned i = 0; i < gate->threads + GATE_WALKERS; i++) {
        if (atomic_load(&gate->slots[i].inside)) {
            return true;
        }
    }
    return false;
}

static void
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

void
gate_raise(struct gate *gate, unsigned thread)
{
    CHECK(thread != NOBODY && !gate_is_mine(gate, thread));
    if (gate->shared) {
        CHECK(thread >= gate->threads + GATE_WALKERS ||
              !atomic_load(&gate->slots[thread].inside));
        pthread_mutex_lock(&gate->raisers);
        atomic_store(&gate->raised, true);
        for (int i = 0; i < SPINS && any_inside(gate); i++) {
            pause_cpu();
        }
        pthread_mutex_lock(&gate->mutex);
        while (any_inside(gate)) {
            pthread_cond_wait(&gate->left, &gate->mutex);
        }
        pthread_mutex_unlock(&gate->mutex);
    }
    atomic_store_explicit(&gate->owner, thread, memory_order_relaxed);
    gate->raised_at = longest_begin();
}

void
gate_lower(struct gate *gate, unsigned thread)
{
    CHECK(gate_is_mine(gate, thread));
    longest_end(LONGEST_LOCK, &gate->raised_at, "gate");
    atomic_store_explicit(&gate->owner, NOBODY, memory_order_relaxed);
    if (gate->shared) {
        pthread_mutex_lock(&gate->mutex);
        atomic_store(&gate->raised, false);
        pthread_cond_broadcast(&gate->opened);
        pthread_mutex_unlock(&gate->mutex);
        pthread_mutex_unlock(&gate->raisers);
    }
}

bool
gate_is_mine(const struct gate *gate, unsigned thread)
{
    return atomic_load_explicit(&gate->owner, memory_order_relaxed) == thread;
}
