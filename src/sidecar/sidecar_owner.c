/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A view is published under the raised gate: no loop is inside its section, and
 * the old view can be freed at once.
 */
#include "sidecar/sidecar_owner.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "cluster/sidecar_times.h"
#include "dial/colleague.h"
#include "dial/neighbour.h"
#include "engine/role.h"
#include "keyspace/gate.h"
#include "keyspace/slot_keys.h"
#include "persist/kept_file.h"
#include "persist/persist.h"
#include "persist/place.h"
#include "roles/grace.h"
#include "roles/outgoing.h"
#include "roles/replication_state.h"
#include "sidecar/sidecar_asks.h"
#include "sidecar/sidecar_inquiry.h"
#include "sidecar/sidecar_mode_state.h"
#include "sidecar/sidecar_word.h"
#include "slots/pull.h"
#include "slots/slot_drop.h"

#include <stdio.h>

enum { SCAN_SLICES_MAX = 64 };

static struct gate *
gate_of(const struct sidecar_mode *mode)
{
    return keyspace_gate(mode->loop0->service->keyspace);
}

/* ---- views --------------------------------------------------------------- */

/* Warns if clients are redirected to a port that this server does not listen
 * on. */
static void
check_own_port(struct sidecar_mode *mode, const struct cluster_view *view)
{
    const struct conf *conf = mode->loop0->service->conf;
    unsigned port = view->nodes[view->topology->myself].port[0];
    int64_t own = conf->port > 0 ? conf->port : conf->tls_port;

    if (port != (unsigned)own && port != mode->warned_port) {
        mode->warned_port = port;
        log_warn("server.sidecar", "clients are sent to another port",
                 "announced=%u own=%lld advice=\"set port, "
                 "sidecar-port-offset or sidecar-map\"",
                 port, (long long)own);
    }
}

/* Commands compare this time with a clock that goes on while the machine sleeps
 * (clock_boot_ns). until_ms is by the clock of events, which stops then. */
static void
set_leaving(struct sidecar_mode *mode, uint64_t until_ms)
{
    uint64_t now_ms = sidecar_mode_now_ms();
    uint64_t left_ms = until_ms > now_ms ? until_ms - now_ms : 0;

    atomic_store(&mode->cluster.leaving_until_ns,
                 clock_boot_ns() + left_ms * 1000000);
}

/* Adds to the view what is shown to operators. */
static void
describe_view(struct sidecar_mode *mode, struct cluster_view *view,
              const struct sidecar_map *map)
{
    view_set_silent(view, map->silent);
    view_set_waiting(view, map->waiting, map->waits_for);
    view_set_fallen(view, map->fallen);
    atomic_store(&mode->cluster.waits_ms, map->waiting > 0 ? map->waits_ms : 0);
}

/* Changes the published view in place if only the facts of describe_view() and
 * set_leaving() have changed. False: a new view is needed, with new texts. */
static bool
publish_again(struct sidecar_mode *mode, const struct sidecar_map *map)
{
    struct cluster_view *view = mode->view_shown;

    if (view == NULL || mode->unpublished || mode->remade ||
        view->topology != map->topology ||
        memcmp(view->state, map->state, sizeof(view->state)) != 0 ||
        memcmp(view->source, map->source, sizeof(view->source)) != 0) {
        return false;
    }
    gate_raise(gate_of(mode), 0);
    describe_view(mode, view, map);
    set_leaving(mode, map->leaving_until_ms);
    gate_lower(gate_of(mode), 0);
    sidecar_inquiry_publish(mode->inquiry, sidecar_holdings(mode->sidecar));
    return true;
}

