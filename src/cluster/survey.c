/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each daemon asks all others what they hold, about once a second, and sooner
 * while a slot of its own is wanted. The answers say from whom to fetch, which
 * slots nobody has ever held, and which of ours another daemon holds at a
 * higher epoch.
 */
#include "cluster/survey.h"

#include "base/mem.h"
#include "cluster/sidecar_peers.h"

enum {
    ROUND_MS = 1000,
    ROUND_SOON_MS = 100,
    PEER_MS = 20 /* more for each daemon: the rounds of all are a square */
};

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

static bool
is_settled(const struct sidecar *sidecar)
{
    return slot_set_equal(&sidecar->owned, &sidecar->served);
}

static void
end_round(struct sidecar *sidecar)
{
    struct sidecar_survey *survey = &sidecar->survey;
    struct sidecar_holder *found = survey->found;
    uint64_t pause_ms = ROUND_MS + sidecar->topology->count * PEER_MS;

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        struct sidecar_holder *fresh = &survey->fresh[slot];

        fresh->known = sidecar->own->known[slot];
        if (fresh->known != found[slot].known) {
            fresh->rises = true;
        }
    }
    survey->found = survey->fresh;
    survey->fresh = found;
    survey->complete = survey->silent == 0;
    sidecar->changed |= survey->other_silent;
    survey->other_silent = false;
    survey->rounds++;
    survey->next_ms =
        survey->since_ms + (is_settled(sidecar) ? pause_ms : ROUND_SOON_MS);
}

/* Asks the daemon of one node. The numbers of a round follow each other. */
static void
ask_node(struct sidecar *sidecar, const struct topology_node *node)
{
    struct sidecar_survey *survey = &sidecar->survey;
    uint16_t at = sidecar_peer_of(sidecar, node->id);
    uint64_t number = sidecar_ask(
        sidecar, (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                       .node = node->id });

    if (survey->asked_count == 0) {
        survey->first_number = number;
    }
    CHECK(number == survey->first_number + survey->asked_count);
    survey->asked[survey->asked_count++] = at;
    survey->open++;
    sidecar->peers[at].number = number;
}

static void
make_room(struct sidecar_survey *survey, size_t count)
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
    make_room(survey, topology->count);
    for (size_t i = 0; i < topology->count; i++) {
        if ((int)i != topology->myself) {
            ask_node(sidecar, &topology->nodes[i]);
        }
    }
    if (survey->open == 0) {
        end_round(sidecar);
    }
}

void
survey_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    struct sidecar_survey *survey = &sidecar->survey;

    if (survey->open == 0 && now_ms >= survey->next_ms) {
        begin_round(sidecar, now_ms);
    }
}

/* Of two holders the one with the higher epoch counts, and of equal epochs the
 * one that is no copy. Of two copies, which are of one log, the longer one. */
static void
merge(struct sidecar_survey *survey, uint16_t peer,
      const struct sidecar_answer *answer)
{
    const struct holdings *holdings = answer->holdings;
    bool copy = holdings->follows[0] != '\0';

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        struct sidecar_holder *holder = &survey->fresh[slot];
        uint64_t epoch = holdings->held[slot];

        if (epoch == 0) {
            continue;
        }
        if (epoch > holder->epoch ||
            (epoch == holder->epoch && holder->copy &&
             (!copy || answer->position > holder->position))) {
            holder->epoch = epoch;
            holder->peer = peer;
            holder->copy = copy;
            holder->position = answer->position;
        }
    }
    slot_set_foreach (&holdings->claimed, slot) {
        survey->fresh[slot].claimed = true;
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
    survey->other_silent |= peer->silent != (answer->kind != SIDECAR_HOLDS);
    peer->silent = answer->kind != SIDECAR_HOLDS;
    survey->open--;
    if (answer->kind == SIDECAR_HOLDS) {
        merge(survey, at, answer);
        if (holdings_learn(sidecar->own, answer->holdings)) {
            sidecar->dirty = true;
        }
    } else {
        survey->silent++;
    }
    if (survey->open == 0) {
        end_round(sidecar);
    }
    return true;
}
