/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar/sidecar_mode.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/sidecar_times.h"
#include "dial/colleague.h"
#include "dial/neighbour.h"
#include "engine/observe.h"
#include "journal/journal.h"
#include "keyspace/gate.h"
#include "keyspace/key_hash.h"
#include "persist/kept_file.h"
#include "persist/persist.h"
#include "roles/replication_state.h"
#include "sidecar/sidecar_inquiry.h"
#include "sidecar/sidecar_mode_state.h"
#include "sidecar/sidecar_owner.h"
#include "sidecar/sidecar_word.h"

#include <errno.h>
#include <stdio.h>

enum { MS = 1000000 };

#define SLOTS_FILE_NAME "slots.state"

/* ---- the lease ----------------------------------------------------------- */

/* A lease that ends unnoticed is counted when the next one begins. */
static void
set_lease(struct sidecar_mode *mode, uint64_t until_ns)
{
    struct cluster *cluster = &mode->cluster;
    uint64_t before_ns = atomic_load(&cluster->lease_until_ns);

    if (before_ns != until_ns) {
        atomic_store_explicit(&cluster->lease_until_ns, until_ns,
                              memory_order_release);
        if (before_ns > 0 && (until_ns == 0 || clock_boot_ns() >= before_ns)) {
            (void)atomic_fetch_add(&cluster->leases_lost, 1);
            log_warn("server.sidecar", "the lease has ended", "%s", "");
        }
    }
}

/* Notes whether the lease has run out. Other daemons may have served our slots
 * since then. */
static void
note_lapse(struct sidecar_mode *mode, const struct neighbour_poll *poll)
{
    struct lease *lease = &mode->lease;

    if (mode->leased && (poll->gone || poll->heard_ns >= lease->until_ns)) {
        mode->leased = false;
        sidecar_lapsed(mode->sidecar, sidecar_mode_now_ms());
    }
}

static void
set_silence(struct sidecar_mode *mode)
{
    const struct conf *conf = mode->loop0->service->conf;
    uint64_t lease_ms = mode->lease.length_ns / MS;
    bool safe = conf->sidecar_mode == CONF_SIDECAR_MODE_SAFE;
    struct sidecar_options options =
        sidecar_times_of(lease_ms, safe, mode->view.settings.node_timeout_ms);

    options.missing_empty =
        conf->sidecar_missing_slot == CONF_MISSING_SLOT_EMPTY;
    sidecar_set_options(mode->sidecar, &options);
    atomic_store(&mode->cluster.lease_ms, lease_ms);
}

/* ---- the neighbour ------------------------------------------------------- */

static void
take_topology(struct sidecar_mode *mode, const struct neighbour_poll *poll)
{
    struct topology *before = mode->topology;

    if (poll->topology != NULL) {
        mode->topology = poll->topology;
        log_info("server.sidecar", "the cluster has changed",
                 "state=%s epoch=%llu nodes=%zu",
                 mode->topology->ok ? "ok" : "fail",
                 (unsigned long long)mode->topology->my_epoch,
                 mode->topology->count);
        sidecar_polled(mode->sidecar, mode->topology, mode->leased,
                       sidecar_mode_now_ms());
        topology_free(before);
    } else if (before != NULL) {
        if (mode->unpublished) {
            sidecar_refresh(mode->sidecar);
        }
        sidecar_polled(mode->sidecar, before, mode->leased,
                       sidecar_mode_now_ms());
    }
}

static void on_timer(uv_timer_t *timer);

/* Makes the timer of ticks run fast while something is under way. */
static void
set_pace(struct sidecar_mode *mode)
{
    unsigned tick_ms =
        sidecar_rests(mode->sidecar) ? SIDECAR_REST_TICK_MS : SIDECAR_TICK_MS;

    if (tick_ms != mode->tick_ms) {
        mode->tick_ms = tick_ms;
        CHECK(uv_timer_start(&mode->timer, on_timer, tick_ms, tick_ms) == 0);
    }
}

