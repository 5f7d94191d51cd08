/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_copy.h"

#include "base/log.h"
#include "base/mem.h"
#include "cluster/claim.h"
#include "cluster/sidecar_disk.h"
#include "cluster/sidecar_state.h"

enum {
    ASK_MS = 300,    /* between two questions */
    ASK_SOON_MS = 20 /* likewise, while our copy is not the leader's */
};

static void
drop_offer(struct sidecar *sidecar)
{
    mem_free(sidecar->offer.holdings);
    sidecar->offer.holdings = NULL;
}

void
sidecar_copy_reset(struct sidecar *sidecar)
{
    drop_offer(sidecar);
    sidecar->copy_is_good = false;
    sidecar->offered_ms = 0;
    sidecar->offer_number = 0;
}

void
sidecar_copy_check(struct sidecar *sidecar)
{
    struct holdings *own = sidecar->own;

    if (own->follows[0] == '\0' ||
        sidecar->hooks.has(sidecar->hooks.ctx, own->history, 0)) {
        return;
    }
    log_notice("cluster.sidecar", "other data has replaced a copy", "of=%s",
               own->follows);
    sidecar_hold_nothing(sidecar);
    sidecar->copy_is_good = false;
    if (claim_is_hand_off(sidecar)) {
        claim_cancel(sidecar);
    }
}

static void
ask_leader(struct sidecar *sidecar, uint64_t now_ms)
{
    uint64_t pause_ms = sidecar->copy_is_good ? ASK_MS : ASK_SOON_MS;

    if (sidecar->offer_number == 0 &&
        now_ms - sidecar->offered_ms >= pause_ms) {
        sidecar->offered_ms = now_ms;
        sidecar->offer_number = sidecar_ask(
            sidecar, (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                           .node = sidecar->leader });
    }
}

bool
sidecar_copy_answered(struct sidecar *sidecar, uint64_t number,
                      const struct sidecar_answer *answer)
{
    struct sidecar_offer *offer = &sidecar->offer;

    if (number == 0 || number != sidecar->offer_number) {
        return false;
    }
    sidecar->offer_number = 0;
    if (answer->kind != SIDECAR_HOLDS || answer->holdings->follows[0] != '\0') {
        return true; /* it is not there, or does not lead yet */
    }
    if (offer->holdings == NULL) {
        offer->holdings = mem_alloc(sizeof(*offer->holdings));
    }
    *offer->holdings = *answer->holdings;
    memcpy(offer->history, answer->history, sizeof(offer->history));
    offer->position = answer->position;
    return true;
}

/* Holds what the leader held at this place, and no more. */
static void
take_offer(struct sidecar *sidecar, const struct sidecar_offer *offer)
{
    struct holdings *own = sidecar->own;

    const uint64_t *held = offer->holdings->held;
    struct slot_set set;

    /* Few epochs have many slots each. */
    for (unsigned first = 0; first < CLUSTER_SLOTS; first++) {
        if (held[first] == own->held[first]) {
            continue;
        }
        memset(&set, 0, sizeof(set));
        for (unsigned slot = first; slot < CLUSTER_SLOTS; slot++) {
            if (held[slot] == held[first] && own->held[slot] != held[slot]) {
                slot_set_add(&set, slot);
            }
        }
        sidecar_hold(sidecar, &set, held[first], offer->position);
    }
    memcpy(own->follows, sidecar->leader, sizeof(own->follows));
    memcpy(own->history, offer->history, sizeof(own->history));
    sidecar->dirty = true;
    sidecar->changed = true;
}

/* Our copy holds what its leader held at a place of the log that it has
 * reached. A slot that the leader holds no more is not held here at once. */
static void
compare_offer(struct sidecar *sidecar)
{
    struct sidecar_offer *offer = &sidecar->offer;
    struct holdings *own = sidecar->own;
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    bool reached;

    if (offer->holdings == NULL) {
        return;
    }
    sidecar->hooks.where(sidecar->hooks.ctx, history, &position);
    reached = strcmp(history, offer->history) == 0;
    if (!reached && sidecar->copy_is_good) {
        sidecar->copy_is_good = false;
        sidecar->changed = true;
    }
    if (!reached || position < offer->position) {
        return;
    }
    if (strcmp(own->follows, sidecar->leader) != 0 ||
        strcmp(own->history, history) != 0 ||
        memcmp(own->held, offer->holdings->held, sizeof(own->held)) != 0) {
        take_offer(sidecar, offer);
    }
    (void)holdings_learn(own, offer->holdings);
    if (!sidecar->copy_is_good) {
        sidecar->copy_is_good = true;
        sidecar->changed = true;
    }
    drop_offer(sidecar);
}

void
sidecar_copy_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    ask_leader(sidecar, now_ms);
    compare_offer(sidecar);
}