static void
publish(void *ctx, const struct sidecar_map *map)
{
    struct sidecar_mode *mode = ctx;
    struct cluster_view *before = mode->view_shown;
    struct cluster_view *view;

    CHECK(map->topology == mode->topology);
    if (publish_again(mode, map)) {
        return;
    }
    view = view_new(topology_share(mode->topology), &mode->view, map->state,
                    map->source);
    mode->unpublished = view == NULL;
    if (view == NULL) { /* no memory: the lease ends (sidecar_mode.c) */
        topology_free(mode->topology);
        return;
    }
    mode->remade = false;
    gate_raise(gate_of(mode), 0);
    describe_view(mode, view, map);
    set_leaving(mode, map->leaving_until_ms);
    mode->cluster.view = mode->view_shown = view;
    gate_lower(gate_of(mode), 0);
    view_free(before);
    (void)atomic_fetch_add(&mode->cluster.views, 1);
    sidecar_inquiry_publish(mode->inquiry, sidecar_holdings(mode->sidecar));
    check_own_port(mode, view);
    service_wake_loops(
        mode->loop0->service); /* for commands that wait for a hand-off */
}

/* ---- the role ------------------------------------------------------------ */

static void
follow(void *ctx, int node)
{
    struct sidecar_mode *mode = ctx;
    const struct view_node *leader = &mode->cluster.view->nodes[node];

    if (!role_place_is_valid(slice_of(leader->host),
                             sidecar_mode_port(mode, leader))) {
        return; /* sidecar_owner_look tries again */
    }
    gate_raise(gate_of(mode), 0);
    role_follow(mode->loop0->service, slice_of(leader->host),
                sidecar_mode_port(mode, leader));
    gate_lower(gate_of(mode), 0);
}

static void
lead(void *ctx)
{
    struct sidecar_mode *mode = ctx;

    gate_raise(gate_of(mode), 0);
    role_lead(mode->loop0->service);
    gate_lower(gate_of(mode), 0);
}

static void
where(void *ctx, char ret_history[HISTORY_ID_CHARS + 1], uint64_t *ret_position)
{
    struct sidecar_mode *mode = ctx;
    struct persist *persist = mode->loop0->service->persist;
    uint64_t sequence;

    gate_enter(gate_of(mode), 0);
    memcpy(ret_history, persist_history(persist)->id, HISTORY_ID_CHARS + 1);
    persist_place(persist, ret_position, &sequence);
    gate_leave(gate_of(mode), 0);
}

static bool
has(void *ctx, const char history[HISTORY_ID_CHARS + 1], uint64_t position)
{
    struct sidecar_mode *mode = ctx;
    struct persist *persist = mode->loop0->service->persist;
    uint64_t end = 0;
    uint64_t sequence;
    bool covers;

    gate_enter(gate_of(mode), 0);
    if (position > 0) {
        persist_place(persist, &end, &sequence);
    }
    covers = position <= end && history_covers(persist_history(persist),
                                               slice_of(history), position);
    gate_leave(gate_of(mode), 0);
    return covers;
}

/* ---- the disk ------------------------------------------------------------ */

static void
disk(void *ctx, struct sidecar_disk *ret_disk)
{
    struct sidecar_mode *mode = ctx;
    const struct persist *persist = mode->loop0->service->persist;
    uint64_t stored;

    *ret_disk =
        (struct sidecar_disk){ .journals =
                                   mode->loop0->service->conf->appendonly };
    gate_enter(gate_of(mode), 0);
    memcpy(ret_disk->history, persist_history(persist)->id,
           sizeof(ret_disk->history));
    memcpy(ret_disk->snapshot, persist_stored_history(persist),
           sizeof(ret_disk->snapshot));
    if (persist_stored(persist, &stored)) {
        ret_disk->stored = stored + 1;
    }
    gate_leave(gate_of(mode), 0);
}

/* Requests that the data is stored. A snapshot that was requested earlier and
 * is still pending is enough. */
static void
store(void *ctx)
{
    struct sidecar_mode *mode = ctx;
    struct persist *persist = mode->loop0->service->persist;
    struct journal *journal = persist_journal(persist);

    if (mode->loop0->service->conf->appendonly) {
        uint64_t position = journal_position(journal);

        atomic_store(&mode->sync_to, position);
        journal_kick(journal);
        journal_want_sync(journal, position);
    } else if (mode->save == 0 ||
               persist_outcome(persist, PERSIST_SAVE, mode->save) !=
                   PERSIST_PENDING) {
        mode->save = persist_ask(persist, PERSIST_SAVE);
    }
}

/* ---- questions ----------------------------------------------------------- */

