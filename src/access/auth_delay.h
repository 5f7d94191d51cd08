/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delays the check of passwords, for each source address: not at all at first,
 * and longer after each wrong password. Right and wrong passwords wait equally
 * long, so that the delay tells a guesser nothing. The delay is bounded: behind
 * a proxy all clients have the same address, and those with the right password
 * must get in.
 *
 * The count of failures halves every minute. The table has a fixed size: a new
 * address may replace the one that has the fewest failures among eight others.
 * Any thread; a leaf lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct auth_delay;

/* The bytes of a source, as address_source (net/address.h) writes them. */
enum { AUTH_DELAY_SOURCE = 16 };

struct auth_delay *auth_delay_new(void);
void auth_delay_free(struct auth_delay *delay);

/* Returns how long a password from this source waits. now_ms: the time of a
 * monotonic clock. */
uint64_t auth_delay_ms(struct auth_delay *delay,
                       const uint8_t source[AUTH_DELAY_SOURCE], uint64_t now_ms,
                       uint64_t max_ms);

/* Counts a wrong password. Returns whether it is the source's first one in this
 * second. */
bool auth_delay_failed(struct auth_delay *delay,
                       const uint8_t source[AUTH_DELAY_SOURCE],
                       uint64_t now_ms);
