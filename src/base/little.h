/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Little-endian numbers in stored bytes, at any address. Pure.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t
get_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

static inline uint32_t
get_u32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static inline uint64_t
get_u64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

/* Reads a double in the format IEEE 754 binary64. */
static inline double
get_double(const uint8_t *at)
{
    uint64_t bits = get_u64(at);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline void
put_u16(uint8_t *at, uint16_t value)
{
    value = htole16(value);
    memcpy(at, &value, sizeof(value));
}

static inline void
put_u32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
}

static inline void
put_u64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
}

static inline void
put_double(uint8_t *at, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    put_u64(at, bits);
}
