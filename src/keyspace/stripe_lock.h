/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader-writer lock of a stripe. A thread that has to wait spins for some
 * microseconds, since critical sections take about one, and then sleeps, since
 * the owner may have lost its CPU. Writers come before readers, but a reader
 * that has spun for a while competes with them, so that no thread starves.
 *
 * Readers that write to the lock slow each other down, since its cache line
 * moves between CPUs. So after STRIPE_LOCK_CALM reads in a row the lock is
 * calm: a reader then only stores the stripe in a slot of its own thread. The
 * next writer ends the calm and waits for the slots of all threads (Dice and
 * Kogan, "BRAVO", 2019). Only the first write after many reads pays for that.
 *
 * Not recursive; a reader cannot become a writer. All zero is unlocked.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { STRIPE_LOCK_CALM = 32 }; /* reads in a row */

struct stripe_lock {
    _Atomic uint32_t state;
    _Atomic uint32_t reads; /* reads in a row */
};

/* One for each thread: the number of the stripe that it reads under a calm
 * lock, plus one; 0: none. Two cache lines, since some CPUs fetch pairs. */
struct stripe_lock_slot {
    _Alignas(64) _Atomic uint32_t stripe;
    char padding[124];
};

/* Shared by all stripes. */
struct stripe_lock_slots {
    struct stripe_lock_slot *slot; /* an array of `threads` */
    unsigned threads;
};

/* Lock a stripe. `thread` is the index of the calling thread, from 0 on; a
 * thread without a slot may lock, too, and never uses the calm. STRIPE is the
 * lock's number, which no other lock of these slots has. */
void stripe_lock_shared(struct stripe_lock *lock,
                        const struct stripe_lock_slots *slots, unsigned thread,
                        uint32_t stripe);
void stripe_lock_exclusive(struct stripe_lock *lock,
                           const struct stripe_lock_slots *slots,
                           uint32_t stripe);

/* Releases either way of locking, on the thread that locked. */
void stripe_lock_release(struct stripe_lock *lock,
                         const struct stripe_lock_slots *slots, unsigned thread,
                         uint32_t stripe);
