/* SPDX-License-Identifier: BSD-3-Clause */
#include "../test.h"
#include "sidecar_rig.h"
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 5 };

#define MS UINT64_C(1000000)

int
sim_index(const struct sim_daemon *d)
{
    return (int)(d - sim.daemon);
}

static uint64_t
now_ns(void)
{
    return sim.now_ms * MS;
}

bool
sim_has_lease(const struct sim_daemon *d)
{
    return d->lease.until_ns > now_ns();
}

static bool
may_serve(const struct sim_daemon *d)
{
    return d->up && !d->frozen && d->leader == SIM_NOBODY &&
           d->topology != NULL && d->topology->ok && sim_has_lease(d);
}

bool
sim_serves(int index, unsigned slot)
{
    const struct sim_daemon *d = &sim.daemon[index];

    return may_serve(d) && (d->state[slot] == SLOT_SERVED ||
                            (d->state[slot] == SLOT_LEAVING &&
                             sim.now_ms < d->leaving_until_ms));
}

bool
sim_gives(int index, unsigned slot)
{
    const struct sim_daemon *d = &sim.daemon[index];

    return may_serve(d) &&
           (d->state[slot] == SLOT_EXPORTED || d->state[slot] == SLOT_LEAVING);
}

/* ---- holdings ------------------------------------------------------------ */

static struct sim_holdings
pack(const struct holdings *holdings)
{
    struct sim_holdings packed;

    memset(&packed, 0, sizeof(packed));
    memcpy(packed.node, holdings->node, sizeof(packed.node));
    memcpy(packed.follows, holdings->follows, sizeof(packed.follows));
    memcpy(packed.history, holdings->history, sizeof(packed.history));
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        packed.held[slot] = holdings->held[sim_slot(slot)];
        packed.known[slot] = holdings->known[sim_slot(slot)];
        packed.copied[slot] = holdings->copied[sim_slot(slot)];
    }
    packed.claimed = sim_pack(&holdings->claimed);
    memcpy(packed.data, holdings->data, sizeof(packed.data));
    packed.from = holdings->from;
    return packed;
}

/* Valid until the next call. */
static const struct holdings *
unpack(const struct sim_holdings *packed)
{
    static struct holdings holdings;

    memcpy(holdings.node, packed->node, sizeof(holdings.node));
    memcpy(holdings.follows, packed->follows, sizeof(holdings.follows));
    memcpy(holdings.history, packed->history, sizeof(holdings.history));
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        holdings.held[sim_slot(slot)] = packed->held[slot];
        holdings.known[sim_slot(slot)] = packed->known[slot];
        holdings.copied[sim_slot(slot)] = packed->copied[slot];
    }
    sim_unpack(packed->claimed, &holdings.claimed);
    memcpy(holdings.data, packed->data, sizeof(holdings.data));
    holdings.from = packed->from;
    return &holdings;
}

/* ---- hooks --------------------------------------------------------------- */

static bool
is_served(uint8_t state)
{
    return state == SLOT_SERVED || state == SLOT_EXPORTED ||
           state == SLOT_LEAVING;
}

/* A slot is taken over when it is held at a higher epoch than ever before,
 * though no client may come for it. */
static void
note_taken(struct sim_daemon *d, unsigned slot)
{
    uint64_t held = sidecar_holdings(d->sidecar)->held[sim_slot(slot)];

    if (d->state[slot] == SLOT_SERVED && d->leader == SIM_NOBODY &&
        held > sim.taken[slot]) {
        sim.taken[slot] = held;
        sim_check_served(sim_index(d), slot);
    }
}

static void
publish(void *ctx, const struct sidecar_map *map)
{
    struct sim_daemon *d = ctx;

    d->leaving_until_ms = map->leaving_until_ms;

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        uint8_t state = map->state[sim_slot(slot)];
        uint8_t before = d->state[slot];

        if (state != before) {
            sim_tell("daemon %d: slot %u state %u (was %u) held %" PRIu64,
                     sim_index(d), slot, state, before,
                     sidecar_holdings(d->sidecar)->held[sim_slot(slot)]);
        }
        d->state[slot] = state;
        d->source[slot] = map->source[sim_slot(slot)];
        d->checked[slot] = d->checked[slot] && is_served(state);
        note_taken(d, slot);
    }
}

