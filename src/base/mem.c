/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting wrappers over the C library's allocator (jemalloc in the server),
 * and mappings for large filters.
 */
#include "base/mem.h"

#include "base/err.h"
#include "base/huge.h"
#include "base/metrics.h"
#include "base/reserve.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_ALIGN = 64 };

/* The largest block of the reserve for work that is not the server's own, so
 * that a long reply does not use the reserve up. */
enum { LARGEST_SERVED = 256 * 1024 };

static _Thread_local enum mem_claim own_claim;
static _Thread_local unsigned fail_countdown;
static _Thread_local bool fail_fired, fail_goes_on;

static bool
fault(void)
{
    if (__builtin_expect(fail_countdown == 0, 1)) {
        return false;
    }
    if (fail_countdown > 1) {
        fail_countdown--;
        return false;
    }
    fail_countdown = fail_goes_on ? 1 : 0;
    fail_fired = true;
    return true;
}

enum mem_claim
mem_set_claim(enum mem_claim claim)
{
    enum mem_claim before = own_claim;

    own_claim = claim;
    return before;
}

bool
mem_set_aside(void)
{
    return reserve_open();
}

/* Returns a block of the reserve; with NEEDED it may use all of it. */
static void *
from_reserve(size_t bytes, bool needed)
{
    static const size_t leave[] = {
        [MEM_OWN] = RESERVE_BYTES / 8,
        [MEM_SERVE] = RESERVE_BYTES / 2,
        [MEM_OPEN] = RESERVE_BYTES - RESERVE_BYTES / 4,
        [MEM_FILL] = RESERVE_BYTES,
    };

    if (needed) {
        return reserve_take(bytes, 0);
    }
    if (own_claim != MEM_OWN && bytes > LARGEST_SERVED) {
        return NULL;
    }
    return reserve_take(bytes, leave[own_claim]);
}

static size_t
size_of(void *ptr)
{
    return __builtin_expect(reserve_owns(ptr), 0) ? reserve_block_bytes(ptr)
                                                  : malloc_usable_size(ptr);
}

static void *
counted(void *ptr)
{
    if (ptr != NULL) {
        metric_add(METRIC_MEM_USED, (int64_t)size_of(ptr));
    }
    return ptr;
}

/* Returns PTR, or if that is NULL a block of the reserve. */
static void *
or_reserved(void *ptr, size_t bytes, bool needed)
{
    if (__builtin_expect(ptr == NULL, 0)) {
        ptr = from_reserve(bytes, needed);
    }
    return counted(ptr);
}

static void *
or_reserved_zeros(void *ptr, size_t bytes, bool needed)
{
    if (__builtin_expect(ptr == NULL, 0)) {
        ptr = from_reserve(bytes, needed);
        if (ptr != NULL) {
            memset(ptr, 0, bytes);
        }
    }
    return counted(ptr);
}

void *
mem_try_alloc(size_t bytes)
{
    size_t size = bytes > 0 ? bytes : 1;

    return or_reserved(fault() ? NULL : malloc(size), size, false);
}

void *
mem_try_zalloc(size_t bytes)
{
    size_t size = bytes > 0 ? bytes : 1;

    return or_reserved_zeros(fault() ? NULL : calloc(1, size), size, false);
}

void *
mem_alloc(size_t bytes)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *ptr = or_reserved(malloc(size), size, true);

    CHECK(ptr != NULL);
    return ptr;
}

void *
mem_zalloc(size_t bytes)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *ptr = or_reserved_zeros(calloc(1, size), size, true);

    CHECK(ptr != NULL);
    return ptr;
}

/* Moves a block out of the reserve or into it. */
static void *
move(void *ptr, size_t bytes, bool failed)
{
    bool reserved = reserve_owns(ptr);
    size_t before = ptr != NULL ? size_of(ptr) : 0;
    void *moved = reserved && !failed ? malloc(bytes) : NULL;

    if (moved == NULL && reserved && bytes <= before) {
        return ptr;
    }
    moved = or_reserved(moved, bytes, false);
    if (moved != NULL && ptr != NULL) {
        memcpy(moved, ptr, before < bytes ? before : bytes);
        mem_free(ptr);
    }
    return moved;
}