static void
ask_node(void *ctx, const struct sidecar_ask *question)
{
    struct sidecar_mode *mode = ctx;
    const struct view_node *node = sidecar_mode_node(mode, question->node);
    struct buf text = { 0 };

    sidecar_inquiry_publish(mode->inquiry, sidecar_holdings(mode->sidecar));
    sidecar_asks_write(&text, question,
                       mode->topology->nodes[mode->topology->myself].id);
    colleagues_ask(mode->colleagues, question->number,
                   node != NULL ? node->host : "",
                   node != NULL ? sidecar_mode_port(mode, node) : 0,
                   buf_slice(&text), SIDECAR_ANSWER_MS);
    buf_free(&text);
}

void
sidecar_owner_answered(void *ctx, uint64_t number, const struct answer *reply,
                       const char *reason)
{
    struct sidecar_mode *mode = ctx;
    struct slot_set granted;
    char text[256];
    struct sidecar_answer answer = { .kind = SIDECAR_SILENT, .reason = reason };

    if (sidecar_word_answered(mode, number, reply, reason)) {
        return;
    }
    memset(&granted, 0, sizeof(granted));
    if (reply != NULL) {
        answer = sidecar_asks_read(reply, mode->answered, &granted, text,
                                   sizeof(text));
    }
    sidecar_answered(mode->sidecar, number, &answer, sidecar_mode_now_ms());
}

/* ---- what a leader tells its replicas ------------------------------------ */

static void
tell(void *ctx, const struct holdings *holdings)
{
    struct sidecar_mode *mode = ctx;
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    struct buf text = { 0 };

    /* The doubts of a start are about the data that was loaded then. Whatever
     * this server holds from now on, it gets from others. */
    if (!holdings_has_slots(holdings)) {
        grace_end(mode->r, "holds no slot, so its data cannot be too old");
    }
    holdings_write(holdings, &text);
    where(mode, history, &position);
    primary_tell(mode->r->primary, &text, position, replication_now_ms());
}

static bool
is_linked(void *ctx)
{
    const struct sidecar_mode *mode = ctx;

    return replica_is_connected(mode->r->replica);
}

static bool
is_told(void *ctx)
{
    return ((const struct sidecar_mode *)ctx)->r->following.told;
}

bool
sidecar_owner_told(struct sidecar_mode *mode, struct slice text)
{
    char reason[HOLDINGS_REASON_MAX];

    if (!atomic_load(&mode->started)) {
        return true; /* the server stops */
    }
    if (!holdings_parse(text, mode->answered, reason)) {
        return false; /* malformed */
    }
    sidecar_told(mode->sidecar, mode->answered, sidecar_mode_now_ms());
    return true;
}

/* ---- fences -------------------------------------------------------------- */

static void
note_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    (void)key;
    (void)expires_at_ms;
    *(bool *)ctx = true;
}

/* Returns whether the slots have no keys, as far as a bounded look can tell. */
static bool
is_empty(const struct sidecar_mode *mode, const struct slot_set *set)
{
    uint64_t cursor = 0;
    bool found = false;

    for (int i = 0; i < SCAN_SLICES_MAX; i++) {
        gate_enter(gate_of(mode), 0);
        cursor = slot_keys_scan(mode->loop0->service->keyspace, 0, set, cursor,
                                note_key, &found);
        gate_leave(gate_of(mode), 0);
        if (found || cursor == 0) {
            return !found;
        }
    }
    return false;
}

/* Fills in the answer. If the slots got their first key between the check and
 * the fence, that key would be lost. So the other server must ask again. */
static void
answer_order(struct sidecar_mode *mode, struct fence_order *order)
{
    bool empty = order->ask.question == SIDECAR_ASK_FENCE_EMPTY &&
                 is_empty(mode, &order->set);

    order->answer =
        sidecar_fence(mode->sidecar, &order->ask,
                      cluster_has_lease(&mode->cluster, clock_boot_ns()), empty,
                      &order->granted, sidecar_mode_now_ms());
    if (order->answer.kind == SIDECAR_FENCED && empty &&
        !is_empty(mode, &order->set)) {
        order->answer.kind = SIDECAR_REFUSED;
        order->answer.reason = "a slot has its first key";
    }
    where(mode, order->answer.history, &order->answer.position);
    if (order->answer.kind == SIDECAR_FENCED) {
        log_notice("server.sidecar", "stopped serving slots for their owner",
                   "slots=%u node=%s position=%llu",
                   slot_set_count(&order->granted), order->node,
                   (unsigned long long)order->answer.position);
        outgoing_poke(mode->r);
    }
}

