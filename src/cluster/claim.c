/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/claim.h"

#include "base/log.h"
#include "cluster/claim_decide.h"
#include "cluster/sidecar_come.h"
#include "cluster/sidecar_disk.h"
#include "cluster/sidecar_fallen.h"
#include "cluster/sidecar_force.h"
#include "cluster/sidecar_give.h"
#include "cluster/sidecar_peers.h"
#include "cluster/sidecar_show.h"
#include "cluster/sidecar_times.h"
#include "cluster/sidecar_wait.h"
#include "cluster/survey.h"

#include <stdio.h>

static const char *
name_of(enum claim_state state)
{
    static const char *const names[] = {
        [CLAIM_NONE] = "none",     [CLAIM_CHECKS] = "checks",
        [CLAIM_ASKS] = "asks",     [CLAIM_PULLS] = "pulls",
        [CLAIM_FENCES] = "fences", [CLAIM_DRAINS] = "drains",
        [CLAIM_WAITS] = "waits",   [CLAIM_KEEPS] = "keeps",
    };

    return names[state];
}

bool
claim_is_hand_off(const struct sidecar *sidecar)
{
    return sidecar->claim.hand_off && sidecar->claim.state != CLAIM_NONE;
}

/* ---- states -------------------------------------------------------------- */

static void
enter(struct sidecar *sidecar, enum claim_state state, uint64_t now_ms)
{
    static const uint8_t next[] = {
        [CLAIM_NONE] = 1 << CLAIM_FENCES | 1 << CLAIM_ASKS | 1 << CLAIM_CHECKS |
                       1 << CLAIM_KEEPS,
        [CLAIM_CHECKS] = 1 << CLAIM_NONE | 1 << CLAIM_KEEPS,
        [CLAIM_ASKS] = 1 << CLAIM_NONE | 1 << CLAIM_KEEPS | 1 << CLAIM_PULLS |
                       1 << CLAIM_DRAINS,
        [CLAIM_PULLS] = 1 << CLAIM_NONE | 1 << CLAIM_FENCES | 1 << CLAIM_DRAINS,
        [CLAIM_FENCES] = 1 << CLAIM_NONE | 1 << CLAIM_DRAINS | 1 << CLAIM_WAITS,
        [CLAIM_DRAINS] = 1 << CLAIM_NONE | 1 << CLAIM_KEEPS,
        [CLAIM_WAITS] = 1 << CLAIM_NONE | 1 << CLAIM_FENCES | 1 << CLAIM_KEEPS,
        [CLAIM_KEEPS] = 1 << CLAIM_NONE,
    };
    struct claim *claim = &sidecar->claim;
    /* From PULLS, a claim enters DRAINS directly when the source has no keys
     * any more. */
    bool holds = state == CLAIM_ASKS || state == CLAIM_FENCES ||
                 (state == CLAIM_DRAINS && claim->state == CLAIM_PULLS);

    CHECK((next[claim->state] >> state & 1) != 0);
    claim->state = state;
    claim->since_ms = now_ms;
    if (holds) {
        claim->held_ms = now_ms;
    }
    sidecar->changed = true;
}

/* Makes commands wait here before the source gets the question: once it has
 * stopped the slots, it sends clients here, and we must not send them back. */
static void
ask_source(struct sidecar *sidecar, enum sidecar_question question)
{
    struct claim *claim = &sidecar->claim;

    if (sidecar->changed) {
        sidecar_show(sidecar);
    }
    claim->number = sidecar_ask(
        sidecar, (struct sidecar_ask){
                     .question = question,
                     .node = claim->source,
                     .set = sidecar_claimed(sidecar),
                     .epoch = claim->raised > 0 ? claim->raised - 1 : 0,
                     .surveyed = claim->surveyed,
                     .known = claim->known,
                     .chosen = claim->chosen });
}

/* Writes the file that says that the slots are held, once their data is on the
 * disk. */
static void
write_claim(struct sidecar *sidecar, uint64_t now_ms)
{
    if (sidecar_disk_may_keep(sidecar)) {
        sidecar->claim.ticket = sidecar_keep(sidecar);
    } else if (now_ms == sidecar->claim.since_ms) {
        sidecar->hooks.store(sidecar->hooks.ctx);
    }
}

