/* SPDX-License-Identifier: BSD-3-Clause
 *
 * File descriptors: what the server itself needs is set aside first, and
 * clients and replicas share the rest. So no crowd of clients can keep a
 * rewrite, a save or a synchronization from its files. At start, and under the
 * raised gate.
 */
#pragma once

#include "conf/conf.h"

enum { DESCRIPTORS_CLIENTS_MIN = 4 };

/* How many the server itself needs at most, those included that it was started
 * with. Before it has opened any. */
uint64_t descriptors_own(const struct conf *conf, unsigned threads);

/* Lowers maxclients, reserved-clients and max-replicas to what `limit`
 * descriptors leave. False if not even DESCRIPTORS_CLIENTS_MIN are left: then
 * each of the three is as low as it can be. */
MUST_CHECK bool descriptors_share(struct conf *conf, uint64_t own,
                                  uint64_t limit);

/* The same for this process, whose limit it raises as far as that is needed
 * and allowed. Logs what it lowered, and why false. */
MUST_CHECK bool descriptors_fit(struct conf *conf, uint64_t own);
