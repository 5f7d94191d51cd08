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
