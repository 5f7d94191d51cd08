/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All memory. Two verbs, two policies: mem_alloc aborts (small, our size, while
 * the server starts), mem_try_* return NULL. Nothing else calls malloc. Every
 * byte is counted, as the allocator rounds it, in the metric slot of the thread
 * (base/metrics.h); mem_used() sums the slots. Any thread.
 *
 * When the allocator has nothing left, a reserve that was set aside at the
 * start (base/reserve.h) serves those who may use it. Each thread has a claim
 * that says how much of the reserve its allocations may take: nothing while it
 * does what clients ask for and what lasts, so that clients can never use up
 * what the server needs to go on.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes) __attribute__((returns_nonnull, malloc));
void *mem_zalloc(size_t bytes) __attribute__((returns_nonnull, malloc));
void *mem_try_alloc(size_t bytes) __attribute__((malloc));
void *mem_try_zalloc(size_t bytes) __attribute__((malloc));

/* On NULL the old block is untouched and still owned by the caller. */
void *mem_try_realloc(void *ptr, size_t bytes);
void mem_free(void *ptr);

/* A copy with a NUL behind it, to be freed with mem_free. */
char *mem_copy_text(struct slice text);
char *mem_try_copy_text(struct slice text);

/* What the reserve gives to the mem_try_* of a thread: MEM_OWN if it never set
 * a claim. mem_alloc may use all of it. */
enum mem_claim {
    MEM_OWN,   /* the server's own work: nearly all of it */
    MEM_SERVE, /* commands that look, free or save: the first half of it */
    MEM_OPEN,  /* new connections: the first quarter of it */
    MEM_FILL   /* what clients fill memory with: nothing of it */
};

/* Sets the claim of the calling thread and returns the one before. */
enum mem_claim mem_set_claim(enum mem_claim claim);

/* Sets the reserve aside; false if there is no memory for it. Call it before
 * other threads start. */
bool mem_set_aside(void);

/* count x size; false if that overflows size_t. */
static inline bool
mem_multiply(size_t count, size_t size, size_t *ret_bytes)
{
    return !__builtin_mul_overflow(count, size, ret_bytes);
}

/* Zeroed lines aligned to 64 bytes: from 2 MiB on a mapping of their own
 * (base/huge.h), below it from the allocator. Also for structs with members
 * aligned to lines. */
void *mem_lines(size_t bytes) __attribute__((returns_nonnull));
void *mem_try_lines(size_t bytes);

/* Frees what these two gave. A large mapping takes its time: off the
 * loops. */
void mem_free_lines(void *ptr, size_t bytes);

/* Bytes in use by everything above, all threads. */
uint64_t mem_used(void);

/* Fault injection for tests: the nth mem_try_* of this thread from here on
 * gets nothing from the allocator (1 is the next; 0 switches off); with the
 * second, neither does any later one. mem_fail_clear switches off and tells
 * whether it fired. */
void mem_fail_at(unsigned nth);
void mem_fail_from(unsigned nth);
bool mem_fail_clear(void);
