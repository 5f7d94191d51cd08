/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each daemon asks all others what they hold, about once a second, and sooner
 * while a slot of its own is wanted. The answers say from which daemon to
 * fetch, which slots were never held, and which of our slots another daemon
 * holds at a higher epoch.
 *
 * At rest (survey_is_calm) a round asks only for changes. If there are none,
 * the result of the last round stays valid. Otherwise the daemons that reported
 * no change are asked, in the same round, for everything they hold.
 */
#include "cluster/survey.h"

#include "base/mem.h"
#include "cluster/sidecar_peers.h"
#include "cluster/sidecar_times.h"

void
survey_init(struct sidecar *sidecar)
{
    struct sidecar_survey *survey = &sidecar->survey;

    survey->fresh = mem_zalloc(CLUSTER_SLOTS * sizeof(*survey->fresh));
    survey->found = mem_zalloc(CLUSTER_SLOTS * sizeof(*survey->found));
}

void
survey_fini(struct sidecar *sidecar)
{
    mem_free(sidecar->survey.fresh);
    mem_free(sidecar->survey.found);
    mem_free(sidecar->survey.asked);
}

void
survey_hurry(struct sidecar *sidecar)
{
    sidecar->survey.next_ms = 0;
}

/* Returns the pause between two rounds at rest. */
static uint64_t
pause_of(const struct sidecar *sidecar)
{
    return SURVEY_ROUND_MS + sidecar->topology->count * SURVEY_PEER_MS;
}

bool
survey_is_fresh(struct sidecar *sidecar, uint64_t round, uint64_t now_ms)
{
    const struct sidecar_survey *survey = &sidecar->survey;
    bool fresh =
        survey->rounds > round &&
        now_ms - survey->found_ms <= pause_of(sidecar) + SURVEY_LATE_MS;

    if (!fresh) {
        survey_hurry(sidecar);
    }
    return fresh;
}

bool
survey_finds_newest(const struct sidecar *sidecar, unsigned slot)
{
    return sidecar->survey.found[slot].epoch >= sidecar->own->known[slot];
}

bool
survey_has_none_newer(const struct sidecar *sidecar, unsigned slot)
{
    const struct sidecar_holder *holder = &sidecar->survey.found[slot];
    uint64_t held = sidecar->own->held[slot];
    uint64_t copied = sidecar->own->copied[slot];

    if (holder->epoch != held) {
        return held > holder->epoch || holder->ours;
    }
    return copied == 0 || (holder->copy && holder->position < copied);
}

bool
survey_is_clear(struct sidecar *sidecar, uint64_t round,
                const struct slot_set *set)
{
    bool clear = sidecar->survey.rounds > round && sidecar->survey.complete;

    slot_set_foreach (set, slot) {
        clear = clear && !sidecar->survey.found[slot].claimed;
    }
    if (!clear) {
        survey_hurry(sidecar);
    }
    return clear;
}

bool
survey_outdoes_source(const struct sidecar *sidecar)
{
    const struct claim *claim = &sidecar->claim;

    if (!claim->surveyed || claim->chosen) {
        return false;
    }
    slot_set_foreach (sidecar_claimed(sidecar), slot) {
        const struct sidecar_holder *holder = &sidecar->survey.found[slot];

        if (holder->epoch != 0 &&
            strcmp(sidecar->peers[holder->peer].id, claim->source) != 0 &&
            (holder->epoch > claim->least ||
             (holder->epoch == claim->least && claim->copy && !holder->copy))) {
            return true;
        }
    }
    return false;
}

/* Returns whether an operator has chosen the source of the slot. */
static bool
is_chosen(const struct sidecar *sidecar, unsigned slot)
{
    uint16_t from = sidecar_forced_from(sidecar, slot);

    return from != PEER_NONE && from == sidecar->slots[slot].source;
}

void
survey_separate(struct sidecar *sidecar, struct slot_set *set)
{
    struct claim *claim = &sidecar->claim;
    struct slot_set found = *set;

    slot_set_foreach (set, slot) {
        if (!sidecar->slots[slot].surveyed) {
            slot_set_remove(&found, slot);
        }
    }
    claim->surveyed = !slot_set_is_empty(&found);
    if (!claim->surveyed) {
        found = *set;
    }
    claim->chosen =
        claim->surveyed && is_chosen(sidecar, slot_set_from(&found, 0));
    claim->old =
        claim->chosen || (claim->surveyed && !sidecar->survey.complete);
    slot_set_foreach (&found, slot) {
        const struct sidecar_holder *holder = &sidecar->survey.found[slot];
        uint64_t known =
            claim->surveyed ? holder->known : sidecar->slots[slot].source_epoch;

        claim->copy |= claim->surveyed && holder->copy;
        claim->old |= claim->surveyed && !survey_finds_newest(sidecar, slot);
        if (claim->least == 0 || holder->epoch < claim->least) {
            claim->least = holder->epoch;
        }
        claim->known = claim->known == 0 ? known : claim->known;
        if (known != claim->known ||
            (claim->surveyed && is_chosen(sidecar, slot) != claim->chosen)) {
            slot_set_remove(&found, slot);
        }
    }
    *set = found;
}

