/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role: primary, or replica of a primary. It changes under the raised gate,
 * on any loop (also by REPLICAOF inside a Sentinel's MULTI), and holds at once
 * for INFO and for which writes are admitted. Loop 0 compares epochs and moves
 * the links afterwards. The room roles keeps it in a file
 * (roles/role_file.h).
 */
#pragma once

#include "base/slice.h"
#include "engine/service.h"

/* Returns whether a primary may have this name: printable ASCII without blanks
 * or quotes, shorter than ROLE_HOST_MAX. */
bool role_host_is_valid(struct slice host);

/* Returns whether a server can be followed there: a valid host and a port. A
 * replica that listens on no port that others could use announces port 0. */
bool role_place_is_valid(struct slice host, uint32_t port);

/* Returns whether the option replicaof-allowed permits this host. A name is
 * compared as a name: nothing is looked up. */
bool role_host_is_allowed(const struct conf *conf, struct slice host);

/* Makes the server a replica of a (valid) place, or a primary; nothing if it is
 * so already. Writes of clients from before role_follow count as unknown to
 * replicas from then on (session->written). role_lead begins a new history
 * (persist_renew_history), and holds replies to writes until the server layer
 * has the role on the disk and calls journal_unbar: after a crash, a replica
 * would give up what it had acknowledged as a primary. Both end the grace of a
 * start. Under the raised gate. */
void role_follow(struct service *service, struct slice host, uint32_t port);
void role_lead(struct service *service);

/* Returns a copy. Call it outside the gate, on loop 0. */
struct role role_copy(const struct service *service);

/* Sets the role that was kept or configured. Before the loops run. */
void role_set(struct service *service, struct slice host, uint32_t port);