/* Notes on the disk that the slots are held. Other daemons must not see them as
 * held by us before that note is on the disk. */
static void
keep_holdings(struct sidecar *sidecar, uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;
    char history[HISTORY_ID_CHARS + 1];

    claim->epoch = sidecar_epoch(sidecar);
    if (claim->epoch < claim->raised) {
        claim->epoch = claim->raised;
    }
    claim->ticket = 0;
    claim->risen = false;
    sidecar->hooks.where(sidecar->hooks.ctx, history, &claim->here);
    enter(sidecar, CLAIM_KEEPS, now_ms);
    write_claim(sidecar, now_ms);
}

void
claim_follow_epoch(struct sidecar *sidecar, bool gained)
{
    struct claim *claim = &sidecar->claim;
    uint64_t epoch = sidecar_epoch(sidecar);

    if (claim->state != CLAIM_KEEPS || claim->epoch >= epoch) {
        return;
    }
    if (gained && !claim->risen) {
        claim->epoch = epoch;
    } else {
        claim->risen = true;
    }
}

/* Ends a claim whose slots are on the disk: holds them, and serves those that
 * no other daemon has claimed since. If our node's epoch has risen above a
 * slot's, a survey decides about the slot. */
static void
kept(struct sidecar *sidecar, uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;
    struct slot_set set = *sidecar_claimed(sidecar);
    struct slot_set risen;

    sidecar_hold_claim(sidecar);
    if (strcmp(claim->source, sidecar->own->node) != 0) {
        sidecar->cutover_ms = now_ms - claim->held_ms;
        log_notice("cluster.claim", "has taken slots over",
                   "slots=%u from=%s cutover_ms=%llu", slot_set_count(&set),
                   claim->source, (unsigned long long)sidecar->cutover_ms);
    }
    enter(sidecar, CLAIM_NONE, now_ms);
    risen = sidecar_risen(sidecar, &set);
    sidecar_stop_serving(sidecar, &risen, now_ms);
    slot_set_subtract(&set, &risen);
    slot_set_foreach (&set, slot) {
        if (sidecar->slots[slot].given) {
            slot_set_remove(&set, slot);
            sidecar_enter_open(sidecar, slot);
        }
    }
    sidecar_serve(sidecar, &set);
}

/* Takes slots that our node owns out of the claim. */
static void
leave_claim(struct sidecar *sidecar, const struct slot_set *left)
{
    slot_set_foreach (left, slot) {
        sidecar_enter_open(sidecar, slot);
    }
}

/* Returns whether our log has the source's history and has reached the position
 * where the source stopped. */
static bool
has_drained(const struct sidecar *sidecar)
{
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;

    sidecar->hooks.where(sidecar->hooks.ctx, history, &position);
    return strcmp(history, sidecar->claim.history) == 0 &&
           position >= sidecar->claim.position;
}

/* Returns those of the slots of which another daemon may have newer data. */
static struct slot_set
outdated(const struct sidecar *sidecar, const struct slot_set *set)
{
    struct slot_set found = { { 0 } };

    slot_set_foreach (set, slot) {
        if (sidecar->own->known[slot] > sidecar->own->held[slot]) {
            slot_set_add(&found, slot);
        }
    }
    return found;
}

/* Leads, with the data that was copied from the daemon that we followed. If it
 * was not fenced first, it may have more of its log than this copy, until our
 * disk says that we hold the slots. If our copy was left behind, a survey may
 * find a longer one. */
static void
lead(struct sidecar *sidecar, uint64_t now_ms)
{
    const struct slot_set none = { { 0 } };
    bool complete = has_drained(sidecar);
    struct slot_set others = *sidecar_claimed(sidecar);

    if (!sidecar->claim.behind || complete) {
        others = outdated(sidecar, &others);
    }
    leave_claim(sidecar, &others);
    memcpy(sidecar->claim.was, sidecar->own->history,
           sizeof(sidecar->claim.was));
    sidecar_wait_lead(sidecar, complete ? sidecar_claimed(sidecar) : &none);
    sidecar->hooks.lead(sidecar->hooks.ctx);
    sidecar->role = SIDECAR_LEADS;
    keep_holdings(sidecar, now_ms);
}

