/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every event notes what has changed, and then calls settle_changes(). That
 * function adapts the role, the slots, the claim, and what commands see.
 */
#include "cluster/sidecar.h"

#include "base/log.h"
#include "base/mem.h"
#include "cluster/claim.h"
#include "cluster/sidecar_come.h"
#include "cluster/sidecar_copy.h"
#include "cluster/sidecar_disk.h"
#include "cluster/sidecar_force.h"
#include "cluster/sidecar_give.h"
#include "cluster/sidecar_peers.h"
#include "cluster/sidecar_show.h"
#include "cluster/sidecar_times.h"
#include "cluster/sidecar_wait.h"
#include "cluster/survey.h"

#include <stdio.h>

/* ---- life ---------------------------------------------------------------- */

struct sidecar *
sidecar_new(const struct sidecar_hooks *hooks, const struct holdings *start)
{
    struct sidecar *sidecar = mem_zalloc(sizeof(*sidecar));

    sidecar->hooks = *hooks;
    sidecar->own = mem_alloc(sizeof(*sidecar->own));
    *sidecar->own = *start;
    sidecar_slots_init(sidecar);
    sidecar->state = mem_zalloc(CLUSTER_SLOTS * sizeof(*sidecar->state));
    sidecar->ask_source =
        mem_zalloc(CLUSTER_SLOTS * sizeof(*sidecar->ask_source));
    sidecar_peers_init(sidecar);
    survey_init(sidecar);
    return sidecar;
}

void
sidecar_free(struct sidecar *sidecar)
{
    if (sidecar == NULL) {
        return;
    }
    mem_free(sidecar->offer.holdings);
    survey_fini(sidecar);
    mem_free(sidecar->own);
    mem_free(sidecar->slots);
    mem_free(sidecar->state);
    mem_free(sidecar->ask_source);
    mem_free(sidecar->silent);
    sidecar_peers_fini(sidecar);
    mem_free(sidecar);
}

void
sidecar_set_options(struct sidecar *sidecar,
                    const struct sidecar_options *options)
{
    CHECK(sidecar_times_are_good(options));
    sidecar->options = *options;
}

/* ---- slots --------------------------------------------------------------- */

/* Compares the owners of all slots with those of the last poll. A slot that our
 * node has gained is first asked for at the former owner's daemon. Returns
 * whether our node has gained slots. */
static bool
follow_owners(struct sidecar *sidecar, bool leased, uint64_t now_ms)
{
    const struct topology *topology = sidecar->topology;
    uint16_t self = sidecar_peer_of(sidecar, sidecar->own->node);
    struct slot_set claimed = *sidecar_claimed(sidecar);
    struct slot_set lost;
    bool gained = false;
    uint16_t *peers = mem_alloc((topology->count + 1) * sizeof(*peers));

    for (size_t i = 0; i < topology->count; i++) {
        peers[i] = sidecar_peer_of(sidecar, topology->nodes[i].id);
    }
    memset(&lost, 0, sizeof(lost));
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        uint16_t node = topology->owner[slot];
        uint16_t owner = node == TOPOLOGY_NOBODY ? PEER_NONE : peers[node];
        struct sidecar_slot *at = &sidecar->slots[slot];
        uint16_t last = at->owner_before;
        bool before = slot_set_has(&sidecar->owned, slot);

        if (owner == self && !before) {
            gained = true;
            at->fenced_ms = 0; /* our node has lost it meanwhile */
            at->source_epoch =
                last == PEER_NONE ? 0 : sidecar->peers[last].epoch;
            sidecar_want(sidecar, slot, last, now_ms);
            sidecar_enter_open(sidecar, slot);
        } else if (owner != self && before) {
            slot_set_add(&lost, slot);
            at->fenced_ms = 0;
            sidecar_give_lose(sidecar, slot, owner, leased, now_ms);
        } else if (owner != self && last == PEER_NONE &&
                   sidecar->own->held[slot] != 0) {
            /* Our node lost the slot before we started. Its new owner's daemon
             * may be fetching it, and send clients here. */
            sidecar_give_lose(sidecar, slot, owner, leased, now_ms);
        } else if (owner != self && owner != last && owner != at->comer) {
            (void)sidecar_give_pass(sidecar, slot, now_ms);
        }
        at->owner_before = owner;
    }
    for (size_t i = 0; i < topology->count; i++) {
        sidecar->peers[peers[i]].epoch = topology->nodes[i].epoch + 1;
    }
    mem_free(peers);
    claim_drop(sidecar, &claimed, &lost);
    sidecar_give_regain(sidecar);
    sidecar_give_await(sidecar, now_ms);
    return gained;
}