/* Its log continues under another name. */
static void
renew(struct sim_daemon *d)
{
    assert_true(sim.histories + 1 < SIM_HISTORIES_MAX);
    sim.before[++sim.histories] = d->history;
    sim.began[sim.histories] = d->length;
    d->history = sim.histories;
}

static void
follow(void *ctx, int node)
{
    struct sim_daemon *d = ctx;
    const char *copies = sidecar_holdings(d->sidecar)->follows;
    bool its_own = strcmp(copies, d->topology->nodes[node].id) == 0;

    if (d->leader != sim_node_of(d->topology->nodes[node].id)) {
        d->told = 0;
    }
    d->leader = sim_node_of(d->topology->nodes[node].id);
    d->sync_ms = 0;
    sim_tell("daemon %d follows %d", sim_index(d), d->leader);
    for (unsigned slot = 0; !its_own && slot < SIM_SLOTS; slot++) {
        sim_check_last(d, slot, true);
    }
}

static void
lead(void *ctx)
{
    struct sim_daemon *d = ctx;

    sim_tell("daemon %d leads", sim_index(d));
    if (d->leader != SIM_NOBODY) {
        d->leader = SIM_NOBODY;
        d->told = 0;
        renew(d);
    }
}

static void
name_history(char ret_name[HISTORY_ID_CHARS + 1], uint64_t history)
{
    (void)snprintf(ret_name, HISTORY_ID_CHARS + 1, "%040" PRIu64, history);
}

static void
where(void *ctx, char ret_history[HISTORY_ID_CHARS + 1], uint64_t *ret_position)
{
    const struct sim_daemon *d = ctx;

    name_history(ret_history, d->history);
    *ret_position = d->length;
}

static bool
has(void *ctx, const char history[HISTORY_ID_CHARS + 1], uint64_t position)
{
    return sim_disk_has(ctx, strtoull(history, NULL, 10), position);
}

static void
disk(void *ctx, struct sidecar_disk *ret_disk)
{
    const struct sim_daemon *d = ctx;

    *ret_disk = (struct sidecar_disk){ .journals = d->disk.journals,
                                       .stored = sim_disk_stored(d) };
    name_history(ret_disk->history, d->history);
    if (!d->disk.journals && d->disk.place.history != 0) {
        name_history(ret_disk->snapshot, d->disk.place.history);
    }
}

static void
store(void *ctx)
{
    sim_disk_store(ctx);
}

static struct sim_event *
post(const struct sim_event *event)
{
    assert_true(sim.events < SIM_EVENTS_MAX);
    sim.event[sim.events] = *event;
    return &sim.event[sim.events++];
}

static void
ask(void *ctx, const struct sidecar_ask *ask)
{
    const struct sim_daemon *d = ctx;
    struct sim_event event = { .at_ms = sim.now_ms + 1 + sim_below(10),
                               .ends_ms = sim.now_ms + SIM_SILENT_MS,
                               .from = sim_index(d),
                               .to = sim_node_of(ask->node),
                               .boot = d->boot,
                               .number = ask->number,
                               .question = ask->question,
                               .epoch = ask->epoch,
                               .surveyed = ask->surveyed,
                               .known = ask->known,
                               .chosen = ask->chosen,
                               .seen = ask->seen };

    if (ask->set != NULL) {
        event.slots = sim_pack(ask->set);
    }
    if (ask->question == SIDECAR_ASK_HAND_OFF && ask->known != 0) {
        sim_fail("daemon %d asks %d for its slots of another claim", event.from,
                 event.to);
    }
    if (topology_find(d->topology, slice_of(ask->node)) < 0) {
        event.is_answer = true; /* it has no address */
        event.answer.reason = "its node is gone";
    }
    (void)post(&event);
}

static bool
has_keys(void *ctx, const struct slot_set *set)
{
    const struct sim_daemon *d = ctx;
    uint8_t slots = sim_pack(set);

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if ((slots >> slot & 1) != 0 && d->items[slot] != 0) {
            return true;
        }
    }
    return false;
}

