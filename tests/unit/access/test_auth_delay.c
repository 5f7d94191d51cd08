/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delays by address, on a clock that the test makes up.
 */
#include "access/auth_delay.h"

#include "../test.h"

#include <string.h>

enum { MAX_MS = 1000, MINUTE_MS = 60000 };

struct source {
    uint8_t bytes[AUTH_DELAY_SOURCE];
};

static struct source
source_of(uint32_t number)
{
    struct source source = { { 0 } };

    memcpy(source.bytes, &number, sizeof(number));
    return source;
}

static void
fail_from(struct auth_delay *delay, uint32_t number, int times, uint64_t now_ms)
{
    struct source source = source_of(number);

    for (int i = 0; i < times; i++) {
        auth_delay_failed(delay, source.bytes, now_ms);
    }
}

static uint64_t
wait_of(struct auth_delay *delay, uint32_t number, uint64_t now_ms)
{
    struct source source = source_of(number);

    return auth_delay_ms(delay, source.bytes, now_ms, MAX_MS);
}

TEST(it_grows_with_the_failures_up_to_its_bound)
{
    static const uint64_t expected[] = { 0,  0,  0,   0,   0,   10,   20,
                                         40, 80, 160, 320, 640, 1000, 1000 };
    struct auth_delay *delay = auth_delay_new();

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(expected[i], wait_of(delay, 1, 5));
        fail_from(delay, 1, 1, 5);
    }
    fail_from(delay, 1, 1000000, 5);
    assert_int_equal(MAX_MS, wait_of(delay, 1, 5));
    auth_delay_free(delay);
    auth_delay_free(NULL);
}

TEST(another_address_does_not_wait)
{
    struct auth_delay *delay = auth_delay_new();

    fail_from(delay, 1, 100, 5);
    assert_int_equal(0, wait_of(delay, 2, 5));
    assert_int_equal(0, wait_of(delay, 0, 5)); /* another address */
    fail_from(delay, 0, 6, 5);
    assert_int_equal(20, wait_of(delay, 0, 5));
    auth_delay_free(delay);
}

TEST(failures_are_forgotten_by_half_each_minute)
{
    struct auth_delay *delay = auth_delay_new();

    fail_from(delay, 1, 12, 1000);
    assert_int_equal(MAX_MS, wait_of(delay, 1, 1000 + MINUTE_MS - 1));
    assert_int_equal(20, wait_of(delay, 1, 1000 + MINUTE_MS)); /* of 6 */
    assert_int_equal(0, wait_of(delay, 1, 1000 + 2 * MINUTE_MS));
    fail_from(delay, 1, 1, 1000 + MINUTE_MS); /* the seventh */
    assert_int_equal(40, wait_of(delay, 1, 1000 + MINUTE_MS));
    fail_from(delay, 1, 1000, 1000 + MINUTE_MS); /* 64 count */
    assert_int_equal(0, wait_of(delay, 1, 1000 + 5 * MINUTE_MS));
    assert_int_equal(0, wait_of(delay, 1, UINT64_MAX));
    assert_int_equal(MAX_MS, wait_of(delay, 1, 0)); /* never negative */
    auth_delay_free(delay);
}

/* Many addresses with one failure do not replace one with many failures. */
TEST(of_too_many_those_with_the_fewest_failures_go)
{
    struct auth_delay *delay = auth_delay_new();

    fail_from(delay, 1000000, 20, 5);
    for (uint32_t i = 0; i < 100000; i++) {
        fail_from(delay, i, 1, 5);
    }
    assert_int_equal(MAX_MS, wait_of(delay, 1000000, 5));
    auth_delay_free(delay);
}
