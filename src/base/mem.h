/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All memory of the program comes from here; else only core/env.c calls malloc.
 * Without memory mem_alloc aborts: it is for blocks of a size that no client
 * chooses. mem_try_* return NULL. Every byte is counted, as the allocator
 * rounds it, in the metric slot of the thread (base/metrics.h); mem_used() sums
 * the slots. Any thread.
 *
 * When the allocator has no memory left, a reserve that was set aside at the
 * start (base/reserve.h) provides it. The claim of a thread says how much of
 * the reserve its allocations may use. Commands that keep memory may use
 * nothing of it, so that clients can never use up what the server needs to
 * continue.
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

/* Changes the size of a block. If it returns NULL, the old block is untouched
 * and still owned by the caller. */
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

/* Return zeroed bytes aligned to 64: a mapping of their own if they are 2 MiB
 * or more (base/huge.h), else a block of the allocator. */
void *mem_lines(size_t bytes) __attribute__((returns_nonnull));
void *mem_try_lines(size_t bytes);

/* Frees such bytes. For a large mapping that takes long, so do not call it on a
 * loop. */
void mem_free_lines(void *ptr, size_t bytes);

/* Changes the size of a block whose owner knows its size. For a new block, ptr
 * is NULL and `before` is 0. A block of 2 MiB or more is a mapping, which grows
 * without being copied. NULL: there is no memory, and the block stays as it
 * was. */
void *mem_try_resize(void *ptr, size_t before, size_t after);
void mem_free_sized(void *ptr, size_t bytes);

/* Returns the bytes in use, of all threads. */
uint64_t mem_used(void);

/* Injects faults, for tests. After mem_fail_at, the nth mem_try_* of this
 * thread gets nothing from the allocator (1: the next; 0: off); after
 * mem_fail_from, all later ones get nothing, too. mem_fail_clear switches this
 * off, and returns whether an allocation has failed so. */
void mem_fail_at(unsigned nth);
void mem_fail_from(unsigned nth);
bool mem_fail_clear(void);
