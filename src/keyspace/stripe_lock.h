/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader-writer lock of a stripe. Who has to wait spins for some
 * microseconds, since what is done under it takes about one, and then sleeps,
 * since the holder may have lost its CPU. Writers come before readers, but a
 * reader that has waited that long competes with them, so that nobody starves.
 *
 * Readers that write to the lock take its line away from each other. So after
 * some reads in a row the lock is calm: a reader then only notes the stripe in
 * a slot of its own thread, and the next writer, having the lock, ends that and
 * looks through the slots of all threads (Dice and Kogan, "BRAVO", 2019). One
 * write costs that much among so many reads, and the others nothing.
 *
 * Neither recursive nor to be upgraded. The lock's memory, zeroed, is free.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { STRIPE_LOCK_CALM = 32 }; /* reads in a row */

struct stripe_lock {
    _Atomic uint32_t state;
    _Atomic uint32_t reads; /* in a row; calm: STRIPE_LOCK_CALM or more */
};

/* One for each thread: which stripe it reads whose lock was calm, plus one; 0:
 * none. Two lines, since some CPUs fetch them in pairs. */
struct stripe_lock_slot {
    _Alignas(64) _Atomic uint32_t held;
    char apart[124];
};

/* What all stripes have in common. */
struct stripe_lock_slots {
    struct stripe_lock_slot *slot; /* [threads] */
    unsigned threads;
};

/* By the thread with this index, from 0 on; one that has no slot may lock
 * too, and never finds the lock calm. STRIPE: the lock's own number, no
 * other lock of these slots has it. */
void stripe_lock_shared(struct stripe_lock *lock,
                        const struct stripe_lock_slots *slots, unsigned thread,
                        uint32_t stripe);
void stripe_lock_exclusive(struct stripe_lock *lock,
                           const struct stripe_lock_slots *slots,
                           uint32_t stripe);

/* By the thread that locked it, either way. */
void stripe_lock_release(struct stripe_lock *lock,
                         const struct stripe_lock_slots *slots, unsigned thread,
                         uint32_t stripe);
