/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs every case that registered itself.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { CASES_MAX = 256 };

static struct CMUnitTest cases[CASES_MAX];
static size_t case_count;
static uint64_t seed;

void
test_register(const char *name, CMUnitTestFunction function)
{
    if (case_count == CASES_MAX) {
        (void)fprintf(stderr, "raise CASES_MAX in tests/unit/main.c\n");
        abort();
    }
    cases[case_count].name = name;
    cases[case_count].test_func = function;
    case_count++;
}

uint64_t
test_seed(void)
{
    return seed;
}

unsigned
test_rounds(void)
{
    const char *text = getenv("BLOOMERY_ROUNDS");
    unsigned long rounds = text != NULL ? strtoul(text, NULL, 10) : 1;

    return rounds > 0 && rounds < 1000000 ? (unsigned)rounds : 1;
}

unsigned
test_stride(void)
{
    const char *text = getenv("BLOOMERY_ROUNDS");
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    unsigned long n = slash != NULL ? strtoul(slash + 1, NULL, 10) : 1;

    return n > 0 && n < 1000000 ? (unsigned)n : 1;
}

unsigned
test_times(unsigned count)
{
    count = count * test_rounds() / test_stride();
    return count > 0 ? count : 1;
}

uint64_t
test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15U);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

uint64_t
test_random_below(uint64_t *state, uint64_t bound)
{
    return test_random(state) % bound;
}

double
test_random_unit(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

int
main(void)
{
    const char *text = getenv("BLOOMERY_SEED");

    if (text != NULL) {
        seed = strtoull(text, NULL, 0);
    } else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        seed = 1;
    }
    (void)printf("BLOOMERY_SEED=%#llx\n", (unsigned long long)seed);
    (void)fflush(stdout);
    return _cmocka_run_group_tests("tests", cases, case_count, NULL, NULL);
}
