/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_wait.h"

#include "base/log.h"
#include "cluster/sidecar_disk.h"
#include "cluster/sidecar_state.h"
#include "cluster/sidecar_times.h"
#include "cluster/survey.h"

#include <stdio.h>

enum { LOOKS_MAX = 64 };

/* Returns whether our data is a copy of the data of the owner's daemon. */
static bool
is_copy_of(const struct sidecar *sidecar, uint16_t owner)
{
    return strcmp(sidecar->own->follows, sidecar->peers[owner].id) == 0;
}

bool
sidecar_is_taken(const struct sidecar *sidecar, unsigned slot)
{
    const struct sidecar_holder *holder = &sidecar->survey.found[slot];
    uint16_t owner = sidecar->slots[slot].owner_before;

    if (owner == PEER_NONE || holder->epoch == 0 || holder->peer != owner ||
        holder->copy || holder->claimed) {
        return false;
    }
    return holder->epoch > sidecar->own->held[slot] ||
           (holder->epoch == sidecar->own->held[slot] &&
            (sidecar->own->copied[slot] != 0 || is_copy_of(sidecar, owner))) ||
           (sidecar->slots[slot].given_epoch != 0 &&
            sidecar->slots[slot].comer == owner &&
            holder->epoch >= sidecar->slots[slot].given_epoch &&
            sidecar->survey.rounds > sidecar->slots[slot].wanted_round);
}

/* Returns whether we already copy the server that we should copy, and that
 * server, by the last survey, holds the slot at least at our epoch. */
static bool
is_at_leader(const struct sidecar *sidecar, const char *leader, unsigned slot)
{
    const struct sidecar_holder *holder = &sidecar->survey.found[slot];

    return strcmp(sidecar->own->follows, leader) == 0 && holder->epoch != 0 &&
           holder->epoch >= sidecar->own->held[slot] && !holder->copy &&
           !holder->claimed &&
           strcmp(sidecar->peers[holder->peer].id, leader) == 0;
}

static void
say_waiting(const struct sidecar *sidecar, const char *leader, uint64_t now_ms)
{
    unsigned at = 0;
    unsigned first = 0;
    unsigned last;

    (void)slot_set_next(&sidecar->waiting, &at, &first, &last);
    log_warn("cluster.sidecar", "keeps data that no other server has taken",
             "slots=%u first=%u since_s=%llu leader=%s next=\"it copies that "
             "server when the servers of the slots' owners have them, or after "
             "SIDECAR LET-GO\"",
             slot_set_count(&sidecar->waiting), first,
             (unsigned long long)((now_ms - sidecar->waits_ms) / 1000), leader);
}

/* Returns the slots whose newest data no daemon holds, and of which keys are
 * here. A start that finds other data than the file names holds nothing, but
 * what it finds may be all that there is: an operator decides, by FORCE-SERVE
 * at the owner or LET-GO here. If there are many slots, some may have no keys:
 * a look at each would take long. */
static struct slot_set
find_left_alone(const struct sidecar *sidecar)
{
    const struct sidecar_hooks *hooks = &sidecar->hooks;
    struct slot_set set = { { 0 } };
    struct slot_set empty = { { 0 } };

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        const struct sidecar_holder *holder = &sidecar->survey.found[slot];

        if (sidecar->own->held[slot] == 0 &&
            !survey_finds_newest(sidecar, slot) && !holder->claimed &&
            !slot_set_has(&sidecar->forgets, slot)) {
            slot_set_add(&set, slot);
        }
    }
    if (!hooks->has_keys(hooks->ctx, &set)) {
        return empty;
    }
    if (slot_set_count(&set) > LOOKS_MAX) {
        return set;
    }
    slot_set_foreach (&set, slot) {
        struct slot_set one = { { 0 } };

        slot_set_add(&one, slot);
        if (!hooks->has_keys(hooks->ctx, &one)) {
            slot_set_add(&empty, slot);
        }
    }
    slot_set_subtract(&set, &empty);
    return set;
}

/* Collects the slots that are held here and not taken over, and those that
 * nobody holds. Looks for their keys once per survey. Held slots without keys
 * still count for some time (empty_ms): if nobody held them, they would count
 * as missing, so their owners' daemons get the time to take them. */
