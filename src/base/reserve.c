/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool consists of runs of units, used or free. `runs` has the length of
 * each run at the index of its first unit. A search goes from run to run, joins
 * free neighbours, and uses the first run that is long enough. That is slow and
 * simple, for the rare time when there is no other memory.
 */
#include "base/reserve.h"

#include "base/err.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { UNITS = RESERVE_BYTES / RESERVE_UNIT_BYTES, USED = 0x8000 };

_Static_assert(UNITS < USED, "a length shares its word with the mark");

char *reserve_base;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint16_t runs[UNITS]; /* units of a run, and USED */
static _Atomic size_t used_units, peak_units;
static _Atomic uint64_t times_asked;

bool
reserve_open(void)
{
    void *pool = mmap(NULL, RESERVE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(reserve_base == NULL);
    if (pool == MAP_FAILED) {
        return false;
    }
    memset(pool, 0xff, RESERVE_BYTES); /* touches all pages now */
    runs[0] = UNITS;
    reserve_base = pool;
    return true;
}

/* Returns the first free run of so many units, or UNITS. Under the mutex. */
static size_t
find_units(size_t units)
{
    size_t at = 0;

    while (at < UNITS) {
        size_t length = runs[at] & ~(size_t)USED;

        if ((runs[at] & USED) == 0) {
            while (at + length < UNITS && (runs[at + length] & USED) == 0) {
                length += runs[at + length];
            }
            runs[at] = (uint16_t)length;
            if (length >= units) {
                return at;
            }
        }
        at += length;
    }
    return UNITS;
}

void *
reserve_take(size_t bytes, size_t leave_bytes)
{
    size_t units =
        bytes / RESERVE_UNIT_BYTES + (bytes % RESERVE_UNIT_BYTES > 0);
    size_t leave = leave_bytes / RESERVE_UNIT_BYTES;
    size_t at = UNITS;

    units = units > 0 ? units : 1;
    if (reserve_base == NULL || units > UNITS) {
        return NULL;
    }
    times_asked++;
    pthread_mutex_lock(&mutex);
    if (used_units + units + leave <= UNITS) {
        at = find_units(units);
    }
    if (at < UNITS) {
        if (runs[at] > units) {
            runs[at + units] = (uint16_t)(runs[at] - units);
        }
        runs[at] = (uint16_t)(units | USED);
        used_units += units;
        if (used_units > peak_units) {
            peak_units = used_units;
        }
    }
    pthread_mutex_unlock(&mutex);
    return at < UNITS ? reserve_base + at * RESERVE_UNIT_BYTES : NULL;
}

static size_t
unit_of(const void *block)
{
    size_t offset = (size_t)((const char *)block - reserve_base);

    CHECK(offset % RESERVE_UNIT_BYTES == 0);
    CHECK((runs[offset / RESERVE_UNIT_BYTES] & USED) != 0);
    return offset / RESERVE_UNIT_BYTES;
}

void
reserve_give(void *block)
{
    size_t at;

    pthread_mutex_lock(&mutex);
    at = unit_of(block);
    runs[at] = (uint16_t)(runs[at] & ~USED);
    used_units -= runs[at];
    pthread_mutex_unlock(&mutex);
}

/* Needs no mutex: no other thread changes the run of a block in use. */
size_t
reserve_block_bytes(const void *block)
{
    return (runs[unit_of(block)] & ~(size_t)USED) * RESERVE_UNIT_BYTES;
}

size_t
reserve_used(void)
{
    return used_units * RESERVE_UNIT_BYTES;
}

size_t
reserve_peak(void)
{
    return peak_units * RESERVE_UNIT_BYTES;
}

uint64_t
reserve_asked(void)
{
    return times_asked;
}

size_t
reserve_free(void)
{
    return reserve_base != NULL ? RESERVE_BYTES - reserve_used() : 0;
}