static bool
is_settled(const struct sidecar *sidecar)
{
    return slot_set_equal(&sidecar->owned, &sidecar->served);
}

bool
survey_is_calm(const struct sidecar *sidecar)
{
    return is_settled(sidecar) &&
           slot_set_is_empty(&sidecar->in[PHASE_LEAVING]) &&
           slot_set_is_empty(&sidecar->in[PHASE_AWAITED]) &&
           slot_set_is_empty(&sidecar->in[PHASE_PASSED]) &&
           sidecar->claim.state == CLAIM_NONE && sidecar->waits_ms == 0 &&
           sidecar->survey.full_of == sidecar->topologies;
}

/* Returns whether the round has found anything new. */
static bool
compare(struct sidecar *sidecar)
{
    struct sidecar_survey *survey = &sidecar->survey;
    bool news = survey->other_silent;

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        struct sidecar_holder *fresh = &survey->fresh[slot];
        const struct sidecar_holder *found = &survey->found[slot];

        fresh->known = sidecar->own->known[slot];
        fresh->rises = fresh->known != found->known;
        news = news || fresh->rises || fresh->epoch != found->epoch ||
               fresh->peer != found->peer || fresh->claimed != found->claimed;
    }
    return news;
}

static void
end_round(struct sidecar *sidecar)
{
    struct sidecar_survey *survey = &sidecar->survey;
    struct sidecar_holder *found = survey->found;
    uint64_t pause_ms = pause_of(sidecar);
    bool news = compare(sidecar);

    survey->found = survey->fresh;
    survey->fresh = found;
    survey->found_ms = survey->since_ms;
    survey->complete = survey->silent == 0;
    sidecar->changed |= survey->other_silent;
    survey->other_silent = false;
    survey->rounds++;
    if (!survey->asks_same) {
        survey->full_of = survey->began_of;
    }
    survey->vain = news || is_settled(sidecar) ? 0 : survey->vain + 1;
    if (!is_settled(sidecar) && survey->vain < SURVEY_VAIN_MAX) {
        pause_ms = SURVEY_SOON_MS;
    }
    survey->next_ms = survey->since_ms + pause_ms;
}

/* Asks one daemon. The questions of a part of a round have consecutive numbers.
 */
static void
ask_peer(struct sidecar *sidecar, uint16_t at)
{
    struct sidecar_survey *survey = &sidecar->survey;
    struct sidecar_peer *peer = &sidecar->peers[at];
    uint64_t seen = survey->asks_same && !peer->plain ? peer->seen : 0;
    uint64_t number = sidecar_ask(
        sidecar, (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                       .node = peer->id,
                                       .seen = seen });

    if (survey->asked_count == 0) {
        survey->first_number = number;
    }
    CHECK(number == survey->first_number + survey->asked_count);
    survey->asked[survey->asked_count++] = at;
    survey->open++;
    peer->number = number;
    peer->same = false;
}

static void
make_asked_room(struct sidecar_survey *survey, size_t count)
{
    survey->asked_count = 0;
    if (survey->asked_room < count) {
        mem_free(survey->asked);
        survey->asked = mem_alloc(count * sizeof(*survey->asked));
        survey->asked_room = count;
    }
}

static void
begin_round(struct sidecar *sidecar, uint64_t now_ms)
{
    struct sidecar_survey *survey = &sidecar->survey;
    const struct topology *topology = sidecar->topology;

    memset(survey->fresh, 0, CLUSTER_SLOTS * sizeof(*survey->fresh));
    survey->since_ms = now_ms;
    survey->silent = 0;
    survey->asks_same = survey_is_calm(sidecar);
    survey->began_of = sidecar->topologies;
    survey->same = 0;
    survey->differs = false;
    make_asked_room(survey, topology->count);
    for (size_t i = 0; i < topology->count; i++) {
        if ((int)i != topology->myself) {
            ask_peer(sidecar, sidecar_peer_of(sidecar, topology->nodes[i].id));
        }
    }
    if (survey->open == 0) {
        end_round(sidecar);
    }
}

