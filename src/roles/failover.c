/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A primary pauses writes, waits until a replica has the whole log, follows
 * that replica and asks it to lead. If the replica refuses, or a client aborts
 * the failover, the server leads again.
 */
#include "roles/failover.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/pause.h"
#include "persist/place.h"
#include "roles/figures.h"
#include "roles/replication_state.h"

#include <stdio.h>
#include <strings.h>

/* ---- the choice of a replica --------------------------------------------- */

static bool
is_target(const struct failover *failover, const struct status_replica *replica)
{
    return replica->state == STATUS_ONLINE &&
           role_place_is_valid(slice_of(replica->ip), replica->port) &&
           (failover->any || (replica->port == failover->port &&
                              strcasecmp(replica->ip, failover->host) == 0));
}

/* Finds, among the replicas that may lead, the one with the most of the log.
 * False: there is none. */
static bool
choose(const struct replication *r, const struct failover *failover,
       struct status_replica *ret_replica)
{
    struct status *status = r->loop0->service->status;
    size_t max = status_count(status);
    struct status_replica *all = mem_try_alloc((max + 1) * sizeof(*all));
    struct status_figures figures;
    bool found = false;
    size_t count;

    if (all == NULL) {
        return false;
    }
    count = status_get(status, &figures, all, max);
    for (size_t i = 0; i < count && i < max; i++) {
        if (is_target(failover, &all[i]) &&
            (!found || all[i].acked > ret_replica->acked)) {
            *ret_replica = all[i];
            found = true;
        }
    }
    mem_free(all);
    return found;
}

/* ---- wishes, on any loop in a section of the gate ------------------------ */

static bool
refuse_failover(char *ret_reason, size_t size, const char *text)
{
    (void)snprintf(ret_reason, size, "%s", text);
    return false;
}

/* Leaves a wish for loop 0. False: there is a failover already, or none that
 * an abort could end. */
static bool
leave_wish(struct replication *r, enum failover_wish wish,
           const struct failover *wanted)
{
    struct replication_shared *shared = &r->shared;
    bool left;

    pthread_mutex_lock(&shared->mutex);
    left = shared->failover_asked == (wish == FAILOVER_ABORT);
    if (left) {
        shared->wish = wish;
        shared->wanted = *wanted;
        shared->failover_asked = true;
    }
    pthread_mutex_unlock(&shared->mutex);
    if (left) {
        (void)uv_async_send(&r->poke);
    }
    return left;
}

bool
failover_ask(void *ctx, const struct failover_order *order, char *ret_reason,
             size_t size)
{
    struct failover wanted = { .state = STATUS_FAILOVER_WAITS,
                               .any = order->host == NULL,
                               .force = order->force,
                               .port = order->port,
                               .until_ms = order->timeout_ms > 0
                                               ? replication_now_ms() +
                                                     order->timeout_ms
                                               : UINT64_MAX };

    if (order->host != NULL) {
        (void)snprintf(wanted.host, sizeof(wanted.host), "%s", order->host);
    }
    return leave_wish(ctx, FAILOVER_BEGIN, &wanted) ||
           refuse_failover(ret_reason, size, "FAILOVER already in progress.");
}

bool
failover_abort(void *ctx)
{
    static const struct failover none;

    return leave_wish(ctx, FAILOVER_ABORT, &none);
}

/* ---- loop 0 -------------------------------------------------------------- */

static void
pause_writes(struct replication *r, bool on)
{
    struct service *service = r->loop0->service;

    gate_raise(replication_gate(r), 0);
    if (on) {
        pause_begin(service, PAUSE_FOR_HANDOVER, UINT64_MAX, PAUSE_WRITES);
    } else {
        pause_end(service, PAUSE_FOR_HANDOVER);
    }
    gate_lower(replication_gate(r), 0);
}

/* Publishes the state before a client can see its effects. */
static void
show_state(struct replication *r)
{
    r->figures_due = true;
    figures_settle(r);
}

static void
end_failover(struct replication *r, const char *error)
{
    if (error[0] != '\0') {
        log_warn("server.failover", "not handed over", "reason=\"%s\"", error);
    }
    (void)snprintf(r->failover.error, sizeof(r->failover.error), "%s", error);
    r->failover.state = STATUS_NO_FAILOVER;
    pthread_mutex_lock(&r->shared.mutex);
    r->shared.failover_asked = false;
    r->shared.wish = FAILOVER_NO_WISH; /* an abort that came too late */
    pthread_mutex_unlock(&r->shared.mutex);
    show_state(r);
    pause_writes(r, false);
}