static bool
is_kept(void *ctx, uint64_t ticket)
{
    struct sidecar_mode *mode = ctx;

    return kept_file_outcome(mode->file, ticket) == 1;
}

void
sidecar_owner_answer(struct sidecar_mode *mode)
{
    struct fence_order **at = &mode->fenced;

    while (*at != NULL) {
        struct fence_order *order = *at;

        if (order->answer.kind != SIDECAR_FENCED ||
            is_kept(mode, order->answer.ticket)) {
            *at = order->next;
            sidecar_inquiry_answer(mode->inquiry, order);
        } else {
            at = &order->next;
        }
    }
}

void
sidecar_owner_take(struct sidecar_mode *mode, struct fence_order *order)
{
    if (order->ask.question == SIDECAR_ASK_FORCE) {
        if (!sidecar_word_force(mode, order)) {
            return;
        }
    } else if (order->ask.question == SIDECAR_ASK_LET_GO) {
        sidecar_word_let_go(mode, order);
    } else {
        answer_order(mode, order);
    }
    order->next = mode->fenced;
    mode->fenced = order;
}

/* ---- pulls --------------------------------------------------------------- */

static void
on_pull_ended(void *ctx, bool good, const char *reason)
{
    struct sidecar_mode *mode = ctx;

    sidecar_pull_ended(mode->sidecar, good, reason, sidecar_mode_now_ms());
}

static bool
has_keys(void *ctx, const struct slot_set *set)
{
    return !is_empty(ctx, set);
}

static void
begin_pull(void *ctx, const char *id, const struct slot_set *set)
{
    struct sidecar_mode *mode = ctx;
    const struct view_node *node = sidecar_mode_node(mode, id);
    const struct pull_hooks hooks = { .ended = on_pull_ended, .ctx = mode };

    mode->pull_near = false;
    mode->pull_end = 0;
    mode->pull_linked = mode->pull_cut = false;
    mode->pull_lost_ms = sidecar_mode_now_ms();
    (void)snprintf(mode->pull_failure, sizeof(mode->pull_failure),
                   "the node has no address");
    if (node != NULL) {
        const struct pull_source source = { set, node->host,
                                            sidecar_mode_port(mode, node) };

        if (pull_begin(mode->r->pull, &source, &hooks, mode->pull_failure,
                       sizeof(mode->pull_failure))) {
            mode->pull_failure[0] = '\0';
        }
    }
}

static void
end_pull(void *ctx, const char *history, uint64_t position)
{
    struct sidecar_mode *mode = ctx;

    pull_until(mode->r->pull, history, position);
}

static void
cancel_pull(void *ctx)
{
    struct sidecar_mode *mode = ctx;

    pull_cancel(mode->r->pull);
    mode->pull_failure[0] = '\0';
}

/* Checks whether the link has ended since the last look. */
static void
look_at_link(struct sidecar_mode *mode, const struct pull_progress *progress)
{
    bool linked = progress->state > PULL_CONNECTS;
    bool broke = mode->pull_linked &&
                 (!linked || progress->attempts != mode->pull_attempts ||
                  (progress->cut && !mode->pull_cut));

    if (linked || broke) {
        mode->pull_lost_ms = sidecar_mode_now_ms();
    }
    mode->pull_linked = linked;
    mode->pull_attempts = progress->attempts;
    mode->pull_cut = progress->cut;
    if (broke) {
        if (!mode->pull_near) {
            mode->pull_end = 0;
        }
        sidecar_pull_broke(mode->sidecar, sidecar_mode_now_ms());
    }
}

/* Returns whether the disk has the data that had arrived when little was left.
 * What the disk lacks at the fence is written while commands wait. */
