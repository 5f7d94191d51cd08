/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Worlds of six nodes with a daemon beside each, from a seed: three primaries
 * and three replicas. The nodes' own cluster is simple and always right; each
 * node learns of a change late. Slots move, nodes fail over, planned or not,
 * daemons crash and come back, neighbours fall silent, links are cut. Clients
 * write and read all the time. No daemon may miss an item that was
 * acknowledged, unless the only daemons that had it could not be reached. When
 * all is healed, every slot must be served again.
 *
 * BLOOMERY_ROUNDS=100 runs 100 times as many worlds.
 */
#include "cluster/sidecar.h"

#include "../test.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/view.h"
#include "cluster_rig.h"
#include "conf/conf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORLDS = 150,
    NODES = 6,
    SLOTS = 8,
    FAULTS_MS = 15000,
    HEALED_MS = 60000,
    POLL_MS = 100,
    LEASE_MS = 500,
    CALM_MS = 2000,  /* a daemon that can be reached for so long is found */
    SILENT_MS = 400, /* an answer that does not come */
    EVENTS_MAX = 4096,
    VERSIONS_MAX = 512,
    LOG_MAX = 100000,
    NOBODY = -1
};

/* ---- the cluster of the nodes -------------------------------------------- */

struct member {
    int primary; /* NOBODY: it is one */
    uint64_t epoch;
};

struct version {
    uint64_t at_ms;
    struct member member[NODES];
    int owner[SLOTS];
    uint64_t lag_ms[NODES]; /* until the node knows */
};

/* A change of the data of a slot: what it has from then on. */
struct change {
    uint8_t slot;
    uint64_t items;
    uint64_t hash; /* of all changes up to this one */
};

struct pull {
    bool runs, near, until;
    int source;
    struct slot_set set;
    uint64_t ready_ms, broken_ms;
    uint64_t position;
};

struct daemon {
    bool up;
    uint64_t up_at_ms; /* when it comes back */
    uint64_t since_ms; /* when it came back */
    struct sidecar *sidecar;
    struct topology *topology;
    size_t version; /* that the topology shows, + 1 */
    uint64_t poll_ms, lease_ms, tick_ms;
    bool lapsed;
    uint8_t state[SLOTS];
    uint16_t source[SLOTS];
    int leader; /* NOBODY: it leads */
    uint64_t history;
    struct change *log;
    size_t length;
    uint64_t items[SLOTS];
    uint64_t sync_ms; /* when a full synchronization ends; 0: none runs */
    struct pull pull;
    struct holdings kept, keeping;
    uint64_t ticket, kept_ticket, kept_ms;
    unsigned boot;
};

struct event {
    uint64_t at_ms;
    int from, to;
    unsigned boot; /* of `from` */
    bool is_answer;
    uint64_t number;
    enum sidecar_question question;
    uint64_t epoch;
    bool surveyed;
    uint64_t known;
    struct slot_set *set, *granted;
    struct sidecar_answer answer;
    struct holdings *holdings;
};

static struct world {
    uint64_t now_ms, seed;
    struct version version[VERSIONS_MAX];
    size_t versions;
    bool node_up[NODES];
    uint64_t node_back_ms[NODES], node_down_ms[NODES];
    bool cut[NODES][NODES];
    struct daemon daemon[NODES];
    struct event event[EVENTS_MAX];
    size_t events;
    uint64_t truth[SLOTS], lost[SLOTS];
    uint64_t histories;
    uint64_t writes, refused, moves, failovers;
    uint64_t healed_ms;
    bool told;
} w;

/* Prints what happens, in the one world that BLOOMERY_SIM names. */
__attribute__((format(printf, 1, 2))) static void
tell(const char *format, ...)
{
    va_list args;

    if (!w.told) {
        return;
    }
    (void)printf("%6" PRIu64 " ", w.now_ms);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
}

static uint64_t
below(uint64_t n)
{
    w.seed ^= w.seed << 13;
    w.seed ^= w.seed >> 7;
    w.seed ^= w.seed << 17;
    return (w.seed * UINT64_C(0x2545F4914F6CDD1D) >> 33) % n;
}

static unsigned
slot_number(unsigned i)
{
    return i * (CLUSTER_SLOTS / SLOTS);
}