/* Handles that our node's epoch may have risen while it kept its slots. Either
 * it has gained other slots, with a new epoch. Or it was cut off, replaced, and
 * promoted again between two polls. Then another daemon may have newer data,
 * and a survey must decide. */
static void
follow_epoch(struct sidecar *sidecar, bool gained, uint64_t now_ms)
{
    struct slot_set risen = sidecar_risen(sidecar, &sidecar->served);

    claim_follow_epoch(sidecar, gained);
    if (slot_set_is_empty(&risen)) {
        return;
    }
    if (gained) {
        sidecar_hold_same(sidecar, &risen, sidecar_epoch(sidecar));
    } else {
        sidecar_stop_serving(sidecar, &risen, now_ms);
    }
}

/* ---- the role ------------------------------------------------------------ */

static const char *
leader_of(const struct sidecar *sidecar)
{
    int primary = sidecar_node(sidecar)->primary;

    return primary < 0 ? NULL : sidecar->topology->nodes[primary].id;
}

static void
follow(struct sidecar *sidecar, const char *leader)
{
    (void)snprintf(sidecar->leader, sizeof(sidecar->leader), "%s", leader);
    sidecar->role = SIDECAR_FOLLOWS;
    sidecar_wait_end(sidecar);
    sidecar_copy_reset(sidecar);
    claim_cancel(sidecar);
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        sidecar->slots[slot].fenced = false;
        if (!slot_set_has(&sidecar->owned, slot)) {
            sidecar_enter(sidecar, slot, PHASE_AWAY);
        }
    }
    sidecar_give_reset(sidecar); /* from now on our data is the leader's */
    sidecar->changed = true;
    log_notice("cluster.sidecar", "follows the daemon of another node",
               "node=%s", leader);
    sidecar->hooks.follow(sidecar->hooks.ctx, sidecar_node(sidecar)->primary);
}

/* Leads at once, since we hold no copy of slots that our node owns. */
static void
lead_at_once(struct sidecar *sidecar)
{
    const struct slot_set none = { { 0 } };

    if (sidecar->own->follows[0] != '\0') {
        sidecar_wait_lead(sidecar, &none);
    }
    sidecar->role = SIDECAR_LEADS;
    sidecar_wait_end(sidecar);
    sidecar->changed = true;
    sidecar->hooks.lead(sidecar->hooks.ctx);
}

static bool
copies_what_is_owned(const struct sidecar *sidecar)
{
    slot_set_foreach (&sidecar->owned, slot) {
        if (sidecar->own->held[slot] != 0 && sidecar->own->copied[slot] == 0) {
            return sidecar->own->follows[0] != '\0';
        }
    }
    return false;
}

static void
follow_role(struct sidecar *sidecar, uint64_t now_ms)
{
    const char *leader = leader_of(sidecar);

    if ((sidecar_node(sidecar)->flags & NODE_PRIMARY) != 0) {
        if (sidecar->role == SIDECAR_LEADS || claim_is_hand_off(sidecar)) {
            sidecar_wait_end(sidecar);
        } else if (copies_what_is_owned(sidecar)) {
            claim_begin_hand_off(sidecar, now_ms);
        } else if (sidecar->role == SIDECAR_UNDECIDED ||
                   !slot_set_is_empty(&sidecar->owned)) {
            lead_at_once(sidecar);
        }
    } else if (leader != NULL &&
               (sidecar->role != SIDECAR_FOLLOWS ||
                strcmp(sidecar->leader, leader) != 0) &&
               sidecar_may_follow(sidecar, leader, now_ms)) {
        follow(sidecar, leader);
    }
}

/* ---- events -------------------------------------------------------------- */

static void
write_changes(struct sidecar *sidecar)
{
    if (sidecar->dirty) {
        (void)sidecar_keep(sidecar);
    }
}