/* Gives up the claim. Its slots are still wanted, from another source. */
static void
fail_claim(struct sidecar *sidecar, const char *reason, uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;
    struct slot_set set = *sidecar_claimed(sidecar);

    log_warn("cluster.claim", "could not take slots over",
             "slots=%u from=%s while=%s reason=\"%s\"", slot_set_count(&set),
             claim->source, name_of(claim->state), reason);
    if (claim->chosen) {
        sidecar_force_failed(sidecar, &set);
    }
    sidecar_come_source_broke(sidecar);
    slot_set_foreach (&set, slot) {
        sidecar->slots[slot].source = PEER_NONE;
        sidecar->slots[slot].wanted_round =
            sidecar->survey.rounds + (sidecar->survey.open > 0);
    }
    leave_claim(sidecar, &set);
    claim->not_until = now_ms + CLAIM_RETRY_MS;
    enter(sidecar, CLAIM_NONE, now_ms);
    survey_hurry(sidecar);
}

/* ---- events -------------------------------------------------------------- */

static void
fenced(struct sidecar *sidecar, const struct sidecar_answer *answer,
       uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;
    struct slot_set left = *sidecar_claimed(sidecar);

    memcpy(claim->history, answer->history, sizeof(claim->history));
    claim->position = answer->position;
    slot_set_subtract(&left, answer->granted);
    leave_claim(sidecar, &left);
    enter(sidecar, CLAIM_DRAINS, now_ms);
    claim->round = sidecar->survey.rounds + (sidecar->survey.open > 0);
    if (!claim->hand_off) {
        sidecar->hooks.pull_until(sidecar->hooks.ctx, claim->history,
                                  claim->position);
    }
}

/* Returns whether the claim's present state has lasted longer than the lease of
 * a silent daemon. */
static bool
is_patient(const struct sidecar *sidecar, uint64_t now_ms)
{
    return now_ms - sidecar->claim.since_ms >= sidecar->options.silence_ms;
}

static void
answered_fence(struct sidecar *sidecar, const struct sidecar_answer *answer,
               uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;

    if (answer->kind == SIDECAR_FENCED) {
        fenced(sidecar, answer, now_ms);
    } else if (claim->hand_off) {
        log_warn("cluster.claim", "the daemon that was followed is silent",
                 "node=%s reason=\"%s\"", claim->source, answer->reason);
        claim->round = sidecar->survey.rounds + (sidecar->survey.open > 0);
        claim->refused = answer->kind == SIDECAR_REFUSED;
        enter(sidecar, CLAIM_WAITS, now_ms);
        survey_hurry(sidecar);
    } else if (answer->kind == SIDECAR_SILENT && claim->state == CLAIM_FENCES &&
               !is_patient(sidecar, now_ms)) {
        claim->silent_ms = now_ms; /* ask again: the source may have stopped
                                      serving, and a new copy would take long */
    } else {
        sidecar->hooks.pull_cancel(sidecar->hooks.ctx);
        fail_claim(sidecar, answer->reason, now_ms);
    }
}

/* Handles the answer of a source that was asked again because the link to it
 * broke. */
static void
answered_again(struct sidecar *sidecar, const struct sidecar_answer *answer,
               uint64_t now_ms)
{
    if (answer->kind == SIDECAR_HAS_KEYS) {
        sidecar->claim.broke = false;
        sidecar->changed = true;
    } else { /* the source has no keys any more: our copy must lose them, too */
        answered_fence(sidecar, answer, now_ms);
    }
}

/* Fetches the slots. The disk gets a note of the claim before the source is
 * fenced: if our disk is full, we could not serve the slots. */
static void
pull(struct sidecar *sidecar)
{
    sidecar->claim.broke = false;
    sidecar->claim.near = false;
    sidecar->claim.intention = sidecar_keep(sidecar);
    slot_set_unite(&sidecar->strays, sidecar_claimed(sidecar));
    sidecar->hooks.pull(sidecar->hooks.ctx, sidecar->claim.source,
                        sidecar_claimed(sidecar));
}

/* Handles that the source was fenced and had no keys. Keys that are here belong
 * to an earlier copy; a pull removes them. */
