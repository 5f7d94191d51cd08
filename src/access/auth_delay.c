/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A set-associative cache: a source has a tally in the set of its hash, or
 * none. The fixed size bounds what an attacker with many addresses can fill.
 */
#include "access/auth_delay.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

enum {
    SETS = 512,
    WAYS = 8,
    FREE_FAILURES = 5, /* people mistype */
    FIRST_MS = 10,     /* doubles with each failure */
    HALVING_MS = 60 * 1000,
};

struct tally {
    uint8_t source[AUTH_DELAY_SOURCE];
    uint64_t last_ms;
    uint32_t failures; /* 0: free */
};

struct auth_delay {
    pthread_mutex_t mutex;
    struct tally sets[SETS][WAYS];
};

struct auth_delay *
auth_delay_new(void)
{
    struct auth_delay *delay = mem_zalloc(sizeof(*delay));

    CHECK(pthread_mutex_init(&delay->mutex, NULL) == 0);
    return delay;
}

void
auth_delay_free(struct auth_delay *delay)
{
    if (delay != NULL) {
        pthread_mutex_destroy(&delay->mutex);
        mem_free(delay);
    }
}

static uint32_t
failures_now(const struct tally *tally, uint64_t now_ms)
{
    uint64_t halvings =
        now_ms > tally->last_ms ? (now_ms - tally->last_ms) / HALVING_MS : 0;

    return halvings < 32 ? tally->failures >> halvings : 0;
}

static bool
is_of(const struct tally *tally, const uint8_t source[AUTH_DELAY_SOURCE])
{
    return tally->failures > 0 &&
           memcmp(tally->source, source, AUTH_DELAY_SOURCE) == 0;
}

/* Returns the source's tally, else the one of its set with fewest failures. */
static struct tally *
find_tally(struct auth_delay *delay, const uint8_t source[AUTH_DELAY_SOURCE],
           uint64_t now_ms)
{
    struct slice name = { (const char *)source, AUTH_DELAY_SOURCE };
    struct tally *set = delay->sets[hash_name(name) % SETS];
    struct tally *fewest = &set[0];

    for (int i = 0; i < WAYS; i++) {
        if (is_of(&set[i], source)) {
            return &set[i];
        }
        if (failures_now(&set[i], now_ms) < failures_now(fewest, now_ms)) {
            fewest = &set[i];
        }
    }
    return fewest;
}

uint64_t
auth_delay_ms(struct auth_delay *delay, const uint8_t source[AUTH_DELAY_SOURCE],
              uint64_t now_ms, uint64_t max_ms)
{
    const struct tally *tally;
    uint64_t failures = 0;
    uint64_t wait_ms = FIRST_MS;

    pthread_mutex_lock(&delay->mutex);
    tally = find_tally(delay, source, now_ms);
    if (is_of(tally, source)) {
        failures = failures_now(tally, now_ms);
    }
    pthread_mutex_unlock(&delay->mutex);
    if (failures < FREE_FAILURES) {
        return 0;
    }
    for (; failures > FREE_FAILURES && wait_ms < max_ms; failures--) {
        wait_ms *= 2;
    }
    return wait_ms < max_ms ? wait_ms : max_ms;
}

bool
auth_delay_failed(struct auth_delay *delay,
                  const uint8_t source[AUTH_DELAY_SOURCE], uint64_t now_ms)
{
    struct tally *tally;
    uint32_t failures = 0;
    bool first = true;

    pthread_mutex_lock(&delay->mutex);
    tally = find_tally(delay, source, now_ms);
    if (is_of(tally, source)) {
        first = tally->last_ms / 1000 != now_ms / 1000;
        failures = failures_now(tally, now_ms);
    }
    /* 64 are enough for the longest delay; more would take longer to halve. */
    *tally = (struct tally){ .last_ms = now_ms,
                             .failures = failures < 64 ? failures + 1 : 64 };
    memcpy(tally->source, source, AUTH_DELAY_SOURCE);
    pthread_mutex_unlock(&delay->mutex);
    return first;
}