static void
begin_pull(void *ctx, const char *node, const struct slot_set *set)
{
    struct sim_daemon *d = ctx;
    uint64_t slow = sim_below(6) == 0 ? 5000 : 400;

    sim_tell("daemon %d pulls from %d", sim_index(d), sim_node_of(node));
    d->pull = (struct sim_pull){ .runs = true,
                                 .source = sim_node_of(node),
                                 .slots = sim_pack(set),
                                 .ready_ms = sim.now_ms + 1 + sim_below(slow) };
}

static void
pull_until(void *ctx, const char *history, uint64_t position)
{
    struct sim_daemon *d = ctx;

    (void)history;
    d->pull.until = true;
    d->pull.position = position;
}

static void
pull_cancel(void *ctx)
{
    ((struct sim_daemon *)ctx)->pull.runs = false;
}

static uint64_t
keep(void *ctx, const struct holdings *holdings)
{
    struct sim_daemon *d = ctx;

    d->keeping = pack(holdings);
    d->ticket++;
    d->kept_ms = sim.now_ms + 1 + sim_below(20);
    return d->ticket;
}

static bool
is_kept(void *ctx, uint64_t ticket)
{
    return ((struct sim_daemon *)ctx)->kept_ticket >= ticket;
}

static void
tell(void *ctx, const struct holdings *holdings)
{
    struct sim_daemon *d = ctx;

    d->tells = pack(holdings);
    d->tells_at = d->length;
    d->tellings++;
}

static bool
is_linked(void *ctx)
{
    return ((struct sim_daemon *)ctx)->linked;
}

static bool
is_told(void *ctx)
{
    return ((struct sim_daemon *)ctx)->told != 0;
}

void
sim_hear(struct sim_daemon *d, const struct sim_daemon *leader)
{
    if (d->told != leader->tellings &&
        (sim.plain >> sim_index(leader) & 1) == 0) {
        d->told = leader->tellings;
        sim.tellings++;
        sidecar_told(d->sidecar, unpack(&leader->tells), sim.now_ms);
        sim_phases_look(d);
    }
}

static void
drop(void *ctx, const struct slot_set *set)
{
    struct sim_daemon *d = ctx;
    uint8_t slots = sim_pack(set);

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if ((slots >> slot & 1) != 0) {
            sim_tell("daemon %d drops slot %u", sim_index(d), slot);
            sim_check_last(d, slot, false);
            sim_put(d, slot, 0);
        }
    }
}

static void
poll_soon(void *ctx)
{
    ((struct sim_daemon *)ctx)->poll_ms = sim.now_ms + 1;
}

/* ---- life ---------------------------------------------------------------- */

void
sim_start(int index)
{
    struct sim_daemon *d = &sim.daemon[index];
    const struct sidecar_hooks hooks = RIG_HOOKS(d);
    const struct sidecar_options options = {
        .silence_ms =
            sim.safe ? SIM_NODE_TIMEOUT_MS + 2 * SIM_LEASE_MS : SIM_LEASE_MS,
        .leaving_ms = SIM_LEASE_MS / 2,
        .forget_ms = 1500, /* so that worlds pass these times */
        .fence_ms = 2500,
        .empty_ms = 1000,
        .giving_ms = 1000,
        .await_ms = 1000
    };

    sim_tell("daemon %d starts, journal %d, at %zu of %" PRIu64, index,
             d->disk.journals, d->length, d->history);
    d->sidecar = sidecar_new(&hooks, unpack(&d->kept));
    sidecar_set_options(d->sidecar, &options);
    d->up = true;
    d->boot++;
    d->version = 0;
    d->leased = false;
    d->lease = (struct lease){ .poll_ns = SIM_POLL_MS * MS,
                               .length_ns = SIM_LEASE_MS * MS };
    d->poll_ms = sim.now_ms + sim_below(SIM_POLL_MS);
    d->ticket = d->kept_ticket = 0;
    d->pull.runs = false;
    d->told = 0;
    d->tells_at = SIZE_MAX;
    memset(d->state, SLOT_AWAY, sizeof(d->state));
    memset(d->checked, 0, sizeof(d->checked));
    if (d->leader == SIM_NOBODY) {
        renew(d);
    }
    sim_disturb(index);
}

