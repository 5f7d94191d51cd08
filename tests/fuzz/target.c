/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

uint64_t
fuzz_next(uint64_t *random)
{
    uint64_t z = (*random += 0x9E3779B97F4A7C15U);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

void
fuzz_seal(char *data, size_t begin, size_t at)
{
    char *seal = data + at;
    char text[40];

    if (seal[34] != '7') {
        (void)snprintf(text, sizeof(text), "%016zu", at - begin);
        memcpy(seal + 36, text, 16);
    }
    (void)snprintf(
        text, sizeof(text), "%016" PRIx64,
        (uint64_t)XXH3_64bits_withSeed(seal, FUZZ_SEAL_HASHED, FUZZ_KEY));
    memcpy(seal + FUZZ_SEAL_HASHED, text, 16);
    (void)snprintf(text, sizeof(text), "%016" PRIx64,
                   (uint64_t)XXH3_64bits_withSeed(
                       data + begin, at - begin + FUZZ_SEAL_HASHED, FUZZ_KEY));
    memcpy(seal + FUZZ_SEAL_TAG_END, text, 16);
    memcpy(seal + 102, "\r\n", 2);
}