static void
id_of(int node, char ret_id[TOPOLOGY_ID_LEN + 1])
{
    (void)snprintf(ret_id, TOPOLOGY_ID_LEN + 1, "%040d", node + 1);
}

static int
node_of(const char *id)
{
    return atoi(id + TOPOLOGY_ID_LEN - 2) - 1;
}

static struct version *
newest(void)
{
    return &w.version[w.versions - 1];
}

/* Begins a version that differs from the last one by what the caller does. */
static struct version *
change_cluster(void)
{
    struct version *next = &w.version[w.versions];

    assert_true(w.versions < VERSIONS_MAX);
    *next = w.version[w.versions > 0 ? w.versions - 1 : 0];
    w.versions++;
    next->at_ms = w.now_ms;
    for (int i = 0; i < NODES; i++) {
        next->lag_ms[i] = below(8) == 0 ? below(500) : below(40);
    }
    return next;
}

static uint64_t
next_epoch(void)
{
    uint64_t most = 0;

    for (int i = 0; i < NODES; i++) {
        uint64_t epoch = newest()->member[i].epoch;

        most = epoch > most ? epoch : most;
    }
    return most + 1;
}

static size_t
version_seen(int node)
{
    size_t at = w.versions;

    while (at > 1 && w.version[at - 1].at_ms + w.version[at - 1].lag_ms[node] >
                         w.now_ms) {
        at--;
    }
    return at;
}

static struct topology *
show(const struct version *version, int myself)
{
    char text[4096];
    char id[TOPOLOGY_ID_LEN + 1];
    char primary[TOPOLOGY_ID_LEN + 1];
    size_t len = 0;

    for (int i = 0; i < NODES; i++) {
        const struct member *member = &version->member[i];

        id_of(i, id);
        (void)snprintf(primary, sizeof(primary), "-");
        if (member->primary != NOBODY) {
            id_of(member->primary, primary);
        }
        len += (size_t)snprintf(
            text + len, sizeof(text) - len,
            "%s 127.0.0.1:%d@%d %s%s %s 0 0 %" PRIu64 " connected", id,
            7000 + i, 17000 + i, i == myself ? "myself," : "",
            member->primary == NOBODY ? "master" : "slave", primary,
            version->member[member->primary == NOBODY ? i : member->primary]
                .epoch);
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            if (version->owner[slot] == i) {
                len += (size_t)snprintf(text + len, sizeof(text) - len, " %u",
                                        slot_number(slot));
            }
        }
        len += (size_t)snprintf(text + len, sizeof(text) - len, "\n");
    }
    id_of(myself, id);
    return rig_topology(text, RIG_INFO, id);
}

/* ---- data ---------------------------------------------------------------- */

static void
put(struct daemon *d, unsigned slot, uint64_t items)
{
    struct change *change = &d->log[d->length];
    uint64_t before = d->length > 0 ? change[-1].hash : 1;

    assert_true(d->length < LOG_MAX);
    *change = (struct change){
        .slot = (uint8_t)slot,
        .items = items,
        .hash = (before ^ (items + slot)) * UINT64_C(0x9E3779B97F4A7C15) + 1
    };
    d->length++;
    d->items[slot] = items;
}

static bool
is_prefix(const struct daemon *of, const struct daemon *d)
{
    return d->length <= of->length &&
           (d->length == 0 ||
            of->log[d->length - 1].hash == d->log[d->length - 1].hash);
}

static bool
reaches(int a, int b)
{
    return w.daemon[a].up && w.daemon[b].up && !w.cut[a][b];
}

/* One millisecond of a replica. */
static void
replicate(int index)
{
    struct daemon *d = &w.daemon[index];
    struct daemon *leader;
    size_t step = below(4) == 0 ? 0 : 1 + below(20);

    if (!d->up || d->leader == NOBODY || !reaches(index, d->leader)) {
        d->sync_ms = 0;
        return;
    }
    leader = &w.daemon[d->leader];
    if (!is_prefix(leader, d)) {
        if (d->sync_ms == 0) {
            d->sync_ms = w.now_ms + 20 + below(200);
        } else if (w.now_ms >= d->sync_ms) {
            memcpy(d->log, leader->log, leader->length * sizeof(*d->log));
            d->length = leader->length;
            memcpy(d->items, leader->items, sizeof(d->items));
            d->history = leader->history;
            d->sync_ms = 0;
        }
        return;
    }
    d->history = leader->history;
    while (step-- > 0 && d->length < leader->length) {
        const struct change *change = &leader->log[d->length];

        put(d, change->slot, change->items);
    }
}

