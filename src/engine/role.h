/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role: primary, or replica of a primary. It changes under the raised gate,
 * on any loop (also by REPLICAOF inside a Sentinel's MULTI), and is valid at
 * once for INFO and for the admission of writes. Loop 0 compares epochs and
 * moves the links afterwards. The room roles keeps it in a file
 * (roles/role_file.h).
 */
#pragma once

#include "base/slice.h"
#include "engine/service.h"

/* Returns whether a primary may have this name: printable ASCII without blanks
 * or quotes, shorter than ROLE_HOST_MAX. */
bool role_host_is_valid(struct slice host);

/* Returns whether a server can be followed at this place: it has a valid host
 * and a port other than 0. A replica without a port for others announces port
 * 0. */
bool role_place_is_valid(struct slice host, uint32_t port);

/* Returns whether the option replicaof-allowed permits this host. Host names
 * are compared as text, and not resolved. */
bool role_host_is_allowed(const struct conf *conf, struct slice host);

/* Make the server a replica of a (valid) place, or a primary; they do nothing
 * if it has that role already. After role_follow, earlier writes of clients
 * count as not acknowledged by replicas (session->written). role_lead begins a
 * new history (persist_renew_history), and holds replies to writes until the
 * room roles has the role on the disk and calls journal_unbar: otherwise,
 * after a crash, it would start as a replica and give up what it had
 * acknowledged as a primary. Both end the grace of a start. Under the raised
 * gate. */
void role_follow(struct service *service, struct slice host, uint32_t port);
void role_lead(struct service *service);

/* Returns a copy of the role. Call it outside the gate, on loop 0. */
struct role role_copy(const struct service *service);

/* Sets the role that was kept or configured. Call it before the loops run. */
void role_set(struct service *service, struct slice host, uint32_t port);