void
sim_stop(int index)
{
    struct sim_daemon *d = &sim.daemon[index];

    sim_phases_count(d);
    sidecar_free(d->sidecar);
    topology_free(d->topology);
    d->topology = NULL;
    d->sidecar = NULL;
    d->up = d->frozen = false;
    sim_disk_kill(d);
    memset(d->state, SLOT_AWAY, sizeof(d->state));
    sim_disturb(index);
    sim_tell("daemon %d stops", index);
}

/* ---- questions and answers ----------------------------------------------- */

static void
answer_fence(struct sim_daemon *d, struct sim_event *event)
{
    char id[TOPOLOGY_ID_LEN + 1];
    struct slot_set set;
    struct slot_set granted = { { 0 } };
    const struct sidecar_ask ask = { .question = event->question,
                                     .node = id,
                                     .set = &set,
                                     .epoch = event->epoch,
                                     .surveyed = event->surveyed,
                                     .known = event->known,
                                     .chosen = event->chosen };
    bool empty = true;

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        empty =
            empty && ((event->slots >> slot & 1) == 0 || d->items[slot] == 0);
    }
    sim_unpack(event->slots, &set);
    sim_id_of(event->from, id);
    event->answer = sidecar_fence(d->sidecar, &ask, sim_has_lease(d), empty,
                                  &granted, sim.now_ms);
    sim_phases_look(d);
    event->granted = sim_pack(&granted);
}

/* Some daemons do not know what it means that the asker has seen a version. */
static void
answer_holdings(struct sim_daemon *d, struct sim_event *event)
{
    char bytes[sizeof(struct sim_holdings)];
    uint64_t version = 1;

    event->holdings = pack(sidecar_holdings(d->sidecar));
    memcpy(bytes, &event->holdings, sizeof(event->holdings));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        version =
            (version ^ (unsigned char)bytes[i]) * UINT64_C(0x9E3779B97F4A7C15);
    }
    event->answer.version = version | 1;
    event->answer.kind = SIDECAR_HOLDS;
    if (event->seen != 0 && (sim.plain >> sim_index(d) & 1) != 0) {
        event->answer.kind = SIDECAR_REFUSED;
        event->answer.reason = "wrong number of arguments";
    } else if (event->seen == event->answer.version) {
        event->answer.kind = SIDECAR_SAME;
        sim.same++;
    }
}

static uint64_t
goes_on_ms(const struct sim_daemon *d)
{
    return 1 + (d->up_at_ms > sim.now_ms ? d->up_at_ms : sim.now_ms);
}

/* The question has arrived. A frozen daemon answers when it goes on; by then
 * nobody may wait for that any more. */
static void
arrive(struct sim_event *event)
{
    struct sim_daemon *d = &sim.daemon[event->to];
    struct sim_event late = *event;

    event->is_answer = true;
    if (!d->up || sim_is_cut(event->from, event->to) || d->frozen) {
        event->answer.kind = SIDECAR_SILENT;
        event->answer.reason = "it is silent";
        event->at_ms = event->ends_ms;
    } else if (event->question == SIDECAR_ASK_HOLDINGS) {
        answer_holdings(d, event);
        event->at_ms = sim.now_ms + 1 + sim_below(10);
    } else {
        answer_fence(d, event);
        event->at_ms = sim.now_ms + 1 + sim_below(10);
        if (event->answer.kind == SIDECAR_FENCED &&
            event->at_ms <= d->kept_ms) {
            event->at_ms = d->kept_ms + 1;
        }
        event->to_boot = d->boot;
    }
    where(d, event->answer.history, &event->answer.position);
    if (d->up && d->frozen && !sim_is_cut(event->from, event->to)) {
        late.at_ms = goes_on_ms(d);
        late.unheard = true;
        (void)post(&late);
    }
}

static bool
is_written(const struct sim_event *event)
{
    const struct sim_daemon *d = &sim.daemon[event->to];

    return d->boot == event->to_boot && d->kept_ticket >= event->answer.ticket;
}