/* ---- hooks --------------------------------------------------------------- */

static int
index_of(const struct daemon *d)
{
    return (int)(d - w.daemon);
}

/* What begins to be served must have all that was acknowledged, but for what
 * only daemons have that cannot be reached. */
static void
check_served(int index, unsigned slot)
{
    struct daemon *d = &w.daemon[index];
    uint64_t absent = w.truth[slot] & ~w.lost[slot] & ~d->items[slot];

    if (absent == 0) {
        return;
    }
    for (int i = 0; i < NODES; i++) {
        bool has = i != index && reaches(index, i) &&
                   (w.daemon[i].items[slot] & absent) != 0 &&
                   w.daemon[i].leader == NOBODY;

        if (has && d->lease_ms <= w.now_ms) {
            return; /* it does not serve */
        }
        if (has && w.now_ms - w.daemon[i].since_ms > CALM_MS &&
            w.now_ms - w.healed_ms > CALM_MS) {
            (void)printf("t=%" PRIu64 ": daemon %d serves slot %u without "
                         "%#" PRIx64 " that daemon %d has\n",
                         w.now_ms, index, slot,
                         absent & w.daemon[i].items[slot], i);
            fail();
        }
    }
    w.lost[slot] |= absent;
}

static void
publish(void *ctx, const struct sidecar_map *map)
{
    struct daemon *d = ctx;

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint8_t state = map->state[slot_number(slot)];
        bool served = state == SLOT_SERVED || state == SLOT_EXPORTED ||
                      state == SLOT_LEAVING;
        bool begins = served && d->state[slot] != SLOT_SERVED &&
                      d->state[slot] != SLOT_EXPORTED &&
                      d->state[slot] != SLOT_LEAVING;

        if (state != d->state[slot]) {
            tell("daemon %d: slot %u state %u (was %u) held %" PRIu64,
                 index_of(d), slot, state, d->state[slot],
                 sidecar_holdings(d->sidecar)->held[slot_number(slot)]);
        }
        d->state[slot] = state;
        d->source[slot] = map->source[slot_number(slot)];
        if (begins && d->leader == NOBODY) {
            check_served(index_of(d), slot);
        }
    }
}

static void
follow(void *ctx, int node)
{
    struct daemon *d = ctx;

    tell("daemon %d follows %d", index_of(d), node);
    d->leader = node;
    d->sync_ms = 0;
}

static void
lead(void *ctx)
{
    struct daemon *d = ctx;

    tell("daemon %d leads", index_of(d));
    if (d->leader != NOBODY) {
        d->leader = NOBODY;
        d->history = ++w.histories;
    }
}

static void
where(void *ctx, char ret_history[HISTORY_ID_CHARS + 1], uint64_t *ret_position)
{
    struct daemon *d = ctx;

    (void)snprintf(ret_history, HISTORY_ID_CHARS + 1, "%040" PRIu64,
                   d->history);
    *ret_position = d->length;
}

static struct event *
post(uint64_t in_ms)
{
    struct event *event = &w.event[w.events];

    assert_true(w.events < EVENTS_MAX);
    w.events++;
    memset(event, 0, sizeof(*event));
    event->at_ms = w.now_ms + in_ms;
    return event;
}

static void
ask(void *ctx, const struct sidecar_ask *ask)
{
    struct daemon *d = ctx;
    struct event *event = post(1 + below(10));

    event->from = index_of(d);
    event->to = node_of(ask->node);
    event->boot = d->boot;
    event->number = ask->number;
    event->question = ask->question;
    event->epoch = ask->epoch;
    event->surveyed = ask->surveyed;
    event->known = ask->known;
    if (ask->set != NULL) {
        event->set = mem_alloc(sizeof(*event->set));
        *event->set = *ask->set;
    }
}

static void
begin_pull(void *ctx, const char *node, const struct slot_set *set)
{
    struct daemon *d = ctx;

    d->pull = (struct pull){ .runs = true,
                             .source = node_of(node),
                             .set = *set,
                             .ready_ms = w.now_ms + 20 + below(400) };
}

static void
pull_until(void *ctx, const char *history, uint64_t position)
{
    struct daemon *d = ctx;

    (void)history;
    d->pull.until = true;
    d->pull.position = position;
}

