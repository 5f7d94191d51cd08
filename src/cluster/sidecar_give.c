/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_give.h"

#include "base/log.h"
#include "cluster/sidecar_disk.h"
#include "cluster/sidecar_peers.h"
#include "cluster/sidecar_wait.h"
#include "cluster/survey.h"

#include <stdio.h>

/* Returns whether the slot was fenced a moment ago: its claim may be under way,
 * and surveys that ended before may not show it. */
static bool
is_being_given(const struct sidecar *sidecar, unsigned slot, uint64_t now_ms)
{
    uint64_t given_ms = sidecar->slots[slot].given_ms;

    return given_ms != 0 && now_ms - given_ms < sidecar->options.giving_ms;
}

/* ---- slots whose owner's daemon has not come ----------------------------- */

/* Commands must wait: the new owner's daemon may not know yet that its node
 * owns the slot. We no longer export the slot: the former owner may have taken
 * it without asking us. */
bool
sidecar_give_pass(struct sidecar *sidecar, unsigned slot, uint64_t now_ms)
{
    struct sidecar_slot *at = &sidecar->slots[slot];

    if (!at->newest && !is_being_given(sidecar, slot, now_ms)) {
        return false;
    }
    at->comer = PEER_NONE;
    at->lost_ms = now_ms;
    sidecar_enter(sidecar, slot, PHASE_PASSED);
    return true;
}

/* Handles the loss of a slot that was served. */
static void
lose_served(struct sidecar *sidecar, unsigned slot, uint16_t owner, bool leased,
            uint64_t now_ms)
{
    struct sidecar_slot *at = &sidecar->slots[slot];

    if (at->phase == PHASE_SERVED) {
        at->comer = PEER_NONE;
        at->lost_ms = now_ms;
        sidecar_enter(sidecar, slot, leased ? PHASE_LEAVING : PHASE_AWAITED);
    } else if (at->comer == owner) {
        sidecar_enter(sidecar, slot, PHASE_EXPORTED);
    } else {
        (void)sidecar_give_pass(sidecar, slot, now_ms);
    }
}

void
sidecar_give_lose(struct sidecar *sidecar, unsigned slot, uint16_t owner,
                  bool leased, uint64_t now_ms)
{
    const struct holdings *own = sidecar->own;
    struct sidecar_slot *at = &sidecar->slots[slot];

    if (slot_set_has(&sidecar->served, slot)) {
        lose_served(sidecar, slot, owner, leased, now_ms);
    } else if (own->follows[0] != '\0' ||
               (own->held[slot] != 0 && own->known[slot] > own->held[slot])) {
        if ((at->comer == owner || !sidecar_give_pass(sidecar, slot, now_ms)) &&
            slot_set_has(&sidecar->owned, slot)) {
            sidecar_enter(sidecar, slot, PHASE_AWAY);
        }
    } else {
        at->lost_ms = now_ms;
        if (at->phase != PHASE_LEAVING && at->phase != PHASE_PASSED) {
            sidecar_enter(sidecar, slot, PHASE_AWAITED);
        }
    }
}

/* Notes that the daemon beside `node` has come for the slots. NULL: forgets
 * which daemon came. */
static void
came(struct sidecar *sidecar, const struct slot_set *set, const char *node)
{
    slot_set_foreach (set, slot) {
        sidecar->slots[slot].comer =
            node != NULL ? sidecar_peer_of(sidecar, node) : PEER_NONE;
    }
}

/* Lets the slots that our node does not own enter AWAY. */
static void
leave(struct sidecar *sidecar, const struct slot_set *set)
{
    slot_set_foreach (set, slot) {
        if (!slot_set_has(&sidecar->owned, slot)) {
            sidecar_enter(sidecar, slot, PHASE_AWAY);
        }
    }
}

/* Returns whether clients may be redirected to the owner's daemon, because it
 * will not send them back: it has had time to notice, or is silent, or another
 * daemon has claimed the slot since. For a slot that was never held here, or
 * that another daemon has fenced, no daemon comes, so the wait is shorter. */
