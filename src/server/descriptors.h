/* SPDX-License-Identifier: BSD-3-Clause
 *
 * File descriptors: the server reserves its own first; clients and replicas
 * share the rest. So a rewrite, a save or a synchronization can open its files
 * however many clients there are. Called at the start or under the raised gate.
 */
#pragma once

#include "conf/conf.h"

enum { DESCRIPTORS_CLIENTS_MIN = 4 };

/* Returns how many descriptors the server itself needs at most, with those that
 * the process has already. Call it before the server opens its own ones. */
uint64_t descriptors_own(const struct conf *conf, unsigned threads);

/* Lowers maxclients, reserved-clients and max-replicas to what `limit`
 * descriptors allow. False: not even DESCRIPTORS_CLIENTS_MIN are left for
 * clients, and each of the three options is as low as possible. */
MUST_CHECK bool descriptors_share(struct conf *conf, uint64_t own,
                                  uint64_t limit);

/* Does the same with the limit of this process. First raises that limit, as far
 * as necessary and allowed. Logs what it has lowered, and the reason for false.
 */
MUST_CHECK bool descriptors_fit(struct conf *conf, uint64_t own);