static void
pull_cancel(void *ctx)
{
    struct daemon *d = ctx;

    d->pull.runs = false;
}

static uint64_t
keep(void *ctx, const struct holdings *holdings)
{
    struct daemon *d = ctx;

    d->keeping = *holdings;
    d->ticket++;
    d->kept_ms = w.now_ms + 1 + below(20);
    return d->ticket;
}

static bool
is_kept(void *ctx, uint64_t ticket)
{
    struct daemon *d = ctx;

    return d->kept_ticket >= ticket;
}

static void
drop(void *ctx, const struct slot_set *set)
{
    struct daemon *d = ctx;

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (slot_set_has(set, slot_number(slot))) {
            put(d, slot, 0);
        }
    }
}

static void
poll_soon(void *ctx)
{
    struct daemon *d = ctx;

    d->poll_ms = w.now_ms + 1;
}

static void
start(int index)
{
    struct daemon *d = &w.daemon[index];
    const struct sidecar_hooks hooks = { .publish = publish,
                                         .follow = follow,
                                         .lead = lead,
                                         .where = where,
                                         .ask = ask,
                                         .pull = begin_pull,
                                         .pull_until = pull_until,
                                         .pull_cancel = pull_cancel,
                                         .keep = keep,
                                         .is_kept = is_kept,
                                         .drop = drop,
                                         .poll = poll_soon,
                                         .ctx = d };
    const struct sidecar_options options = { .silence_ms = LEASE_MS,
                                             .leaving_ms = LEASE_MS / 2 };

    tell("daemon %d starts", index);
    d->sidecar = sidecar_new(&hooks, &d->kept);
    sidecar_set_options(d->sidecar, &options);
    d->up = true;
    d->since_ms = w.now_ms;
    d->boot++;
    d->version = 0;
    d->lapsed = false;
    d->lease_ms = 0;
    d->poll_ms = w.now_ms + below(POLL_MS);
    d->ticket = d->kept_ticket = 0;
    d->pull.runs = false;
    memset(d->state, SLOT_AWAY, sizeof(d->state));
    if (d->leader == NOBODY) {
        d->history = ++w.histories;
    }
}

static void
stop(int index)
{
    struct daemon *d = &w.daemon[index];

    sidecar_free(d->sidecar);
    topology_free(d->topology);
    d->topology = NULL;
    d->sidecar = NULL;
    d->up = false;
    tell("daemon %d stops", index);
    memset(d->state, SLOT_AWAY, sizeof(d->state));
}

/* ---- events -------------------------------------------------------------- */

static struct sidecar_answer
answer_fence(struct daemon *d, struct event *event)
{
    char id[TOPOLOGY_ID_LEN + 1];
    const struct sidecar_ask ask = { .question = event->question,
                                     .node = id,
                                     .set = event->set,
                                     .epoch = event->epoch,
                                     .surveyed = event->surveyed,
                                     .known = event->known };
    struct sidecar_answer answer;
    bool empty = true;

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (slot_set_has(event->set, slot_number(slot)) &&
            d->items[slot] != 0) {
            empty = false;
        }
    }
    id_of(event->from, id);
    event->granted = mem_alloc(sizeof(*event->granted));
    answer = sidecar_fence(d->sidecar, &ask, d->lease_ms > w.now_ms, empty,
                           event->granted, w.now_ms);
    where(d, answer.history, &answer.position);
    return answer;
}

/* Turns a question into its answer on the way back. */
static void
turn(struct event *event)
{
    struct daemon *d = &w.daemon[event->to];

    if (event->is_answer || !reaches(event->from, event->to)) {
        event->answer.kind = SIDECAR_SILENT;
        event->answer.reason = "it is silent";
        event->at_ms = w.now_ms + SILENT_MS;
    } else if (event->question == SIDECAR_ASK_HOLDINGS) {
        event->answer.kind = SIDECAR_HOLDS;
        event->holdings = mem_alloc(sizeof(*event->holdings));
        *event->holdings = *sidecar_holdings(d->sidecar);
        event->answer.holdings = event->holdings;
        where(d, event->answer.history, &event->answer.position);
        event->at_ms = w.now_ms + 1 + below(10);
    } else {
        event->answer = answer_fence(d, event);
        event->at_ms = w.now_ms + 1 + below(10);
    }
    event->is_answer = true;
}