static bool
is_settled(const struct sidecar *sidecar, unsigned slot, uint64_t now_ms)
{
    const struct sidecar_slot *at = &sidecar->slots[slot];
    uint16_t owner = at->owner_before;

    if (sidecar->own->held[slot] == 0 ||
        (at->phase == PHASE_PASSED && (!at->newest || owner == PEER_NONE))) {
        return now_ms - at->lost_ms >= sidecar->options.leaving_ms;
    }
    return now_ms - at->lost_ms >= sidecar->options.await_ms ||
           sidecar->own->known[slot] > sidecar->own->held[slot] ||
           owner == PEER_NONE ||
           (sidecar->survey.rounds > sidecar->await_round &&
            sidecar->peers[owner].silent);
}

/* Ends the LEAVING phase of slots whose time is over. */
static void
end_leaving(struct sidecar *sidecar, uint64_t now_ms)
{
    uint64_t first_ms = 0;

    slot_set_foreach (&sidecar->in[PHASE_LEAVING], slot) {
        uint64_t until_ms =
            sidecar->slots[slot].lost_ms + sidecar->options.leaving_ms;

        if (now_ms >= until_ms) {
            sidecar_enter(sidecar, slot, PHASE_AWAITED);
            sidecar->changed = true;
        } else if (first_ms == 0 || until_ms < first_ms) {
            first_ms = until_ms;
        }
    }
    sidecar->changed |= first_ms != sidecar->leaving_until_ms;
    sidecar->leaving_until_ms = first_ms;
}

/* Ends the wait of those slots in this phase that are settled. */
static void
settle(struct sidecar *sidecar, enum slot_phase phase, uint64_t now_ms)
{
    slot_set_foreach (&sidecar->in[phase], slot) {
        bool exports = phase == PHASE_AWAITED && sidecar->slots[slot].newest;

        if (is_settled(sidecar, slot, now_ms)) {
            sidecar_enter(sidecar, slot, exports ? PHASE_EXPORTED : PHASE_AWAY);
            sidecar->changed = true;
        }
    }
}

void
sidecar_give_await(struct sidecar *sidecar, uint64_t now_ms)
{
    if (!slot_set_is_empty(&sidecar->in[PHASE_LEAVING])) {
        end_leaving(sidecar, now_ms);
    }
    if (slot_set_is_empty(&sidecar->in[PHASE_AWAITED]) &&
        slot_set_is_empty(&sidecar->in[PHASE_PASSED])) {
        sidecar->await_round = UINT64_MAX;
        return;
    }
    if (sidecar->await_round == UINT64_MAX) {
        sidecar->await_round =
            sidecar->survey.rounds + (sidecar->survey.open > 0);
    }
    if (sidecar->survey.rounds <= sidecar->await_round) {
        survey_hurry(sidecar);
    }
    settle(sidecar, PHASE_AWAITED, now_ms);
    settle(sidecar, PHASE_PASSED, now_ms);
}

/* ---- fences -------------------------------------------------------------- */

/* Returns whether the slot was served here until now, and nobody else has
 * claimed it. epoch: the epoch + 1 at which it must be held; 0: any. */
static bool
is_latest(const struct sidecar *sidecar, unsigned slot, uint64_t epoch)
{
    uint64_t held = sidecar->own->held[slot];

    return sidecar->slots[slot].newest && sidecar->own->known[slot] <= held &&
           (epoch == 0 || epoch == held);
}

/* Returns whether a node other than this one owns the slot, at a higher epoch
 * than that in the question. */
static bool
has_later_owner(const struct sidecar *sidecar, const struct sidecar_ask *ask,
                int node, unsigned slot)
{
    const struct topology *topology = sidecar->topology;
    uint16_t owner = topology->owner[slot];

    return owner != TOPOLOGY_NOBODY && owner != node &&
           topology->nodes[owner].epoch > ask->epoch;
}

