/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All memory. mem_alloc aborts without memory: it is for small blocks of our
 * own size while the server starts. mem_try_* return NULL. No other file calls
 * malloc. Every byte is counted, as the allocator rounds it, in the metric slot
 * of the thread (base/metrics.h); mem_used() sums the slots. Any thread.
 *
 * When the allocator has no memory left, a reserve that was set aside at the
 * start (base/reserve.h) provides it. The claim of a thread says how much of
 * the reserve its allocations may use. For commands that keep memory that is
 * nothing, so that clients can never use up what the server needs to continue.
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

/* Returns a copy with a NUL at its end, to be freed with mem_free. */
char *mem_copy_text(struct slice text);
char *mem_try_copy_text(struct slice text);

/* How much of the reserve the mem_try_* of a thread may use; a new thread has
 * MEM_OWN. mem_alloc may use all of it. */
enum mem_claim {
    MEM_OWN,   /* the server's own work: nearly all of it */
    MEM_SERVE, /* commands that read, free or save: the first half */
    MEM_OPEN,  /* new connections: the first quarter */
    MEM_FILL   /* commands that keep memory: nothing */
};

/* Sets the claim of the calling thread and returns the one before. */
enum mem_claim mem_set_claim(enum mem_claim claim);

/* Sets the reserve aside, before other threads start. False without memory. */
bool mem_set_aside(void);

/* Computes count x size; false if that overflows size_t. */
static inline bool
mem_multiply(size_t count, size_t size, size_t *ret_bytes)
{
    return !__builtin_mul_overflow(count, size, ret_bytes);
}

/* Returns zeroed bytes aligned to 64: from 2 MiB on a mapping of their own
 * (base/huge.h), below it from the allocator. */
void *mem_lines(size_t bytes) __attribute__((returns_nonnull));
void *mem_try_lines(size_t bytes);

/* Frees them. For a large mapping that takes long: not on a loop. */
void mem_free_lines(void *ptr, size_t bytes);

/* Changes the size of a block whose owner knows its size; before: 0, and ptr
 * NULL, for a new one. From 2 MiB on it is a mapping, which grows without being
 * copied. NULL: no memory, and the block stays as it was. */
void *mem_try_resize(void *ptr, size_t before, size_t after);
void mem_free_sized(void *ptr, size_t bytes);

/* Returns the bytes in use, of all threads. */
uint64_t mem_used(void);

/* Fault injection for tests: the nth mem_try_* of this thread from now on gets
 * nothing from the allocator (1: the next; 0: off); with mem_fail_from, no
 * later one does either. mem_fail_clear switches it off, and returns whether it
 * happened. */
void mem_fail_at(unsigned nth);
void mem_fail_from(unsigned nth);
bool mem_fail_clear(void);