static void
deliver(struct event *event)
{
    struct daemon *d = &w.daemon[event->from];

    if (event->answer.kind != SIDECAR_SILENT &&
        !reaches(event->from, event->to)) {
        turn(event); /* the answer is lost */
        return;
    }
    if (d->up && d->boot == event->boot) {
        sidecar_answered(d->sidecar, event->number, &event->answer, w.now_ms);
    }
    event->at_ms = UINT64_MAX;
}

static void
run_events(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < w.events; i++) {
        struct event event = w.event[i];

        if (event.at_ms <= w.now_ms) {
            if (event.is_answer) {
                deliver(&event);
            } else {
                turn(&event);
            }
        }
        if (event.at_ms == UINT64_MAX) {
            mem_free(event.set);
            mem_free(event.granted);
            mem_free(event.holdings);
        } else {
            w.event[kept++] = event;
        }
        /* deliver may have posted more, behind the others */
    }
    w.events = kept;
}

/* ---- one millisecond ----------------------------------------------------- */

static void
run_poll(int index)
{
    struct daemon *d = &w.daemon[index];
    size_t seen = version_seen(index);
    struct topology *before = NULL;

    d->poll_ms = w.now_ms + POLL_MS;
    if (!w.node_up[index]) {
        return;
    }
    if (d->lease_ms != 0 && d->lease_ms < w.now_ms) {
        sidecar_lapsed(d->sidecar, w.now_ms);
    }
    if (seen != d->version) {
        before = d->topology;
        d->topology = show(&w.version[seen - 1], index);
        d->version = seen;
    }
    sidecar_polled(d->sidecar, d->topology, d->lease_ms > w.now_ms, w.now_ms);
    d->lease_ms = w.now_ms + LEASE_MS;
    topology_free(before);
}

static void
run_pull(struct daemon *d)
{
    struct pull *pull = &d->pull;
    struct daemon *source = &w.daemon[pull->source];

    if (!pull->runs) {
        return;
    }
    if (!reaches(index_of(d), pull->source)) {
        pull->broken_ms += 1;
        if (pull->broken_ms == 1) {
            sidecar_pull_broke(d->sidecar, w.now_ms);
        }
        if (pull->broken_ms > 300) {
            pull->runs = false;
            sidecar_pull_ended(d->sidecar, false, "the link is cut", w.now_ms);
        }
        return;
    }
    if (w.now_ms < pull->ready_ms || below(3) == 0) {
        return;
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (slot_set_has(&pull->set, slot_number(slot)) &&
            d->items[slot] != source->items[slot]) {
            put(d, slot, source->items[slot]);
        }
    }
    if (pull->until && source->length >= pull->position) {
        pull->runs = false;
        sidecar_pull_ended(d->sidecar, true, "", w.now_ms);
    } else if (!pull->near) {
        pull->near = true;
        sidecar_pull_is_near(d->sidecar, w.now_ms);
    }
}

static void
run_daemon(int index)
{
    struct daemon *d = &w.daemon[index];

    if (!d->up) {
        if (w.now_ms >= d->up_at_ms) {
            start(index);
        }
        return;
    }
    if (d->ticket > d->kept_ticket && w.now_ms >= d->kept_ms) {
        d->kept = d->keeping;
        d->kept_ticket = d->ticket;
    }
    replicate(index);
    run_pull(d);
    if (w.now_ms >= d->poll_ms) {
        run_poll(index);
    }
    if (w.now_ms >= d->tick_ms) {
        d->tick_ms = w.now_ms + 5;
        sidecar_tick(d->sidecar, w.now_ms);
    }
}

/* ---- clients ------------------------------------------------------------- */

/* Returns the daemon that executes a command on the slot, or NOBODY. */
static int
find_server(unsigned slot)
{
    int at = (int)below(NODES);
    bool asking = false;

    for (int hops = 0; hops < 5; hops++) {
        struct daemon *d = &w.daemon[at];

        if (!d->up || d->topology == NULL) {
            return NOBODY;
        }
        switch ((enum slot_state)d->state[slot]) {
        case SLOT_SERVED:
            if (d->leader == NOBODY) {
                return d->lease_ms > w.now_ms ? at : NOBODY;
            }
            break;
        case SLOT_LEAVING:
            return at;
        case SLOT_EXPORTED:
            if (asking) {
                return at;
            }
            break;
        case SLOT_PULLED:
            at = d->source[slot];
            asking = true;
            continue;
        case SLOT_HELD:
        case SLOT_MISSING:
            return NOBODY;
        case SLOT_AWAY:
            break;
        }
        at = d->topology->owner[slot_number(slot)];
        asking = false;
        if (at == TOPOLOGY_NOBODY) {
            return NOBODY;
        }
    }
    return NOBODY;
}