/* Returns why this slot is not given away; NULL: it is given away. */
static const char *
refuse_slot(const struct sidecar *sidecar, const struct sidecar_ask *ask,
            int node, unsigned slot, uint64_t now_ms)
{
    const struct holdings *own = sidecar->own;
    bool giving = is_being_given(sidecar, slot, now_ms);

    if (own->held[slot] == 0 && !ask->chosen) {
        return "a slot is not held here";
    }
    if (slot_set_has(&sidecar->forgets, slot)) {
        return "a slot was given away, and its filters are being deleted";
    }
    if (ask->epoch + 1 <= own->held[slot] &&
        sidecar->topology->owner[slot] != node) {
        return "its epoch is not higher than ours";
    }
    if (has_later_owner(sidecar, ask, node, slot)) {
        return "another node owns a slot at a higher epoch";
    }
    if (ask->epoch + 1 < own->known[slot]) {
        return "a daemon with a higher epoch has claimed a slot";
    }
    if (giving && ask->epoch + 1 != own->known[slot]) {
        return "a slot was given to another daemon a moment ago";
    }
    if (giving && ask->question == SIDECAR_ASK_FENCE) {
        return NULL; /* the same claim: our answer was lost, or is late */
    }
    if (ask->surveyed ? own->known[slot] > ask->known
                      : !is_latest(sidecar, slot, ask->known)) {
        return "another daemon may have newer data of a slot";
    }
    return NULL;
}

/* Returns why the slots are not given away; NULL: they are. A replica that
 * takes over gets those that can be given (*granted). */
static const char *
grant(const struct sidecar *sidecar, const struct sidecar_ask *ask,
      struct slot_set *granted, uint64_t now_ms)
{
    int node = topology_find(sidecar->topology, slice_of(ask->node));

    if (node < 0) {
        return "its node is not in our node's view of the cluster";
    }
    slot_set_foreach (ask->set, slot) {
        const char *reason = refuse_slot(sidecar, ask, node, slot, now_ms);

        if (reason != NULL && ask->question != SIDECAR_ASK_HAND_OFF) {
            return reason;
        }
        if (reason != NULL) {
            slot_set_remove(granted, slot);
        }
    }
    return NULL;
}

static void
fence(struct sidecar *sidecar, const struct slot_set *set,
      const struct sidecar_ask *ask, uint64_t now_ms)
{
    uint64_t epoch = ask->epoch;

    slot_set_foreach (set, slot) {
        struct sidecar_slot *at = &sidecar->slots[slot];
        uint64_t *known = &sidecar->own->known[slot];

        sidecar_want(sidecar, slot, PEER_NONE, now_ms);
        at->fenced = true;
        at->given = at->phase == PHASE_CLAIMED;
        at->fenced_ms = now_ms;
        at->given_ms = now_ms;
        at->given_epoch = epoch + 1;
        *known = *known > epoch + 1 ? *known : epoch + 1;
        if (slot_set_has(&sidecar->served, slot) || at->phase == PHASE_FOUND) {
            sidecar_enter(sidecar, slot, PHASE_WANTED);
        }
    }
    came(sidecar, set, ask->node);
    leave(sidecar, set);
    if (sidecar->own->follows[0] != '\0') {
        survey_hurry(sidecar); /* see sidecar_give_outdate() */
    }
    sidecar->dirty = true;
    sidecar->changed = true;
}

/* Serves the slots to clients that the daemon beside `node` redirects here with
 * ASK. */
static void
export_slots(struct sidecar *sidecar, const struct slot_set *set,
             const char *node)
{
    came(sidecar, set, node);
    slot_set_foreach (set, slot) {
        enum slot_phase before = (enum slot_phase)sidecar->slots[slot].phase;

        if (slot_set_has(&sidecar->served, slot)) {
            sidecar_enter(sidecar, slot, PHASE_SPOKEN);
        } else if (!slot_set_has(&sidecar->owned, slot)) {
            sidecar_enter(sidecar, slot, PHASE_EXPORTED);
        }
        sidecar->changed |= before != sidecar->slots[slot].phase;
    }
}