/* Leads again, after we began to follow. */
static void
fall_back(struct replication *r, const char *error)
{
    gate_raise(replication_gate(r), 0);
    if (!atomic_load(&r->loop0->service->absent)) { /* else there is no data */
        role_lead(r->loop0->service);
    }
    gate_lower(replication_gate(r), 0);
    end_failover(r, error);
}

static void
abort_failover(struct replication *r)
{
    if (r->failover.state == STATUS_FAILOVER_RUNS) {
        fall_back(r, "called off");
    } else { /* it waits, or has not begun */
        end_failover(r, "called off");
    }
}

static void
fulfil_wish(struct replication *r)
{
    struct replication_shared *shared = &r->shared;
    enum failover_wish wish;
    struct failover wanted;

    pthread_mutex_lock(&shared->mutex);
    wish = shared->wish;
    wanted = shared->wanted;
    shared->wish = FAILOVER_NO_WISH;
    pthread_mutex_unlock(&shared->mutex);
    if (wish == FAILOVER_ABORT) {
        abort_failover(r);
    } else if (wish == FAILOVER_BEGIN) {
        CHECK(r->failover.state == STATUS_NO_FAILOVER);
        r->failover = wanted;
        pause_writes(r, true);
        show_state(r);
        log_notice("server.failover", "waits for a replica",
                   "host=\"%s\" port=%u", wanted.host, wanted.port);
    }
}

static void
note_target(struct replication *r, const struct status_replica *target)
{
    CHECK(r->failover.state == STATUS_FAILOVER_WAITS);
    (void)snprintf(r->failover.host, sizeof(r->failover.host), "%s",
                   target->ip);
    r->failover.port = target->port;
    r->failover.state = STATUS_FAILOVER_RUNS;
    log_notice("server.failover", "hands over", "host=%s port=%u", target->ip,
               target->port);
}

/* Follows the target once it has the whole log, or, with FORCE, when the time
 * is over. The raised gate keeps writes out between the check and the change.
 */
static void
wait_for_target(struct replication *r)
{
    struct service *service = r->loop0->service;
    struct status_replica target;
    uint64_t position;
    uint64_t sequence;
    bool late = replication_now_ms() >= r->failover.until_ms;
    bool found =
        choose(r, &r->failover, &target) &&
        role_host_is_allowed(r->loop0->service->conf, slice_of(target.ip));
    bool leads;
    bool ready;

    gate_raise(replication_gate(r), 0);
    persist_place(r->loop0->service->persist, &position, &sequence);
    leads = !service->role.replica;
    ready = leads && found &&
            (target.acked >= position || (late && r->failover.force));
    if (ready) {
        role_follow(service, slice_of(target.ip), target.port);
    }
    gate_lower(replication_gate(r), 0);
    if (ready) {
        note_target(r, &target);
    } else if (leads && !late) {
        primary_ask_acks(r->primary,
                         (struct primary_ask){ position, position });
    } else if (!leads) {
        end_failover(r, "the role was changed meanwhile");
    } else if (late) {
        end_failover(r, "the replica did not get everything in time");
    }
}

static void
wait_for_answer(struct replication *r)
{
    struct status_figures figures;

    memset(&figures, 0, sizeof(figures));
    replica_describe(r->replica, &figures);
    if (replica_failover(r->replica) == REPLICA_FAILOVER_DONE) {
        log_notice("server.failover", "handed over", "host=%s port=%u",
                   r->failover.host, r->failover.port);
        end_failover(r, "");
    } else if (replica_failover(r->replica) == REPLICA_FAILOVER_REFUSED) {
        fall_back(r, figures.reason);
    }
}

void
failover_tick(struct replication *r)
{
    if (r->failover.state == STATUS_FAILOVER_RUNS) {
        wait_for_answer(r); /* before a wish may abort it */
    }
    fulfil_wish(r);
    if (r->failover.state == STATUS_FAILOVER_WAITS) {
        wait_for_target(r);
    }
}

bool
failover_take_over(struct replication *r, const struct handover *from,
                   char *ret_reason, size_t size)
{
    struct service *service = r->loop0->service;
    uint64_t position;
    uint64_t sequence;
    bool good;

    if (!replication_role(r).replica) {
        return true; /* it leads already: the request is a repetition */
    }
    gate_raise(replication_gate(r), 0);
    persist_place(service->persist, &position, &sequence);
    good = !atomic_load(&service->absent) &&
           slice_equal(slice_of(from->history),
                       slice_of(persist_history(service->persist)->id));
    if (good) {
        role_lead(service);
    }
    gate_lower(replication_gate(r), 0);
    if (!good) {
        return refuse_failover(ret_reason, size,
                               "PSYNC FAILOVER replid must match my replid.");
    }
    log_notice("server.failover", "took over", "position=%llu theirs=%llu",
               (unsigned long long)position,
               (unsigned long long)from->position);
    return true;
}