static void
run_client(void)
{
    unsigned slot = (unsigned)below(SLOTS);
    int at = find_server(slot);
    struct daemon *d;
    uint64_t absent;

    if (at == NOBODY) {
        w.refused++;
        return;
    }
    d = &w.daemon[at];
    absent = w.truth[slot] & ~w.lost[slot] & ~d->items[slot];
    if (absent != 0) {
        (void)printf("t=%" PRIu64 ": daemon %d misses items %#" PRIx64
                     " of slot %u\n",
                     w.now_ms, at, absent, slot);
        fail();
    }
    if (below(3) == 0) {
        uint64_t item = UINT64_C(1) << below(64);

        put(d, slot, d->items[slot] | item);
        w.truth[slot] |= item;
        w.lost[slot] &= ~item;
        w.writes++;
    }
}

/* ---- what happens to a world --------------------------------------------- */

static int
some_primary(void)
{
    int node = (int)below(NODES);

    while (newest()->member[node].primary != NOBODY) {
        node = (node + 1) % NODES;
    }
    return node;
}

static void
move_slots(void)
{
    int to = some_primary();
    uint64_t epoch = next_epoch();
    struct version *version = change_cluster();

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (below(3) == 0 && version->owner[slot] != to) {
            version->owner[slot] = to;
            version->member[to].epoch = epoch;
        }
    }
    tell("slots move to %d", to);
    w.moves++;
}

static void
fail_over(int old)
{
    int next = NOBODY;
    uint64_t epoch = next_epoch();
    struct version *version;

    for (int i = 0; i < NODES; i++) {
        if (newest()->member[i].primary == old && w.node_up[i]) {
            next = i;
        }
    }
    if (next == NOBODY) {
        return;
    }
    version = change_cluster();
    for (int i = 0; i < NODES; i++) {
        if (version->member[i].primary == old || i == old) {
            version->member[i].primary = next;
        }
    }
    version->member[next] = (struct member){ NOBODY, epoch };
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (version->owner[slot] == old) {
            version->owner[slot] = next;
        }
    }
    tell("node %d takes over from %d", next, old);
    w.failovers++;
}

static void
make_fault(void)
{
    int node = (int)below(NODES);
    int other = (int)below(NODES);

    switch (below(7)) {
    case 0:
    case 1:
        move_slots();
        break;
    case 2:
        fail_over(some_primary());
        break;
    case 3:
        if (w.daemon[node].up) {
            stop(node);
            w.daemon[node].up_at_ms = w.now_ms + 50 + below(3000);
        }
        break;
    case 4: /* the node is silent; if it stays so, it is failed over */
        if (w.node_up[node]) {
            tell("node %d is silent", node);
            w.node_up[node] = false;
            w.node_down_ms[node] = w.now_ms;
            w.node_back_ms[node] = w.now_ms + 100 + below(5000);
        }
        break;
    case 5:
        tell("%d and %d are cut", node, other);
        w.cut[node][other] = w.cut[other][node] = true;
        break;
    default:
        tell("no link is cut");
        w.healed_ms = w.now_ms;
        memset(w.cut, 0, sizeof(w.cut));
    }
}

static void
run_nodes(void)
{
    for (int i = 0; i < NODES; i++) {
        if (w.node_up[i]) {
            continue;
        }
        if (w.now_ms == w.node_down_ms[i] + 2300 &&
            newest()->member[i].primary == NOBODY) {
            fail_over(i);
        }
        if (w.now_ms >= w.node_back_ms[i]) {
            w.node_up[i] = true;
        }
    }
}

static void
run_ms(void)
{
    w.now_ms++;
    run_nodes();
    run_events();
    for (int i = 0; i < NODES; i++) {
        run_daemon(i);
    }
    run_client();
}

/* ---- a world ------------------------------------------------------------- */