/* Handles that all daemons have answered. If one has reported a change, the
 * daemons that reported none are asked again, for everything. */
static void
end_part(struct sidecar *sidecar)
{
    struct sidecar_survey *survey = &sidecar->survey;
    size_t asked = survey->asked_count;

    if (survey->same == 0) {
        survey->asks_same = false; /* all answers are complete */
    } else if (!survey->differs && !survey->other_silent) {
        memcpy(survey->fresh, survey->found,
               CLUSTER_SLOTS * sizeof(*survey->fresh));
    } else {
        survey->asks_same = false;
        survey->same = 0;
        survey->asked_count = 0;
        for (size_t i = 0; i < asked;
             i++) { /* ask_peer overwrites only entries already read */
            uint16_t at = survey->asked[i];

            if (sidecar->peers[at].same) {
                ask_peer(sidecar, at);
            }
        }
        return;
    }
    end_round(sidecar);
}

void
survey_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    struct sidecar_survey *survey = &sidecar->survey;

    uint64_t least_ms = survey->vain < SURVEY_VAIN_MAX ? 0 : SURVEY_SOON_MS;

    if (survey->open == 0 && now_ms >= survey->next_ms &&
        now_ms - survey->since_ms >= least_ms) {
        begin_round(sidecar, now_ms);
    }
}

/* Merges an answer into the result. If there are two holders, the one with the
 * higher epoch counts; at equal epochs, the one that is no copy counts. Of two
 * copies, the one with the longer log counts. */
static void
merge(struct sidecar *sidecar, uint16_t peer,
      const struct sidecar_answer *answer)
{
    struct sidecar_survey *survey = &sidecar->survey;
    const struct holdings *holdings = answer->holdings;
    bool follows = holdings->follows[0] != '\0';
    bool ours =
        follows && sidecar->hooks.has(sidecar->hooks.ctx, answer->history,
                                      answer->position);

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        struct sidecar_holder *holder = &survey->fresh[slot];
        uint64_t epoch = holdings->held[slot];
        uint64_t copied = holdings->copied[slot];
        bool copy = copied != 0 || follows;
        uint64_t position = copied != 0 ? copied - 1 : answer->position;

        if (epoch == 0) {
            continue;
        }
        if (epoch > holder->epoch || (epoch == holder->epoch && holder->copy &&
                                      (!copy || position > holder->position))) {
            holder->epoch = epoch;
            holder->peer = peer;
            holder->copy = copy;
            holder->ours = ours;
            holder->position = position;
        }
    }
    slot_set_foreach (&holdings->claimed, slot) {
        survey->fresh[slot].claimed = true;
    }
}

static void
take_answer(struct sidecar *sidecar, uint16_t at,
            const struct sidecar_answer *answer)
{
    struct sidecar_survey *survey = &sidecar->survey;
    struct sidecar_peer *peer = &sidecar->peers[at];
    bool silent;

    if (answer->kind == SIDECAR_REFUSED && survey->asks_same &&
        peer->seen != 0 && !peer->plain) {
        peer->plain = true; /* the peer may not know SAME */
        peer->same = true;  /* ask the peer again */
        survey->same++;
        survey->differs = true;
        return;
    }
    peer->same = answer->kind == SIDECAR_SAME;
    silent = answer->kind != SIDECAR_HOLDS && !peer->same;
    survey->other_silent |= peer->silent != silent;
    peer->silent = silent;
    if (peer->same) {
        survey->same++;
    } else if (silent) {
        peer->seen = 0;
        peer->plain = false; /* next time it may run another version */
        survey->silent++;
    } else {
        survey->differs = true;
        peer->seen = answer->version;
        merge(sidecar, at, answer);
        if (holdings_learn(sidecar->own, answer->holdings)) {
            sidecar->dirty = true;
        }
    }
}

bool
survey_answered(struct sidecar *sidecar, uint64_t number,
                const struct sidecar_answer *answer)
{
    struct sidecar_survey *survey = &sidecar->survey;
    uint64_t index = number - survey->first_number;
    struct sidecar_peer *peer;
    uint16_t at;

    if (number < survey->first_number || index >= survey->asked_count) {
        return false;
    }
    at = survey->asked[index];
    peer = &sidecar->peers[at];
    if (peer->number != number) {
        return false;
    }
    CHECK(survey->open > 0);
    peer->number = 0;
    survey->open--;
    take_answer(sidecar, at, answer);
    if (survey->open == 0) {
        end_part(sidecar);
    }
    return true;
}
