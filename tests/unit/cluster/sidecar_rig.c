/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar_rig.h"

#include "../test.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/sidecar_times.h"
#include "conf/conf.h"

#include <stdio.h>
#include <string.h>

static void
publish(void *ctx, const struct sidecar_map *map)
{
    struct rig *rig = ctx;

    memcpy(rig->state, map->state, sizeof(rig->state));
    memcpy(rig->source, map->source, sizeof(rig->source));
    rig->leaving_until_ms = map->leaving_until_ms;
}

static void
follow(void *ctx, int node)
{
    ((struct rig *)ctx)->follows = node;
}

static void
lead(void *ctx)
{
    ((struct rig *)ctx)->follows = -1;
}

static void
where(void *ctx, char ret_history[HISTORY_ID_CHARS + 1], uint64_t *ret_position)
{
    struct rig *rig = ctx;

    memcpy(ret_history, rig->history, sizeof(rig->history));
    *ret_position = rig->position;
}

static bool
has(void *ctx, const char history[HISTORY_ID_CHARS + 1], uint64_t position)
{
    const struct rig *rig = ctx;

    return (rig->continues || strcmp(rig->history, history) == 0) &&
           position <= rig->position;
}

static void
disk(void *ctx, struct sidecar_disk *ret_disk)
{
    const struct rig *rig = ctx;

    *ret_disk =
        (struct sidecar_disk){ .journals = !rig->snapshots,
                               .stored = rig->disk_lags ? rig->stored
                                                        : rig->position + 1 };
    memcpy(ret_disk->history, rig->history, sizeof(rig->history));
    memcpy(ret_disk->snapshot, rig->snapshot, sizeof(rig->snapshot));
}

static void
store(void *ctx)
{
    ((struct rig *)ctx)->stores++;
}

static void
ask(void *ctx, const struct sidecar_ask *question)
{
    struct rig *rig = ctx;
    struct rig_ask *copy = &rig->ask[rig->asks++];

    assert_true(rig->asks < RIG_ASKS_MAX);
    *copy = (struct rig_ask){ .number = question->number,
                              .question = question->question,
                              .epoch = question->epoch,
                              .known = question->known,
                              .seen = question->seen,
                              .surveyed = question->surveyed,
                              .chosen = question->chosen };
    (void)snprintf(copy->node, sizeof(copy->node), "%s", question->node);
    if (question->set != NULL) {
        copy->set = *question->set;
        slot_set_foreach (question->set, slot) {
            /* Its answer may be that the other one has stopped the slots. */
            assert_true(rig->state[slot] != SLOT_PULLED ||
                        question->question == SIDECAR_ASK_COME);
        }
    }
}

static bool
has_keys(void *ctx, const struct slot_set *set)
{
    return slot_set_intersects(&((struct rig *)ctx)->leftover, set);
}

static void
begin_pull(void *ctx, const char *node, const struct slot_set *set)
{
    struct rig *rig = ctx;

    rig->pulls = true;
    rig->pulled = *set;
    rig->until = 0;
    (void)snprintf(rig->pulled_from, sizeof(rig->pulled_from), "%s", node);
}

static void
pull_until(void *ctx, const char *history, uint64_t position)
{
    (void)history;
    ((struct rig *)ctx)->until = position;
}

static void
pull_cancel(void *ctx)
{
    ((struct rig *)ctx)->pulls = false;
}

static uint64_t
keep(void *ctx, const struct holdings *holdings)
{
    struct rig *rig = ctx;

    rig->kept = *holdings;
    return ++rig->tickets;
}

static bool
is_kept(void *ctx, uint64_t ticket)
{
    (void)ticket;
    return !((struct rig *)ctx)->disk_fails;
}

static void
tell(void *ctx, const struct holdings *holdings)
{
    ((struct rig *)ctx)->told = *holdings;
}

static bool
is_linked(void *ctx)
{
    return !((struct rig *)ctx)->unlinked;
}

static bool
is_told(void *ctx)
{
    return ((struct rig *)ctx)->is_told;
}

static void
drop(void *ctx, const struct slot_set *set)
{
    slot_set_unite(&((struct rig *)ctx)->dropped, set);
}

static void
poll_soon(void *ctx)
{
    (void)ctx;
}

