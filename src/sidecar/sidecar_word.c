/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar/sidecar_word.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "cluster/candidates.h"
#include "cluster/fence_order.h"
#include "core/parts.h"
#include "dial/colleague.h"
#include "keyspace/gate.h"
#include "keyspace/keyspace.h"
#include "keyspace/slot_keys.h"
#include "persist/persist.h"
#include "persist/save.h"
#include "roles/grace.h"
#include "roles/replication_state.h"
#include "sidecar/sidecar_asks.h"
#include "sidecar/sidecar_inquiry.h"
#include "sidecar/sidecar_mode_state.h"

#include <inttypes.h>
#include <stdio.h>

enum { COUNT_MS = 5000 /* a server that has not counted by then is silent */ };

/* This bit marks the numbers of FORCE-SERVE's questions; the state machine's
 * numbers are below it. The other bits are the index of the node. */
#define FORCE_NUMBERS (UINT64_C(1) << 63)

/* ---- LET-GO -------------------------------------------------------------- */

struct count {
    struct keyspace *ks;
    struct fence_order *order;
};

static void
note_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    const struct count *count = ctx;
    const struct entry *entry = keyspace_find(count->ks, key, 0);

    (void)expires_at_ms;
    if (entry != NULL) {
        count->order->filters++;
        count->order->items += bloom_items(&entry->bloom);
    }
}

static void
count_keys(const struct sidecar_mode *mode, struct fence_order *order)
{
    struct count count = { mode->loop0->service->keyspace, order };
    uint64_t cursor = 0;

    do {
        cursor =
            slot_keys_scan(count.ks, 0, &order->set, cursor, note_key, &count);
    } while (cursor != 0);
}

/* Returns 0 or errno. */
static int
save(struct sidecar_mode *mode, struct fence_order *order)
{
    struct persist *persist = mode->loop0->service->persist;
    struct gate *gate = keyspace_gate(mode->loop0->service->keyspace);
    char name[64];
    int error;

    (void)snprintf(name, sizeof(name), "let-go-%" PRIu64 ".snapshot",
                   clock_wall_ms());
    (void)snprintf(order->file, sizeof(order->file), "%s/%s",
                   persist_dir(persist), name);
    gate_raise(gate, 0);
    count_keys(mode, order);
    error = save_slots_here(persist, &order->set, name);
    gate_lower(gate, 0);
    return error;
}

static void
explain(struct fence_order *order, int error)
{
    if (error == EBUSY) {
        (void)snprintf(order->reason, sizeof(order->reason),
                       "a save or a rewrite of the journal is under way: say "
                       "it again when that has ended");
    } else {
        (void)snprintf(order->reason, sizeof(order->reason),
                       "the filters could not be saved in dir (%s), so the "
                       "slots stay",
                       strerror(error));
    }
}

void
sidecar_word_let_go(struct sidecar_mode *mode, struct fence_order *order)
{
    struct slot_set exported;
    int error;

    order->answer = (struct sidecar_answer){ .kind = SIDECAR_REFUSED,
                                             .reason = order->reason };
    if (!sidecar_let_go(mode->sidecar, &order->set, &exported, order->reason,
                        sizeof(order->reason))) {
        return;
    }
    error = save(mode, order);
    sidecar_let_go_end(mode->sidecar, &order->set, &exported, error == 0,
                       sidecar_mode_now_ms());
    if (error != 0) {
        explain(order, error);
        return;
    }
    order->answer.kind = SIDECAR_GONE;
    log_warn("server.sidecar", "saved the filters of slots that were let go",
             "file=\"%s\" slots=%u filters=%" PRIu64 " items=%" PRIu64,
             order->file, slot_set_count(&order->set), order->filters,
             order->items);
}

/* ---- FORCE-SERVE --------------------------------------------------------- */

/* Confirms that the server goes on with data that is older than a replica's.
 * This is a decision about the whole server, like REPLICAOF NO ONE without a
 * cluster. */
static bool
confirm_own_data(struct sidecar_mode *mode, const struct slot_set *set,
                 char *ret_reason, size_t size)
{
    struct slot_set left;

    topology_slots_of(mode->topology, mode->topology->myself, &left);
    slot_set_subtract(&left, set);
    if (!slot_set_is_empty(&left)) {
        (void)snprintf(ret_reason, size,
                       "this server came back with older data than a replica "
                       "has: have that replica's node take over (CLUSTER "
                       "FAILOVER), or name all %u slots of this node to go on "
                       "with the older data",
                       slot_set_count(&left) + slot_set_count(set));
        return false;
    }
    atomic_store(&mode->loop0->service->leads_by_word, true);
    grace_look(mode->r);
    sidecar_set_behind(mode->sidecar, service_is_behind(mode->loop0->service));
    sidecar_refresh(mode->sidecar);
    return true;
}

static void
add_candidate(struct fence_order *order, const char *node,
              const struct holdings *holdings, struct slice counts)
{
    struct candidate *candidate =
        candidate_new(node, &order->set, holdings, counts);

    if (candidate != NULL) {
        candidate->next = order->candidates;
        order->candidates = candidate;
    }
}

