/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each daemon asks all others what they hold, about once a second, and sooner
 * while a slot of its own is wanted. The answers say from whom to fetch, which
 * slots nobody has ever held, and which of ours another daemon holds at a
 * higher epoch.
 */
#include "cluster/survey.h"

#include "base/mem.h"

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
    survey->rounds++;
    survey->next_ms =
        survey->since_ms + (is_settled(sidecar) ? pause_ms : ROUND_SOON_MS);
}

static void
begin_round(struct sidecar *sidecar, uint64_t now_ms)
{
    struct sidecar_survey *survey = &sidecar->survey;
    const struct topology *topology = sidecar->topology;

    memset(survey->fresh, 0, CLUSTER_SLOTS * sizeof(*survey->fresh));
    survey->since_ms = now_ms;
    survey->silent = 0;
    for (size_t i = 0; i < topology->count; i++) {
        uint16_t at;

        if ((int)i == topology->myself) {
            continue;
        }
        at = sidecar_peer_of(sidecar, topology->nodes[i].id);
        survey->open++;
        sidecar->peers[at].number = sidecar_ask(
            sidecar, (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                           .node = topology->nodes[i].id });
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
    size_t at = 0;

    while (at < sidecar->peer_count && sidecar->peers[at].number != number) {
        at++;
    }
    if (number == 0 || at == sidecar->peer_count) {
        return false;
    }
    CHECK(survey->open > 0);
    sidecar->peers[at].number = 0;
    sidecar->peers[at].silent = answer->kind != SIDECAR_HOLDS;
    survey->open--;
    if (answer->kind == SIDECAR_HOLDS) {
        merge(survey, (uint16_t)at, answer);
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
