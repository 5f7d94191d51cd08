/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_copy.h"

#include "base/log.h"
#include "base/mem.h"
#include "cluster/claim.h"
#include "cluster/sidecar_disk.h"
#include "cluster/sidecar_state.h"
#include "cluster/sidecar_times.h"
#include "cluster/sidecar_wait.h"

static void
drop_offer(struct sidecar *sidecar)
{
    mem_free(sidecar->offer.holdings);
    sidecar->offer.holdings = NULL;
}

/* Returns whether our leader has told over the present link what it holds. */
static bool
is_told(const struct sidecar *sidecar)
{
    const struct sidecar_offer *offer = &sidecar->offer;

    return offer->holdings != NULL && offer->told &&
           strcmp(offer->holdings->node, sidecar->leader) == 0 &&
           sidecar->hooks.is_told(sidecar->hooks.ctx);
}

/* Keeps an offer that the leader has sent over the present link: the leader
 * does not send it twice. */
void
sidecar_copy_reset(struct sidecar *sidecar)
{
    if (!is_told(sidecar)) {
        drop_offer(sidecar);
    }
    sidecar->offer.taken = false;
    sidecar->copy_is_good = false;
    sidecar->offered_ms = 0;
    sidecar->offer_number = 0;
}

void
sidecar_copy_check(struct sidecar *sidecar)
{
    struct holdings *own = sidecar->own;

    if (own->follows[0] == '\0' ||
        sidecar->hooks.has(sidecar->hooks.ctx, own->history,
                           sidecar->copy_at)) {
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
    uint64_t pause_ms = sidecar->copy_is_good ? COPY_ASK_MS : COPY_ASK_SOON_MS;

    if (!is_told(sidecar) && sidecar->offer_number == 0 &&
        now_ms - sidecar->offered_ms >= pause_ms) {
        sidecar->offered_ms = now_ms;
        sidecar->offer_number = sidecar_ask(
            sidecar, (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                           .node = sidecar->leader });
    }
}

static struct sidecar_offer *
set_offer(struct sidecar *sidecar, const struct holdings *holdings, bool told)
{
    struct sidecar_offer *offer = &sidecar->offer;

    if (offer->holdings == NULL) {
        offer->holdings = mem_alloc(sizeof(*offer->holdings));
    }
    *offer->holdings = *holdings;
    offer->told = told;
    offer->taken = false;
    return offer;
}

void
sidecar_copy_told(struct sidecar *sidecar, const struct holdings *holdings)
{
    struct sidecar_offer *offer = set_offer(sidecar, holdings, true);

    sidecar->hooks.where(sidecar->hooks.ctx, offer->history, &offer->position);
}

bool
sidecar_copy_answered(struct sidecar *sidecar, uint64_t number,
                      const struct sidecar_answer *answer)
{
    struct sidecar_offer *offer;

    if (number == 0 || number != sidecar->offer_number) {
        return false;
    }
    sidecar->offer_number = 0;
    if (answer->kind != SIDECAR_HOLDS || answer->holdings->follows[0] != '\0' ||
        !sidecar->hooks.is_linked(sidecar->hooks.ctx) || is_told(sidecar)) {
        return true; /* the leader is unreachable, does not lead yet (it may
                        follow us), or has told us over the link meanwhile */
    }
    offer = set_offer(sidecar, answer->holdings, false);
    memcpy(offer->history, answer->history, sizeof(offer->history));
    offer->position = answer->position;
    return true;
}

/* Holds exactly what the leader held at the position of the offer. */
static void
take_offer(struct sidecar *sidecar, const struct sidecar_offer *offer)
{
    struct holdings *own = sidecar->own;

    const uint64_t *held = offer->holdings->held;
    struct slot_set set;

    /* The slots are handled by epoch: there are few epochs, with many slots
     * each. */
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
    memcpy(own->copied, offer->holdings->copied, sizeof(own->copied));
    /* Slots that we gave away are here again, as part of this copy. */
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        sidecar->slots[slot].given_ms = sidecar->slots[slot].given_epoch = 0;
    }
    memcpy(own->follows, sidecar->leader, sizeof(own->follows));
    memcpy(own->history, offer->history, sizeof(own->history));
    sidecar->copy_at = offer->position;
    sidecar->dirty = true;
    sidecar->changed = true;
}

/* Returns whether the offer comes from our leader, which already leads, and was
 * not taken yet. */
static bool
is_usable(const struct sidecar *sidecar)
{
    const struct sidecar_offer *offer = &sidecar->offer;

    return offer->holdings != NULL && !offer->taken &&
           offer->holdings->follows[0] == '\0' &&
           (!offer->told ||
            strcmp(offer->holdings->node, sidecar->leader) == 0);
}

/* Takes the offer once our copy has reached its position. */
static void
compare_offer(struct sidecar *sidecar)
{
    struct sidecar_offer *offer = &sidecar->offer;
    struct holdings *own = sidecar->own;
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    bool reached;

    if (!is_usable(sidecar)) {
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
        memcmp(own->held, offer->holdings->held, sizeof(own->held)) != 0 ||
        memcmp(own->copied, offer->holdings->copied, sizeof(own->copied)) !=
            0) {
        take_offer(sidecar, offer);
    }
    (void)holdings_learn(own, offer->holdings);
    if (!sidecar->copy_is_good) {
        sidecar->copy_is_good = true;
        sidecar->changed = true;
    }
    sidecar_wait_end(sidecar);
    offer->taken = true;
}

void
sidecar_copy_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    ask_leader(sidecar, now_ms);
    compare_offer(sidecar);
}
