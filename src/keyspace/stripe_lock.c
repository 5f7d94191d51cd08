/* SPDX-License-Identifier: BSD-3-Clause
 *
 *   state = | 1 bit: WRITER, a writer owns it | 1 bit: SLEEPERS |
 *           | 14 bits: writers that wait | 16 bits: readers that own it |
 *
 * A thread sleeps on the state only while it is the state that it saw, with
 * SLEEPERS set. The last owner to release it clears the bit and wakes all
 * sleepers, so no wake-up is lost.
 *
 * A calm lock is Dekker's handshake, as the gate is: a reader stores the stripe
 * in its slot and then loads `reads`; a writer resets `reads` and then loads
 * all slots. Sequential consistency lets at least one of them see the other's
 * store, also when a reader leaves. `reads` changes under the lock only:
 * readers that share it count it up, a writer resets it.
 */
#include "keyspace/stripe_lock.h"

#include "base/err.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 1000,      /* 10 us to 50 us */
    POLITE_SPINS = 500 /* spins of a reader while writers wait */
};

static const uint32_t WRITER = (uint32_t)1 << 31;
static const uint32_t SLEEPERS = (uint32_t)1 << 30;
static const uint32_t WAITING = (uint32_t)1 << 16; /* one writer that waits */
static const uint32_t WAITING_MASK = ((uint32_t)1 << 30) - ((uint32_t)1 << 16);
static const uint32_t READERS_MASK = ((uint32_t)1 << 16) - 1;

static void
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Sleeps while the word has this value. */
static void
sleep_on(_Atomic uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
                  0);
}

/* Waits for this state to change: spins at first. Returns true if it slept. */
static bool
wait_for_change(struct stripe_lock *lock, uint32_t state, unsigned turn)
{
    if (turn < SPINS) {
        pause_cpu();
        return false;
    }
    if ((state & SLEEPERS) == 0 &&
        !atomic_compare_exchange_strong(&lock->state, &state,
                                        state | SLEEPERS)) {
        return false;
    }
    sleep_on(&lock->state, state | SLEEPERS);
    return true;
}

/* ---- a lock that is not calm --------------------------------------------- */

static void
acquire_shared(struct stripe_lock *lock)
{
    uint32_t blocked_by = WRITER | WAITING_MASK;
    uint32_t state = 0;

    for (unsigned turn = 0;; turn++) {
        /* The lock is mostly free, so it is not loaded first: that would move
         * the cache line twice. */
        while ((state & blocked_by) == 0) {
            if (atomic_compare_exchange_weak_explicit(
                    &lock->state, &state, state + 1, memory_order_acquire,
                    memory_order_relaxed)) {
                return;
            }
        }
        if (turn >= POLITE_SPINS) {
            blocked_by = WRITER;
        }
        if (wait_for_change(lock, state, turn)) {
            turn = 0;
        }
        state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    }
}

static void
release_shared(struct stripe_lock *lock)
{
    uint32_t state =
        atomic_fetch_sub_explicit(&lock->state, 1, memory_order_release);

    CHECK((state & READERS_MASK) > 0);
    if ((state & (SLEEPERS | READERS_MASK)) == (SLEEPERS | 1)) {
        (void)atomic_fetch_and(&lock->state, ~SLEEPERS);
        wake_all(&lock->state);
    }
}

__attribute__((noinline)) static void
wait_exclusive(struct stripe_lock *lock)
{
    uint32_t state = atomic_fetch_add(&lock->state, WAITING) + WAITING;

    for (unsigned turn = 0;; turn++) {
        while ((state & (WRITER | READERS_MASK)) == 0) {
            if (atomic_compare_exchange_weak_explicit(
                    &lock->state, &state, (state - WAITING) | WRITER,
                    memory_order_acquire, memory_order_relaxed)) {
                return;
            }
        }
        if (wait_for_change(lock, state, turn)) {
            turn = 0;
        }
        state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    }
}

static void
release_exclusive(struct stripe_lock *lock)
{
    uint32_t state = atomic_fetch_and_explicit(
        &lock->state, ~(WRITER | SLEEPERS), memory_order_release);

    CHECK((state & READERS_MASK) == 0);
    if (__builtin_expect((state & SLEEPERS) != 0, 0)) {
        wake_all(&lock->state);
    }
}

/* ---- a calm lock --------------------------------------------------------- */

static bool
is_calm(const struct stripe_lock *lock)
{
    return atomic_load(&lock->reads) >= STRIPE_LOCK_CALM;
}

static void
leave_slot(struct stripe_lock *lock, struct stripe_lock_slot *own)
{
    atomic_store(&own->stripe, 0);
    if (__builtin_expect(!is_calm(lock), 0)) {
        wake_all(&own->stripe); /* a writer may wait for it */
    }
}

/* Returns false if the lock is not calm, or the slot is in use for another
 * stripe. */
static bool
enter_slot(struct stripe_lock *lock, struct stripe_lock_slot *own,
           uint32_t mark)
{
    if (!is_calm(lock) ||
        atomic_load_explicit(&own->stripe, memory_order_relaxed) != 0) {
        return false;
    }
    atomic_store(&own->stripe, mark);
    if (__builtin_expect(is_calm(lock), 1)) {
        return true;
    }
    leave_slot(lock, own);
    return false;
}

/* Waits until no thread reads this stripe by its slot. The lock is no longer
 * calm, so no thread begins to. */
__attribute__((noinline)) static void
wait_for_slots(const struct stripe_lock_slots *slots, uint32_t mark)
{
    for (unsigned i = 0; i < slots->threads; i++) {
        _Atomic uint32_t *stripe = &slots->slot[i].stripe;

        for (unsigned turn = 0; atomic_load(stripe) == mark; turn++) {
            if (turn < SPINS) {
                pause_cpu();
            } else {
                sleep_on(stripe, mark);
            }
        }
    }
}

/* ---- the calls ----------------------------------------------------------- */

void
stripe_lock_shared(struct stripe_lock *lock,
                   const struct stripe_lock_slots *slots, unsigned thread,
                   uint32_t stripe)
{
    bool has_slot = thread < slots->threads;

    if (has_slot && enter_slot(lock, &slots->slot[thread], stripe + 1)) {
        return;
    }
    acquire_shared(lock);
    if (has_slot && !is_calm(lock)) {
        (void)atomic_fetch_add(&lock->reads, 1);
    }
}

void
stripe_lock_exclusive(struct stripe_lock *lock,
                      const struct stripe_lock_slots *slots, uint32_t stripe)
{
    uint32_t state = 0;
    uint32_t reads;

    if (!atomic_compare_exchange_strong_explicit(&lock->state, &state, WRITER,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        wait_exclusive(lock);
    }
    reads = atomic_load_explicit(&lock->reads, memory_order_relaxed);
    if (reads > 0) {
        atomic_store(&lock->reads, 0);
    }
    if (reads >= STRIPE_LOCK_CALM) {
        wait_for_slots(slots, stripe + 1);
    }
}

void
stripe_lock_release(struct stripe_lock *lock,
                    const struct stripe_lock_slots *slots, unsigned thread,
                    uint32_t stripe)
{
    if (thread < slots->threads &&
        atomic_load_explicit(&slots->slot[thread].stripe,
                             memory_order_relaxed) == stripe + 1) {
        leave_slot(lock, &slots->slot[thread]);
    } else if ((atomic_load_explicit(&lock->state, memory_order_relaxed) &
                WRITER) != 0) {
        release_exclusive(lock);
    } else {
        release_shared(lock);
    }
}