static void
fenced_empty(struct sidecar *sidecar, const struct sidecar_answer *answer,
             uint64_t now_ms)
{
    if (sidecar->hooks.has_keys(sidecar->hooks.ctx, sidecar_claimed(sidecar))) {
        pull(sidecar);
        fenced(sidecar, answer, now_ms);
    } else {
        keep_holdings(sidecar, now_ms);
    }
}

void
claim_answered(struct sidecar *sidecar, const struct sidecar_answer *answer,
               uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;

    claim->number = 0;
    if (claim->state == CLAIM_FENCES) {
        answered_fence(sidecar, answer, now_ms);
    } else if (claim->state == CLAIM_PULLS) {
        answered_again(sidecar, answer, now_ms);
    } else if (answer->kind == SIDECAR_FENCED) {
        fenced_empty(sidecar, answer, now_ms);
    } else if (answer->kind == SIDECAR_HAS_KEYS) {
        enter(sidecar, CLAIM_PULLS, now_ms);
        pull(sidecar);
    } else {
        fail_claim(sidecar, answer->reason, now_ms);
    }
}

static void
fence_if_kept(struct sidecar *sidecar, uint64_t now_ms)
{
    const struct claim *claim = &sidecar->claim;

    if (claim->near && claim->number == 0 &&
        sidecar->hooks.is_kept(sidecar->hooks.ctx, claim->intention)) {
        enter(sidecar, CLAIM_FENCES, now_ms);
        ask_source(sidecar, SIDECAR_ASK_FENCE);
    }
}

/* Continues a claim in PULLS. It ends as soon as a survey has found newer data:
 * until then, clients write at the source, and these writes would be lost. */
static void
look_at_source(struct sidecar *sidecar, uint64_t now_ms)
{
    if (survey_outdoes_source(sidecar)) {
        sidecar->hooks.pull_cancel(sidecar->hooks.ctx);
        sidecar->claim.number = 0;
        fail_claim(sidecar, "another server has newer data", now_ms);
    } else {
        fence_if_kept(sidecar, now_ms);
    }
}

void
claim_is_near(struct sidecar *sidecar, uint64_t now_ms)
{
    if (sidecar->claim.state == CLAIM_PULLS) {
        sidecar->claim.near = true;
        look_at_source(sidecar, now_ms);
    }
}

void
claim_pull_broke(struct sidecar *sidecar)
{
    struct claim *claim = &sidecar->claim;

    if (claim->state == CLAIM_PULLS && claim->number == 0) {
        claim->broke = true;
        sidecar->changed = true;
        if (!claim->near) { /* otherwise it will be asked to stop anyway */
            ask_source(sidecar, SIDECAR_ASK_FENCE_EMPTY);
        }
    }
}

void
claim_pull_ended(struct sidecar *sidecar, bool good, const char *reason,
                 uint64_t now_ms)
{
    enum claim_state state = sidecar->claim.state;

    if (good && state == CLAIM_DRAINS) {
        keep_holdings(sidecar, now_ms);
    } else if (state == CLAIM_PULLS || state == CLAIM_FENCES ||
               state == CLAIM_DRAINS) {
        sidecar->claim.number = 0;
        fail_claim(sidecar, reason, now_ms);
    }
}

void
claim_cancel(struct sidecar *sidecar)
{
    struct claim *claim = &sidecar->claim;
    struct slot_set set = *sidecar_claimed(sidecar);

    if (!claim->hand_off &&
        (claim->state == CLAIM_PULLS || claim->state == CLAIM_FENCES ||
         claim->state == CLAIM_DRAINS)) {
        sidecar->hooks.pull_cancel(sidecar->hooks.ctx);
    }
    claim->number = 0;
    claim->state = CLAIM_NONE;
    leave_claim(sidecar, &set);
    sidecar->changed = true;
}

void
claim_drop(struct sidecar *sidecar, const struct slot_set *claimed,
           const struct slot_set *lost)
{
    struct claim *claim = &sidecar->claim;

    if (!slot_set_intersects(claimed, lost) || claim->state == CLAIM_KEEPS ||
        claim->hand_off) {
        return;
    }
    /* All slots of the claim leave it: the source was asked for all of them, or
     * a pull fetches all. */
    claim_cancel(sidecar);
}