/* Does all that follows from an event. */
static void
settle_changes(struct sidecar *sidecar, uint64_t now_ms)
{
    if (sidecar->topology == NULL) {
        return;
    }
    sidecar_disk_tick(sidecar, now_ms);
    sidecar_give_await(sidecar, now_ms);
    sidecar_copy_check(sidecar);
    follow_role(sidecar, now_ms);
    if (sidecar->role == SIDECAR_FOLLOWS && !claim_is_hand_off(sidecar)) {
        sidecar_copy_tick(sidecar, now_ms);
        sidecar_give_outdate(sidecar, now_ms);
    } else if (sidecar->role == SIDECAR_LEADS) {
        sidecar_give_forget(sidecar, now_ms);
    }
    claim_tick(sidecar, now_ms);
    sidecar_come_tick(sidecar, now_ms);
    sidecar_give_drop(sidecar, now_ms);
    write_changes(sidecar); /* replicas hear of a slot before clients do */
    if (sidecar->changed) {
        sidecar_show(sidecar);
    }
}

/* Checks the id of our node. If it has changed, this is another node. Then our
 * data counts as a copy of another daemon's data, without a daemon to follow.
 */
static void
check_identity(struct sidecar *sidecar, uint64_t now_ms)
{
    struct holdings *own = sidecar->own;
    struct slot_set served = sidecar->served;
    const char *id = sidecar_node(sidecar)->id;
    uint64_t position;

    if (strcmp(own->node, id) == 0) {
        return;
    }
    if (own->node[0] != '\0') {
        log_error("cluster.sidecar", "stands beside another node than before",
                  "node=%s before=%s next=\"the slots that it held for the old "
                  "node are not served; their filters stay until the servers "
                  "of their owners have them\"",
                  id, own->node);
        memset(own->follows, '0', TOPOLOGY_ID_LEN);
        own->follows[TOPOLOGY_ID_LEN] = '\0';
        sidecar->hooks.where(sidecar->hooks.ctx, own->history, &position);
        sidecar->role = SIDECAR_UNDECIDED;
        claim_cancel(sidecar);
        sidecar_stop_serving(sidecar, &served, now_ms);
    }
    memcpy(own->node, id, sizeof(own->node));
    sidecar->dirty = true;
}

void
sidecar_polled(struct sidecar *sidecar, const struct topology *topology,
               bool leased, uint64_t now_ms)
{
    sidecar_disk_check(sidecar);
    if (sidecar->topology != topology) {
        sidecar->topology = topology;
        sidecar->topologies++;
        sidecar->changed = true;
        check_identity(sidecar, now_ms);
        follow_epoch(sidecar, follow_owners(sidecar, leased, now_ms), now_ms);
        sidecar_peers_forget(sidecar);
        sidecar_show(sidecar); /* hooks look nodes up in the map shown last */
    }
    settle_changes(sidecar, now_ms);
}

void
sidecar_set_behind(struct sidecar *sidecar, bool behind)
{
    if (sidecar->behind != behind) {
        sidecar->behind = behind;
        sidecar->changed = true;
    }
}

void
sidecar_lapsed(struct sidecar *sidecar, uint64_t now_ms)
{
    struct slot_set all = sidecar->served;

    sidecar_stop_serving(sidecar, &all, now_ms);
    all = sidecar->in[PHASE_LEAVING];
    slot_set_foreach (&all, slot) {
        sidecar_enter(sidecar, slot, PHASE_AWAITED);
    }
    sidecar->leaving_until_ms = 0;
    sidecar->changed = true;
}

void
sidecar_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    sidecar_disk_check(sidecar);
    if (sidecar->topology != NULL) {
        survey_tick(sidecar, now_ms);
        settle_changes(sidecar, now_ms);
    } else {
        sidecar_disk_tick(sidecar, now_ms);
        write_changes(sidecar);
    }
}

bool
sidecar_rests(const struct sidecar *sidecar)
{
    return sidecar->topology != NULL && sidecar->role != SIDECAR_UNDECIDED &&
           (sidecar->role == SIDECAR_LEADS || sidecar->copy_is_good) &&
           survey_is_calm(sidecar);
}