static void
on_polled(void *ctx, const struct neighbour_poll *poll)
{
    struct sidecar_mode *mode = ctx;

    if (mode->sidecar == NULL || atomic_load(&mode->loop0->service->loading)) {
        topology_free(poll->topology);
        neighbour_forget(mode->neighbour);
        return; /* the data is not loaded yet */
    }
    note_lapse(mode, poll);
    if (poll->gone) {
        lease_ended(&mode->lease);
        set_lease(mode, 0);
    } else if (!poll->failed) {
        (void)atomic_fetch_add(&mode->cluster.polls, 1);
        take_topology(mode, poll);
        lease_answered(&mode->lease, poll->sent_ns, poll->heard_ns);
    }
    if (mode->unpublished) {
        lease_ended(&mode->lease);
    }
    mode->leased = mode->leased || mode->lease.until_ns > 0;
    set_lease(mode, mode->lease.until_ns);
    atomic_store(&mode->cluster.neighbour_up, neighbour_is_up(mode->neighbour));
    set_pace(mode);
}

static void
on_settled(void *ctx, const struct cluster_settings *settings)
{
    struct sidecar_mode *mode = ctx;
    const struct conf *conf = mode->loop0->service->conf;

    mode->view.settings = *settings;
    mode->lease.length_ns = conf->sidecar_lease_ms > 0
                                ? (uint64_t)conf->sidecar_lease_ms * MS
                                : lease_length_of(settings->node_timeout_ms);
    if (mode->sidecar != NULL) {
        set_silence(mode);
    }
}

/* ---- options ------------------------------------------------------------- */

/* Parses sidecar-map. The addresses point into its text. If ret_addresses is
 * NULL, only checks the text. */
static bool
parse_map(const char *map, struct view_address *ret_addresses,
          size_t *ret_count, char *ret_reason, size_t reason_size)
{
    struct slice rest = slice_of(map);
    struct slice word;
    size_t count = 0;

    while (slice_next_word(&rest, &word)) {
        struct view_address address;

        CHECK(count < SIDECAR_ADDRESSES_MAX);
        if (!view_parse_address(word, &address)) {
            (void)snprintf(ret_reason, reason_size,
                           "sidecar-map: '%.*s' is not node-id=host:port",
                           slice_shown(word), word.data);
            return false;
        }
        if (ret_addresses != NULL) {
            ret_addresses[count] = address;
        }
        count++;
    }
    *ret_count = count;
    return true;
}

bool
sidecar_mode_allows(const struct conf *conf, char *ret_reason,
                    size_t reason_size)
{
    size_t count;

    return parse_map(conf->sidecar_map, NULL, &count, ret_reason, reason_size);
}

/* Reads sidecar-map, whose form was checked before. Returns whether it has
 * changed. */
static bool
read_map(struct sidecar_mode *mode)
{
    char reason[SIDECAR_MODE_REASON_MAX];
    char *before = mode->map;

    if (before != NULL &&
        strcmp(before, mode->loop0->service->conf->sidecar_map) == 0) {
        return false;
    }
    mode->map =
        mem_copy_text(slice_of(mode->loop0->service->conf->sidecar_map));
    CHECK(parse_map(mode->map, mode->addresses, &mode->view.address_count,
                    reason, sizeof(reason)));
    mode->view.addresses = mode->addresses;
    mem_free(before);
    return true;
}

static void
read_options(struct sidecar_mode *mode)
{
    const struct conf *conf = mode->loop0->service->conf;
    struct view_options *view = &mode->view;

    mode->lease.poll_ns = (uint64_t)conf->sidecar_poll_ms * MS;
    view->port_offset = (int)conf->sidecar_port_offset;
    view->tls_only = conf->port == 0 && conf->tls_port > 0;
    if (conf->port > 0 && conf->tls_port > 0) {
        view->tls_offset = (int)(conf->tls_port - conf->port);
    }
}

/* Makes loop 0 look at the map, at answers and at the disk. Any thread. */
static void
poke(void *ctx)
{
    struct sidecar_mode *mode = ctx;

    if (atomic_load(&mode->started)) {
        (void)uv_async_send(&mode->poke);
    }
}

void
sidecar_mode_apply_conf(struct sidecar_mode *mode)
{
    if (mode != NULL) {
        atomic_store(&mode->map_due, true);
        poke(mode);
    }
}

/* Publishes the addresses of sidecar-map if it has changed. */
static void
look_at_map(struct sidecar_mode *mode)
{
    struct gate *gate = keyspace_gate(mode->loop0->service->keyspace);

    if (!atomic_exchange(&mode->map_due, false)) {
        return;
    }
    gate_enter(gate, 0);
    mode->remade = read_map(mode);
    gate_leave(gate, 0);
    if (mode->remade) {
        sidecar_refresh(mode->sidecar);
    }
}

