/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whom this server follows. The role changes under the raised gate, on any
 * loop (REPLICAOF inside a Sentinel's MULTI too), and holds at once: what INFO
 * says, which writes are admitted. The links follow on loop 0, which compares
 * epochs. The server layer keeps the role in a file (server/role_file.h).
 */
#pragma once

#include "base/slice.h"
#include "engine/service.h"

/* What a primary may be called: printable ASCII without blanks or quotes, short
 * enough. */
bool role_host_is_valid(struct slice host);

/* Whether the option replicaof-allowed lets the server follow this host. A name
 * is compared as a name: nothing is looked up. */
bool role_host_is_allowed(const struct conf *conf, struct slice host);

/* Under the raised gate; each does nothing if it is so already. What clients
 * wrote before the server follows counts as unknown to replicas from then on
 * (session->written). role_lead begins a new history (persist_renew_history).
 * Both end the grace of a start. host: valid. */
void role_follow(struct service *service, struct slice host, uint32_t port);
void role_lead(struct service *service);

/* Before the loops run: as it was kept, or configured. */
void role_set(struct service *service, struct slice host, uint32_t port);