/* ---- beginning ----------------------------------------------------------- */

/* Begins a claim, which keeps nothing of the one before. */
static void
begin_claim(struct sidecar *sidecar, const char *source)
{
    struct claim *claim = &sidecar->claim;

    CHECK(claim->state == CLAIM_NONE && source != claim->source);
    *claim = (struct claim){ .state = CLAIM_NONE };
    (void)snprintf(claim->source, sizeof(claim->source), "%s", source);
}

static void
enter_claim(struct sidecar *sidecar, const struct slot_set *set)
{
    slot_set_foreach (set, slot) {
        sidecar_enter_open(sidecar, slot); /* the slot is not missing now */
        sidecar_enter(sidecar, slot, PHASE_CLAIMED);
    }
}

/* Follows the source, if it is not the daemon that we follow now: our node may
 * have become a replica of another one before it was promoted. */
static void
follow_source(struct sidecar *sidecar)
{
    const char *source = sidecar->own->follows;
    int node = topology_find(sidecar->topology, slice_of(source));

    if (node >= 0 && strcmp(sidecar->leader, source) != 0) {
        memcpy(sidecar->leader, source, sizeof(sidecar->leader));
        sidecar->hooks.follow(sidecar->hooks.ctx, node);
    }
}

void
claim_begin_hand_off(struct sidecar *sidecar, uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;
    bool behind = !sidecar->copy_is_good ||
                  strcmp(sidecar->leader, sidecar->own->follows) != 0;
    struct slot_set set;
    uint16_t from;

    claim_cancel(sidecar);
    memset(&set, 0, sizeof(set));
    slot_set_foreach (&sidecar->owned, slot) {
        if (sidecar->own->held[slot] != 0 && sidecar->own->copied[slot] == 0) {
            slot_set_add(&set, slot);
        }
    }
    follow_source(sidecar);
    begin_claim(sidecar, sidecar->own->follows);
    enter_claim(sidecar, &set);
    claim->hand_off = true;
    claim->behind = behind;
    from = sidecar_peer_of(sidecar, claim->source);
    slot_set_foreach (&set, slot) {
        uint64_t raised = sidecar_raised_of(sidecar, slot);

        claim->raised = raised > claim->raised ? raised : claim->raised;
        claim->passed |= sidecar->slots[slot].source != PEER_NONE &&
                         sidecar->slots[slot].source != from;
    }
    enter(sidecar, CLAIM_FENCES, now_ms);
    ask_source(sidecar, SIDECAR_ASK_HAND_OFF);
}

/* Claims slots whose data is here. If nobody holds the newest data, the node of
 * another server may own them, which decides the same at this moment: each must
 * see the other's claim. */
static void
begin_keeping(struct sidecar *sidecar, struct slot_set *set, uint64_t now_ms)
{
    struct slot_set left;

    begin_claim(sidecar, sidecar->own->node);
    sidecar_separate_raised(sidecar, set);
    enter_claim(sidecar, set);
    left = outdated(sidecar, set);
    if (!slot_set_is_empty(&left)) {
        enter(sidecar, CLAIM_CHECKS, now_ms);
        sidecar->claim.round =
            sidecar->survey.rounds + (sidecar->survey.open > 0);
        survey_hurry(sidecar);
    } else {
        keep_holdings(sidecar, now_ms);
    }
}

/* Handles the end of the survey that CHECKS waits for. */
static void
end_check(struct sidecar *sidecar, uint64_t now_ms)
{
    slot_set_foreach (sidecar_claimed(sidecar), slot) {
        if (claim_decide(sidecar, slot, now_ms) != WANT_KEEP) {
            claim_cancel(sidecar);
            sidecar->claim.not_until = now_ms + CLAIM_RETRY_MS;
            return;
        }
    }
    keep_holdings(sidecar, now_ms);
}

/* Decides about all wanted slots. Begins a claim for the slots that have the
 * same source as the first one. */
