/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random bytes from the kernel, and a fast sequence for choices that nobody
 * has to guess (xorshift; state per thread, seeded from the kernel).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *ret_bytes, size_t len);

/* Lower-case hex digits and a NUL: ret_text holds len + 1 bytes. */
void random_hex(char *ret_text, size_t len);

/* Uniform enough in [0, bound); bound > 0. */
uint64_t random_below(uint64_t bound);
