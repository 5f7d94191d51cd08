/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Computes the CRC four bits at a time: names are short, and the table fits
 * into a cache line.
 */
#include "keyspace/hash_slot.h"

#include <string.h>

static uint16_t
crc16(const uint8_t *at, size_t len)
{
    static const uint16_t steps[16] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
    };
    uint32_t crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc = (crc << 4) ^ steps[((crc >> 12) ^ (at[i] >> 4)) & 15];
        crc = (crc << 4) ^ steps[((crc >> 12) ^ at[i]) & 15];
    }
    return (uint16_t)crc;
}

static struct slice
tag_of(struct slice name)
{
    const char *open = memchr(name.data, '{', name.len);
    const char *end = name.data + name.len;
    const char *shut;

    if (open == NULL) {
        return name;
    }
    shut = memchr(open + 1, '}', (size_t)(end - open - 1));
    return shut == NULL || shut == open + 1
               ? name
               : (struct slice){ open + 1, (size_t)(shut - open - 1) };
}

uint32_t
hash_slot_of(struct slice name)
{
    struct slice tag = name.len > 0 ? tag_of(name) : name;

    return crc16((const uint8_t *)tag.data, tag.len) % HASH_SLOTS;
}
