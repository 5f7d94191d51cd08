/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nothing can prove randomness; these find what is plainly broken. The bounds
 * are six sigma and more wide: a failure is a bug.
 */
#include "base/random.h"

#include "../test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TEST(bytes_fill_the_whole_length_and_no_more)
{
    unsigned char seen[70] = { 0 };

    for (int round = 0; round < 40; round++) {
        unsigned char bytes[72];

        memset(bytes, 0, sizeof(bytes));
        random_bytes(bytes + 1, 70);
        assert_int_equal(0, bytes[0]);
        assert_int_equal(0, bytes[71]);
        for (int i = 0; i < 70; i++) {
            seen[i] |= bytes[1 + i];
        }
    }
    for (int i = 0; i < 70; i++) {
        assert_int_equal(0xff, seen[i]); /* missing: 70 x 8 in 2^40 */
    }
    random_bytes(seen, 0);
}

/* More than two buffers, of two threads: a number that comes twice, or a bit
 * that is always the same, would show. */
enum { NUMBERS = 1500 };

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void *
draw(void *numbers)
{
    for (int i = 0; i < NUMBERS; i++) {
        ((uint64_t *)numbers)[i] = random_number();
    }
    return NULL;
}

TEST(numbers_of_all_threads_differ)
{
    static uint64_t numbers[2 * NUMBERS];
    uint64_t seen = 0;
    uint64_t kept = UINT64_MAX;
    pthread_t thread;

    assert_int_equal(0, pthread_create(&thread, NULL, draw, numbers + NUMBERS));
    (void)draw(numbers);
    assert_int_equal(0, pthread_join(thread, NULL));
    qsort(numbers, 2 * NUMBERS, sizeof(*numbers), compare);
    for (int i = 0; i < 2 * NUMBERS; i++) {
        assert_true(i == 0 || numbers[i] != numbers[i - 1]);
        seen |= numbers[i];
        kept &= numbers[i];
    }
    assert_true(seen == UINT64_MAX && kept == 0);
}

TEST(hex_is_lower_case_digits_with_an_end)
{
    char a[41];
    char b[41];

    random_hex(a, 40);
    random_hex(b, 40);
    assert_int_equal(40, strlen(a));
    assert_int_equal(40, strspn(a, "0123456789abcdef"));
    assert_string_not_equal(a, b);
    random_hex(a, 0);
    assert_string_equal("", a);
}

TEST(below_stays_below_and_reaches_everything)
{
    enum { BOUND = 100, DRAWS = 100000 };
    unsigned count[BOUND] = { 0 };

    for (int i = 0; i < DRAWS; i++) {
        uint64_t x = random_below(BOUND);

        assert_true(x < BOUND);
        count[x]++;
        assert_int_equal(0, random_below(1));
        assert_true(random_below(UINT64_MAX) < UINT64_MAX);
    }
    for (int i = 0; i < BOUND; i++) { /* 1000 expected, sigma 31.5 */
        assert_in_range(count[i], 1000 - 250, 1000 + 250);
    }
}