void
sidecar_mode_moved(struct sidecar_mode *mode)
{
    uint64_t wanted = mode == NULL ? 0 : atomic_load(&mode->sync_to);

    if (wanted != 0 &&
        journal_synced(persist_journal(mode->loop0->service->persist)) >=
            wanted &&
        atomic_compare_exchange_strong(&mode->sync_to, &wanted, 0)) {
        poke(mode);
    }
}

static void
on_order(void *ctx, struct fence_order *order)
{
    struct sidecar_mode *mode = ctx;

    if (!atomic_load(&mode->started)) {
        fence_order_drop(order); /* the server stops */
        return;
    }
    sidecar_owner_take(mode, order);
    poke(mode);
}

/* ---- life ---------------------------------------------------------------- */

bool
sidecar_mode_init(const struct loop0 *loop0, struct replication *r,
                  struct sidecar_mode **ret_mode,
                  char ret_reason[SIDECAR_MODE_REASON_MAX])
{
    const struct conf *conf = loop0->service->conf;
    struct neighbour_hooks hooks = { .polled = on_polled,
                                     .settled = on_settled };
    struct neighbour_address address;
    struct sidecar_mode *mode;

    if (conf->sidecar_of[0] == '\0') {
        return true;
    }
    if (!neighbour_parse(conf->sidecar_of, &address)) {
        (void)snprintf(ret_reason, SIDECAR_MODE_REASON_MAX,
                       "sidecar-of: '%s' is neither host:port nor "
                       "[address]:port nor the path of a unix socket",
                       conf->sidecar_of);
        return false;
    }
    if (conf->replicaof[0] != '\0') {
        (void)snprintf(ret_reason, SIDECAR_MODE_REASON_MAX,
                       "replicaof cannot be set together with sidecar-of: the "
                       "cluster says which server follows which");
        return false;
    }
    if (!sidecar_mode_allows(conf, ret_reason, SIDECAR_MODE_REASON_MAX)) {
        return false;
    }
    mode = mem_zalloc(sizeof(*mode));
    mode->loop0 = loop0;
    mode->r = r;
    mode->answered = mem_zalloc(sizeof(*mode->answered));
    *ret_mode = mode;
    (void)read_map(mode);
    read_options(mode);
    key_hash_by_slot(true);
    hooks.ctx = mode;
    mode->neighbour = neighbour_new(loop0, &address, &hooks);
    mode->inquiry = sidecar_inquiry_new(loop0, on_order, mode);
    loop0->service->cluster = &mode->cluster;
    observe_flag(loop0->service, OBSERVED_ROUTES, true);
    return true;
}

void
sidecar_mode_fini(struct sidecar_mode *mode)
{
    if (mode != NULL) {
        neighbour_free(mode->neighbour);
        colleagues_free(mode->colleagues);
        sidecar_inquiry_free(mode->inquiry);
        sidecar_free(mode->sidecar);
        view_free(mode->view_shown);
        topology_free(mode->topology);
        mem_free(mode->map);
        mem_free(mode->answered);
        mem_free(mode);
    }
}

/* Reads slots.state. False: the file exists, but cannot be used. */
static bool
read_file(const char *dir, struct holdings *holdings, char *reason)
{
    char *text = mem_alloc(HOLDINGS_TEXT_MAX + 1);
    size_t len = 0;
    int fd = -1;
    int error = file_open_dir(dir, false, &fd);
    bool good = true;

    if (error == 0) {
        error =
            file_read_name(fd, SLOTS_FILE_NAME, text, HOLDINGS_TEXT_MAX, &len);
    }
    if (error == 0) {
        good = holdings_parse((struct slice){ text, len }, holdings, reason);
    } else if (error != ENOENT) {
        (void)snprintf(reason, HOLDINGS_REASON_MAX, "%s", strerror(error));
        good = false;
    }
    file_close(fd);
    mem_free(text);
    return good;
}

/* Called by the thread of the file. */
static void
on_written(void *ctx)
{
    poke(ctx);
}

