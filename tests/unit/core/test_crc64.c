/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The check value of the polynomial, and pieces of every length.
 */
#include "core/crc64.h"

#include "../test.h"

TEST(the_check_value_is_that_of_redis)
{
    assert_true(crc64(0, "123456789", 9) == UINT64_C(0xe9c6d914c4b8d9ca));
    assert_true(crc64(0, "", 0) == 0);
}

TEST(pieces_give_the_checksum_of_the_whole)
{
    uint8_t bytes[100];
    uint64_t random = test_seed();
    uint64_t whole;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)test_random(&random);
    }
    whole = crc64(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        uint64_t crc = crc64(0, bytes, cut);

        assert_true(crc64(crc, bytes + cut, sizeof(bytes) - cut) == whole);
    }
}
