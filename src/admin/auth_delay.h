/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long a password waits before it is checked, by the address that it comes
 * from: not at all at first, and longer after each wrong one from there. Right
 * and wrong passwords wait alike, so that the delay itself tells a guesser
 * nothing. The wait is bounded, however many wrong ones came: behind a proxy
 * all clients have one address, and the honest ones must get in.
 *
 * Failures are forgotten by half each minute. The table has a fixed size; of
 * too many addresses those with the fewest failures go. Any thread; its lock is
 * a leaf.
 */
#pragma once

#include <stdint.h>

struct auth_delay;

/* As address_source (net/address.h) writes it. */
enum { AUTH_DELAY_SOURCE = 16 };

struct auth_delay *auth_delay_new(void);
void auth_delay_free(struct auth_delay *delay);

/* now_ms: of any clock that does not go back. */
uint64_t auth_delay_ms(struct auth_delay *delay,
                       const uint8_t source[AUTH_DELAY_SOURCE], uint64_t now_ms,
                       uint64_t max_ms);
void auth_delay_failed(struct auth_delay *delay,
                       const uint8_t source[AUTH_DELAY_SOURCE],
                       uint64_t now_ms);