bool
sidecar_mode_open(struct sidecar_mode *mode)
{
    const struct service *service;
    struct holdings *holdings;
    char reason[HOLDINGS_REASON_MAX];
    struct kept_file_options options = {
        .name = SLOTS_FILE_NAME,
        .thread = "slots",
        .room_bytes = HOLDINGS_FILE_MAX,
        .failed_event = "did not write which slots are held",
        .mended_event = "wrote which slots are held after all",
    };
    struct sidecar_hooks hooks = sidecar_owner_hooks;

    if (mode == NULL) {
        return true;
    }
    service = mode->loop0->service;
    holdings = mem_zalloc(sizeof(*holdings));
    if (!read_file(service->conf->dir, holdings, reason)) {
        log_error("server.sidecar", "cannot read which slots were held",
                  "file=\"%s/" SLOTS_FILE_NAME "\" reason=\"%s\" "
                  "next=\"remove it: the slots are then taken from other "
                  "daemons, or are missing\"",
                  service->conf->dir, reason);
        mem_free(holdings);
        return false;
    }
    options.dir = persist_dir(service->persist);
    options.written = on_written;
    options.ctx = mode;
    mode->file = kept_file_new(&options);
    hooks.ctx = mode;
    mode->sidecar = sidecar_new(&hooks, holdings);
    mem_free(holdings);
    return true;
}

void
sidecar_mode_write_again(struct sidecar_mode *mode)
{
    if (mode != NULL) {
        (void)kept_file_write_again(mode->file);
    }
}

static bool
may_load(void *ctx, const char *history)
{
    struct sidecar_mode *mode = ctx;

    return sidecar_may_copy(mode->sidecar, history, sidecar_mode_now_ms());
}

/* Ticks the state machine. Once the first tick has compared the data with the
 * file, other daemons may ask what is held. */
static void
tick(struct sidecar_mode *mode)
{
    sidecar_tick(mode->sidecar, sidecar_mode_now_ms());
    if (!mode->checked) {
        mode->checked = true;
        sidecar_inquiry_publish(mode->inquiry, sidecar_holdings(mode->sidecar));
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct sidecar_mode *mode = timer->data;

    if (atomic_load(&mode->loop0->service->loading)) {
        return;
    }
    look_at_map(mode);
    sidecar_owner_look(mode);
    tick(mode);
    atomic_store(&mode->cluster.cutover_ms, sidecar_cutover_ms(mode->sidecar));
    sidecar_report_look(&mode->report, mode->cluster.view,
                        sidecar_mode_now_ms());
    set_pace(mode);
}

static void
on_poke(uv_async_t *handle)
{
    struct sidecar_mode *mode = handle->data;

    if (!atomic_load(&mode->loop0->service->loading)) {
        look_at_map(mode);
        sidecar_owner_answer(mode);
        tick(mode);
        set_pace(mode);
    }
}

static void
on_answered(void *ctx, uint64_t number, const struct answer *reply,
            const char *reason)
{
    struct sidecar_mode *mode = ctx;

    sidecar_owner_answered(mode, number, reply, reason);
    set_pace(mode);
}

static bool
on_told(void *ctx, struct slice text)
{
    struct sidecar_mode *mode = ctx;
    bool good = sidecar_owner_told(mode, text);

    if (good && atomic_load(&mode->started)) {
        set_pace(mode);
    }
    return good;
}

void
sidecar_mode_start(struct sidecar_mode *mode)
{
    uv_loop_t *uv;

    if (mode == NULL) {
        return;
    }
    uv = &mode->loop0->loop->uv;
    mode->colleagues = colleagues_new(mode->loop0, on_answered, mode);
    mode->r->following.take_holdings = on_told;
    mode->r->following.may_load = may_load;
    mode->r->following.holdings_ctx = mode;
    CHECK(uv_timer_init(uv, &mode->timer) == 0);
    mode->timer.data = mode;
    mode->tick_ms = SIDECAR_TICK_MS;
    CHECK(uv_timer_start(&mode->timer, on_timer, SIDECAR_TICK_MS,
                         SIDECAR_TICK_MS) == 0);
    CHECK(uv_async_init(uv, &mode->poke, on_poke) == 0);
    mode->poke.data = mode;
    atomic_store(&mode->started, true);
    neighbour_start(mode->neighbour);
}

void
sidecar_mode_stop(struct sidecar_mode *mode)
{
    if (mode != NULL && atomic_exchange(&mode->started, false)) {
        neighbour_stop(mode->neighbour);
        colleagues_stop(mode->colleagues);
        sidecar_word_stop(mode);
        kept_file_free(mode->file); /* the file's thread calls poke() */
        mode->file = NULL;
        uv_close((uv_handle_t *)&mode->timer, NULL);
        uv_close((uv_handle_t *)&mode->poke, NULL);
    }
}

void
sidecar_mode_close(struct sidecar_mode *mode)
{
    if (mode != NULL) {
        kept_file_free(mode->file);
        mode->file = NULL;
    }
}
