/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the eight hexadecimal digits in which items and keys differ, in place
 * in a prebuilt request.
 */
#pragma once

#include <stdint.h>
#include <string.h>

enum { DIGITS = 8 };

/* Writes NUMBER as eight hexadecimal digits, all at once: each nibble goes into
 * one byte of a word. */
static inline void
put_digits(char *at, uint32_t number)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word = number;
    uint64_t letters;

    word = (word | word << 16) & UINT64_C(0x0000ffff0000ffff);
    word = (word | word << 8) & UINT64_C(0x00ff00ff00ff00ff);
    word = (word | word << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    letters = (word + ones * 6) >> 4 & ones;
    word += ones * '0' + letters * ('a' - '9' - 1);
    word = __builtin_bswap64(word);
    memcpy(at, &word, DIGITS);
}

/* Returns the output of splitmix64 (Steele et al. 2014) in STATE, below RANGE.
 */
static inline uint64_t
random_at(uint64_t state, uint64_t range)
{
    uint64_t z = state;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z >> 32) * range >> 32;
}

/* Returns the next number, below RANGE. */
static inline uint64_t
random_number(uint64_t *state, uint64_t range)
{
    return random_at(*state += UINT64_C(0x9e3779b97f4a7c15), range);
}