void *
mem_try_realloc(void *ptr, size_t bytes)
{
    size_t size = bytes > 0 ? bytes : 1;
    bool failed = fault();
    size_t before;
    void *grown;

    if (__builtin_expect(reserve_owns(ptr), 0)) {
        return move(ptr, size, failed);
    }
    before = ptr != NULL ? malloc_usable_size(ptr) : 0;
    grown = failed ? NULL : realloc(ptr, size);
    if (__builtin_expect(grown == NULL, 0)) {
        return move(ptr, size, true);
    }
    metric_add(METRIC_MEM_USED,
               (int64_t)malloc_usable_size(grown) - (int64_t)before);
    return grown;
}

void
mem_free(void *ptr)
{
    if (ptr == NULL) {
        return;
    }
    metric_add(METRIC_MEM_USED, -(int64_t)size_of(ptr));
    if (__builtin_expect(reserve_owns(ptr), 0)) {
        reserve_give(ptr);
    } else {
        free(ptr);
    }
}

static char *
fill_text(char *copy, struct slice text)
{
    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.data, text.len);
        }
        copy[text.len] = '\0';
    }
    return copy;
}

char *
mem_copy_text(struct slice text)
{
    return fill_text(mem_alloc(text.len + 1), text);
}

char *
mem_try_copy_text(struct slice text)
{
    return fill_text(mem_try_alloc(text.len + 1), text);
}

static void *
new_lines(size_t bytes, bool failed, bool needed)
{
    void *ptr = NULL;

    if (bytes >= HUGE_PAGE_BYTES) {
        ptr = failed ? NULL : huge_map(bytes);
        if (ptr != NULL) {
            metric_add(METRIC_MEM_USED, (int64_t)huge_round(bytes));
        }
        return ptr;
    }
    if (failed || posix_memalign(&ptr, LINE_ALIGN, bytes) != 0) {
        ptr = NULL; /* the failed call leaves it undefined */
    } else {
        memset(ptr, 0, bytes);
    }
    return or_reserved_zeros(ptr, bytes, needed);
}

void *
mem_lines(size_t bytes)
{
    void *ptr = new_lines(bytes, false, true);

    CHECK(ptr != NULL);
    return ptr;
}

void *
mem_try_lines(size_t bytes)
{
    return new_lines(bytes, fault(), false);
}

void
mem_free_lines(void *ptr, size_t bytes)
{
    if (bytes < HUGE_PAGE_BYTES || ptr == NULL) {
        mem_free(ptr);
        return;
    }
    metric_add(METRIC_MEM_USED, -(int64_t)huge_round(bytes));
    huge_unmap(ptr, bytes);
}

/* Changes a block into a mapping or back by copying the bytes, which are few in
 * that case. */
static void *
change_kind(void *ptr, size_t before, size_t after)
{
    size_t keep = before < after ? before : after;
    void *made;

    if (after < HUGE_PAGE_BYTES) {
        made = mem_try_alloc(after);
    } else {
        made = mem_try_lines(after);
    }
    if (made != NULL && keep > 0) {
        memcpy(made, ptr, keep);
        mem_free_sized(ptr, before);
    }
    return made;
}

void *
mem_try_resize(void *ptr, size_t before, size_t after)
{
    void *made;

    if (before < HUGE_PAGE_BYTES && after < HUGE_PAGE_BYTES) {
        return mem_try_realloc(ptr, after);
    }
    if (before < HUGE_PAGE_BYTES || after < HUGE_PAGE_BYTES) {
        return change_kind(ptr, before, after);
    }
    made = fault() ? NULL : huge_resize(ptr, before, after);
    if (made != NULL) {
        metric_add(METRIC_MEM_USED,
                   (int64_t)huge_round(after) - (int64_t)huge_round(before));
    }
    return made;
}

void
mem_free_sized(void *ptr, size_t bytes)
{
    mem_free_lines(ptr, bytes);
}

uint64_t
mem_used(void)
{
    int64_t used = metric_sum(METRIC_MEM_USED);

    return used > 0 ? (uint64_t)used : 0;
}

void
mem_fail_at(unsigned nth)
{
    fail_countdown = nth;
    fail_fired = fail_goes_on = false;
}

void
mem_fail_from(unsigned nth)
{
    mem_fail_at(nth);
    fail_goes_on = true;
}

bool
mem_fail_clear(void)
{
    bool fired = fail_fired;

    fail_countdown = 0;
    fail_fired = false;
    return fired;
}
