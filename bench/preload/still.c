/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library to preload into a server whose instructions are counted, so that
 * two runs have the same count. It slows clocks to 1/256 of their speed:
 * valgrind and a busy machine slow the server down, and the count would include
 * every timer that fires meanwhile. It returns the same random bytes in every
 * run; the seeds of hash tables and filters come from them.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

enum { SLOWER = 256 };

/* The start of the process, by the clocks with these numbers. */
static int64_t began_ns[CLOCK_MONOTONIC_COARSE + 1];
static _Atomic uint64_t random_state;

static int64_t
real_ns(clockid_t id)
{
    struct timespec now;

    (void)syscall(SYS_clock_gettime, id, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

__attribute__((constructor)) static void
remember_start(void)
{
    for (clockid_t id = 0; id <= CLOCK_MONOTONIC_COARSE; id++) {
        began_ns[id] = real_ns(id);
    }
}

/* Returns the slowed time; CPU time is left as it is. */
int
clock_gettime(clockid_t id, struct timespec *ret_now)
{
    int64_t ns;

    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE &&
        id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE) {
        return (int)syscall(SYS_clock_gettime, id, ret_now);
    }
    ns = began_ns[id] + (real_ns(id) - began_ns[id]) / SLOWER;
    ret_now->tv_sec = ns / SECOND;
    ret_now->tv_nsec = ns % SECOND;
    return 0;
}

/* Fills the bytes with the next outputs of splitmix64 (Steele et al. 2014). Few
 * instructions: they are counted too. */
ssize_t
getrandom(void *ret_bytes, size_t len, unsigned flags)
{
    unsigned char *to = ret_bytes;

    (void)flags;
    for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
        size_t left = len - i;
        uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        memcpy(to + i, &z, left < sizeof(z) ? left : sizeof(z));
    }
    return (ssize_t)len;
}
