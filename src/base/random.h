/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random bytes from the kernel, and a fast sequence for choices that need not
 * be secret (xorshift; each thread has its own state, seeded from the kernel).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Fills the bytes by a system call. */
void random_bytes(void *ret_bytes, size_t len);

/* Returns a number from the kernel, which nobody can predict, without a system
 * call for each: a thread asks for 4 KiB at a time, and erases each number that
 * it returns. */
uint64_t random_number(void);

/* Writes len lower-case hexadecimal digits and a NUL. */
void random_hex(char *ret_text, size_t len);

/* Returns a nearly uniform number in [0, bound); bound > 0. */
uint64_t random_below(uint64_t bound);