static void
begin_world(uint64_t seed, bool told)
{
    memset(&w, 0, sizeof(w));
    w.told = told;
    w.seed = seed | 1;
    w.now_ms = 1000;
    for (int i = 0; i < 20; i++) {
        (void)below(2);
    }
    (void)change_cluster();
    for (int i = 0; i < NODES; i++) {
        newest()->member[i] =
            (struct member){ i < NODES / 2 ? NOBODY : i - NODES / 2,
                             (uint64_t)i + 1 };
        w.node_up[i] = true;
        w.daemon[i].log = mem_alloc(LOG_MAX * sizeof(struct change));
        w.daemon[i].leader = NOBODY;
        start(i);
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        newest()->owner[slot] = (int)(slot % (NODES / 2));
    }
}

static void
end_world(void)
{
    for (size_t i = 0; i < w.events; i++) {
        mem_free(w.event[i].set);
        mem_free(w.event[i].granted);
        mem_free(w.event[i].holdings);
    }
    for (int i = 0; i < NODES; i++) {
        if (w.daemon[i].up) {
            stop(i);
        }
        mem_free(w.daemon[i].log);
    }
}

static bool
all_is_served(void)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const struct daemon *d = &w.daemon[newest()->owner[slot]];

        if (!d->up || d->leader != NOBODY || d->state[slot] != SLOT_SERVED ||
            d->lease_ms <= w.now_ms) {
            return false;
        }
    }
    return true;
}

static void
heal(void)
{
    uint64_t until_ms = w.now_ms + HEALED_MS;

    memset(w.cut, 0, sizeof(w.cut));
    for (int i = 0; i < NODES; i++) {
        w.node_back_ms[i] = w.now_ms;
        w.daemon[i].up_at_ms = w.now_ms;
    }
    do {
        run_ms();
    } while (!all_is_served() && w.now_ms < until_ms);
    if (!all_is_served()) {
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            const struct daemon *d = &w.daemon[newest()->owner[slot]];

            (void)printf("slot %u: owner %d leader %d state %u source %d\n",
                         slot, newest()->owner[slot], d->leader, d->state[slot],
                         d->source[slot]);
        }
        fail();
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        assert_int_equal(0, w.truth[slot] & ~w.lost[slot] &
                                ~w.daemon[newest()->owner[slot]].items[slot]);
    }
}

static uint64_t
count_bits(const uint64_t *masks)
{
    uint64_t count = 0;

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        count += (uint64_t)__builtin_popcountll(masks[slot]);
    }
    return count;
}

/* A run of the tests simulates the same worlds each time; BLOOMERY_ROUNDS or
 * BLOOMERY_SEED ask for others. */
static uint64_t
first_seed(void)
{
    return getenv("BLOOMERY_ROUNDS") == NULL && getenv("BLOOMERY_SEED") == NULL
               ? 1
               : test_seed();
}

TEST(no_item_is_missed_and_every_slot_is_served_again)
{
    const char *only = getenv("BLOOMERY_SIM");
    uint64_t worlds = only != NULL ? 1 : WORLDS * test_rounds();
    uint64_t first = only != NULL ? strtoull(only, NULL, 0) : first_seed();
    uint64_t sums[5] = { 0 };

    log_set_level(only != NULL ? LOG_INFO : (enum log_level)CONF_LOG_NOTHING);
    for (uint64_t i = 0; i < worlds; i++) {
        uint64_t fault_ms = 60 + (first + i) % 1000;

        (void)printf("\rBLOOMERY_SIM=%#" PRIx64, first + i);
        begin_world((first + i) * UINT64_C(0x9E3779B97F4A7C15), only != NULL);
        while (w.now_ms < FAULTS_MS) {
            run_ms();
            if (below(fault_ms) == 0 && w.now_ms > 2000) {
                make_fault();
            }
        }
        heal();
        sums[0] += w.writes;
        sums[1] += w.refused;
        sums[2] += w.moves;
        sums[3] += w.failovers;
        sums[4] += count_bits(w.lost);
        end_world();
    }
    (void)printf("\r%" PRIu64 " worlds, %" PRIu64 " writes, %" PRIu64
                 " refused, %" PRIu64 " moves, %" PRIu64 " failovers, %" PRIu64
                 " items lost with daemons that were not there\n",
                 worlds, sums[0], sums[1], sums[2], sums[3], sums[4]);
    assert_true(sums[0] > worlds * 100);
}