/* The answer has arrived, or does not come in time. */
static void
deliver(struct sim_event *event)
{
    struct sim_daemon *d = &sim.daemon[event->from];
    struct slot_set granted;

    if (event->answer.kind == SIDECAR_FENCED && !is_written(event)) {
        event->answer.kind = SIDECAR_SILENT;
        event->answer.reason = "it was killed before its answer left";
        event->at_ms = event->ends_ms;
        return;
    }
    if (event->answer.kind != SIDECAR_SILENT &&
        sim_is_cut(event->to, event->from)) {
        event->answer.kind = SIDECAR_SILENT;
        event->answer.reason = "its answer is lost";
        event->at_ms = event->ends_ms;
        return;
    }
    if (d->frozen) {
        event->at_ms = goes_on_ms(d);
        return;
    }
    event->at_ms = UINT64_MAX;
    if (!d->up || d->boot != event->boot || event->unheard) {
        return;
    }
    if (event->question != SIDECAR_ASK_HOLDINGS) {
        sim_tell("daemon %d asked %d %d for %#x: answer %d %#x %s", event->from,
                 event->to, event->question, event->slots, event->answer.kind,
                 event->granted,
                 event->answer.reason != NULL ? event->answer.reason : "");
    }
    sim_unpack(event->granted, &granted);
    event->answer.granted = &granted;
    event->answer.holdings =
        event->answer.kind == SIDECAR_HOLDS ? unpack(&event->holdings) : NULL;
    sidecar_answered(d->sidecar, event->number, &event->answer, sim.now_ms);
    sim_phases_look(d);
}

/* What happens may post more events, behind the others. */
void
sim_run_events(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < sim.events; i++) {
        struct sim_event event;

        if (sim.event[i].at_ms <= sim.now_ms) {
            event = sim.event[i];
            (event.is_answer ? deliver : arrive)(&event);
            sim.event[i] = event;
        }
        if (sim.event[i].at_ms != UINT64_MAX) {
            if (kept != i) {
                sim.event[kept] = sim.event[i];
            }
            kept++;
        }
    }
    sim.events = kept;
}

/* ---- one millisecond ----------------------------------------------------- */

static void
note_lapse(struct sim_daemon *d, bool gone)
{
    if (d->leased && (gone || !sim_has_lease(d))) {
        d->leased = false;
        memset(d->checked, 0, sizeof(d->checked));
        sidecar_lapsed(d->sidecar, sim.now_ms);
        sim_phases_look(d);
    }
}

static void
run_poll(int index)
{
    struct sim_daemon *d = &sim.daemon[index];
    const struct sim_node *node = &sim.node[index];
    struct topology *fresh;
    struct topology *before = NULL;

    d->poll_ms = sim.now_ms + SIM_POLL_MS;
    if (!node->up) {
        if (node->refuses) {
            note_lapse(d, true);
            lease_ended(&d->lease);
        }
        return;
    }
    note_lapse(d, false);
    fresh = sim_show(index, &d->version);
    if (fresh != NULL) {
        before = d->topology;
        d->topology = fresh;
    }
    sidecar_polled(d->sidecar, d->topology, d->leased, sim.now_ms);
    sim_phases_look(d);
    topology_free(before);
    lease_answered(&d->lease, now_ns(), now_ns());
    d->leased = d->leased || d->lease.until_ns > 0;
}

void
sim_run_daemon(int index)
{
    struct sim_daemon *d = &sim.daemon[index];

    if ((!d->up || d->frozen) && sim.now_ms < d->up_at_ms) {
        return;
    }
    if (!d->up) {
        sim_start(index);
        return;
    }
    if (d->frozen) {
        sim_tell("daemon %d goes on", index);
        d->frozen = false;
        sim_disturb(index);
    }
    if (d->ticket > d->kept_ticket && sim.now_ms >= d->kept_ms) {
        for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
            if (d->kept.held[slot] > d->keeping.held[slot]) {
                d->fell_from[slot] = d->kept.held[slot];
                d->fell_ms[slot] = sim.now_ms;
            }
        }
        d->kept = d->keeping;
        d->kept_ticket = d->ticket;
        sim_disk_note_saved(d);
    }
    sim_disk_run(d);
    sim_replicate(index);
    sim_run_pull(d);
    if (sim.now_ms >= d->poll_ms) {
        run_poll(index);
    }
    if (sim.now_ms >= d->tick_ms) {
        d->tick_ms = sim.now_ms + TICK_MS;
        sidecar_tick(d->sidecar, sim.now_ms);
        sim_phases_look(d);
    }
}
