/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The CRC-64 of Redis: the polynomial of Jones, reflected, without inversion.
 * It ends RDB files and the payloads of DUMP. crc64(0, "123456789") is
 * 0xe9c6d914c4b8d9ca. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum with more bytes; 0 begins one. */
uint64_t crc64(uint64_t crc, const void *data, size_t len);
