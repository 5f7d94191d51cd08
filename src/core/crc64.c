/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Eight bytes a step, with one table for each (Kounavis and Berry, "Novel
 * Table Lookup-Based Algorithms for High-Performance CRC Generation", 2008).
 */
#include "core/crc64.h"

#include "base/little.h"

#define POLYNOMIAL UINT64_C(0x95ac9329ac4bc9b5)

enum { STEP = 8 };

static uint64_t tables[STEP][256];

/* Fills the tables before main, so that no thread has to. */
__attribute__((constructor)) static void
fill_tables(void)
{
    for (uint64_t byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;

        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        }
        tables[0][byte] = crc;
    }
    for (uint64_t byte = 0; byte < 256; byte++) {
        for (int i = 1; i < STEP; i++) {
            uint64_t before = tables[i - 1][byte];

            tables[i][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
}

uint64_t
crc64(uint64_t crc, const void *data, size_t len)
{
    const uint8_t *at = data;

    for (; len >= STEP; len -= STEP, at += STEP) {
        uint64_t word = crc ^ get_u64(at);

        crc = 0;
        for (int i = 0; i < STEP; i++) {
            crc ^= tables[STEP - 1 - i][(word >> (8 * i)) & 0xff];
        }
    }
    for (; len > 0; len--, at++) {
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    }
    return crc;
}