void
sidecar_answered(struct sidecar *sidecar, uint64_t number,
                 const struct sidecar_answer *answer, uint64_t now_ms)
{
    if (number == sidecar->claim.number && number != 0) {
        claim_answered(sidecar, answer, now_ms);
    } else if (!sidecar_copy_answered(sidecar, number, answer) &&
               !sidecar_come_answered(sidecar, number, answer)) {
        /* If it is no answer to the survey either, it comes too late. */
        (void)survey_answered(sidecar, number, answer);
    }
    settle_changes(sidecar, now_ms);
}

void
sidecar_told(struct sidecar *sidecar, const struct holdings *holdings,
             uint64_t now_ms)
{
    sidecar_copy_told(sidecar, holdings);
    settle_changes(sidecar, now_ms);
}

void
sidecar_pull_is_near(struct sidecar *sidecar, uint64_t now_ms)
{
    claim_is_near(sidecar, now_ms);
    settle_changes(sidecar, now_ms);
}

void
sidecar_pull_broke(struct sidecar *sidecar, uint64_t now_ms)
{
    sidecar_come_source_broke(sidecar);
    claim_pull_broke(sidecar);
    settle_changes(sidecar, now_ms);
}

void
sidecar_pull_ended(struct sidecar *sidecar, bool good, const char *reason,
                   uint64_t now_ms)
{
    claim_pull_ended(sidecar, good, reason, now_ms);
    settle_changes(sidecar, now_ms);
}

void
sidecar_refresh(struct sidecar *sidecar)
{
    if (sidecar->topology != NULL) {
        sidecar_show(sidecar);
    }
}

/* ---- what others ask ----------------------------------------------------- */

const struct holdings *
sidecar_holdings(struct sidecar *sidecar)
{
    sidecar->own->claimed = sidecar_disk_loose(sidecar);
    slot_set_unite(&sidecar->own->claimed, sidecar_claimed(sidecar));
    return sidecar->own;
}

struct sidecar_answer
sidecar_fence(struct sidecar *sidecar, const struct sidecar_ask *ask,
              bool leased, bool empty, struct slot_set *ret_granted,
              uint64_t now_ms)
{
    struct sidecar_answer answer =
        sidecar_give_fence(sidecar, ask, leased, empty, ret_granted, now_ms);

    if (sidecar->changed && sidecar->topology != NULL) {
        sidecar_show(sidecar); /* before the answer is sent */
    }
    if (answer.kind == SIDECAR_FENCED) {
        answer.ticket = sidecar_keep(sidecar);
        sidecar->hooks.poll(sidecar->hooks.ctx);
    }
    return answer;
}

bool
sidecar_may_force(const struct sidecar *sidecar, const struct slot_set *set,
                  bool leased, char *ret_reason, size_t size)
{
    return sidecar_force_check(sidecar, set, leased, ret_reason, size);
}

bool
sidecar_force_serve(struct sidecar *sidecar, const struct slot_set *set,
                    const char *from, struct candidate *candidates,
                    char *ret_reason, size_t size)
{
    return sidecar_force(sidecar, set, from, candidates, ret_reason, size);
}

bool
sidecar_let_go(struct sidecar *sidecar, const struct slot_set *set,
               struct slot_set *ret_exported, char *ret_reason, size_t size)
{
    bool good =
        sidecar_give_let_go(sidecar, set, ret_exported, ret_reason, size);

    if (good && sidecar->changed) {
        sidecar_show(sidecar);
    }
    return good;
}

void
sidecar_let_go_end(struct sidecar *sidecar, const struct slot_set *set,
                   const struct slot_set *exported, bool saved, uint64_t now_ms)
{
    if (saved) {
        sidecar_give_gone(sidecar, set, now_ms);
    } else {
        sidecar_give_keep_on(sidecar, exported);
    }
    settle_changes(sidecar, now_ms);
}

bool
sidecar_follows(const struct sidecar *sidecar, const char *node)
{
    return sidecar->role == SIDECAR_FOLLOWS &&
           strcmp(sidecar->leader, node) == 0;
}

bool
sidecar_may_copy(struct sidecar *sidecar, const char *history, uint64_t now_ms)
{
    return sidecar_wait_may_copy(sidecar, history, now_ms);
}

uint64_t
sidecar_cutover_ms(const struct sidecar *sidecar)
{
    return sidecar->cutover_ms;
}