static bool
is_arrival_stored(struct sidecar_mode *mode)
{
    const struct journal *journal =
        persist_journal(mode->loop0->service->persist);

    if (!mode->loop0->service->conf->appendonly) {
        return true;
    }
    if (mode->pull_end == 0) {
        mode->pull_end = journal_position(journal);
        store(mode);
    }
    return journal_synced(journal) >= mode->pull_end;
}

static void
look_at_pull(struct sidecar_mode *mode)
{
    struct pull_progress progress;

    if (mode->pull_failure[0] != '\0') {
        char reason[sizeof(mode->pull_failure)];

        memcpy(reason, mode->pull_failure, sizeof(reason));
        mode->pull_failure[0] = '\0';
        sidecar_pull_ended(mode->sidecar, false, reason, sidecar_mode_now_ms());
    }
    if (!pull_show(mode->r->pull, &progress)) {
        return;
    }
    look_at_link(mode, &progress);
    if (progress.reason[0] != '\0' &&
        sidecar_mode_now_ms() - mode->pull_lost_ms >= PULL_LINK_MS) {
        cancel_pull(mode);
        sidecar_pull_ended(mode->sidecar, false, progress.reason,
                           sidecar_mode_now_ms());
        return;
    }
    if (!mode->pull_near && progress.state == PULL_FOLLOWS &&
        progress.lag_bytes < SIDECAR_PULL_NEAR_BYTES &&
        is_arrival_stored(mode)) {
        mode->pull_near = true;
        sidecar_pull_is_near(mode->sidecar, sidecar_mode_now_ms());
    }
}

/* ---- the rest ------------------------------------------------------------ */

/* Follows our leader's daemon again if its address has changed. */
static void
look_at_leader(struct sidecar_mode *mode)
{
    const struct cluster_view *view = mode->cluster.view;
    const struct role *role = &mode->loop0->service->role;
    const struct view_node *leader;

    if (view == NULL || !role->replica || view->primary || view->leader < 0) {
        return;
    }
    leader = &view->nodes[view->leader];
    if (sidecar_follows(mode->sidecar, leader->node->id) &&
        (strcmp(role->host, leader->host) != 0 ||
         role->port != sidecar_mode_port(mode, leader))) {
        follow(mode, view->leader);
    }
}

void
sidecar_owner_look(struct sidecar_mode *mode)
{
    sidecar_set_behind(mode->sidecar, service_is_behind(mode->loop0->service));
    look_at_pull(mode);
    look_at_leader(mode);
}

static uint64_t
keep_holdings(void *ctx, const struct holdings *holdings)
{
    struct sidecar_mode *mode = ctx;
    struct buf text = { 0 };
    uint64_t ticket;

    holdings_write_file(holdings, &text);
    CHECK(!text.failed); /* the text is small; mem_alloc would abort for lack of
                            memory, too */
    ticket = kept_file_write(mode->file, buf_slice(&text));
    buf_free(&text);
    return ticket;
}

static void
drop_slots(void *ctx, const struct slot_set *set)
{
    struct sidecar_mode *mode = ctx;
    struct slot_set pulled;
    struct slot_set left = *set;

    pull_slots(mode->r->pull, &pulled);
    /* Slots of the pull come back: keep their keys. */
    slot_set_subtract(&left, &pulled);
    slot_drop_begin(mode->r->drop, &left);
}

static void
poll_soon(void *ctx)
{
    neighbour_hurry(((struct sidecar_mode *)ctx)->neighbour);
}

const struct sidecar_hooks sidecar_owner_hooks = { .publish = publish,
                                                   .follow = follow,
                                                   .lead = lead,
                                                   .where = where,
                                                   .has = has,
                                                   .disk = disk,
                                                   .store = store,
                                                   .ask = ask_node,
                                                   .has_keys = has_keys,
                                                   .pull = begin_pull,
                                                   .pull_until = end_pull,
                                                   .pull_cancel = cancel_pull,
                                                   .keep = keep_holdings,
                                                   .is_kept = is_kept,
                                                   .tell = tell,
                                                   .is_linked = is_linked,
                                                   .is_told = is_told,
                                                   .drop = drop_slots,
                                                   .poll = poll_soon };