static void
pick(struct sidecar *sidecar, uint64_t now_ms)
{
    struct slot_set sets[WANT_MISSING + 1];
    struct slot_set wanted = sidecar->owned;
    uint16_t source = PEER_NONE;

    slot_set_subtract(&wanted, &sidecar->served);
    if (slot_set_is_empty(&wanted)) {
        return;
    }
    memset(sets, 0, sizeof(sets));
    slot_set_foreach (&wanted, slot) {
        enum want want = claim_decide(sidecar, slot, now_ms);

        if (want == WANT_CLAIM && source == PEER_NONE) {
            source = sidecar->slots[slot].source;
        }
        if (want != WANT_CLAIM) {
            slot_set_add(&sets[want], slot);
        } else if (sidecar->slots[slot].source == source) {
            slot_set_add(&sets[WANT_CLAIM], slot);
        }
    }
    sidecar_set_missing(sidecar, &wanted, &sets[WANT_MISSING]);
    if (!slot_set_is_empty(&sets[WANT_SERVE])) {
        sidecar_serve(sidecar, &sets[WANT_SERVE]);
    }
    if (!slot_set_is_empty(&sets[WANT_KEEP])) {
        begin_keeping(sidecar, &sets[WANT_KEEP], now_ms);
    } else if (source != PEER_NONE) {
        begin_claim(sidecar, sidecar->peers[source].id);
        survey_separate(sidecar, &sets[WANT_CLAIM]);
        sidecar_separate_raised(sidecar, &sets[WANT_CLAIM]);
        enter_claim(sidecar, &sets[WANT_CLAIM]);
        enter(sidecar, CLAIM_ASKS, now_ms);
        ask_source(sidecar, SIDECAR_ASK_FENCE_EMPTY);
    }
}

/* Returns whether our copy is complete, or we have waited for long enough. If
 * another node has owned the slots in between, its daemon may have later data:
 * then a survey must show that it does not. */
static bool
may_lead(struct sidecar *sidecar, uint64_t now_ms)
{
    const struct claim *claim = &sidecar->claim;

    return is_patient(sidecar, now_ms) ||
           (has_drained(sidecar) &&
            (!claim->passed ||
             survey_is_clear(sidecar, claim->round, sidecar_claimed(sidecar))));
}

/* Leads without the daemon that we followed if it is silent or refuses for long
 * enough. If it answers earlier, we fence it, since it may have a lease. No
 * survey asks it if its node is not in the cluster any more. */
static void
wait_for_source(struct sidecar *sidecar, uint64_t now_ms)
{
    const struct claim *claim = &sidecar->claim;
    uint16_t source = sidecar_peer_of(sidecar, claim->source);
    bool gone = topology_find(sidecar->topology, slice_of(claim->source)) < 0;

    if (gone || sidecar->peers[source].silent || claim->refused) {
        if (is_patient(sidecar, now_ms)) {
            lead(sidecar, now_ms);
        }
    } else {
        enter(sidecar, CLAIM_FENCES, now_ms);
        ask_source(sidecar, SIDECAR_ASK_HAND_OFF);
    }
}

void
claim_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    struct claim *claim = &sidecar->claim;

    switch (claim->state) {
    case CLAIM_NONE:
        if (now_ms >= claim->not_until && sidecar->role == SIDECAR_LEADS) {
            pick(sidecar, now_ms);
        }
        break;
    case CLAIM_CHECKS:
        if (sidecar->survey.rounds > claim->round) {
            end_check(sidecar, now_ms);
        }
        break;
    case CLAIM_DRAINS:
        if (claim->hand_off && may_lead(sidecar, now_ms)) {
            lead(sidecar, now_ms);
        }
        break;
    case CLAIM_WAITS:
        if (sidecar->survey.rounds > claim->round) {
            wait_for_source(sidecar, now_ms);
        }
        break;
    case CLAIM_KEEPS:
        if (claim->ticket == 0) {
            write_claim(sidecar, now_ms);
        } else if (sidecar->hooks.is_kept(sidecar->hooks.ctx, claim->ticket)) {
            kept(sidecar, now_ms);
        }
        break;
    case CLAIM_FENCES:
        if (claim->number == 0 && now_ms - claim->silent_ms >= CLAIM_RETRY_MS) {
            ask_source(sidecar, SIDECAR_ASK_FENCE);
        }
        break;
    case CLAIM_PULLS:
        look_at_source(sidecar, now_ms);
        break;
    case CLAIM_ASKS:
        break;
    }
}