struct holdings *
rig_file(const char *node, uint64_t epoch)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct slot_set set = { { 0 } };

    (void)snprintf(holdings->node, sizeof(holdings->node), "%s", node);
    slot_set_add_range(&set, 0, 5460);
    holdings_set(holdings, &set, epoch + 1);
    return holdings;
}

void
rig_init(struct rig *rig, const struct holdings *start)
{
    const struct sidecar_hooks hooks = RIG_HOOKS(rig);
    const struct sidecar_options options = { .silence_ms = 500,
                                             .leaving_ms = 250,
                                             .forget_ms = SIDECAR_FORGET_MS,
                                             .fence_ms = SIDECAR_FENCE_MS,
                                             .empty_ms = SIDECAR_EMPTY_MS,
                                             .giving_ms = SIDECAR_GIVING_MS,
                                             .await_ms = SIDECAR_AWAIT_MS };
    struct holdings *none = mem_zalloc(sizeof(*none));

    log_set_level((enum log_level)CONF_LOG_NOTHING);
    memset(rig, 0, sizeof(*rig));
    rig->follows = -2;
    rig->now_ms = 1000;
    (void)snprintf(rig->history, sizeof(rig->history), "%040d", 1);
    rig->sidecar = sidecar_new(&hooks, start != NULL ? start : none);
    sidecar_set_options(rig->sidecar, &options);
    mem_free(none);
}

void
rig_fini(struct rig *rig)
{
    sidecar_free(rig->sidecar);
    topology_free(rig->topology);
}

void
rig_poll(struct rig *rig, const char *nodes)
{
    struct topology *before = rig->topology;
    const char *myself = strstr(nodes, "myself");
    char id[TOPOLOGY_ID_LEN + 1];

    while (myself > nodes && myself[-1] != '\n') {
        myself--;
    }
    (void)snprintf(id, sizeof(id), "%s", myself);
    rig->topology = rig_topology(nodes, RIG_INFO, id);
    sidecar_polled(rig->sidecar, rig->topology, !rig->unleased, rig->now_ms);
    topology_free(before);
}

void
rig_tick(struct rig *rig, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 50) {
        rig->now_ms += 50;
        sidecar_tick(rig->sidecar, rig->now_ms);
    }
}

static void
answer_at(struct rig *rig, size_t at, const struct sidecar_answer *answer)
{
    uint64_t number = rig->ask[at].number;

    rig->asks--;
    memmove(&rig->ask[at], &rig->ask[at + 1],
            (rig->asks - at) * sizeof(rig->ask[0]));
    sidecar_answered(rig->sidecar, number, answer, rig->now_ms);
}

bool
rig_force(struct rig *rig, unsigned first, unsigned last, const char *from,
          struct candidate *candidates, bool leased, char *ret_reason,
          size_t size)
{
    struct slot_set set = { { 0 } };

    slot_set_add_range(&set, first, last);
    ret_reason[0] = '\0';
    return sidecar_may_force(rig->sidecar, &set, leased, ret_reason, size) &&
           sidecar_force_serve(rig->sidecar, &set, from, candidates, ret_reason,
                               size);
}

void
rig_answer(struct rig *rig, const char *node, enum sidecar_question question,
           const struct sidecar_answer *answer)
{
    size_t at = 0;

    while (at < rig->asks && (strcmp(rig->ask[at].node, node) != 0 ||
                              rig->ask[at].question != question)) {
        at++;
    }
    assert_true(at < rig->asks);
    answer_at(rig, at, answer);
}

void
rig_answer_survey(struct rig *rig, const char *node,
                  const struct holdings *holdings, const char *silent)
{
    struct holdings *none = mem_zalloc(sizeof(*none));
    size_t at = 0;

    while (at < rig->asks) {
        bool mute = silent != NULL && strcmp(rig->ask[at].node, silent) == 0;
        bool holds = node != NULL && strcmp(rig->ask[at].node, node) == 0;
        const struct sidecar_answer answer = {
            .kind = mute ? SIDECAR_SILENT : SIDECAR_HOLDS,
            .holdings = holds && holdings != NULL ? holdings : none,
            .version = holds && holdings != NULL ? 2 : 1,
            .reason = "it is silent"
        };

        if (rig->ask[at].question == SIDECAR_ASK_HOLDINGS) {
            answer_at(rig, at, &answer);
            at = 0;
        } else {
            at++;
        }
    }
    mem_free(none);
}