static const char *
own_id(const struct sidecar_mode *mode)
{
    return mode->topology->nodes[mode->topology->myself].id;
}

static bool
may_force(struct sidecar_mode *mode, struct fence_order *order)
{
    return sidecar_may_force(mode->sidecar, &order->set,
                             cluster_has_lease(&mode->cluster, clock_boot_ns()),
                             order->reason, sizeof(order->reason));
}

static void
note_forced(struct fence_order *order)
{
    order->answer.kind = SIDECAR_FORCED;
    metric_add(METRIC_CLUSTER_FORCED, slot_set_count(&order->set));
}

/* Ends a FORCE-SERVE, when all servers have answered or are silent. */
static void
end_force(struct sidecar_mode *mode)
{
    struct fence_order *order = mode->forcing;

    topology_free(mode->asked);
    mode->asked = NULL;
    mode->forcing = NULL;
    if (order->reason[0] == '\0' && may_force(mode, order) &&
        sidecar_force_serve(mode->sidecar, &order->set, order->node,
                            order->candidates, order->reason,
                            sizeof(order->reason))) {
        note_forced(order);
    }
    sidecar_inquiry_answer(mode->inquiry, order);
}

static void
ask_counts(struct sidecar_mode *mode, const struct fence_order *order)
{
    struct buf text = { 0 };

    mode->asked = topology_share(mode->topology);
    sidecar_asks_count(&text, &order->set);
    for (size_t i = 0; i < mode->asked->count; i++) {
        const struct view_node *node =
            sidecar_mode_node(mode, mode->asked->nodes[i].id);

        if ((int)i != mode->asked->myself) {
            mode->asked_open++;
            colleagues_ask(mode->colleagues, FORCE_NUMBERS | i,
                           node != NULL ? node->host : "",
                           node != NULL ? sidecar_mode_port(mode, node) : 0,
                           buf_slice(&text), COUNT_MS);
        }
    }
    buf_free(&text);
}

bool
sidecar_word_force(struct sidecar_mode *mode, struct fence_order *order)
{
    order->answer = (struct sidecar_answer){ .kind = SIDECAR_REFUSED,
                                             .reason = order->reason };
    if (mode->forcing != NULL) {
        (void)snprintf(order->reason, sizeof(order->reason),
                       "another FORCE-SERVE is under way");
        return true;
    }
    if (mode->topology != NULL) {
        add_candidate(order, own_id(mode), sidecar_holdings(mode->sidecar),
                      buf_slice(&order->counts));
    }
    if (mode->topology != NULL && service_is_behind(mode->loop0->service)) {
        if (confirm_own_data(mode, &order->set, order->reason,
                             sizeof(order->reason))) {
            note_forced(order);
        }
        return true;
    }
    if (!may_force(mode, order)) {
        return true;
    }
    mode->forcing = order;
    ask_counts(mode, order);
    if (mode->asked_open == 0) {
        end_force(mode);
    }
    return false;
}

/* Adds what the reply says as a candidate, if there is memory and its counts
 * make sense. Returns why the reply is of no use at all, or NULL. */
static const char *
take_reply(struct sidecar_mode *mode, const char *node,
           const struct answer *reply, const char *reason)
{
    char why[HOLDINGS_REASON_MAX];

    if (reply == NULL) {
        return reason;
    }
    if (reply->values[0].type == ANSWER_ERROR) {
        return "it answers with an error";
    }
    if (reply->count != 3 || reply->values[1].type != ANSWER_TEXT ||
        reply->values[2].type != ANSWER_TEXT ||
        !holdings_parse(reply->values[1].text, mode->answered, why)) {
        return "its reply makes no sense";
    }
    add_candidate(mode->forcing, node, mode->answered, reply->values[2].text);
    return NULL;
}

bool
sidecar_word_answered(struct sidecar_mode *mode, uint64_t number,
                      const struct answer *reply, const char *reason)
{
    struct fence_order *order = mode->forcing;
    const char *failure;
    const char *node;

    if ((number & FORCE_NUMBERS) == 0) {
        return false;
    }
    CHECK(order != NULL && mode->asked_open > 0);
    node = mode->asked->nodes[number & ~FORCE_NUMBERS].id;
    failure = take_reply(mode, node, reply, reason);
    if (failure != NULL && strcmp(order->node, node) == 0) {
        (void)snprintf(order->reason, sizeof(order->reason),
                       "the server beside node %s does not say what it has: %s",
                       node, failure);
    }
    if (--mode->asked_open == 0) {
        end_force(mode);
    }
    return true;
}

void
sidecar_word_stop(struct sidecar_mode *mode)
{
    topology_free(mode->asked);
    mode->asked = NULL;
    fence_order_drop(mode->forcing);
    mode->forcing = NULL;
    while (mode->fenced != NULL) {
        struct fence_order *order = mode->fenced;

        mode->fenced = order->next;
        fence_order_drop(order);
    }
}