struct sidecar_answer
sidecar_give_fence(struct sidecar *sidecar, const struct sidecar_ask *ask,
                   bool leased, bool empty, struct slot_set *ret_granted,
                   uint64_t now_ms)
{
    struct sidecar_answer answer = { .kind = SIDECAR_REFUSED };

    if (sidecar->topology == NULL) {
        answer.reason = "the neighbour has not answered yet";
        return answer;
    }
    if (!leased && !ask->surveyed && ask->question != SIDECAR_ASK_HAND_OFF) {
        answer.reason = "our lease has ended, so there may be later owners";
        return answer;
    }
    *ret_granted = *ask->set;
    answer.reason = grant(sidecar, ask, ret_granted, now_ms);
    if (answer.reason != NULL) {
        return answer;
    }
    if (ask->question == SIDECAR_ASK_COME ||
        (ask->question == SIDECAR_ASK_FENCE_EMPTY && !empty)) {
        export_slots(sidecar, ask->set, ask->node);
        answer.kind = SIDECAR_HAS_KEYS;
        return answer;
    }
    answer.kind = SIDECAR_FENCED;
    answer.granted = ret_granted;
    fence(sidecar, ret_granted, ask, now_ms);
    return answer;
}

/* Stops holding these slots. Their keys are deleted later. */
static void
forget_slots(struct sidecar *sidecar, const struct slot_set *set,
             uint64_t now_ms)
{
    sidecar_hold(sidecar, set, 0, 0);
    slot_set_foreach (set, slot) {
        sidecar->slots[slot].fenced = false;
    }
    came(sidecar, set, NULL);
    leave(sidecar, set);
    slot_set_unite(&sidecar->forgets, set);
    sidecar->forgets_ticket = sidecar_keep(sidecar);
    sidecar->forgets_at_ms = now_ms + sidecar->options.forget_ms;
    sidecar->changed = true;
}

/* Returns whether the slot's keys here, if there are any, belong to a copy that
 * was given up, or to data that was given away. */
static bool
is_stray(const struct sidecar *sidecar, unsigned slot)
{
    return slot_set_has(&sidecar->strays, slot) &&
           survey_finds_newest(sidecar, slot);
}

/* Forgets slots that the daemon of their owner holds at a higher epoch (rule 4
 * of sidecar.h). */
void
sidecar_give_forget(struct sidecar *sidecar, uint64_t now_ms)
{
    struct slot_set set;

    if (sidecar->forget_round == sidecar->survey.rounds) {
        return; /* done for this survey */
    }
    sidecar->forget_round = sidecar->survey.rounds;
    memset(&set, 0, sizeof(set));
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if ((sidecar->own->held[slot] != 0 || is_stray(sidecar, slot)) &&
            !slot_set_has(&sidecar->owned, slot) &&
            sidecar_is_taken(sidecar, slot)) {
            slot_set_add(&set, slot);
        }
    }
    if (slot_set_is_empty(&set)) {
        return;
    }
    forget_slots(sidecar, &set, now_ms);
    log_notice("cluster.sidecar", "gave slots away", "slots=%u",
               slot_set_count(&set));
}

/* Returns whether the owner's daemon has fetched our copy of the slot, and
 * holds it. */
static bool
is_fetched(const struct sidecar *sidecar, unsigned slot)
{
    const struct sidecar_slot *at = &sidecar->slots[slot];

    return at->comer == at->owner_before &&
           sidecar->survey.rounds > at->wanted_round &&
           sidecar_is_taken(sidecar, slot);
}

void
sidecar_give_outdate(struct sidecar *sidecar, uint64_t now_ms)
{
    struct holdings *own = sidecar->own;

    if (sidecar->forget_round == sidecar->survey.rounds) {
        return; /* done for this survey */
    }
    sidecar->forget_round = sidecar->survey.rounds;
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (own->held[slot] == 0 || own->copied[slot] != 0 ||
            sidecar->slots[slot].given_epoch != own->held[slot]) {
            continue;
        }
        if (is_fetched(sidecar, slot)) {
            own->copied[slot] = 1; /* so every other copy is newer */
            sidecar->dirty = true;
        } else if (is_being_given(sidecar, slot, now_ms)) {
            survey_hurry(sidecar);
        }
    }
}

