/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A command changes the role under the raised gate; loop 0 compares epochs
 * here.
 */
#include "roles/role_change.h"

#include "base/log.h"
#include "persist/place.h"
#include "roles/figures.h"
#include "roles/following.h"
#include "roles/grace.h"
#include "roles/kept_role.h"
#include "roles/replication_state.h"

void
role_change_note_history(struct replication *r)
{
    const struct history *history = persist_history(r->loop0->service->persist);

    gate_enter(replication_gate(r), 0);
    if (strcmp(r->history, history->id) != 0) {
        memcpy(r->history, history->id, sizeof(r->history));
        primary_set_history(r->primary, history, r->key);
    }
    gate_leave(replication_gate(r), 0);
}

void
role_change_look(struct replication *r)
{
    struct role role = replication_role(r);

    if (r->life != REPLICATION_RUNS || role.epoch == r->epoch) {
        return;
    }
    grace_end(r, "a command has said which server leads");
    /* Replicas connect again and learn the new chain (chained, following.c). */
    primary_drop_all(r->primary, "the role has changed");
    if (role.replica) {
        following_begin(r, &role, r->failover.state == STATUS_FAILOVER_RUNS);
    } else {
        r->epoch = role.epoch;
        following_end(r);
        log_notice("server.replication", "is a primary", "%s", "");
    }
    role_change_note_history(r);
    kept_role_update(r);
    figures_show(r);
    service_wake_loops(r->loop0->service);
}