static void
collect(struct sidecar *sidecar, const char *leader, uint64_t now_ms)
{
    struct slot_set set = { { 0 } };

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (sidecar->own->held[slot] != 0 && !sidecar_is_taken(sidecar, slot) &&
            !is_at_leader(sidecar, leader, slot)) {
            slot_set_add(&set, slot);
        }
    }
    if (sidecar->keys_round != sidecar->survey.rounds) {
        sidecar->keys_round = sidecar->survey.rounds;
        sidecar->left_alone = find_left_alone(sidecar);
        if (!slot_set_is_empty(&set)) {
            sidecar->waits_empty =
                !sidecar->hooks.has_keys(sidecar->hooks.ctx, &set);
        }
    }
    if (sidecar->waits_empty &&
        now_ms - sidecar->waits_ms >= sidecar->options.empty_ms) {
        memset(&set, 0, sizeof(set));
    }
    slot_set_unite(&set, &sidecar->left_alone);
    sidecar->changed |= !slot_set_equal(&sidecar->waiting, &set);
    sidecar->waiting = set;
}

/* Returns whether, by the last survey, the leader's data may replace all our
 * data. */
static bool
may_go(struct sidecar *sidecar, const char *leader, uint64_t now_ms)
{
    if (sidecar->waits_ms == 0) {
        sidecar->waits_ms = sidecar->said_ms = now_ms;
        sidecar->keys_round = UINT64_MAX;
        sidecar->waits_empty = false;
        sidecar->waits_round =
            sidecar->survey.rounds + (sidecar->survey.open > 0);
    }
    collect(sidecar, leader, now_ms);
    if (slot_set_is_empty(&sidecar->waiting)) {
        return true;
    }
    if (now_ms - sidecar->waits_ms < WAIT_HURRY_MS) {
        survey_hurry(sidecar);
    }
    if (now_ms - sidecar->said_ms >= WAIT_SAY_MS) {
        sidecar->said_ms = now_ms;
        say_waiting(sidecar, leader, now_ms);
    }
    return false;
}

bool
sidecar_may_follow(struct sidecar *sidecar, const char *leader, uint64_t now_ms)
{
    if (strcmp(sidecar->own->follows, leader) == 0) {
        return true; /* we have a copy of that server's data */
    }
    if (!may_go(sidecar, leader, now_ms)) {
        return false;
    }
    return sidecar->waits_empty || !holdings_has_slots(sidecar->own) ||
           survey_is_fresh(sidecar, sidecar->waits_round, now_ms);
}

bool
sidecar_wait_may_copy(struct sidecar *sidecar, const char *history,
                      uint64_t now_ms)
{
    const struct slot_set alone = find_left_alone(sidecar);

    if (!holdings_has_slots(sidecar->own) && slot_set_is_empty(&alone)) {
        return true;
    }
    if (sidecar->topology == NULL || sidecar->role != SIDECAR_FOLLOWS) {
        return false;
    }
    if (strcmp(sidecar->offered, history) != 0) {
        (void)snprintf(sidecar->offered, sizeof(sidecar->offered), "%s",
                       history);
        sidecar->offered_round =
            sidecar->survey.rounds + (sidecar->survey.open > 0);
    }
    if (!survey_is_fresh(sidecar, sidecar->offered_round, now_ms) ||
        !may_go(sidecar, sidecar->leader, now_ms)) {
        return false;
    }
    sidecar_wait_end(sidecar);
    return true;
}

void
sidecar_wait_end(struct sidecar *sidecar)
{
    if (sidecar->waits_ms != 0) {
        sidecar->waits_ms = 0;
        sidecar->changed = true;
        memset(&sidecar->waiting, 0, sizeof(sidecar->waiting));
    }
}

/* Notes up to which position our copy goes. The server that we copied may come
 * back with later changes, and other copies of its log may be longer. */
void
sidecar_wait_lead(struct sidecar *sidecar, const struct slot_set *complete)
{
    struct holdings *own = sidecar->own;
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;

    sidecar->hooks.where(sidecar->hooks.ctx, history, &position);
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (own->held[slot] != 0 && own->copied[slot] == 0 &&
            !slot_set_has(complete, slot)) {
            own->copied[slot] = position + 1;
        }
    }
    own->follows[0] = own->history[0] = '\0';
    sidecar->dirty = true;
    sidecar->changed = true;
}