/* Returns why an operator may not let the slot go; NULL: it may. */
static const char *
refuse_to_let_go(const struct sidecar *sidecar, unsigned slot)
{
    if (slot_set_has(&sidecar->owned, slot)) {
        return "is owned by the node beside this server";
    }
    if (slot_set_has(&sidecar->waiting, slot)) {
        return NULL;
    }
    if (sidecar->own->held[slot] == 0) {
        return "is not held here";
    }
    if (sidecar->role != SIDECAR_LEADS) {
        return "is a copy: say it to this server's primary";
    }
    return sidecar->topology->owner[slot] == TOPOLOGY_NOBODY
               ? NULL
               : "holds nothing up here: it goes when the server of "
                 "its owner has taken it";
}

bool
sidecar_give_let_go(struct sidecar *sidecar, const struct slot_set *set,
                    struct slot_set *ret_exported, char *ret_reason,
                    size_t size)
{
    if (sidecar->topology == NULL) {
        (void)snprintf(ret_reason, size,
                       "the neighbour has not answered yet (sidecar-of)");
        return false;
    }
    slot_set_foreach (set, slot) {
        const char *reason = refuse_to_let_go(sidecar, slot);

        if (reason != NULL) {
            (void)snprintf(ret_reason, size, "slot %u %s", slot, reason);
            return false;
        }
    }
    *ret_exported = *set;
    slot_set_foreach (set, slot) {
        if (!sidecar->slots[slot].newest) {
            slot_set_remove(ret_exported, slot);
        }
    }
    came(sidecar, set, NULL);
    leave(sidecar, set);
    sidecar->changed = true;
    return true;
}

void
sidecar_give_keep_on(struct sidecar *sidecar, const struct slot_set *exported)
{
    slot_set_foreach (exported, slot) {
        if (sidecar->slots[slot].phase == PHASE_AWAY) {
            sidecar_enter(sidecar, slot, PHASE_EXPORTED);
        }
    }
    sidecar->changed = true;
}

void
sidecar_give_gone(struct sidecar *sidecar, const struct slot_set *set,
                  uint64_t now_ms)
{
    forget_slots(sidecar, set, now_ms);
    slot_set_subtract(&sidecar->waiting, set);
    slot_set_subtract(&sidecar->left_alone, set);
    log_warn("cluster.sidecar", "an operator has let slots go", "slots=%u",
             slot_set_count(set));
}

void
sidecar_give_regain(struct sidecar *sidecar)
{
    slot_set_unite(&sidecar->strays, &sidecar->forgets);
    slot_set_subtract(&sidecar->forgets, &sidecar->owned);
    slot_set_subtract(&sidecar->strays, &sidecar->forgets);
}

static void
end_forgetting(struct sidecar *sidecar)
{
    memset(&sidecar->forgets, 0, sizeof(sidecar->forgets));
    sidecar->forgets_at_ms = 0;
}

void
sidecar_give_reset(struct sidecar *sidecar)
{
    end_forgetting(sidecar);
    memset(&sidecar->strays, 0, sizeof(sidecar->strays));
}

/* Deletes the keys once the file says that the slots are not held, and replicas
 * have had time to learn it. */
void
sidecar_give_drop(struct sidecar *sidecar, uint64_t now_ms)
{
    if (sidecar->forgets_at_ms != 0 && now_ms >= sidecar->forgets_at_ms &&
        sidecar->hooks.is_kept(sidecar->hooks.ctx, sidecar->forgets_ticket)) {
        sidecar->hooks.drop(sidecar->hooks.ctx, &sidecar->forgets);
        end_forgetting(sidecar);
    }
}
